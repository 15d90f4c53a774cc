"""What closes a lease and what accepts a history, at the edges where two rules meet."""

from __future__ import annotations

import pytest

from gitbus import paths
from gitbus.proof.messages import ACCEPT
from gitbus.records import Lease
from tests.support.busparts import ITEM, make_lease, make_nonces
from tests.support.busrepo import BusRepo

LEASE = paths.lease(ITEM, 1)


def stuck(bus: BusRepo) -> dict[str, str]:
    """Leave a leased item stuck until its quarantine has passed; return the nonces."""
    bus.put_up()
    bus.merge("ada")
    nonces = bus.lease()
    bus.state(ITEM, "stuck")
    bus.tick(minutes=66)
    return nonces


def test_sent_outweighs_a_resolution(bus: BusRepo) -> None:
    """The human was wrong, and the holder's late word says so."""
    nonces = stuck(bus)
    late = bus.receipt(ITEM, "sent", nonces["sent"])
    bus.resolve("ada")
    bus.commit({paths.receipt(ITEM, 1): late}, "attest late", by="sender")
    [lease] = bus.leases()
    assert (set(lease.opened), lease.resolved, lease.closed) == ({"sent"}, True, False)


def test_resolution_closes_no_lease_that_it_could_not_see(bus: BusRepo) -> None:
    """A lease comes to light later, from beside the line, though it ended long before the resolution."""
    stuck(bus)
    lease = bus.read(LEASE, Lease)
    hidden = make_lease(bus.item(), lease.approval, lease.bus, lease.leased_at, make_nonces("hidden"))
    side = bus.detached({paths.lease(ITEM, 7): hidden}, parents=[bus.root], by="sender")
    bus.resolve("ada")
    bus.commit({}, "absorb", parents=[bus.tip, side])
    assert sorted(one.closed for one in bus.leases()) == [False, True]


@pytest.mark.parametrize("parent", [True, False])
def test_acceptance_has_the_tips_that_it_names_as_parents(bus: BusRepo, parent: bool) -> None:
    old = bus.tip
    hidden = bus.set_bus("ada", sending={"enabled": False})
    bus.commit({}, "absorb", parents=[old, hidden], tree=bus.store.commit(old).tree)
    message = f"accept\n\nGitbus-Bus: {bus.effective().blob}\n{ACCEPT}: {hidden}\n"
    other = hidden if parent else bus.detached({"goals/x.md": "x\n"}, parents=[bus.root])
    bus.commit({}, message, by="ada", key="ada", parents=[bus.tip, other])
    assert bus.line() == (set() if parent else {"hidden-history"})


def test_flip_may_be_dropped_where_something_else_is_kept(bus: BusRepo) -> None:
    bus.put_up()
    branch = f"gitbus/approve/{ITEM}"
    side = bus.commit({"workers/mac.yaml": "x\n"}, on=branch)
    bus.commit({"workers/mac.yaml": "x\n"}, "absorb", parents=[bus.tip, side])
    assert bus.line() == set()
