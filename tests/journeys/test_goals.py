"""Goals that grow, loop, race and lack workers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from gitbus.bus import Bus
from gitbus.records import Task
from tests.support.world import World, function_worker, make_world, ok, step_all


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def run_goal(world: World, goal: str, functions: dict[str, Any], capacity: int = 8) -> Bus:
    bus = world.open()
    bus.add_goal(("apiVersion: gitbus/v1\nkind: Goal\n" + goal).encode())
    worker = function_worker(bus, "laptop", functions, capacity)
    step_all(bus, [worker])
    worker.close()
    return bus


PLANNER = """
id: big
tasks:
  plan:
    capability: plan
    expands: {max: 5, capabilities: [draw, write]}
  end:
    capability: end
    needs: [plan]
"""


def planned(tasks: dict[str, Any]) -> dict[str, Any]:
    return {
        "plan": lambda task: ok(task, "laptop", tasks=tasks),
        "draw": lambda task: {"did": task.id},
        "write": lambda task: {"did": task.id, "saw": task.inputs},
        "end": lambda task: "ended",
    }


def test_a_planner_adds_five_tasks(world: World) -> None:
    tasks = {f"t{n}": {"capability": "draw"} for n in range(4)}
    tasks["last"] = {
        "capability": "write",
        "needs": ["t0", "t1"],
        "inputs": {"first": "${t0.outputs.did}"},
    }
    with run_goal(world, PLANNER, planned(tasks)) as bus:
        part = bus.whole_board().goals["big"]
        assert {name: task.state for name, task in part.tasks.items()} == dict.fromkeys(
            ["plan", "end", "plan-t0", "plan-t1", "plan-t2", "plan-t3", "plan-last"], "done"
        )
        assert part.state == "done"
        assert part.results["plan-last"].outputs["saw"] == {"first": "plan-t0"}
        assert part.tasks["end"].ready_at >= part.tasks["plan-last"].ready_at


@pytest.mark.parametrize(
    ("tasks", "rule"),
    [
        ({"a": {"capability": "draw", "needs": ["b"]}, "b": {"capability": "draw", "needs": ["a"]}}, "cycle"),
        ({f"t{n}": {"capability": "draw"} for n in range(6)}, "too-many-tasks"),
        ({"a": {"capability": "steal"}}, "capability-not-allowed"),
        ({"a": {"capability": "draw", "needs": ["end"]}}, "unknown-need"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_a_dead_letter(world: World, tasks: dict[str, Any], rule: str) -> None:
    with run_goal(world, PLANNER, planned(tasks)) as bus:
        part = bus.whole_board().goals["big"]
        assert part.tasks["plan"].state == "dead"
        assert [past.outcome for past in part.tasks["plan"].history] in (["failed"] * 3, ["refused"] * 3)
        assert all(rule in (past.reason or "") for past in part.tasks["plan"].history)
        assert (part.tasks["end"].state, part.tasks["end"].reason) == ("skipped", "needs_unmet")
        assert part.state == "failed"


def test_foreach_over_25_with_one_bad(world: World) -> None:
    goal = """
id: many
tasks:
  gather: {capability: gather}
  mail:
    capability: greet
    needs: [gather]
    foreach: {in: "${gather.outputs.people}", key: "${each.id}", max: 500}
    inputs: {name: "${each.name}"}
    max_attempts: 2
  sum: {capability: sum, needs: [{task: mail, optional: true}], inputs: {all: "${mail.outputs}"}}
