"""Edits on an approval branch that is replaced or deleted in the same moment: nothing typed is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gitbus import paths
from gitbus.bus import Bus
from gitbus.history import Oid
from gitbus.hub.base import Author, Draft, Moves, RefMove
from tests.journeys.driving import (
    SENT,
    add_person,
    as_direct,
    as_push,
    nothing_to_object,
    on,
    outcomes,
    send,
    state,
)
from tests.support.world import ITEM, World, function_worker, make_world, ok, step_all, waiting_item

pytestmark = pytest.mark.long

BRANCH = paths.APPROVE + ITEM
BODY = f"{paths.item_folder(ITEM)}/body.txt"
EDITED = b"Hello,\nit is really out.\n"
AGAIN = b"Hello,\nit is out at last.\n"
ADA = Author("Ada", "ada@acme.example")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def edit(bus: Bus, base: Oid, files: dict[str, bytes], ref: str = BRANCH) -> Oid:
    """Push an approver's edit that is made on ``base`` and does not know what the branch is by now."""
    store, refs = bus.hub.store, bus.refs()
    tree = store.write_tree(store.commit(base).tree, dict(files))
    made = store.write_commit(Draft(tree, (base,), "Update body.txt\n", ADA, bus.now()))
    assert bus.hub.move([RefMove(ref, refs.get(ref), made, replace=True)]).moved(ref)
    return made


def work(bus: Bus, text: str = "Something else.\n", confidence: float = 0.9) -> None:
    """Let a worker make what was to be made again."""
    worker = function_worker(
        bus,
        "laptop",
        {
            "write": lambda task: {"title": "Release 1.0"},
            "compose": lambda task: ok(task, "laptop", confidence=confidence, outputs={"text": text}),
        },
    )
    step_all(bus, [worker])
    worker.close()


def text(bus: Bus) -> bytes:
    return bus.payload(ITEM)["body.txt"]


def revision(bus: Bus) -> int:
    item = bus.board().items[ITEM].item
    assert item is not None
    return item.revision


def kept(bus: Bus) -> dict[str, bytes]:
    """Return what stands at the payload's place on each kept branch."""
    store, found = bus.hub.store, {}
    for ref, tip in bus.refs().items():
        if ref.startswith(paths.KEPT):
            entry = store.entry(tip, BODY)
            found[ref.removeprefix(paths.HEADS)] = store.blob(entry.oid) if entry else b""
    return found


def approve_and_send(bus: Bus) -> None:
    bus.approve([ITEM])
    on(bus)
    assert outcomes(send(bus, SENT)) == ["sent"]
    nothing_to_object(bus)


def racing(bus: Bus, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let ``act`` happen between the conductor's look and its move, once."""
    really, left = bus.hub.move, [act]

    def move(moves: Sequence[RefMove]) -> Moves:
        if left and any(move.ref == BRANCH for move in moves):
            left.pop()()
        return really(moves)

    monkeypatch.setattr(bus.hub, "move", move)


@pytest.mark.parametrize("way", [as_direct, as_push])
def test_an_edit_of_what_was_made_anew_meanwhile_is_kept_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch, way: Callable[[World], None]
) -> None:
    way(world)
    with waiting_item(world) as bus:
        old = bus.refs()[BRANCH]
        bus.redo(ITEM, "warmer")
        racing(bus, monkeypatch, lambda: edit(bus, old, {BODY: EDITED}))
        work(bus)
        assert (state(bus), revision(bus), text(bus)) == ("awaiting_approval", 2, b"Something else.\n")
        [(branch, told)] = kept(bus).items()
        assert told == EDITED
        [notice] = bus.status().problems
        assert notice.path == branch
        assert branch in (notice.remedy or "")
        approve_and_send(bus)
        bus.conduct()
        assert list(kept(bus)) == [branch]
        world.git("push", "--quiet", "origin", "--delete", branch)
        bus.conduct()
        assert bus.status().problems == ()


def test_an_edit_that_comes_with_the_flip_of_a_new_revision(world: World) -> None:
    """The branch was replaced already, and the push of an older clone put it back by force."""
    with waiting_item(world) as bus:
        old = bus.refs()[BRANCH]
        bus.redo(ITEM, "warmer")
        work(bus)
        edit(bus, old, {BODY: EDITED})
        bus.conduct()
        assert (revision(bus), list(kept(bus).values())) == (2, [EDITED])
        approve_and_send(bus)


def test_an_edit_is_replayed_where_the_payload_is_the_same(world: World) -> None:
    with waiting_item(world) as bus:
        old = bus.refs()[BRANCH]
        bus.redo(ITEM, "are you sure")
        work(bus, "Hello,\nit is out.\n", confidence=0.95)
        assert revision(bus) == 2
        edit(bus, old, {BODY: EDITED})
        bus.conduct()
        assert (state(bus), revision(bus), text(bus), kept(bus)) == ("awaiting_approval", 3, EDITED, {})
        approve_and_send(bus)


def test_a_second_edit_on_top_of_the_one_that_is_being_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with waiting_item(world) as bus:
        first = edit(bus, bus.refs()[BRANCH], {BODY: EDITED})
        racing(bus, monkeypatch, lambda: edit(bus, first, {BODY: AGAIN}))
        bus.conduct()
        assert (state(bus), revision(bus), text(bus), kept(bus)) == ("awaiting_approval", 3, AGAIN, {})
        approve_and_send(bus)


