"""Whatever was edited against the rules stands still until it is put right, and everything else goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.conductor import Conductor
from gitbus.records import Item, Task
from tests.journeys.driving import SENT, on, send, state, vandalise
from tests.support.world import ITEM, World, function_worker, make_world, ok, step_all, waiting_item

BODY = f"{paths.item_folder(ITEM)}/body.txt"
BRANCH = f"{paths.APPROVE}{ITEM}"
GOAL = b"apiVersion: gitbus/v1\nkind: Goal\nid: two\ntasks: {a: {capability: do}, b: {capability: do, needs: [a]}}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, policy={"sending": {"hold": "0s"}})


def item_as(bus: Bus, **fields: object) -> bytes:
    item = bus.board().items[ITEM].item
    assert item is not None
    return codec.write(item.model_copy(update=fields))


def problems(world: World) -> list[dict[str, str]]:
    return list(json.loads(world.gitbus("status", "--json").stdout).get("problems", []))


def test_an_item_that_waits_is_put_down_until_it_is_put_right(world: World) -> None:
    with waiting_item(world) as bus:
        old = bus.hub.store.entry(bus.refs()[bus.hub.main], BODY)
        wrong = bus.refs()[bus.hub.main]
        vandalise(bus, {BODY: b"Pay me\n"})
        bus.conduct()
        assert BRANCH not in bus.refs(), "nobody is asked to approve it"
        (told,) = problems(world)
        assert told["path"] == BODY
        assert "body.txt was changed without a revision" in told["message"]
        assert f"{ITEM} stands still" in told["message"]
        assert "git revert" in told["remedy"]
        assert bus.refs()[bus.hub.main] != wrong
        vandalise(bus, {BODY: old})
        bus.conduct()
        assert BRANCH in bus.refs()
        assert problems(world) == []
        on(bus)
        bus.approve([ITEM])
        assert [one.outcome for one in send(bus, SENT)] == ["sent"]


def test_a_person_may_still_take_it_back(world: World) -> None:
    with waiting_item(world) as bus:
        vandalise(bus, {paths.item(ITEM): item_as(bus, confidence=1.0)})
        bus.conduct()
        assert BRANCH not in bus.refs()
        bus.reject(ITEM, "somebody edited it")
        bus.conduct()
        assert state(bus) == "rejected"
        assert problems(world) == []


def test_a_revision_puts_it_right(world: World) -> None:
    with waiting_item(world) as bus:
        vandalise(bus, {BODY: b"Pay me\n"})
        bus.conduct()
        assert BRANCH not in bus.refs()
        bus.revise(ITEM, {"body.txt": b"Hello again\n"})
        bus.conduct()
        assert (state(bus), problems(world)) == ("awaiting_approval", [])
        on(bus)
        bus.approve([ITEM])
        assert [one.outcome for one in send(bus, SENT)] == ["sent"]


@pytest.mark.parametrize("memory", [True, False])
def test_what_was_edited_after_its_approval_is_not_sent(world: World, memory: bool) -> None:
    """Message and payload are what was approved, so the proof holds; the sender refuses it all the same."""
    with waiting_item(world) as bus:
        on(bus)
        if memory:
            assert send(bus) == []
        bus.approve([ITEM])
        more = f"{paths.item_folder(ITEM)}/more.txt"
        vandalise(bus, {more: b"x\n"})
        (told,) = send(bus)
        assert (told.outcome, (told.reason or "").split(":")[0]) == ("refused", "unproved-edit")
        assert "more.txt is no file of its payload" in (told.reason or "")
        vandalise(bus, {more: None})
        assert [one.outcome for one in send(bus, SENT)] == ["sent"]


@pytest.mark.parametrize("warm", [True, False])
def test_a_goal_stands_still_and_the_others_go_on(world: World, warm: bool) -> None:
    with world.open() as bus:
        bus.add_goal(GOAL)
        worker = function_worker(bus, "laptop", {"do": lambda task: ok(task, "laptop")})
        conductor: Conductor = bus.conductor()
        conductor.tick()
        path = paths.task("two", "b")
        task: Task = bus.board().goals["two"].tasks["a"]
        edited = codec.write(task.model_copy(update={"attempt": 5, "id": "a"}))
        old = bus.hub.store.entry(bus.refs()[bus.hub.main], paths.task("two", "a"))
        vandalise(bus, {paths.task("two", "a"): edited})
        if not warm:
            conductor = bus.conductor()
        bus.add_goal(GOAL.replace(b"id: two", b"id: other"))
        step_with(bus, conductor, worker)
        goals = bus.board().goals
        assert goals["other"].state == "done"
        assert goals["two"].state == "running"
        assert path not in {one["path"] for one in problems(world)}
        assert paths.task("two", "a") in {one["path"] for one in problems(world)}
        vandalise(bus, {paths.task("two", "a"): old})
        step_with(bus, conductor, worker)
        assert problems(world) == []
        world.clock.forward(
            hours=1
        )  # what came meanwhile was not taken, so the attempt is lost at its deadline
        worker.announce()
        step_with(bus, conductor, worker)
        two = bus.board().goals["two"]
        assert (two.state, two.tasks["a"].attempt) == ("done", 1)
        worker.close()


def step_with(bus: Bus, conductor: Conductor, worker: object) -> None:
    """Let one conductor, as it is, and a worker act until nothing happens any more."""
    made = bus.conductor
    bus.conductor = lambda: conductor  # type: ignore[method-assign]
    try:
        step_all(bus, [worker])  # type: ignore[list-item]
    finally:
        bus.conductor = made  # type: ignore[method-assign]


def test_a_clone_that_remembers_is_told_again(world: World) -> None:
    """What stands still is remembered beside how far the clone has looked, and read again by the next process."""
    with waiting_item(world) as bus:
        bus.conduct()
        vandalise(bus, {BODY: b"Pay me\n"})
        bus.conduct()
    assert json.loads((bus.state / "edits.json").read_bytes())["wrong"].keys() == {BODY}
    with world.open() as again:
        again.conduct()
        assert BRANCH not in again.refs()
    (bus.state / "edits.json").write_bytes(b"{broken")
    with world.open() as again:
        again.conduct()
        assert BRANCH not in again.refs()


def test_a_branch_that_was_put_back_is_looked_at_anew(world: World) -> None:
    with waiting_item(world) as bus:
        good = vandalise(bus, {BODY: b"Pay me\n"})
        bus.conduct()
        assert BRANCH not in bus.refs()
        world.git("--git-dir", str(world.hub), "update-ref", "refs/heads/main", good)
        bus.conduct()
        assert BRANCH in bus.refs()


def test_an_item_is_read_as_it_stood(world: World) -> None:
    """To raise one's confidence, and to take it back by the same hand, is nothing to stop for."""
    with waiting_item(world) as bus:
        old = item_as(bus)
        vandalise(bus, {paths.item(ITEM): item_as(bus, confidence=1.0)})
        vandalise(bus, {paths.item(ITEM): old})
        bus.conduct()
        assert BRANCH in bus.refs()
        assert isinstance(bus.board().items[ITEM].item, Item)
