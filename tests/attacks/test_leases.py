"""Leases that somebody would like to be closed, hidden or forgotten, and words that were not the holder's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gitbus import paths
from gitbus.proof.decisions import prove_resolution
from gitbus.proof.leases import lease_findings
from gitbus.records import Lease
from tests.support.busparts import ITEM, make_lease, make_nonces, public
from tests.support.busrepo import BusRepo

LEASE, RECEIPT = paths.lease(ITEM, 1), paths.receipt(ITEM, 1)


def leased(bus: BusRepo, **how: Any) -> dict[str, str]:
    """Put an item up, approve and lease it; return the nonces."""
    bus.put_up()
    bus.merge("ada")
    return bus.lease(**how)


def stuck(bus: BusRepo, minutes: int = 66) -> dict[str, str]:
    """Lease an item and leave it stuck for so long."""
    nonces = leased(bus)
    bus.state(ITEM, "stuck")
    bus.tick(minutes=minutes)
    return nonces


def closed(bus: BusRepo) -> list[bool]:
    """Return which leases are closed."""
    return [one.closed for one in bus.leases()]


def findings(bus: BusRepo) -> list[str]:
    """Return what is wrong with leases and receipts."""
    return [one.rule for one in lease_findings(bus.fresh(), bus.tip, ITEM, root=bus.root)]


def why(bus: BusRepo) -> set[str]:
    """Return why the tip is no resolution."""
    _, proof = prove_resolution(bus.fresh(), bus.tip, ITEM, bus.effective(), now=bus.now)
    return {one.rule for one in proof.missing}


# --- receipts


def test_not_sent_forged_while_the_sender_transmits(bus: BusRepo) -> None:
    leased(bus)
    bus.commit({RECEIPT: bus.receipt(ITEM, "not_sent", "0" * 32)}, "attest", by="conductor")
    assert closed(bus) == [False]
    assert findings(bus) == ["receipt-opens-nothing"]


@pytest.mark.parametrize(("said", "forged"), [("sent", "not_sent"), ("not_sent", "sent")])
def test_word_turned_into_the_other_once_its_nonce_is_public(bus: BusRepo, said: str, forged: str) -> None:
    nonces = leased(bus)
    bus.attest(ITEM, said, nonces)
    bus.commit({RECEIPT: bus.receipt(ITEM, forged, nonces[said])}, "attest", by="conductor")
    assert [one.opened for one in bus.leases()] == [{said}]
    assert findings(bus) == ["receipt-opens-nothing"]


def test_sent_deleted_and_overwritten(bus: BusRepo) -> None:
    nonces = leased(bus)
    bus.attest(ITEM, "sent", nonces)
    bus.commit({RECEIPT: None, LEASE: None})
    bus.commit({paths.item_folder(ITEM): None})
    assert [(set(one.opened), one.closed) for one in bus.leases()] == [({"sent"}, False)]


def test_receipt_of_another_lease(bus: BusRepo) -> None:
    nonces = leased(bus)
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    bus.lease()
    bus.commit({paths.receipt(ITEM, 2): bus.receipt(ITEM, "not_sent", nonces["not_sent"])})
    assert [(one.attempt, one.closed) for one in bus.leases()] == [(1, True), (2, False)]


def test_unknown_opens_nothing(bus: BusRepo) -> None:
    bus.attest(ITEM, "unknown", leased(bus))
    assert closed(bus) == [False]
    assert findings(bus) == []


def test_not_sent_and_later_sent(bus: BusRepo) -> None:
    """A holder that says both is believed the worse."""
    nonces = leased(bus)
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    bus.commit({RECEIPT: bus.receipt(ITEM, "sent", nonces["sent"])}, "attest late", by="sender")
    assert [(set(one.opened), one.closed) for one in bus.leases()] == [({"sent", "not_sent"}, False)]


# --- leases


def test_second_attempt_whose_first_lease_nobody_closed(bus: BusRepo) -> None:
    leased(bus)
    bus.again(attempt=2)
    bus.merge("ada")
    assert bus.prove().proved
    assert closed(bus) == [False]


def test_second_lease_under_the_same_attempt_and_path(bus: BusRepo) -> None:
    nonces = leased(bus)
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    item = bus.item().model_copy(update={"attempt": 1})
    other = make_lease(item, bus.tip, bus.tip, bus.now, make_nonces("other"))
    bus.commit({LEASE: other}, "lease", by="sender")
    assert closed(bus) == [True, False]
    bus.commit({LEASE: None})
    assert closed(bus) == [True, False]


def test_lease_on_a_side_that_was_merged_and_dropped(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    before = bus.tip
    bus.lease()
    side = bus.tip
    bus.point("main", before)
    bus.commit({}, "absorb", parents=[before, side])
    assert closed(bus) == [False]
    assert bus.line() == {"hidden-history"}


@pytest.mark.parametrize("minutes", [-4, 600])
def test_lease_whose_expiry_was_edited(bus: BusRepo, minutes: int) -> None:
    stuck(bus, minutes=40)
    lease = bus.read(LEASE, Lease)
    edited = lease.model_copy(update={"expires_at": lease.expires_at + timedelta(minutes=minutes)})
    bus.commit({LEASE: edited})
    assert [one.ends for one in bus.leases()] == [lease.expires_at]
    assert findings(bus) == ["lease-changed"]
    bus.tick(minutes=26)
    bus.resolve("ada")
    assert closed(bus) == [True]


def test_lease_with_an_early_end_brought_from_beside_the_line(bus: BusRepo) -> None:
    stuck(bus, minutes=10)
    lease = bus.read(LEASE, Lease)
    early = lease.model_copy(update={"expires_at": lease.leased_at - timedelta(hours=2)})
    side = bus.detached({LEASE: early}, parents=[bus.root])
    bus.commit({}, "absorb", parents=[bus.tip, side])
    assert [one.ends for one in bus.leases()] == [lease.expires_at]
    bus.resolve("ada")
    assert closed(bus) == [False]


def test_lease_that_cannot_be_read_stays_open(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.commit({LEASE: "?\n"})
    assert [(one.attempt, one.lease, one.closed) for one in bus.leases()] == [(1, None, False)]
    assert findings(bus) == ["lease-unreadable"]


# --- resolutions


@pytest.mark.parametrize(("minutes", "expected"), [(50, False), (61, True)])
def test_resolved_inside_the_quarantine(bus: BusRepo, minutes: int, expected: bool) -> None:
    stuck(bus, minutes=0)
    bus.now = bus.read(LEASE, Lease).expires_at + timedelta(minutes=minutes)
    bus.resolve("ada")
    assert why(bus) == set()
    assert closed(bus) == [expected]


def test_resolution_closes_no_lease_that_comes_after_it(bus: BusRepo) -> None:
    stuck(bus)
    bus.resolve("ada")
    item = bus.item()
    late = make_lease(item, bus.tip, bus.tip, bus.now - timedelta(days=1), make_nonces("late"))
    bus.commit({paths.lease(ITEM, item.attempt): late}, "lease", by="sender")
    assert closed(bus) == [True, False]


def test_resolved_inside_the_longest_of_two_leases(bus: BusRepo) -> None:
    nonces = leased(bus)
    bus.attest(ITEM, "unknown", nonces)
    bus.again(attempt=2)  # somebody broke the rules
    bus.merge("ada")
    bus.lease(minutes=60)
    bus.state(ITEM, "stuck")
    bus.tick(minutes=90)
    bus.resolve("ada")
    assert closed(bus) == [True, False]


@pytest.mark.parametrize(
    ("who", "key", "rule"),
    [("conductor", None, "unsigned"), ("ada", None, "unsigned"), ("ada", "mallory", "unknown-key"),
     ("rita", "rita", "wrong-role"), ("ada", "bob", "wrong-person")],
)  # fmt: skip
def test_resolved_by_nobody_with_the_right(bus: BusRepo, who: str, key: str | None, rule: str) -> None:
    stuck(bus)
    bus.resolve(who, key=key)
    assert why(bus) == {rule}
    assert closed(bus) == [False]


def test_resolution_carried_by_a_plain_merge(bus: BusRepo) -> None:
    stuck(bus)
    bus.resolve("ada", key=None, on="work", parents=[bus.tip])
    bus.merge("ada", "refs/heads/work")
    assert why(bus) == {"not-named"}
    assert closed(bus) == [False]


def test_resolution_that_brings_more(bus: BusRepo) -> None:
    stuck(bus)
    bus.commit({**bus.resolution("ada", ITEM, "not_sent"), "workers/mac.yaml": "x\n"}, by="ada", key="ada")
    assert why(bus) == {"holds-more"}
    assert closed(bus) == [False]


@pytest.mark.parametrize("fields", [{"attempt": 1}, {"state": "approved"}, {"channel": "other"}])
def test_resolution_that_changes_more_of_the_item(bus: BusRepo, fields: dict[str, Any]) -> None:
    stuck(bus)
    changes = bus.resolution("ada", ITEM, "not_sent")
    changes[paths.item(ITEM)] = changes[paths.item(ITEM)].model_copy(update=fields)  # type: ignore[union-attr]
    bus.commit(changes, by="ada", key="ada")
    assert why(bus) == {"holds-more"}


def test_resolution_of_what_is_not_stuck(bus: BusRepo) -> None:
    leased(bus)
    bus.tick(minutes=70)
    bus.resolve("ada")
    assert why(bus) == {"not-stuck"}
    assert closed(bus) == [False]


def test_resolution_from_the_future(bus: BusRepo) -> None:
    stuck(bus, minutes=0)
    bus.resolve("ada", when=bus.now + timedelta(hours=3))
    assert why(bus) == {"future"}
    assert closed(bus) == [False]


def test_resolution_squashed_by_an_approver(bus: BusRepo) -> None:
    stuck(bus)
    bus.resolve("ada", key=None, on="work", parents=[bus.tip])
    bus.checkout()
    bus.git("ada", "merge", "-q", "--squash", "work")
    bus.git("ada", "commit", "-q", "-S", "--no-edit")
    assert why(bus) == {"squashed"}
    assert closed(bus) == [False]


def test_sent_resolution_closes_no_lease(bus: BusRepo) -> None:
    stuck(bus)
    bus.resolve("ada", verdict="sent")
    assert why(bus) == set()
    assert closed(bus) == [False]


# --- sending.keys


def test_receipts_and_leases_without_a_sending_key(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(sending={"enabled": True, "keys": [public("sender")]})
    nonces = leased(bus, key="sender")
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    assert closed(bus) == [False]
    assert findings(bus) == ["foreign-receipt"]
    receipt = bus.store.entry(bus.tip, RECEIPT)
    bus.commit({RECEIPT: None})
    bus.commit({RECEIPT: receipt}, by="sender", key="sender")
    assert closed(bus) == [True]
    bus.lease(key="mallory")
    assert closed(bus) == [True, False]
    assert findings(bus) == ["foreign-receipt", "foreign-lease"]


def test_resolution_under_a_merge_that_is_to_approve(bus: BusRepo) -> None:
    """A merge that says ``approve`` resolves nothing, whatever was put on the branch that it merged."""
    stuck(bus)
    bus.resolve("ada", key=None, on=f"gitbus/approve/{ITEM}", parents=[bus.tip])
    bus.approve("ada", ITEM)
    assert why(bus) == {"not-named"}
    assert closed(bus) == [False]
