"""Edits of a task's record: its moves, its attempts, and what was asked of it.

Rules: the state goes as the table of moves says; what a task asks for is what its goal says when it is
released, and stays; attempts only rise, but where a result that was given up still wins; what became
of past attempts is kept; a task is done by a result, and by nothing else.

Example: a commit that gives ``assigned`` work to another worker without losing it first yields
``Edit("unproved-edit", "release/write", "worker changed while it stayed assigned")``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitbus import graph, paths
from gitbus.edits.looking import Edit, Look, edit
from gitbus.history import Delta
from gitbus.records import Node, Result, Task
from gitbus.records.work import PastAttempt
from gitbus.states import NONE, TASK, TASK_FINAL

_LEGAL = frozenset((source, target) for source, target, _ in TASK)
_FIXED = ("goal", "id", "capability", "title", "prompt", "outputs", "channels", "priority", "lease")
_ASKED = ("title", "prompt", "outputs", "channels", "priority", "lease")
_STAYS: Mapping[str, frozenset[str]] = {
    "assigned": frozenset({"attempt", "first_attempt", "worker", "assigned_at", "deadline", "inputs"}),
    **{state: frozenset(Task.model_fields) for state in TASK_FINAL},
}
"""What does not change while a task stays in a state."""

_MORE = 2
"""Past attempts that one commit may add: one given up, and one whose inputs could not be resolved."""


def task_edits(look: Look, delta: Delta, goal: str, name: str) -> Iterator[Edit]:
    """Yield what is wrong with a change of a task's record."""
    subject = f"{goal}/{name}"
    if delta.new is None:
        yield edit(subject, "a task is archived with its goal, never removed")
        return
    old, new = look.memo.read(delta.old, delta.path, Task), look.memo.read(delta.new, delta.path, Task)
    if new is None or (old is None and delta.old is not None):
        return  # one of them cannot be read, which is a finding of its own
    before = old.state if old else NONE
    if (before, new.state) not in _LEGAL and before != new.state:
        yield Edit("illegal-move", subject, f"{before} → {new.state} by {look.verb or 'nobody'}")
        return
    why = _born(look, goal, name, new) if old is None else _changed(old, new)
    if why is None and new.state == "done":
        why = _not_done(look, new)
    if why is not None:
        yield edit(subject, why)


# --- a new task


def _born(look: Look, goal: str, name: str, new: Task) -> str | None:
    if (new.goal, new.id) != (goal, name):
        return f"its record says that it is {new.goal}/{new.id}"
    if (new.attempt, new.first_attempt) != (1, 1):
        return f"it begins with attempt {new.attempt}"
    part = look.goal(goal)
    whole = look.memo.graph(part)
    if part.goal is None or whole is None:
        return "it belongs to no goal"
    planned = whole.tasks.get(name)
    node = planned.node if planned is not None else part.goal.tasks.get(name)
    if node is None:
        return None if _scores(look, new) else "neither its goal nor a planner asks for it"
    return _unlike(node, new)


def _unlike(node: Node, task: Task) -> str | None:
    odd = [name for name in ("capability", *_ASKED) if getattr(node, name) != getattr(task, name)]
    return f"{', '.join(odd)}: not what its goal asks for" if odd else None


def _scores(look: Look, task: Task) -> bool:
    """Say whether a task is one that scores an item."""
    return task.capability in look.bus.score.scorers and task.outputs == graph.SCORE_SCHEMA


# --- a task that was there


def _changed(old: Task, new: Task) -> str | None:
    fixed = [name for name in _FIXED if getattr(old, name) != getattr(new, name)]
    if fixed:
        return f"{', '.join(fixed)} changed after it was released"
    if old.state == new.state:
        odd = sorted(name for name in _STAYS.get(old.state, ()) if getattr(old, name) != getattr(new, name))
        if odd:
            return f"{', '.join(odd)} changed while it stayed {new.state}"
    if new.feedback[: len(old.feedback)] != old.feedback:
        return "what people said of it was changed"
    return _attempts(old, new) or _history(old, new)


def _attempts(old: Task, new: Task) -> str | None:
    if new.first_attempt < old.first_attempt:
        return f"its budget began with attempt {old.first_attempt}, and now with {new.first_attempt}"
    if new.first_attempt > old.first_attempt and (new.attempt < new.first_attempt or new.state == "done"):
        return "it was done again, and no new attempt is left"
    if new.attempt < old.attempt and new.state not in ("done", "dead"):
        return f"attempt {old.attempt} became {new.attempt}"
    told = new.first_attempt > old.first_attempt or len(new.history) > len(old.history)
    if new.attempt > old.attempt and not told:
        return f"attempt {old.attempt} became {new.attempt}, and nothing tells how"
    if new.state == "assigned" and (new.worker is None or new.deadline is None):
        return "it is assigned to nobody, or for ever"
    return None


def _history(old: Task, new: Task) -> str | None:
    """Return which past attempt was forgotten or told otherwise than it was; None where none was."""
    now = {past.attempt: past for past in new.history}
    for past in old.history:
        later = now.get(past.attempt)
        if later is None and (new.state, new.attempt) == ("done", past.attempt):
            continue  # it was given up as lost, and won
        if later is None or not _may_become(past, later):
            return f"what became of attempt {past.attempt} was changed"
    if len(new.history) > len(old.history) + _MORE:
        return "attempts were made up"
    if old.state == "assigned" and new.state in ("ready", "dead") and old.attempt not in now:
        return f"attempt {old.attempt} ended, and nothing tells how"
    return None


def _may_become(past: PastAttempt, later: PastAttempt) -> bool:
    """Say whether what is told of an attempt may have become so: a lost one may still be answered."""
    if past == later:
        return True
    kept: dict[str, Any] = {"outcome": later.outcome, "reason": later.reason}
    return past.outcome == "lost" and past.model_copy(update=kept) == later


def _not_done(look: Look, task: Task) -> str | None:
    result = look.new(paths.result(task.goal, task.id), Result)
    if result is None:
        return "it is done, and there is no result"
    if (result.attempt, result.worker) != (task.attempt, task.worker):
        return f"it is done by attempt {task.attempt} of {task.worker}, and its result is another's"
    return None
