"""An edit of the line that no row of the tables allows is a finding, whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.records import Item, Result, Task
from gitbus.records.item import digest
from tests.journeys.driving import Tree, nothing_to_object, vandalise
from tests.support.world import ITEM, make_world, waiting_item


def item_of(bus: Bus) -> Item:
    found = bus.board().items[ITEM].item
    assert found is not None
    return found


def another_recipient(bus: Bus) -> Tree:
    item = item_of(bus)
    message = item.message.model_copy(update={"to": ("eve@b.example",)})
    fresh = digest(item.channel, message, item.payload, item.send_at)
    return {paths.item(ITEM): codec.write(item.model_copy(update={"message": message, "digest": fresh}))}


def another_score(bus: Bus) -> Tree:
    return {paths.item(ITEM): codec.write(item_of(bus).model_copy(update={"confidence": 1.0}))}


def another_text(bus: Bus) -> Tree:
    del bus
    return {f"{paths.item_folder(ITEM)}/body.txt": b"something else\n"}


def another_result(bus: Bus) -> Tree:
    path = paths.result("release", "write")
    entry = bus.hub.store.entry(bus.refs()[bus.hub.main], path)
    assert entry is not None
    result = codec.read(bus.hub.store.blob(entry.oid), Result, path=path)
    return {path: codec.write(result.model_copy(update={"outputs": {"title": "Eve's"}}))}


def another_task(bus: Bus) -> Tree:
    path = paths.task("release", "write")
    entry = bus.hub.store.entry(bus.refs()[bus.hub.main], path)
    assert entry is not None
    task = codec.read(bus.hub.store.blob(entry.oid), Task, path=path)
    return {path: codec.write(task.model_copy(update={"worker": "eve"}))}


def another_goal(bus: Bus) -> Tree:
    path = paths.goal("release")
    entry = bus.hub.store.entry(bus.refs()[bus.hub.main], path)
    assert entry is not None
    return {path: bus.hub.store.blob(entry.oid).replace(b"list@", b"eve@")}


EDITS: Mapping[str, Callable[[Bus], Tree]] = {
    "a recipient": another_recipient,
    "a score": another_score,
    "a text": another_text,
    "a result": another_result,
    "a task that is done": another_task,
    "a goal": another_goal,
    "a goal that goes": lambda bus: {paths.goal("release"): None},
}


@pytest.mark.long
@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_reported(tmp_path: Path, what: str) -> None:
    with waiting_item(make_world(tmp_path)) as bus:
        nothing_to_object(bus)
        vandalise(bus, EDITS[what](bus))
        nothing_to_object(bus, "unproved-edit")


def test_an_item_that_goes_once_something_was_archived(tmp_path: Path) -> None:
    with waiting_item(make_world(tmp_path)) as bus:
        vandalise(
            bus,
            {
                "archive/2026/11/goals/old/goal.yaml": b"apiVersion: gitbus/v1\nkind: Goal\nid: old\n"
                b"tasks: {t: {capability: do}}\n"
            },
        )
        vandalise(bus, {paths.item_folder(ITEM): None})
        nothing_to_object(bus, "item-removed", "unproved-edit")  # the archive was made up


def test_what_is_archived_stays(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        bus.reject(ITEM, "no")
        world.clock.forward(days=31)
        bus.conduct()
        assert ITEM not in bus.board().items
        nothing_to_object(bus)
        [path] = [
            delta.path
            for delta in bus.hub.store.diff(
                None, bus.hub.store.commit(bus.refs()[bus.hub.main]).tree, "archive"
            )
            if delta.path.endswith("body.txt")
        ]
        vandalise(bus, {path: b"something else\n"})
        nothing_to_object(bus, "unproved-edit")


def test_an_expired_item_under_the_threshold_is_put_up_again_by_the_rules(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world, confidence=0.1) as bus:
        world.clock.forward(days=8)
        bus.conduct()
        bus.retry_item(ITEM)
        bus.conduct()
        assert bus.board().items[ITEM].state == "in_review"
        nothing_to_object(bus)