def test_an_edit_that_was_taken_is_not_taken_again(world: World) -> None:
    """Somebody goes back to the first text while the branch of the edit still stands."""
    with waiting_item(world) as bus:
        tip = edit(bus, bus.refs()[BRANCH], {BODY: EDITED})
        assert bus.conductor().tick()
        assert (revision(bus), bus.refs()[BRANCH]) == (2, tip)
        bus.revise(ITEM, {"body.txt": b"Hello,\nit is out.\n"})
        bus.conduct()
        assert (revision(bus), text(bus), kept(bus)) == (3, b"Hello,\nit is out.\n", {})


def test_an_edit_just_as_it_expires_is_a_new_revision(world: World) -> None:
    with waiting_item(world) as bus:
        edit(bus, bus.refs()[BRANCH], {BODY: EDITED})
        world.clock.forward(days=7)
        bus.conduct()
        assert (state(bus), revision(bus), text(bus), kept(bus)) == ("awaiting_approval", 2, EDITED, {})
        approve_and_send(bus)


def test_an_edit_of_what_expired_and_was_put_up_again(world: World) -> None:
    with waiting_item(world) as bus:
        old = bus.refs()[BRANCH]
        world.clock.forward(days=7)
        bus.conduct()
        assert (state(bus), BRANCH in bus.refs()) == ("expired", False)
        bus.retry_item(ITEM)
        bus.conduct()
        assert bus.refs()[BRANCH] != old
        edit(bus, old, {BODY: EDITED})
        bus.conduct()
        assert (state(bus), revision(bus), text(bus), kept(bus)) == ("awaiting_approval", 2, EDITED, {})


def test_an_edit_of_what_is_put_back_to_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The approval is void once its approver is none any more, and the item gets a new entry."""
    with waiting_item(world) as bus:
        bob = add_person(bus, world, "bob", "approver")
        old = bus.refs()[BRANCH]
        bob.approve([ITEM])
        assert state(bus) == "approved"
        bus.remove_person("bob")
        racing(bus, monkeypatch, lambda: edit(bus, old, {BODY: EDITED}))
        bus.conduct()
        assert (state(bus), revision(bus), text(bus), kept(bus)) == ("awaiting_approval", 2, EDITED, {})
        bob.close()


@pytest.mark.parametrize("act", ["reject", "redo", "withdraw"])
def test_an_edit_of_what_somebody_stopped_starts_nothing_and_is_kept(world: World, act: str) -> None:
    with waiting_item(world) as bus:
        edit(bus, bus.refs()[BRANCH], {BODY: EDITED})
        {"reject": bus.reject, "redo": bus.redo, "withdraw": bus.withdraw}[act](ITEM, "not like this")
        stopped = state(bus)
        bus.conduct()
        assert (state(bus), revision(bus), BRANCH in bus.refs()) == (stopped, 1, False)
        assert list(kept(bus).values()) == [EDITED]


@pytest.mark.parametrize(
    "files",
    [
        {BODY: EDITED, "notes.txt": b"n\n"},
        {BODY: EDITED, paths.approval(ITEM): b"mine\n"},
        {BODY: EDITED, paths.item(ITEM): b"mine\n"},
        {BODY: b"x" * (1024 * 1024 + 1)},
    ],
    ids=["another file", "the approval", "the item", "too large"],
)
def test_an_edit_that_can_be_no_revision_is_kept(world: World, files: dict[str, bytes]) -> None:
    with waiting_item(world) as bus:
        flip = bus.refs()[BRANCH]
        edit(bus, flip, files)
        bus.conduct()
        assert (revision(bus), bus.refs()[BRANCH], list(kept(bus).values())) == (1, flip, [files[BODY]])
        approve_and_send(bus)


def test_what_a_merge_brought_in_is_kept(world: World) -> None:
    with waiting_item(world) as bus:
        store, refs = bus.hub.store, bus.refs()
        tree = store.write_tree(store.commit(refs[BRANCH]).tree, {BODY: EDITED})
        both = (refs[BRANCH], refs[bus.hub.main])
        made = store.write_commit(Draft(tree, both, "Merge main\n", ADA, bus.now()))
        bus.hub.move([RefMove(BRANCH, refs[BRANCH], made)])
        bus.conduct()
        assert (revision(bus), bus.refs()[BRANCH], list(kept(bus).values())) == (1, refs[BRANCH], [EDITED])


def test_nothing_is_kept_where_nobody_typed(world: World) -> None:
    with waiting_item(world) as bus:
        old = bus.refs()[BRANCH]
        bus.redo(ITEM, "warmer")
        work(bus)
        new = bus.refs()[BRANCH]
        assert bus.hub.move([RefMove(BRANCH, new, old, replace=True)]).moved(BRANCH)
        bus.conduct()
        assert (bus.refs()[BRANCH], kept(bus)) == (new, {})
        approve_and_send(bus)
        bus.conduct()
        assert (BRANCH in bus.refs(), kept(bus)) == (False, {})
