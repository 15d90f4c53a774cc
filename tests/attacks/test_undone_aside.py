"""Something done on the branch, undone again, and both put beside the line: the line looks as if nothing had been."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gitbus import paths
from gitbus.proof.bus import sending_on
from gitbus.records import Lease
from tests.support.busparts import changed_bus, public
from tests.support.busrepo import ITEM, BusRepo
from tests.support.gitrepo import Content

ADA_AS_GITHUB = "GitHub <noreply@github.com>"


def put_aside(bus: BusRepo, old: str) -> str:
    """Move ``main`` forward to a merge of an old ``main`` and its tip, with the tip's own tree."""
    return bus.commit({}, "absorb", parents=[old, bus.tip], tree=bus.store.commit(bus.tip).tree)


def undone(bus: BusRepo, old: str, folder: str = paths.item_folder(ITEM)) -> None:
    """Put a folder back to what it was in an old commit, and what happened since beside the line."""
    bus.commit({folder: bus.store.entry(old, folder)}, "back")
    put_aside(bus, old)


# --- items


@pytest.mark.parametrize("state", ["withdrawn", "rejected", "awaiting_approval", "stuck"])
def test_approval_that_was_taken_back(bus: BusRepo, state: str) -> None:
    bus.put_up()
    old = bus.merge("ada")
    bus.state(ITEM, state)
    undone(bus, old)
    assert bus.item().state == "approved"
    assert bus.refused() == {"state-jump"}
    assert bus.line() == {"hidden-history"}
    assert bus.line(proved=old) == {"hidden-history"}