"""

    def greet(task: Task) -> Any:
        if task.inputs["name"] == "Person 13":
            raise ValueError("13 is bad luck")
        return {"said": f"hello {task.inputs['name']}"}

    functions = {
        "gather": lambda task: {"people": [{"id": f"p{n}", "name": f"Person {n}"} for n in range(25)]},
        "greet": greet,
        "sum": lambda task: {"count": len([one for one in task.inputs["all"] if one])},
    }
    with run_goal(world, goal, functions) as bus:
        part = bus.whole_board().goals["many"]
        states = [task.state for name, task in part.tasks.items() if name.startswith("mail-")]
        assert (states.count("done"), states.count("dead"), len(states)) == (24, 1, 25)
        assert part.state == "partial"
        assert part.results["sum"].outputs == {"count": 24}
        assert "13 is bad luck" in (part.tasks["mail-p13"].history[0].reason or "")


def test_thirty_workers_and_one_task(world: World) -> None:
    ran: list[str] = []
    with world.open() as bus:
        bus.add_goal(b"apiVersion: gitbus/v1\nkind: Goal\nid: one\ntasks: {only: {capability: do}}\n")
        workers = [
            function_worker(bus, f"w{n}", {"do": lambda task, n=n: ran.append(f"w{n}") or {}})
            for n in range(30)
        ]
        step_all(bus, workers)
        assert len(ran) == 1
        assert bus.whole_board().goals["one"].state == "done"


def test_fifty_workers_and_twenty_tasks(world: World) -> None:
    ran: list[str] = []
    tasks = "\n".join(f"  t{n}: {{capability: do}}" for n in range(20))
    with world.open() as bus:
        bus.add_goal(f"apiVersion: gitbus/v1\nkind: Goal\nid: some\ntasks:\n{tasks}\n".encode())
        workers = [
            function_worker(bus, f"w{n}", {"do": lambda task: ran.append(task.id) or {}}) for n in range(50)
        ]
        step_all(bus, workers)
        assert sorted(ran) == sorted(f"t{n}" for n in range(20))
        assert bus.whole_board().goals["some"].state == "done"


def test_a_goal_opens_again_when_somebody_can(world: World) -> None:
    goal = "id: later\ntasks:\n  a: {capability: make}\n  b: {capability: draw, needs: [a]}\n  c: {capability: make, needs: [b]}\n"
    with run_goal(world, goal, {"make": lambda task: {"by": task.id}}) as bus:
        first = bus.board().goals["later"]
        assert (first.state, first.report.missing if first.report else ()) == ("failed", ("draw",))
        artist = function_worker(bus, "artist", {"draw": lambda task: {}, "make": lambda task: {}})
        step_all(bus, [artist])
        again = bus.whole_board().goals["later"]
        assert again.state == "done"
        assert {task.state for task in again.tasks.values()} == {"done"}


def test_a_lost_attempt_that_comes_late_still_counts(world: World) -> None:
    with world.open() as bus:
        bus.add_goal(
            b"apiVersion: gitbus/v1\nkind: Goal\nid: slow\ntasks: {only: {capability: do, lease: 1m}}\n"
        )
        done = threading.Event()
        slow = function_worker(bus, "slow", {"do": lambda task: done.wait(30) and {"by": "slow"}})
        conductor = bus.conductor()
        while conductor.tick():
            pass
        slow.step()
        world.clock.forward(minutes=2)
        quick = function_worker(bus, "quick", {"do": lambda task: {"by": "quick"}})
        while conductor.tick():
            pass
        task = bus.board().goals["slow"].tasks["only"]
        assert (task.attempt, task.worker, task.history[0].outcome) == (2, "quick", "lost")
        done.set()
        while slow.running:
            slow.rest(0.1)
            slow.step()
        step_all(bus, [quick, slow])
        part = bus.whole_board().goals["slow"]
        assert part.results["only"].outputs == {"by": "slow"}
        assert (part.tasks["only"].state, part.tasks["only"].attempt, part.state) == ("done", 1, "done")


def test_budgets_end_in_dead_letters(world: World) -> None:
    def fail(task: Task) -> Any:
        raise ValueError(f"attempt {task.attempt} fails")

    goal = "id: doomed\ntasks:\n  bad: {capability: do, max_attempts: 2}\n  after: {capability: do, needs: [bad]}\n"
    with run_goal(world, goal, {"do": fail}) as bus:
        part = bus.whole_board().goals["doomed"]
        assert [(past.attempt, past.outcome) for past in part.tasks["bad"].history] == [
            (1, "failed"),
            (2, "failed"),
        ]
        assert (part.tasks["bad"].state, part.tasks["bad"].reason) == ("dead", "attempts_exhausted")
        bus.retry_task("doomed", "bad")
        worker = function_worker(bus, "better", {"do": lambda task: {}})
        step_all(bus, [worker])
        again = bus.whole_board().goals["doomed"]
        assert (again.tasks["bad"].state, again.tasks["bad"].attempt, again.state) == ("done", 3, "done")
