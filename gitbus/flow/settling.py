"""Settle: the report of a goal whose tasks are all over. Pure.

Example: a goal of whose leaves one is done and one is dead becomes ``partial``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gitbus import graph, paths
from gitbus.board import Board, GoalBoard
from gitbus.change import Change, Thread
from gitbus.flow.goals import live
from gitbus.graph import Graph, Planned
from gitbus.incoming import Inbox
from gitbus.records import Report, Task
from gitbus.records.work import MOST, ReportedItem, ReportedTask, Usage
from gitbus.states import TASK_FINAL


def settle(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Write the report of every goal whose tasks are all in a final state."""
    return [change for part in live(board) for change in _settled(board, part, now)]


def _settled(board: Board, part: GoalBoard, now: datetime) -> Iterator[Change]:
    whole = graph.of(board, part)
    if any(whole.state(name) not in TASK_FINAL for name in whole.tasks):
        return
    if any(task.state not in TASK_FINAL for task in part.tasks.values()):
        return  # what a planner or a loop made once and makes no more is cancelled first
    if any(_may_still_run(whole, part.tasks[name], planned) for name, planned in whole.tasks.items()):
        return
    state = _goal_state(part, whole)
    report = Report(
        goal=part.id,
        state=state,
        settled_at=now,
        tasks=tuple(_reported(part.tasks[name]) for name in whole.tasks),
        outputs={
            name: part.results[name].outputs
            for name in whole.leaves()
            if name in part.results and whole.state(name) == "done"
        },
        missing=tuple(
            sorted({task.capability for task in part.tasks.values() if task.reason == "worker_absent"})
        ),
        items=tuple(
            ReportedItem(id=name, state=item.state)
            for name, item in sorted(board.items.items())
            if name.split(".")[0] == part.id
        ),
        usage=_usage(part),
    )
    missing = f", missing {', '.join(report.missing)}" if report.missing else ""
    yield Change(
        "settle", f"{part.id}: {state}{missing}", {paths.report(part.id): report}, (Thread(goal=part.id),)
    )


def _may_still_run(whole: Graph, task: Task, planned: Planned) -> bool:
    return task.reason == "needs_unmet" and whole.standing(planned) != "unmet"


def _goal_state(part: GoalBoard, whole: Graph) -> Any:
    states = {whole.state(name) for name in whole.tasks}
    if part.goal and part.goal.cancelled is not None and "cancelled" in states:
        return "cancelled"
    if states <= {"done"}:
        return "done"
    return "partial" if any(whole.state(name) == "done" for name in whole.leaves()) else "failed"


def _reported(task: Task) -> ReportedTask:
    return ReportedTask.model_validate(
        {
            "id": task.id,
            "state": task.state,
            "reason": task.reason,
            "worker": task.worker,
            "attempts": len(task.history) + (task.state == "done"),
            "capability": task.capability,
        }
    )


def _usage(part: GoalBoard) -> Usage | None:
    used = [result.usage for result in part.results.values() if result.usage]
    if not used:
        return None
    return Usage(
        tokens_in=min(MOST, sum(one.tokens_in or 0 for one in used)),
        tokens_out=min(MOST, sum(one.tokens_out or 0 for one in used)),
        cost_usd=min(MOST, round(sum(one.cost_usd or 0.0 for one in used), 6)),
    )
