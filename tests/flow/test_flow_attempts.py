"""Whatever happens to a task's attempts, in whatever order, it stays within its budget and tells the truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from gitbus import attempts
from gitbus.records import Node, Task
from gitbus.records.bus import Conducting
from gitbus.states import may

NOW = datetime(2026, 11, 30, tzinfo=UTC)
WORKERS = ("ann", "bob")
OUTCOMES = get_args(attempts.Outcome)

policies = st.builds(
    Conducting,
    max_attempts=st.integers(1, 4),
    max_lost=st.integers(1, 4),
    max_retries=st.integers(0, 4),
)
nodes = st.none() | st.builds(Node, capability=st.just("do"), max_attempts=st.none() | st.integers(1, 4))
moves = st.lists(
    st.tuples(st.sampled_from(WORKERS), st.sampled_from(OUTCOMES), st.integers(0, 30)), max_size=40
)


def fresh() -> Task:
    return Task(goal="g", id="t", state="ready", ready_at=NOW, capability="do")


def assign(task: Task, worker: str) -> Task:
    return task.model_copy(update={"state": "assigned", "worker": worker})


def play(steps: list[tuple[str, Any, int]], node: Node | None, policy: Conducting) -> list[Task]:
    """Let a task live: it is assigned when it is ready; its present attempt ends, or a lost one is answered."""
    task = fresh()
    lives = [task]
    for worker, outcome, which in steps:
        if task.state == "ready":
            task = assign(task, worker)
            lives.append(task)
        lost = [past for past in task.history if past.outcome == "lost"]
        late = which % 3 == 0 and lost and outcome != "lost" and task.state != "dead"
        if late:
            past = lost[which % len(lost)]
            task = attempts.end_lost(task, past.attempt, outcome, "why", node, policy)
        elif task.state == "assigned":
            task = attempts.end(task, outcome, "why", NOW, node, policy, timedelta(minutes=1))
        lives.append(task)
    return lives


@given(moves, nodes, policies)
def test_nothing_is_begun_past_the_budget(steps: Any, node: Node | None, policy: Conducting) -> None:
    most = node.max_attempts if node and node.max_attempts else policy.max_attempts
    for before, after in zip(lives := play(steps, node, policy), lives[1:], strict=False):
        if before.state == "ready" and after.state == "assigned":
            assert attempts.spent(before, "failed") + attempts.spent(before, "refused") < most
            assert attempts.spent(before, "lost") < policy.max_lost
            assert attempts.spent(before, "retry") <= policy.max_retries
        if before.state == "dead":
            assert after == before


@given(moves, nodes, policies)
def test_every_attempt_is_accounted_for_once(steps: Any, node: Node | None, policy: Conducting) -> None:
    for task in play(steps, node, policy):
        numbers = [past.attempt for past in task.history]
        assert numbers == list(range(1, len(numbers) + 1))
        assert task.attempt == len(numbers) + (task.state != "dead")


@given(moves, nodes, policies)
def test_only_the_present_attempt_and_lost_ones_are_open(
    steps: Any, node: Node | None, policy: Conducting
) -> None:
    for task in play(steps, node, policy):
        lost = {(past.attempt, past.worker) for past in task.history if past.outcome == "lost"}
        present = {(task.attempt, task.worker)} if task.state == "assigned" else set()
        for attempt in range(1, task.attempt + 2):
            for worker in WORKERS:
                expected = task.state != "dead" and (attempt, worker) in lost | present
                assert attempts.is_open(task, attempt, worker) == expected
                if expected:
                    assert attempts.was_assigned(task, worker)


@given(moves, nodes, policies)
def test_every_move_is_legal(steps: Any, node: Node | None, policy: Conducting) -> None:
    for before, after in zip(lives := play(steps, node, policy), lives[1:], strict=False):
        if before.state != after.state:
            assert any(may("task", before.state, after.state, verb) for verb in ("assign", "absorb", "lose"))


@given(moves, nodes, policies)
def test_a_new_budget_closes_all_that_was_before(steps: Any, node: Node | None, policy: Conducting) -> None:
    task = play(steps, node, policy)[-1]
    following = attempts.last_attempt(task) + 1
    anew = task.model_copy(update={"state": "ready", "attempt": following, "first_attempt": following})
    assert not attempts.exhausted(anew, node, policy)
    for past in task.history:
        assert not attempts.is_open(anew, past.attempt, past.worker or "")