def test_approval_that_was_taken_back_and_flipped_again(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.merge("ada")
    expires = bus.item().expires_at
    entry = bus.state(ITEM, "awaiting_approval", expires_at=expires)
    bus.commit(
        {path: bus.store.entry(old, path) for path in (paths.item(ITEM), paths.approval(ITEM))}, "flip"
    )
    assert entry != bus.tip
    put_aside(bus, old)
    assert bus.refused() == {"state-jump"}
    assert bus.line() == {"hidden-history"}


def test_withdrawal_under_a_lease_of_the_conductors_own(bus: BusRepo) -> None:
    """What the line shows is a lease of this approval and its ``not_sent``; the withdrawal is beside it."""
    bus.put_up()
    old = bus.merge("ada")
    bus.state(ITEM, "withdrawn")
    folder = bus.store.entry(old, paths.item_folder(ITEM))
    bus.commit({paths.item_folder(ITEM): folder}, "back")
    nonces = bus.lease()
    put_aside(bus, old)
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    assert [one.closed for one in bus.leases()] == [True]
    assert bus.refused() == {"state-jump"}


def test_approval_that_was_taken_back_between_commits_of_the_line(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.merge("ada")
    bus.state(ITEM, "withdrawn")
    bus.commit({paths.item_folder(ITEM): bus.store.entry(old, paths.item_folder(ITEM))}, "back")
    side = bus.tip
    tip = bus.commit({"goals/x.md": "x\n"}, parents=[old])
    bus.commit({}, "absorb", parents=[tip, side])
    assert bus.line() == {"hidden-history"}


def test_resolution_that_was_taken_back(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.lease()
    old = bus.state(ITEM, "stuck")
    bus.resolve("ada", verdict="sent")
    undone(bus, old)
    assert bus.line() == {"hidden-history"}


def test_rejection_that_was_taken_back_before_the_approval(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.tip
    bus.state(ITEM, "rejected")
    undone(bus, old)
    bus.merge("ada")
    assert bus.refused() == {"state-jump"}
    assert bus.line() == {"hidden-history"}


def test_item_whose_whole_life_is_beside_the_line(bus: BusRepo) -> None:
    """A pull by somebody who was away for long: what came and was archived since hides nothing."""
    old = bus.tip
    bus.put_up()
    bus.state(ITEM, "rejected")
    folder = bus.store.entry(bus.tip, paths.item_folder(ITEM))
    bus.commit({paths.item_folder(ITEM): None, f"archive/2026/12/outbox/{ITEM}": folder}, "archive")
    put_aside(bus, old)
    assert bus.line() == set()


def test_stale_flip_taken_in_later(bus: BusRepo) -> None:
    """An older approval branch whose merge changes nothing takes nothing back."""
    bus.put_up()
    stale = bus.at(f"gitbus/approve/{ITEM}")
    bus.again()
    bus.merge("ada")
    bus.commit({}, "absorb", parents=[bus.tip, stale])
    assert bus.prove().proved
    assert bus.line() == set()


# --- a no


@pytest.mark.parametrize("after", ["deleted", "overwritten"])
def test_no_that_was_put_aside(bus: BusRepo, after: str) -> None:
    bus.put_up()
    old = bus.tip
    bus.review("rita", verdict="no", key=None)
    if after == "deleted":
        bus.commit({paths.review(ITEM, "rita"): None})
    else:
        bus.review("rita", key=None)
    put_aside(bus, old)
    bus.merge("ada")
    assert bus.refused() == {"standing-no"}
    bus.review("rita")
    assert bus.prove().proved


def test_earlier_yes_does_not_lift_a_no_that_was_put_aside_later(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.review("rita")
    bus.review("rita", verdict="no")
    bus.commit({paths.review(ITEM, "rita"): bus.store.entry(old, paths.review(ITEM, "rita"))})
    put_aside(bus, old)
    bus.merge("ada")
    assert bus.refused() == {"standing-no"}


def test_yes_beside_the_line_is_none(bus: BusRepo) -> None:
    bus.put_up(state="in_review")
    old = bus.tip
    bus.review("rita")
    put_aside(bus, old)
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


# --- bus.yaml


def test_pending_edit_beside_the_line_is_no_stop(bus: BusRepo) -> None:
    side = bus.write_bus(
        changed_bus(bus.bus, sending={"hold": "1m"}), "oscar", key=None, on="work", parents=[bus.tip]
    )
    bus.merge("oscar", "refs/heads/work", sign=False)
    assert [one.blob for one in bus.effective().pending] == [bus.store.entry(side, paths.BUS).oid]  # type: ignore[union-attr]
    assert bus.line() == set()


@pytest.mark.parametrize("stop", ["off", "garbled", "gone"])
def test_unsigned_stop_that_was_put_aside(bus: BusRepo, stop: str) -> None:
    old = bus.tip
    contents: dict[str, Content] = {
        "off": changed_bus(bus.bus, sending={"enabled": False}),
        "garbled": "?\n",
        "gone": None,
    }
    bus.write_bus(contents[stop], "oscar", key=None)
    bus.write_bus(bus.bus, "conductor", key=None)
    assert sending_on(bus.effective(), bus.fresh()) is not None
    put_aside(bus, old)
    assert sending_on(bus.effective(), bus.fresh()) is None  # nothing but the line tells
    assert bus.line() == {"hidden-history"}


def test_stop_beside_the_line_that_an_approver_decided_on(bus: BusRepo) -> None:
    """A proposal that says off and then on again is no stop once an approver merges it by name."""
    final = changed_bus(bus.bus, sending={"hold": "1m"})
    bus.write_bus(
        changed_bus(bus.bus, sending={"enabled": False}),
        "oscar",
        key=None,
        on="gitbus/decide/bus",
        parents=[bus.tip],
    )
    bus.write_bus(final, "oscar", key=None, on="gitbus/decide/bus")
    bus.merge("ada", "gitbus/decide/bus", options=["-m", f"config\n\nGitbus-Bus: {bus.blob(final)}"])
    assert bus.effective().commit == bus.tip
    assert bus.line() == set()


def by_github(bus: BusRepo, parents: list[str], tree: str) -> str:
    """Commit a merge as the forge makes one."""
    line = f"{ADA_AS_GITHUB} {int(bus.tick().timestamp())} +0000"
    return bus.commit({}, "Merge pull request #1", parents=parents, tree=tree, author=line, committer=line)


def test_key_that_a_pull_request_removed_put_aside(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(approval={"proof": "github"})
    old = bus.tip
    people = [one.model_dump(mode="json") for one in bus.bus.people if one.id != "bob"]
    side = bus.write_bus(
        changed_bus(bus.bus, people=people), "oscar", key=None, on="gitbus/decide/bus", parents=[old]
    )
    by_github(bus, [old, side], bus.store.commit(side).tree)
    put_aside(bus, old)
    assert bus.line() == {"hidden-history"}


def test_approval_branch_that_the_forge_brought_up_to_date(make_repo: Callable[..., BusRepo]) -> None:
    """The forge's button merges an honest change of bus.yaml into the branch: no decision beside the line."""
    bus = make_repo(approval={"proof": "github"})
    bus.put_up()
    bus.set_bus("ada", sending={"hold": "1m"})
    branch = bus.at(f"gitbus/approve/{ITEM}")
    tree = bus.store.remerge(branch, bus.tip)
    assert tree is not None
    main = bus.tip
    bus.point(f"gitbus/approve/{ITEM}", by_github(bus, [branch, main], tree))
    bus.point("main", main)
    bus.commit({"goals/x.md": "x\n"})
    bus.merge("ada")
    assert bus.prove().proved
    assert bus.line() == set()


# --- leases


def test_lease_first_said_beside_the_line(bus: BusRepo) -> None:
    """The genuine lease is put aside under a merge that shows it with an early end; the later end counts."""
    bus.put_up()
    old = bus.merge("ada")
    bus.lease()
    lease = bus.read(paths.lease(ITEM, 1), Lease)
    early = lease.model_copy(update={"expires_at": lease.leased_at})
    tree = bus.tree(bus.store.commit(bus.tip).tree, {paths.lease(ITEM, 1): early})
    bus.commit({}, "absorb", parents=[old, bus.tip], tree=tree)
    assert [one.ends for one in bus.leases()] == [lease.expires_at]


def test_receipt_put_aside_before_the_keys_were_set(make_repo: Callable[..., BusRepo]) -> None:
    """A commit that stands on an old ``main`` is judged by the Bus of the line that took it in, too."""
    bus = make_repo()
    bus.put_up()
    old = bus.merge("ada")
    bus.set_bus("ada", sending={"enabled": True, "keys": [public("sender")]})
    nonces = bus.lease(key="sender")
    receipt = bus.receipt(ITEM, "not_sent", nonces["not_sent"])
    side = bus.detached({paths.receipt(ITEM, 1): receipt}, parents=[old])
    bus.commit({}, "absorb", parents=[bus.tip, side])
    assert [one.closed for one in bus.leases()] == [False]


def test_late_receipt_whose_archive_was_emptied(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up("a.post.item")
    bus.merge("ada")
    nonces = bus.lease()
    bus.state(ITEM, "stuck")
    late = bus.receipt(ITEM, "sent", nonces["sent"])
    archive = "archive/2026/12/outbox"
    bus.commit({paths.item_folder(ITEM): None, f"{archive}/{ITEM}": bus.store.entry(bus.tip, paths.item_folder(ITEM)),
                f"{archive}/b.c.d/item.yaml": "x\n"})  # fmt: skip
    bus.commit({f"{archive}/{ITEM}/receipt.1.yaml": late}, "attest late", by="sender")
    bus.commit({f"{archive}/{ITEM}/receipt.1.yaml": None})
    folder = bus.store.entry(bus.tip, f"{archive}/{ITEM}")
    bus.commit({f"{archive}/{ITEM}": None, paths.item_folder(ITEM): folder})
    assert [one.opened for one in bus.leases()] == [{"sent"}]


@pytest.mark.parametrize("name", ["lease.1.yaml", "receipt.1.yaml"])
def test_attachment_that_is_called_like_a_lease(bus: BusRepo, name: str) -> None:
    bus.put_up()
    bus.commit({f"{paths.item_folder(ITEM)}/attachments/{name}": "x\n"})
    assert bus.leases() == ()
