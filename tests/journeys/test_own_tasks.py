"""What a worker sees of the bus: its own tasks and what they are given, however much else there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gitbus import paths
from gitbus.bus import Bus
from gitbus.history import Entry
from gitbus.reading import TaskReader
from gitbus.records import Task
from gitbus.runner.answers import Span, answer
from gitbus.runner.base import Answer, Job
from gitbus.runner.function import FunctionRunner
from gitbus.worker import Offer, WorkerActor
from tests.journeys.driving import hand_commit
from tests.support.world import World, function_worker, make_world, step_all


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def add(bus: Bus, text: str) -> None:
    bus.add_goal(("apiVersion: gitbus/v1\nkind: Goal\n" + text).encode())


def draughtsman(bus: Bus) -> WorkerActor:
    """Return a worker whose every answer brings a file along."""

    def run(job: Job, _: object) -> Answer:
        return answer(job, Span(bus.now(), bus.now()), {}, {"plan.txt": job.task.id.encode()})

    worker = bus.worker(Offer("draughtsman", ("draw",), 4), run)
    worker.announce()
    return worker


def test_a_goal_that_opens_again_gives_a_new_worker_all_that_its_task_needs(world: World) -> None:
    seen: list[Mapping[str, Mapping[str, bytes]]] = []

    def build(task: Task, inputs: Mapping[str, Mapping[str, bytes]]) -> str:
        del task
        seen.append(inputs)
        return "built"

    with world.open() as bus:
        add(bus, "id: house\ntasks:\n  a: {capability: draw}\n  b: {capability: build, needs: [a]}\n")
        first = draughtsman(bus)
        step_all(bus, [first])
        first.close()
        assert bus.board().goals["house"].state == "failed"
        builder = bus.worker(Offer("builder", ("build",)), FunctionRunner(build, now=bus.now))
        builder.announce()
        builder.step()  # it looks while the goal is settled
        step_all(bus, [builder])
        builder.close()
    assert seen == [{"a": {"plan.txt": b"a"}}]


def test_only_its_own_is_on_a_workers_board(world: World) -> None:
    with world.open() as bus:
        names = ("ann", "ben")
        workers = [function_worker(bus, name, {"do": lambda _: {}}, 2) for name in names]
        readers = {name: TaskReader(bus.hub.store, bus.root, name) for name in names}
        conductor = bus.conductor()
        for round_ in range(2):
            add(bus, f"id: g{round_}\ntasks:\n" + "".join(f"  t{n}: {{capability: do}}\n" for n in range(4)))
            conductor.tick()
            for _ in range(3):
                tip = bus.hub.look()[bus.hub.main]
                whole = bus.whole_board()
                for name, reader in readers.items():
                    assigned = {
                        (task.goal, task.id)
                        for part in whole.goals.values()
                        for task in part.tasks.values()
                        if task.state == "assigned" and task.worker == name
                    }
                    mine = [task for part in reader.board(tip).goals.values() for task in part.tasks.values()]
                    found = {(task.goal, task.id) for task in mine if task.state == "assigned"}
                    assert found == assigned
                    assert {task.worker for task in mine} <= {name}
                for worker in workers:
                    worker.step()
                    worker.rest(0.2)
                    worker.step()
                conductor.tick()
            assert not any(worker.assigned(worker.reader.board(tip)) for worker in workers)
        for worker in workers:
            worker.close()


def answered(bus: Bus, spoil: bool) -> tuple[Entry, Entry]:
    """Return a result's entry as a worker commits it and as it stands on the bus's branch then."""
    add(bus, "id: g\ntasks:\n  t: {capability: do}\n")
    worker = function_worker(bus, "ann", {"do": lambda _: {"n": 1}})
    conductor = bus.conductor()
    conductor.tick()
    while worker.step() or worker.busy():
        worker.rest(0.2)
    path, tip = paths.result("g", "t"), bus.hub.look()[paths.WORKERS + "ann"]
    if spoil:
        given = bus.hub.store.entry(tip, path)
        assert given is not None
        tip = hand_commit(bus, "ann", {path: b"# by hand\n" + bus.hub.store.blob(given.oid)})
    conductor.tick()
    worker.close()
    given, taken = (bus.hub.store.entry(one, path) for one in (tip, bus.hub.look()[bus.hub.main]))
    assert given is not None
    assert taken is not None
    assert bus.whole_board().goals["g"].results["t"].outputs == {"n": 1}
    return given, taken


def test_a_result_in_gitbus_own_words_is_taken_as_it_stands(world: World) -> None:
    with world.open() as bus:
        given, taken = answered(bus, spoil=False)
        assert given == taken


def test_a_result_in_other_words_is_written_anew(world: World) -> None:
    with world.open() as bus:
        given, taken = answered(bus, spoil=True)
        assert given != taken
        assert bus.hub.store.blob(given.oid) == b"# by hand\n" + bus.hub.store.blob(taken.oid)
