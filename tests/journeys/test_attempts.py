"""Attempts: late answers, `retry`, lost ones, budgets, and what people do to tasks and goals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.errors import Refused
from gitbus.records import Result, Task
from gitbus.records.work import Failure
from gitbus.worker import WorkerActor
from tests.journeys.driving import hand_commit, nothing_to_object
from tests.support.world import World, function_worker, make_world, step_all

GOAL = b"""\
apiVersion: gitbus/v1
kind: Goal
id: g
tasks:
  t: {capability: do, lease: 10m}
  after: {capability: other, needs: [t]}
"""
RESULT = paths.result("g", "t")
POLICY = {
    "conductor": {
        "max_attempts": 2,
        "max_lost": 3,
        "max_retries": 2,
        "absent_grace": "0s",
        "worker_ttl": "2h",
    }
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, policy=POLICY)


@pytest.fixture
def bus(world: World) -> Iterator[Bus]:
    with world.open() as bus:
        bus.add_goal(GOAL)
        yield bus


@pytest.fixture
def workers(bus: Bus) -> Iterator[list[WorkerActor]]:
    made = [function_worker(bus, name, {"do": lambda task: {}, "other": lambda task: {}}) for name in "vw"]
    bus.conduct()
    yield made
    for worker in made:
        worker.close()


def task(bus: Bus, name: str = "t") -> Task:
    return bus.whole_board().goals["g"].tasks[name]


def answer(bus: Bus, worker: str, attempt: int, **fields: Any) -> None:
    """Let a worker commit an answer to an attempt, whatever it was asked."""
    base = {"goal": "g", "task": "t", "attempt": attempt, "worker": worker, "status": "ok"}
    ref = bus.refs().get(paths.WORKERS + worker)
    merged = ref is None or bus.hub.store.is_ancestor(ref, bus.refs()[bus.hub.main])
    hand_commit(
        bus,
        worker,
        {RESULT: codec.write(Result.model_validate({**base, **fields}))},
        on=None if merged else ref,
    )


def failed(why: str) -> dict[str, Any]:
    return {"status": "failed", "error": Failure(message=why)}


def history(bus: Bus) -> list[tuple[int, str | None, str]]:
    return [(past.attempt, past.worker, past.outcome) for past in task(bus).history]


def lose(world: World, bus: Bus) -> None:
    world.clock.forward(minutes=11)
    bus.conduct()


# --- lost and late


def test_a_lost_attempt_costs_nothing_until_too_many(
    world: World, bus: Bus, workers: list[WorkerActor]
) -> None:
    assert task(bus).worker == "v"
    lose(world, bus)
    assert (task(bus).attempt, task(bus).worker) == (2, "w")  # who lost it is tried last
    lose(world, bus)
    lose(world, bus)
    here = task(bus)
    assert (here.state, here.reason, here.attempt) == ("dead", "attempts_exhausted", 3)
    assert [outcome for _, _, outcome in history(bus)] == ["lost"] * 3
    assert task(bus, "after").reason == "needs_unmet"
    assert bus.board().goals["g"].state == "failed"
    nothing_to_object(bus)


def test_the_first_of_two_wins_and_the_second_is_late(
    world: World, bus: Bus, workers: list[WorkerActor]
) -> None:
    lose(world, bus)
    assert (task(bus).attempt, task(bus).worker) == (2, "w")
    answer(bus, "v", 1, outputs={"by": "v"})
    bus.conduct()
    assert (task(bus).state, task(bus).worker, task(bus).attempt) == ("done", "v", 1)
    assert history(bus) == [(2, "w", "lost")]
    answer(bus, "w", 2, outputs={"by": "w"})
    bus.conduct()
    part = bus.whole_board().goals["g"]
    assert (part.results["t"].outputs, part.tasks["t"].attempt) == ({"by": "v"}, 1)
    assert part.refusals == {}
    assert bus.board().branch_refusals == {}
    said = [bus.hub.store.commit(oid).message for oid in bus.hub.store.line(bus.refs()[bus.hub.main])]
    assert any("g/t#2: late, changes nothing" in one for one in said)
    nothing_to_object(bus)


def test_both_in_one_tick(world: World, bus: Bus, workers: list[WorkerActor]) -> None:
    lose(world, bus)
    answer(bus, "v", 1, outputs={"by": "v"})
    answer(bus, "w", 2, outputs={"by": "w"})
    bus.conduct()
    part = bus.whole_board().goals["g"]
    assert part.results["t"].outputs == {"by": "v"}
    assert (part.tasks["t"].state, part.tasks["t"].attempt) == ("done", 1)
    nothing_to_object(bus)


def test_absorb_comes_before_lose(world: World, bus: Bus, workers: list[WorkerActor]) -> None:
    """A conductor that was down past the deadline loses no answer that was there."""
    answer(bus, "v", 1, outputs={"by": "v"})
    world.clock.forward(minutes=30)
    bus.conduct()
    assert (task(bus).state, history(bus)) == ("done", [])


def test_a_failure_of_a_lost_attempt_counts_and_closes_it(
    world: World, bus: Bus, workers: list[WorkerActor]
) -> None:
    lose(world, bus)
    answer(bus, "v", 1, **failed("late and bad"))
    bus.conduct()
    assert history(bus) == [(1, "v", "failed")]
    assert (task(bus).state, task(bus).attempt) == ("assigned", 2)
    answer(bus, "v", 1, outputs={"by": "v"})
    bus.conduct()
    assert task(bus).state == "assigned"  # the attempt is closed: what else comes for it is late
    answer(bus, "w", 2, **failed("bad too"))
    bus.conduct()
    assert (task(bus).state, history(bus)) == ("dead", [(1, "v", "failed"), (2, "w", "failed")])
    nothing_to_object(bus)


def test_a_bad_answer_to_a_lost_attempt_leaves_the_present_one_alone(world: World, bus: Bus) -> None:
    """One worker has both attempts: what it answers to the first costs the first."""
    worker = function_worker(bus, "v", {"do": lambda task: {}})
    bus.conduct()
    lose(world, bus)
    assert (task(bus).attempt, task(bus).worker) == (2, "v")
    evidence = ({"id": "e", "kind": "file", "ref": "nowhere.md"},)
    answer(bus, "v", 1, evidence=evidence)
    bus.conduct()
    assert history(bus) == [(1, "v", "refused")]
    assert (task(bus).state, task(bus).attempt) == ("assigned", 2)
    assert bus.whole_board().goals["g"].refusals["t", 1].rule == "evidence-missing"
    answer(bus, "v", 2)
    bus.conduct()
    assert task(bus).state == "done"
    nothing_to_object(bus)
    worker.close()


def test_nothing_is_begun_once_late_failures_spent_the_budget(world: World, bus: Bus) -> None:
    worker = function_worker(bus, "v", {"do": lambda task: {}}, capacity=1)
    bus.conduct()
    answer(bus, "v", 1, **failed("first"))
    bus.conduct()
    assert task(bus).attempt == 2
    world.clock.forward(hours=3)  # the worker is gone as well, so that the task only waits
    bus.set_config("conductor.absent_grace", "7d")
    bus.conduct()
    assert (task(bus).state, history(bus)) == ("ready", [(1, "v", "failed"), (2, "v", "lost")])
    answer(bus, "v", 2, **failed("second, late"))
    bus.conduct()
    assert (task(bus).state, task(bus).reason) == ("dead", "attempts_exhausted")
    nothing_to_object(bus)
    worker.close()


# --- retry


def test_retry_waits_as_long_as_it_says_and_is_bounded(
    world: World, bus: Bus, workers: list[WorkerActor]
) -> None:
    for attempt in (1, 2):
        answer(bus, task(bus).worker or "", attempt, status="retry", after=timedelta(minutes=90))
        bus.conduct()
        here = task(bus)
        assert (here.state, here.attempt, here.not_before) == (
            "ready",
            attempt + 1,
            world.clock() + timedelta(minutes=90),
        )
        world.clock.forward(minutes=89)
        bus.conduct()
        assert task(bus).state == "ready"
        world.clock.forward(minutes=1)
        for worker in workers:
            worker.announce()
        bus.conduct()
        assert (task(bus).state, task(bus).not_before) == ("assigned", None)
    answer(bus, task(bus).worker or "", 3, status="retry")
    bus.conduct()
    here = task(bus)
    assert (here.state, here.reason) == ("dead", "attempts_exhausted")
    assert [outcome for _, _, outcome in history(bus)] == ["retry"] * 3
    nothing_to_object(bus)


def test_retry_spends_no_attempt(world: World, bus: Bus, workers: list[WorkerActor]) -> None:
    answer(bus, task(bus).worker or "", 1, status="retry")
    bus.conduct()
    world.clock.forward(minutes=1)
    bus.conduct()
    answer(bus, task(bus).worker or "", 2, **failed("once"))
    bus.conduct()
    assert task(bus).state == "assigned"
    answer(bus, task(bus).worker or "", 3, outputs={"n": 1})
    bus.conduct()
    assert task(bus).state == "done"
    nothing_to_object(bus)


# --- people


def test_cancel(bus: Bus, workers: list[WorkerActor]) -> None:
    bus.cancel_goal("g", "not needed any more")
    bus.conduct()
    part = bus.whole_board().goals["g"]
    assert part.state == "cancelled"
    assert {one.state for one in part.tasks.values()} == {"cancelled"}
    answer(bus, "v", 1, outputs={"by": "v"})
    bus.conduct()
    after = bus.whole_board().goals["g"]
    assert (after.state, after.results, after.tasks["t"].state) == ("cancelled", {}, "cancelled")
    assert bus.board().branch_refusals == {}
    for act in (
        lambda: bus.cancel_goal("g", "twice"),
        lambda: bus.resume("g"),
        lambda: bus.retry_task("g", "t"),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.rule == "wrong-state"
    nothing_to_object(bus)


def test_cancel_keeps_what_is_done(bus: Bus, workers: list[WorkerActor]) -> None:
    answer(bus, "v", 1)
    bus.conduct()
    bus.cancel_goal("g", "enough")
    bus.conduct()
    part = bus.whole_board().goals["g"]
    assert (part.state, part.tasks["t"].state, part.tasks["after"].state) == (
        "cancelled",
        "done",
        "cancelled",
    )


def test_resume_by_hand(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"conductor": {"reopen": "manual", "absent_grace": "0s"}})
    with world.open() as bus:
        bus.add_goal(GOAL)
        bus.conduct()
        assert [(task(bus, name).state, task(bus, name).reason) for name in ("t", "after")] == [
            ("skipped", "worker_absent"),
            ("skipped", "needs_unmet"),
        ]
        worker = function_worker(bus, "w", {"do": lambda task: {}, "other": lambda task: {}})
        step_all(bus, [worker])
        assert task(bus).state == "skipped"
        bus.resume("g")
        step_all(bus, [worker])
        assert bus.board().goals["g"].state == "done"
        with pytest.raises(Refused) as refused:
            bus.resume("g")
        assert refused.value.rule == "wrong-state"
        nothing_to_object(bus)
        worker.close()


def test_nothing_to_resume_where_a_task_died(bus: Bus, workers: list[WorkerActor]) -> None:
    for attempt in (1, 2):
        answer(bus, task(bus).worker or "", attempt, **failed("bad"))
        bus.conduct()
    assert (task(bus).state, task(bus, "after").reason) == ("dead", "needs_unmet")
    before = bus.refs()[bus.hub.main]
    with pytest.raises(Refused) as refused:
        bus.resume("g")
    assert (refused.value.rule, "retry" in (refused.value.remedy or "")) == ("wrong-state", True)
    assert bus.refs()[bus.hub.main] == before


REDONE = b"""\
apiVersion: gitbus/v1
kind: Goal
id: g
tasks:
  mail:
    capability: mail
    item: {channel: news, to: [a@b.example], subject: S, text: "${mail.outputs.text}"}
  t: {capability: do, needs: [mail]}
"""


def test_an_answer_to_what_is_redone_meanwhile_is_late(world: World) -> None:
    """Redo closes an attempt that still runs below; its answer then changes nothing and breaks no rule."""
    with world.open() as bus:
        bus.add_goal(REDONE)
        author = function_worker(bus, "author", {"mail": lambda task: {"text": "x"}})
        step_all(bus, [author])
        slow = function_worker(bus, "slow", {"do": lambda task: {}})
        bus.conduct()
        assert (task(bus).state, task(bus).worker) == ("assigned", "slow")
        bus.redo("g.mail.item", "again")
        answer(bus, "slow", 1, outputs={"old": True})
        step_all(bus, [author])
        assert bus.board().branch_refusals == {}
        assert (task(bus).state, task(bus).attempt, task(bus).first_attempt) == ("assigned", 2, 2)
        step_all(bus, [author, slow])
        assert bus.whole_board().goals["g"].results["t"].outputs == {}
        assert bus.board().goals["g"].state == "done"
        nothing_to_object(bus)
        for worker in (author, slow):
            worker.close()
