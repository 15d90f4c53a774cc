"""Approvals of something else than what would go: each attack on a real repository, each refused by its rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gitbus import paths
from gitbus.history import EXECUTABLE, SYMLINK, Entry
from gitbus.proof.bus import sending_on
from gitbus.records.item import digest
from tests.support.busparts import changed_bus, make_item
from tests.support.busrepo import ITEM, BusRepo
from tests.support.gitrepo import Content

OTHER = "a.post.item"
BODY = f"{paths.item_folder(ITEM)}/body.txt"


def merged(bus: BusRepo, changes: dict[str, Content], who: str = "ada") -> None:
    """Merge, signed and by name, a branch that holds the flip and these changes, as one tree."""
    branch = bus.at(f"gitbus/approve/{ITEM}")
    tree = bus.tree(bus.store.commit(branch).tree, changes)
    bus.commit({}, f"approve\n\nGitbus-Item: {ITEM}\n", by=who, key=who, parents=[bus.tip, branch], tree=tree)


def merged_misflip(bus: BusRepo, **fields: Any) -> None:
    """Let Ada merge an approval branch whose ``approval.yaml`` the conductor made to say something else."""
    entry = bus._entries[ITEM]
    flip = bus.flipped(ITEM, entry, entry, **fields)
    bus.commit(flip, "approve", parents=[entry], on=f"gitbus/approve/{ITEM}")
    bus.merge("ada")


# --- 2: more than the flip


@pytest.mark.parametrize(
    "changes",
    [
        {BODY: "Buy!\n"},
        {".github/workflows/send.yml": "on: push\n"},
        {"goals/a/goal.yaml": "x\n"},
        {f"outbox/{OTHER}/item.yaml": "new\n"},
        {"workers/mac.yaml": "x\n"},
    ],
)
def test_merge_whose_tree_holds_more(bus: BusRepo, changes: dict[str, Content]) -> None:
    bus.put_up()
    merged(bus, changes)
    assert "merge-holds-more" in bus.refused() <= {"merge-holds-more", "payload-changed"}


def test_merge_whose_side_holds_more_and_takes_it_back(bus: BusRepo) -> None:
    bus.put_up()
    branch = f"gitbus/approve/{ITEM}"
    bus.commit({BODY: "Buy!\n"}, on=branch)
    bus.commit({BODY: "Hello\n"}, on=branch)
    bus.merge("ada")
    assert bus.refused() == {"merge-holds-more"}


def test_evil_merge_on_the_branch(bus: BusRepo) -> None:
    bus.put_up()
    branch = f"gitbus/approve/{ITEM}"
    bus.commit({}, on="other", parents=[bus.tip])
    bus.commit({"docs/a.md": "x\n"}, on=branch, parents=[bus.at(branch), bus.at("other")])
    bus.merge("ada")
    assert bus.refused() == {"merge-holds-more"}


def test_bus_changed_in_the_approving_merge(make_repo: Callable[..., BusRepo]) -> None:
    """The flag turned on in the same merge neither approves nor turns it on."""
    bus = make_repo(sending={"enabled": False})
    bus.put_up()
    merged(bus, {paths.BUS: changed_bus(bus.bus, sending={"enabled": True})})
    assert bus.refused() == {"merge-holds-more"}
    found = bus.effective()
    assert len(found.pending) == 1
    off = sending_on(found, bus.store)
    assert off is not None
    assert off.rule == "sending-off"


def test_item_yaml_flipped_with_another_line(bus: BusRepo) -> None:
    bus.put_up()
    item = bus.item().model_copy(update={"state": "approved", "attempt": 2})
    merged(bus, {paths.item(ITEM): item})
    assert "merge-holds-more" in bus.refused()


def test_branch_that_flips_another_line_too(bus: BusRepo) -> None:
    bus.put_up()
    entry = bus._entries[ITEM]
    flip = bus.flipped(ITEM, entry, entry)
    flip[paths.item(ITEM)] = bus.item().model_copy(update={"state": "approved", "attempt": 2})
    bus.commit(flip, "approve", parents=[entry], on=f"gitbus/approve/{ITEM}")
    bus.merge("ada")
    assert bus.refused() == {"merge-holds-more"}


def test_merge_that_makes_the_flip_itself(bus: BusRepo) -> None:
    bus.put_up()
    side = bus.detached({})
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    bus.commit(flip, f"approve\n\nGitbus-Item: {ITEM}\n", by="ada", key="ada", parents=[bus.tip, side])
    assert bus.refused() == {"merge-holds-more"}


def test_merge_on_the_branch_that_makes_the_flip_itself(bus: BusRepo) -> None:
    bus.put_up()
    entry, branch = bus._entries[ITEM], f"gitbus/approve/{ITEM}"
    sides = [bus.detached({}, parents=[entry]), bus.detached({}, parents=[entry])]
    bus.commit(bus.flipped(ITEM, entry, entry), "approve", parents=sides, on=branch)
    bus.merge("ada")
    assert bus.refused() == {"merge-holds-more"}


def test_approval_that_was_there_before(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", sign=False)
    waiting = bus.item().model_copy(update={"state": "awaiting_approval", "reason": "demoted"})
    entry = bus.commit({paths.item(ITEM): waiting}, "demote, but leave the approval")
    bus.flip(entries={ITEM: entry})
    bus.commit({}, "put up")
    bus.merge("ada")
    assert bus.refused() == {"merge-holds-more"}


def test_approval_made_executable(bus: BusRepo) -> None:
    bus.put_up()
    entry = bus.store.entry(bus.at(f"gitbus/approve/{ITEM}"), paths.approval(ITEM))
    assert entry is not None
    merged(bus, {paths.approval(ITEM): Entry(EXECUTABLE, entry.oid)})
    assert bus.refused() == {"no-approval"}


# --- 3: something else


@pytest.mark.parametrize(
    "fields",
    [
        {"to": ("mallory@acme.example",)},
        {"cc": ("mallory@acme.example",)},
        {"bcc": ("mallory@acme.example",)},
        {"reply_to": "mallory@acme.example"},
        {"subject": "Other"},
        {"from_": "mallory@acme.example"},
        {"headers": {"X-A": "b"}},
    ],
)
def test_message_that_the_approval_does_not_show(bus: BusRepo, fields: dict[str, Any]) -> None:
    bus.put_up()
    merged_misflip(bus, message=bus.item().message.model_copy(update=fields))
    assert bus.refused() == {"approval-mismatch"}


@pytest.mark.parametrize(
    "fields",
    [
        {"revision": 2},
        {"digest": "sha256:" + "0" * 64},
        {"channel": "elsewhere"},
        {"text": "Bye\n"},
        {"text": None},
        {"html": "<p>Hello</p>"},
        {"item": OTHER},
    ],
)
def test_approval_that_says_something_else(bus: BusRepo, fields: dict[str, Any]) -> None:
    bus.put_up()
    merged_misflip(bus, **fields)
    assert bus.refused() == {"approval-mismatch"}


def test_expiry_that_the_approval_does_not_show(bus: BusRepo) -> None:
    bus.put_up()
    expires = bus.item().expires_at
    assert expires is not None
    merged_misflip(bus, expires_at=expires + timedelta(hours=-1))
    assert bus.refused() == {"approval-mismatch"}


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.model_copy(update={"to": ("mallory@acme.example",)}),
        lambda message: message.model_copy(update={"reply_to": "mallory@acme.example"}),
        lambda message: message.model_copy(update={"cc": message.bcc, "bcc": ()}),
    ],
)
@pytest.mark.parametrize("refit", [False, True])
def test_message_changed_after_the_approval(bus: BusRepo, change: Callable[[Any], Any], refit: bool) -> None:
    hidden = make_item().message.model_copy(update={"bcc": ("boss@acme.example",)})
    bus.put_up(message=hidden)
    bus.merge("ada")
    assert bus.prove().proved
    item = bus.item()
    message = change(item.message)
    fit = digest(item.channel, message, item.payload, item.send_at) if refit else item.digest
    bus.commit({paths.item(ITEM): item.model_copy(update={"message": message, "digest": fit})})
    expected = {"state-jump", "item-changed"} if refit else {"no-approval"}
    assert bus.refused() == expected


def test_send_at_changed_after_the_approval(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    item = bus.item()
    fit = digest(item.channel, item.message, item.payload, bus.now)
    bus.commit({paths.item(ITEM): item.model_copy(update={"send_at": bus.now, "digest": fit})})
    assert bus.refused() == {"state-jump", "item-changed"}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("content", ["Buy!\n", None, Entry(SYMLINK, "0" * 40), Entry(EXECUTABLE, "")])
def test_payload_changed_beside_the_approval(bus: BusRepo, when: str, content: Content) -> None:
    same = bus.blob("Hello\n")
    changed = (
        Entry(content.mode, content.oid.replace("0" * 40, same) or same)
        if isinstance(content, Entry)
        else content
    )
    bus.put_up()
    if when == "before":
        bus.commit({BODY: changed})
    bus.merge("ada")
    if when == "after":
        bus.commit({BODY: changed})
    assert bus.refused() == {"payload-changed"}


def test_payload_changed_and_put_back_around_the_merge(bus: BusRepo) -> None:
    bus.put_up()
    bus.commit({BODY: "Buy!\n"})
    bus.merge("ada")
    bus.commit({BODY: "Hello\n"})
    assert bus.refused() == {"payload-changed"}


# --- 1: for another time, another item, another way


def test_old_branch_of_revision_1_after_revision_2(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.at(f"gitbus/approve/{ITEM}")
    bus.put(text="Hello\n", revision=2)
    bus.again()
    bus.point("old", old)
    bus.merge("ada", "refs/heads/old", options=["-Xtheirs", "-m", f"yes\n\nGitbus-Item: {ITEM}\n"])
    assert "entry-mismatch" in bus.refused()


def old_branch_over(bus: BusRepo, old: str) -> None:
    """Merge an old approval branch with its content, as git does where both sides agree."""
    flip = {path: bus.store.entry(old, path) for path in (paths.item(ITEM), paths.approval(ITEM))}
    bus.commit(flip, f"Merge branch 'gitbus/approve/{ITEM}'", by="ada", key="ada", parents=[bus.tip, old])


def test_old_branch_after_a_demotion(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.at(f"gitbus/approve/{ITEM}")
    bus.merge("ada", sign=False)
    before = bus.item(tip=old)
    bus.state(ITEM, "awaiting_approval", expires_at=before.expires_at)
    bus.point("main", bus.commit({}))
    old_branch_over(bus, old)
    assert bus.refused() == {"entry-mismatch"}


def test_already_up_to_date_after_a_demotion(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", sign=False)
    bus.state(ITEM, "awaiting_approval")
    before = bus.tip
    assert bus.merge("ada") == before
    assert bus.refused() == {"not-approved"}


def test_old_branch_after_only_the_expiry_changed(bus: BusRepo) -> None:
    bus.put_up()
    old = bus.at(f"gitbus/approve/{ITEM}")
    bus.wait()
    bus.commit({}, "put up")
    old_branch_over(bus, old)
    assert (
        {"entry-mismatch"}
        <= bus.refused()
        <= {"entry-mismatch", "merge-holds-more", "item-changed", "approval-mismatch"}
    )


def test_entry_that_is_another_commit(bus: BusRepo) -> None:
    bus.put_up()
    before = bus.tip
    for entry in (bus.root, bus.tip, "0" * 40, bus.store.commit(bus._entries[ITEM]).parents[0]):
        merged_misflip(bus, entry=entry)
        assert bus.refused() == {"entry-mismatch"}
        bus.point("main", before)


@pytest.mark.parametrize("renamed", [False, True])
def test_approval_of_one_item_used_for_another(bus: BusRepo, renamed: bool) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    bus.merge("ada")
    source, target = paths.item_folder(ITEM), paths.item_folder(OTHER)
    entry = bus.store.entry(bus.tip, f"{source}/approval.yaml")
    changes: dict[str, Content] = {f"{target}/approval.yaml": entry}
    if renamed:
        changes = {target: bus.store.entry(bus.tip, source), source: None}
    else:
        changes[paths.item(OTHER)] = bus.item(OTHER).model_copy(update={"state": "approved"})
    bus.commit(changes, f"Merge branch 'gitbus/approve/{OTHER}'", by="ada", key="ada")
    assert not bus.prove(OTHER).proved
    assert bus.prove(OTHER).disproved
    assert bus.refused(OTHER) & {"no-approval", "approval-mismatch"}


@pytest.mark.parametrize("state", ["persisted", "scored", "failed", "rejected", "sent", "approved"])
def test_state_that_jumps(bus: BusRepo, state: str) -> None:
    bus.put_up()
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    bus.state(ITEM, state)
    bus.commit(flip, f"Merge branch 'gitbus/approve/{ITEM}'", by="ada", key="ada")
    assert "state-jump" in bus.refused()


def test_leased_and_given_back_without_a_receipt(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.lease()
    bus.state(ITEM, "approved", attempt=2)
    assert bus.refused() == {"state-jump"}


def test_given_back_by_a_forged_receipt(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.lease()
    bus.attest(ITEM, "not_sent", {"not_sent": "0" * 32}, passing=True)
    assert bus.refused() == {"state-jump"}
    assert [one.closed for one in bus.leases()] == [False]


def test_attempt_that_nobody_raised(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.state(ITEM, "approved", attempt=2)
    assert bus.refused() == {"state-jump"}
