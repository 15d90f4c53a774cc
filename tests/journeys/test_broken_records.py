"""Files on the bus's branch that somebody broke: they stop what they belong to, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus import paths
from gitbus.bus import Bus
from gitbus.errors import GitbusError, Refused
from gitbus.history import SUBMODULE, SYMLINK, Entry
from tests.journeys.driving import (
    SENT,
    Tree,
    approved_item,
    entry,
    on,
    outcomes,
    send,
    state,
    vandalise,
)
from tests.support.world import ITEM, World, function_worker, make_world, step_all, waiting_item

pytestmark = pytest.mark.long

GARBAGE = b"<<<<<<< ours\n\xff\n"
FOLDER = f"outbox/{ITEM}"
Damage = Callable[[Bus], Tree]


def with_all(data: Callable[[Bus], bytes | Entry | None], *paths: str) -> Damage:
    return lambda bus: {path: data(bus) for path in paths}


def garbage(_: Bus) -> bytes:
    return GARBAGE


def gone(_: Bus) -> None:
    return None


def link(bus: Bus) -> Entry:
    return entry(bus, b"/etc/passwd", SYMLINK)


def submodule(_: Bus) -> Entry:
    return Entry(SUBMODULE, "1" * 40)


TASK, OTHER_TASK = paths.task("release", "mail"), paths.task("release", "write")
RECORDS = (
    paths.item(ITEM),
    f"{FOLDER}/body.txt",
    paths.task("release", "mail"),
    paths.task("release", "write"),
    paths.result("release", "mail"),
    paths.goal("release"),
    paths.report("release"),
)
DAMAGES: dict[str, dict[str, Damage]] = {
    what.__name__: {path: with_all(what, path) for path in RECORDS}
    for what in (garbage, gone, link, submodule)
} | {
    "by hand": {
        "an approval": with_all(garbage, paths.approval(ITEM)),
        "a lease": with_all(garbage, paths.lease(ITEM, 1)),
        "a receipt": with_all(garbage, paths.receipt(ITEM, 1)),
        "a review": with_all(garbage, paths.review(ITEM, "ada")),
        "an item that there is not": with_all(garbage, "outbox/nonsense/item.yaml", "outbox/a.b.c/item.yaml"),
        "a folder without its item": with_all(garbage, "outbox/a.b.c/body.txt"),
        "a goal of another name": with_all(garbage, "goals/UPPER/goal.yaml", "goals/x/y/z"),
        "a file where a folder should be": with_all(garbage, "archive", "refused", "workers"),
        "a worker": with_all(garbage, "workers/w.yaml", "refused/w.yaml"),
        "odd numbers": with_all(
            garbage, f"{FOLDER}/lease.0.yaml", f"{FOLDER}/lease.².yaml", "goals/release/refused/x.yaml"
        ),
    }
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def restore(bus: Bus, damaged: Tree, before: str) -> None:
    vandalise(bus, {path: bus.hub.store.entry(before, path) for path in damaged})


def does_a_goal(bus: Bus, number: int) -> None:
    """Add a goal and see it done, so that everything else still goes on."""
    name = f"fine-{number}"
    bus.add_goal(
        f"apiVersion: gitbus/v1\nkind: Goal\nid: {name}\ntasks: {{t: {{capability: do}}}}\n".encode()
    )
    worker = function_worker(bus, "v", {"do": lambda task: {}})
    try:
        step_all(bus, [worker])
    finally:
        worker.close()
    assert bus.board().goals[name].state == "done"


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.long) if kind in ("garbage", "link") else kind for kind in DAMAGES],
)
def test_whatever_is_broken_the_others_go_on(world: World, kind: str) -> None:
    failed: dict[str, str] = {}
    with waiting_item(world) as bus:
        on(bus)
        warm = bus.conductor()
        warm.tick()
        for number, (what, damage) in enumerate(DAMAGES[kind].items()):
            damaged = damage(bus)
            before = vandalise(bus, damaged)
            try:
                warm.tick()
                does_a_goal(bus, number)
                assert send(bus) == []
            except (AssertionError, GitbusError, KeyError, ValueError, TypeError, AttributeError) as error:
                failed[what] = repr(error)[:200]
            restore(bus, damaged, before)
        assert failed == {}
        with world.open() as again:
            again.conduct()
            assert again.board().all_problems() == []
            assert again.board().items[ITEM].state == "awaiting_approval"
            again.review(ITEM, "ok")  # lifts a review that nobody could read, which stands as a no
            again.approve([ITEM])
            [done] = send(again, *([] if kind == "by hand" else [SENT]))
            # a lease that nobody can read was there once: a human has to say what became of it
            expected = ("stuck", "lease-exists") if kind == "by hand" else ("sent", "250 queued as 4Zx")
            assert (done.outcome, (done.reason or "").split(":")[0]) == expected


@pytest.mark.parametrize("path", [paths.item(ITEM), f"{FOLDER}/body.txt", paths.task("release", "mail")])
def test_what_is_broken_is_named(world: World, path: str) -> None:
    with waiting_item(world) as bus:
        vandalise(bus, {path: link(bus)})
        bus.conduct()
        assert [one.path for one in bus.board().all_problems()] == [path]
        assert path in world.gitbus("status", expect=None).stdout
        if path.startswith("outbox"):
            with pytest.raises(Refused):
                bus.payload(ITEM)


def test_a_lease_that_nobody_can_read_and_that_was_removed_is_put_before_a_human(world: World) -> None:
    with approved_item(world) as bus:
        path = paths.lease(ITEM, 1)
        vandalise(bus, {path: b"garbage: [\n"})
        assert "broken" in {bus.board().items[ITEM].state, state(bus)}
        vandalise(bus, {path: None})
        assert state(bus) == "approved"
        assert outcomes(send(bus)) == ["stuck"]
        assert state(bus) == "stuck"
        world.clock.forward(hours=2)
        bus.resolve(ITEM, "not_sent", "nothing in the log of the receiver")
        bus.conduct()
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        assert len(bus.board().items[ITEM].receipts) == 1
