"""How an attempt ends, and what that leaves of the task's budget.

Rules: refused and failed attempts count against ``max_attempts``, lost ones against ``max_lost``,
answers ``retry`` against ``max_retries``; attempts before ``first_attempt`` count no more. An
attempt that was lost stays open: its result may still come and win.

Example: with ``max_attempts: 3`` the third refused attempt leaves the task ``dead``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from gitbus.records import Node, Task
from gitbus.records.bus import Conducting
from gitbus.records.work import Feedback, PastAttempt

Outcome = Literal["lost", "refused", "failed", "retry"]


def last_attempt(task: Task) -> int:
    """Return the highest attempt number that the task ever had."""
    present = task.attempt if task.worker is not None else 0
    return max([present, task.first_attempt - 1, *(past.attempt for past in task.history)])


def was_assigned(task: Task, worker: str) -> bool:
    """Say whether the task was ever this worker's, at whichever attempt."""
    return task.worker == worker or any(past.worker == worker for past in task.history)


def is_open(task: Task, attempt: int, worker: str) -> bool:
    """Say whether a result of this attempt by this worker may still win."""
    if task.state not in ("ready", "assigned") or attempt < task.first_attempt:
        return False
    if task.state == "assigned" and (task.attempt, task.worker) == (attempt, worker):
        return True
    return any(
        (past.attempt, past.worker, past.outcome) == (attempt, worker, "lost") for past in task.history
    )


def is_present(task: Task, worker: str) -> bool:
    """Say whether the task is assigned to this worker now."""
    return task.state == "assigned" and task.worker == worker


def spent(task: Task, outcome: Outcome) -> int:
    """Return how many attempts of the present budget ended this way."""
    return sum(past.outcome == outcome for past in task.history if past.attempt >= task.first_attempt)


def end(
    task: Task,
    outcome: Outcome,
    reason: str | None,
    now: datetime,
    node: Node | None,
    policy: Conducting,
    after: timedelta | None = None,
) -> Task:
    """Return the task once its present attempt ended without a result that was taken.

    Args:
        task: an assigned task.
        outcome: how the attempt ended.
        reason: one harmless line that says why.
        now: the time.
        node: what the goal says of the task (its own ``max_attempts``).
        policy: the bus's bounds.
        after: for ``retry``, how long to wait.
    """
    past = PastAttempt(attempt=task.attempt, worker=task.worker, outcome=outcome, reason=reason, at=now)
    ended = task.model_copy(
        update={
            "state": "ready",
            "attempt": task.attempt + 1,
            "worker": None,
            "assigned_at": None,
            "deadline": None,
            "ready_at": now,
            "not_before": now + after if after else None,
            "history": (*task.history, past),
        }
    )
    if exhausted(ended, node, policy):
        return ended.model_copy(
            update={
                "state": "dead",
                "reason": "attempts_exhausted",
                "attempt": task.attempt,
                "not_before": None,
            }
        )
    return ended


def end_lost(
    task: Task, attempt: int, outcome: Outcome, reason: str | None, node: Node | None, policy: Conducting
) -> Task:
    """Return the task once a lost attempt was answered, but not with a result that was taken.

    What runs meanwhile goes on, but nothing is begun any more once the budget is spent.
    """
    history = tuple(
        past.model_copy(update={"outcome": outcome, "reason": reason}) if past.attempt == attempt else past
        for past in task.history
    )
    ended = task.model_copy(update={"history": history})
    if ended.state == "ready" and exhausted(ended, node, policy):
        last = max(past.attempt for past in history)
        update = {"state": "dead", "reason": "attempts_exhausted", "attempt": last, "not_before": None}
        return ended.model_copy(update=update)
    return ended


def anew(task: Task, now: datetime, feedback: Feedback | None = None) -> Task:
    """Return the task as it is done again: every attempt so far is closed, and the budget is new.

    What was under way or taken is kept as given up, so that what its worker still answers is late: neither
    a forbidden path nor an answer to the attempt that it is given next.
    """
    following = last_attempt(task) + 1
    history = task.history
    if task.worker is not None:
        given_up = PastAttempt(
            attempt=task.attempt, worker=task.worker, outcome="lost", reason="to be done again", at=now
        )
        history = (*history, given_up)
    return task.model_copy(
        update={
            "state": "ready",
            "reason": None,
            "ready_at": now,
            "attempt": following,
            "first_attempt": following,
            "worker": None,
            "assigned_at": None,
            "deadline": None,
            "not_before": None,
            "history": history,
            "feedback": (*task.feedback, feedback) if feedback else task.feedback,
        }
    )


def exhausted(task: Task, node: Node | None, policy: Conducting) -> bool:
    """Say whether nothing is left of the task's budget."""
    attempts = node.max_attempts if node and node.max_attempts else policy.max_attempts
    return (
        spent(task, "refused") + spent(task, "failed") >= attempts
        or spent(task, "lost") >= policy.max_lost
        or spent(task, "retry") > policy.max_retries
    )
