"""What workers say and are: answers that arithmetic cannot bear, CI, two of one name, a task nobody can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.errors import Refused
from gitbus.records import Worker
from gitbus.runner.function import FunctionRunner
from gitbus.worker import Offer
from tests.journeys.driving import another_clone, hand_commit, vandalise
from tests.support.world import World, function_worker, make_world, ok, step_all

GOAL = b"""\
apiVersion: gitbus/v1
kind: Goal
id: g
tasks:
  t:
    capability: do
    item:
      channel: news
      to: [list@partners.example]
      subject: S
      text: T
      headers: {X-Count: "${t.outputs.n}"}
  u: {capability: do}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "begun before there were years": ({"started_at": "0001-01-01T00:00:00+01:00"}, "bad-time"),
    "ended after all years": ({"finished_at": "9999-12-31T23:59:59-10:00"}, "bad-time"),
    "to be tried when nobody lives": ({"status": "retry", "after": "999999999d"}, "bad-duration"),
    "a cost that no sum can hold": ({"usage": {"cost_usd": 1e308}}, "bad-value"),
    "a header that is a number": ({"outputs": {"n": 1}}, "wrong-type"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_no_answer_stops_the_conductor(world: World, what: str) -> None:
    fields, rule = ANSWERS[what]
    with world.open() as bus:
        bus.add_goal(GOAL)
        worker = bus.worker(Offer("w", ("do",), 2), FunctionRunner(lambda task, inputs: {}, now=bus.now))
        worker.announce()
        bus.conduct()
        base = {"apiVersion": "gitbus/v1", "kind": "Result", "goal": "g", "task": "t", "attempt": 1}
        answer = {**base, "worker": "w", "status": "ok", **fields}
        hand_commit(bus, "w", {paths.result("g", "t"): json.dumps(answer).encode()})
        bus.conduct()
        assert bus.board().goals["g"].refusals["t", 1].rule == rule
        worker.close()


def test_usage_is_summed_whatever_it_is(world: World) -> None:
    with world.open() as bus:
        bus.add_goal(
            b"apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks: {a: {capability: do}, b: {capability: do}}\n"
        )
        most = {"tokens_in": 10**15, "cost_usd": 1e15}
        worker = function_worker(bus, "w", {"do": lambda task: ok(task, "w", usage=most)})
        step_all(bus, [worker])
        worker.close()
        report = bus.board().goals["g"].report
        assert report is not None
        assert report.usage is not None
        assert (report.usage.tokens_in, report.usage.cost_usd) == (10**15, 1e15)


def test_a_worker_of_ci_says_nothing_and_is_healthy(world: World) -> None:
    with world.open() as bus:
        declared = codec.write(Worker(id="w", capabilities=("do",), ci=True))
        vandalise(bus, {paths.worker("w"): declared})
        bus.add_goal(b"apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks: {t: {capability: do}}\n")
        world.clock.forward(days=1)
        bus.conduct()
        assert bus.board().goals["g"].tasks["t"].state == "assigned"
        worker = function_worker(bus, "w", {"do": lambda task: {}})
        step_all(bus, [worker])
        worker.close()
        assert bus.board().goals["g"].state == "done"
        assert paths.PRESENCE + "w" not in bus.refs()


def test_a_presence_does_not_make_a_worker_of_ci_ill(world: World) -> None:
    with world.open() as bus:
        function_worker(bus, "w", {"do": lambda task: {}}).close()  # says that it is gone
        vandalise(bus, {paths.worker("w"): codec.write(Worker(id="w", capabilities=("do",), ci=True))})
        bus.add_goal(b"apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks: {t: {capability: do}}\n")
        bus.conduct()
        assert bus.board().goals["g"].tasks["t"].state == "assigned"


def test_one_name_in_two_clones_of_a_machine(world: World) -> None:
    with world.open() as bus, another_clone(world, "second").open() as second:
        first = function_worker(bus, "w", {"do": lambda task: {}})
        with pytest.raises(Refused) as refused:
            function_worker(second, "w", {"do": lambda task: {}})
        assert refused.value.rule == "worker-running"
        first.close()
        function_worker(second, "w", {"do": lambda task: {}}).close()


def test_a_task_that_nobody_can_read_is_not_its_workers_fault(world: World) -> None:
    with world.open() as bus:
        bus.add_goal(GOAL)
        bus.add_goal(b"apiVersion: gitbus/v1\nkind: Goal\nid: fine\ntasks: {t: {capability: do}}\n")
        worker = function_worker(bus, "w", {"do": lambda task: ok(task, "w", outputs={"n": "1"})})
        bus.conduct()
        vandalise(bus, {paths.task("g", "t"): b"garbage: [\n"})
        while worker.step() or worker.busy():
            worker.rest(0.2)
        made = ok(bus.board().goals["fine"].tasks["t"], "w").model_copy(update={"goal": "g"})
        hand_commit(bus, "w", {paths.result("g", "t"): codec.write(made)}, on=bus.refs()[paths.WORKERS + "w"])
        bus.conduct()
        board = bus.board()
        assert board.branch_refusals == {}
        assert (board.goals["g"].state, board.goals["fine"].state) == ("broken", "done")
        worker.close()


def test_a_newer_bus_is_not_written_by_a_worker_or_an_approver(world: World) -> None:
    with world.open() as bus:
        worker = function_worker(bus, "w", {"do": lambda task: {}})
        bus.set_config("requires", ">=99.0")
        for act in (worker.step, lambda: bus.approve([])):
            with pytest.raises(Refused) as refused:
                act()
            assert refused.value.rule == "too-old"
        worker.let_go()
