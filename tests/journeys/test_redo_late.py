"""What workers still answer to attempts of before a redo: late, and nobody's loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.history import Oid
from gitbus.records import Result, Task
from gitbus.worker import WorkerActor
from tests.journeys.driving import hand_commit, nothing_to_object
from tests.support.world import World, function_worker, make_world, step_all

ITEM = "g.mail.item"
GOAL = b"""\
apiVersion: gitbus/v1
kind: Goal
id: g
tasks:
  mail:
    capability: mail
    lease: 10m
    item: {channel: news, to: [a@b.example], subject: S, text: "${mail.outputs.text}"}
"""
POLICY = {"conductor": {"max_attempts": 1, "max_lost": 2, "absent_grace": "7d", "worker_ttl": "2h"}}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, policy=POLICY)


@pytest.fixture
def bus(world: World) -> Iterator[Bus]:
    with world.open() as bus:
        bus.add_goal(GOAL)
        yield bus


@pytest.fixture
def workers(bus: Bus) -> Iterator[dict[str, WorkerActor]]:
    made = {name: function_worker(bus, name, {"mail": lambda task: {"text": "x"}}) for name in "vw"}
    bus.conduct()
    yield made
    for worker in made.values():
        worker.close()


def task(bus: Bus) -> Task:
    return bus.whole_board().goals["g"].tasks["mail"]


def answer(bus: Bus, worker: str, attempt: int, **fields: Any) -> Oid:
    """Let a worker commit an answer to an attempt, on top of what it has not seen absorbed."""
    base = {"goal": "g", "task": "mail", "attempt": attempt, "worker": worker, "status": "ok"}
    result = Result.model_validate({**base, "outputs": {"text": f"{worker} {attempt}"}, **fields})
    refs = bus.refs()
    ref = refs.get(paths.WORKERS + worker)
    merged = ref is None or bus.hub.store.is_ancestor(ref, refs[bus.hub.main])
    return hand_commit(
        bus, worker, {paths.result("g", "mail"): codec.write(result)}, on=None if merged else ref
    )


def lose(world: World, bus: Bus) -> None:
    world.clock.forward(minutes=11)
    bus.conduct()


def nothing_was_refused(bus: Bus) -> None:
    assert bus.board().branch_refusals == {}
    assert bus.whole_board().goals["g"].refusals == {}
    nothing_to_object(bus)


def test_who_was_taken_answers_once_more_and_has_it_again(bus: Bus, workers: dict[str, WorkerActor]) -> None:
    """The budget is one attempt: were the old answer held against the new one, the task would be dead."""
    answer(bus, "v", 1)
    bus.conduct()
    bus.redo(ITEM, "again")
    bus.conduct()
    assert (task(bus).state, task(bus).attempt, task(bus).worker) == ("assigned", 2, "v")
    answer(bus, "v", 1, confidence=0.5)
    bus.conduct()
    assert (task(bus).state, task(bus).attempt) == ("assigned", 2)
    answer(bus, "v", 2)
    bus.conduct()
    assert (task(bus).state, bus.payload(ITEM)["body.txt"]) == ("done", b"v 2\n")
    nothing_was_refused(bus)


def test_who_was_taken_answers_once_more_and_another_has_it(
    bus: Bus, workers: dict[str, WorkerActor]
) -> None:
    answer(bus, "v", 1)
    bus.conduct()
    workers["v"].announce(gone=True)
    bus.redo(ITEM, "again")
    bus.conduct()
    assert (task(bus).attempt, task(bus).worker) == (2, "w")
    answer(bus, "v", 1, confidence=0.5)
    bus.conduct()
    answer(bus, "v", 1, status="failed", error={"message": "no"})
    bus.conduct()
    answer(bus, "w", 2)
    bus.conduct()
    assert (task(bus).state, bus.payload(ITEM)["body.txt"]) == ("done", b"w 2\n")
    nothing_was_refused(bus)


@pytest.mark.parametrize("winner", "vw")
def test_two_had_it_before_and_both_answer_after(
    world: World, bus: Bus, workers: dict[str, WorkerActor], winner: str
) -> None:
    lose(world, bus)
    assert (task(bus).attempt, task(bus).worker) == (2, "w")
    had = {"v": 1, "w": 2}
    answer(bus, winner, had[winner])
    bus.conduct()
    assert (task(bus).state, task(bus).worker) == ("done", winner)
    bus.redo(ITEM, "again")
    for name, attempt in had.items():
        answer(bus, name, attempt, confidence=0.5)
    bus.conduct()
    here = task(bus)
    assert (here.state, here.attempt, here.first_attempt) == ("assigned", 3, 3)
    answer(bus, here.worker or "", 3)
    bus.conduct()
    assert (task(bus).state, bus.payload(ITEM)["body.txt"]) == ("done", f"{here.worker} 3\n".encode())
    nothing_was_refused(bus)


def test_late_in_one_branch_with_the_new_answer(bus: Bus, workers: dict[str, WorkerActor]) -> None:
    answer(bus, "v", 1)
    bus.conduct()
    bus.redo(ITEM, "again")
    bus.conduct()
    answer(bus, "v", 1, confidence=0.5)
    answer(bus, "v", 2)
    bus.conduct()
    assert (task(bus).state, bus.payload(ITEM)["body.txt"]) == ("done", b"v 2\n")
    nothing_was_refused(bus)


def test_what_was_lost_before_is_not_held_against_anybody(
    world: World, bus: Bus, workers: dict[str, WorkerActor]
) -> None:
    """A redo gives a new budget, and the worker whose result is done again is as good as any other."""
    lose(world, bus)
    answer(bus, "v", 1)
    bus.conduct()
    for _ in range(3):
        bus.redo(ITEM, "again")
        bus.conduct()
        assert (task(bus).state, task(bus).worker) == ("assigned", "v")
        answer(bus, "v", task(bus).attempt)
        bus.conduct()
    assert task(bus).state == "done"
    nothing_was_refused(bus)


def test_a_real_worker_goes_on_after_it_was_late(
    world: World, bus: Bus, workers: dict[str, WorkerActor]
) -> None:
    lose(world, bus)
    answer(bus, "w", 2)
    bus.conduct()
    bus.redo(ITEM, "again")
    answer(bus, "v", 1)
    step_all(bus, list(workers.values()))
    assert (task(bus).state, task(bus).attempt) == ("done", 3)
    assert bus.board().items[ITEM].state == "in_review"
    nothing_was_refused(bus)
