"""What people do to goals and items: add, cancel, resume, retry, redo, reject, withdraw, review, resolve.

Pure: each returns the change, or raises what refuses it. Whether a change needs a signature is the
protocol's: what widens does, what narrows does not.

Example: ``reject(board, "a.mail.item", "too long")`` is the commit that rejects an item.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal

from gitbus import attempts, graph, ids, paths
from gitbus.board import Board, GoalBoard, ItemBoard
from gitbus.change import Change, Content, Thread, plain
from gitbus.errors import Refused
from gitbus.flow.items import wait
from gitbus.records import Goal, Item, Resolution, Review, Task
from gitbus.records.work import Feedback
from gitbus.seals import opened
from gitbus.states import BEFORE_SENDING, WAITING


def part_of(board: Board, item: str) -> tuple[ItemBoard, Item]:
    """Return an item that can be acted on.

    Raises:
        Refused: there is none of this id, or its record cannot be read.
    """
    part = board.items.get(item)
    if part is None:
        near = [name for name in board.items if name.startswith(item.split(".")[0])]
        hint = "there is " + ", ".join(sorted(near)[:5]) if near else "`gitbus status` lists what there is"
        raise Refused(f"there is no item {plain(item)}", rule="no-such-item", remedy=hint)
    if part.item is None or part.problems:
        raise Refused(
            f"the record of {item} cannot be read",
            rule="broken",
            remedy="`gitbus status` names file and line",
        )
    return part, part.item


def goal_of(board: Board, goal: str) -> GoalBoard:
    """Return a goal that can be acted on.

    Raises:
        Refused: there is none of this id, or it cannot be read.
    """
    part = board.goals.get(goal)
    if part is None or part.goal is None:
        known = ", ".join(sorted(board.goals)[:5]) or "none yet"
        raise Refused(f"there is no goal {plain(goal)}", rule="no-such-goal", remedy=f"there is: {known}")
    return part


def _in(item: Item, states: Sequence[str], verb: str) -> None:
    if item.state not in states:
        raise Refused(
            f"{item.id} is {item.state}; only what is {' or '.join(states)} can be {verb}",
            rule="wrong-state",
        )


# --- goals


def add_goal(goal: Goal, text: bytes) -> Change:
    """Return the commit that adds a goal as its author wrote it."""
    title = f": {plain(goal.title)}" if goal.title else ""
    return Change("add", f"{goal.id}{title}", {paths.goal(goal.id): text}, (Thread(goal=goal.id),))


def cancel_goal(board: Board, goal: str, text: bytes, reason: str) -> Change:
    """Return the commit that cancels a goal; ``text`` is its file with the reason in it."""
    part = goal_of(board, goal)
    if part.report is not None:
        raise Refused(f"{goal} is {part.report.state} already", rule="wrong-state")
    return Change("cancel", f"{goal}: {plain(reason)}", {paths.goal(goal): text}, (Thread(goal=goal),))


def resume(board: Board, goal: str, now: datetime) -> Change:
    """Return the commit that opens a goal's skipped tasks again."""
    part = goal_of(board, goal)
    _not_cancelled(part)
    absent = [task for task in part.tasks.values() if task.reason == "worker_absent"]
    if not absent:
        raise Refused(
            f"nothing of {goal} was skipped for want of a worker",
            rule="wrong-state",
            remedy="gitbus retry GOAL/TASK gives a dead task a new budget",
        )
    tasks = [task.model_copy(update={"state": "ready", "reason": None, "ready_at": now}) for task in absent]
    return _tasks("reopen", tasks, part, "opened again")


def retry_task(board: Board, goal: str, task: str, now: datetime) -> Change:
    """Return the commit that gives a dead task a new budget."""
    part = goal_of(board, goal)
    _not_cancelled(part)
    found = part.tasks.get(task)
    if found is None:
        raise Refused(f"{goal} has no task {plain(task)} that began", rule="no-such-task")
    if found.state != "dead":
        raise Refused(f"{goal}/{task} is {found.state}; only a dead task can be retried", rule="wrong-state")
    return _tasks("retry", [attempts.anew(found, now)], part, "a new budget")


def _not_cancelled(part: GoalBoard) -> None:
    if part.goal is not None and part.goal.cancelled is not None:
        raise Refused(
            f"{part.id} was cancelled; nothing of it is done again",
            rule="wrong-state",
            remedy="add a new goal",
        )


def _tasks(verb: str, tasks: Sequence[Task], part: GoalBoard, what: str) -> Change:
    lines = tuple(f"{task.goal}/{task.id}: {what}" for task in tasks)
    writes: dict[str, Content] = {paths.task(task.goal, task.id): task for task in tasks}
    if part.report is not None:
        writes[paths.report(part.id)] = None
    return Change(
        verb,
        lines[0] if len(lines) == 1 else f"{len(lines)} tasks of {part.id}",
        writes,
        tuple(Thread(goal=task.goal, task=task.id) for task in tasks),
        lines if len(lines) > 1 else (),
    )


# --- items: what narrows


def reject(board: Board, item: str, reason: str) -> Change:
    """Return the commit that rejects an item before it is sent."""
    part, found = part_of(board, item)
    _in(found, BEFORE_SENDING, "rejected")
    return _moved(
        "reject", part, found.model_copy(update={"state": "rejected", "reason": plain(reason, 1000)}), reason
    )


def withdraw(board: Board, item: str, reason: str | None) -> Change:
    """Return the commit that takes an item back for good."""
    part, found = part_of(board, item)
    _in(found, BEFORE_SENDING, "withdrawn")
    why = plain(reason, 1000) if reason else None
    return _moved("withdraw", part, found.model_copy(update={"state": "withdrawn", "reason": why}), reason)


def _moved(verb: str, part: ItemBoard, item: Item, reason: str | None) -> Change:
    writes: dict[str, Content] = {paths.item(item.id): item}
    if part.approval is not None:
        writes[paths.approval(item.id)] = None
    subject = item.id + (f": {plain(reason)}" if reason else "")
    return Change(verb, subject, writes, (Thread(item=item.id),))


def redo(board: Board, item: str, by: str, note: str, now: datetime) -> Change:
    """Return the commit that gives an item's task back to the workers with a person's words.

    The item is rejected until the new result makes its next revision. What was built on the old
    outputs is opened again as well; and whatever else any of these tasks gave rise to, and has not
    begun to be sent, belongs to an old result and is rejected likewise.
    """
    part, found = part_of(board, item)
    _in(found, (*BEFORE_SENDING, "rejected", "failed", "expired"), "done again")
    goal = goal_of(board, found.source.goal)
    _not_cancelled(goal)
    task = goal.tasks.get(found.source.task)
    if task is None:
        raise Refused(f"the task of {item} is not on the board", rule="no-such-task")
    feedback = Feedback(by=by, revision=found.revision, text=note)
    tasks = [attempts.anew(task, now, feedback), *_below(board, goal, task.id, now)]
    change = _tasks("redo", tasks, goal, "opened again")
    writes: dict[str, Content] = dict(change.writes)
    writes |= {paths.result(goal.id, one.id): None for one in tasks if one.id in goal.results}
    others = _made_by(board, goal.id, {one.id for one in tasks}, item)
    for one, why in ((part, note), *((other, f"{item} is done again") for other in others)):
        writes |= _to_be_done_again(one, why)
    about = (*change.about, *(Thread(item=one.id) for one in (part, *others)))
    body = (*change.body, *(f"{one.id}: rejected, its task is done again" for one in others))
    return Change("redo", f"{item}: {plain(note)}", writes, about, body)


def _below(board: Board, goal: GoalBoard, task: str, now: datetime) -> list[Task]:
    """Return the tasks that are opened again because they were built on a task's outputs."""
    below = (goal.tasks.get(name) for name in graph.of(board, goal).descendants(task))
    return [
        attempts.anew(one, now)
        for one in below
        if one is not None and one.state not in ("ready", "cancelled")
    ]


def _made_by(board: Board, goal: str, tasks: Collection[str], but: str) -> list[ItemBoard]:
    """Return the other items that some tasks gave rise to and that have not begun to be sent."""
    return [
        part
        for name, part in sorted(board.items.items())
        if name != but
        and part.item is not None
        and part.item.state in BEFORE_SENDING
        and part.item.source.goal == goal
        and part.item.source.task in tasks
    ]


def _to_be_done_again(part: ItemBoard, why: str) -> dict[str, Content]:
    """Return what an item becomes until a new result makes its next revision."""
    item = part.item
    if item is None or item.state not in BEFORE_SENDING:
        return {}
    update = {"state": "rejected", "reason": plain(f"to be done again: {why}", 1000)}
    gone: dict[str, Content] = {paths.approval(item.id): None} if part.approval is not None else {}
    return {paths.item(item.id): item.model_copy(update=update), **gone}


def retry_item(board: Board, item: str, now: datetime) -> Change:
    """Return the commit that puts a failed or expired item up again."""
    part, found = part_of(board, item)
    _in(found, ("failed", "expired"), "put up again")
    raised = found.model_copy(update={"attempt": found.attempt + (found.attempt in part.leases)})
    return _moved("retry", part, wait(board, raised, now), None)


def check_files(board: Board, item: str, files: Mapping[str, bytes]) -> None:
    """Check the files that somebody edited of an item's payload.

    Raises:
        Refused: one is none of the payload's (rule ``no-such-file``), or no text (rule ``not-text``).
    """
    _, found = part_of(board, item)
    payload = {file.path: file for file in found.payload}
    for path, data in files.items():
        file = payload.get(path)
        if file is None:
            raise Refused(
                f"{item} has no file {plain(path)}",
                rule="no-such-file",
                remedy="it has: " + ", ".join(payload),
            )
        why = ids.why_not_text(data) if file.role != "attachment" else None
        if why:
            raise Refused(f"{path} cannot be a message's text: {why}", rule="not-text")


# --- items: decisions


def review(
    board: Board, item: str, person: str, verdict: Literal["ok", "no"], note: str | None, now: datetime
) -> Change:
    """Return the commit that holds a person's Review; it has to be signed."""
    _, found = part_of(board, item)
    _in(found, (*WAITING, "approved"), "reviewed")
    record = Review(
        item=item,
        revision=found.revision,
        digest=found.digest,
        person=person,
        verdict=verdict,
        note=note,
        at=now,
    )
    return Change("review", f"{item}: {verdict}", {paths.review(item, person): record}, (Thread(item=item),))


def resolve(
    board: Board, item: str, person: str, verdict: Literal["sent", "not_sent"], evidence: str, now: datetime
) -> Change:
    """Return the commit that holds a person's word on a stuck item; it has to be signed.

    Raises:
        Refused: ``not_sent`` while the transmission may still be going on (rule ``quarantine``).
    """
    part, found = part_of(board, item)
    _in(found, ("stuck",), "resolved")
    record = Resolution(
        item=item, attempt=found.attempt, verdict=verdict, evidence=evidence, person=person, at=now
    )
    writes: dict[str, Content] = {paths.resolution(item, found.attempt): record}
    if verdict == "sent":
        writes[paths.item(item)] = found.model_copy(update={"state": "sent", "reason": None})
    else:
        _quarantined(board, part, now)
        following = max([found.attempt, *part.leases]) + 1
        raised = found.model_copy(
            update={
                "state": "awaiting_approval",
                "attempt": following,
                "expires_at": now + board.bus.approval.expires,
                "not_before": None,
                "reason": None,
            }
        )
        writes[paths.item(item)] = raised
        if part.approval is not None:
            writes[paths.approval(item)] = None
    return Change(
        "resolve", f"{item}#{found.attempt}: {verdict}", writes, (Thread(item=item, attempt=found.attempt),)
    )


def _quarantined(board: Board, part: ItemBoard, now: datetime) -> None:
    open_leases = [
        one for attempt, one in part.leases.items() if opened(one, part.receipts.get(attempt)) is None
    ]
    until = max((one.expires_at + board.bus.sending.quarantine for one in open_leases), default=now)
    if now < until:
        raise Refused(
            f"until {until.isoformat()} nobody can know that {part.id} was not sent",
            rule="quarantine",
            remedy="look at the receiver's side after that time, then say what you saw",
        )


def dead_letters(board: Board) -> Mapping[tuple[str, str], Task]:
    """Return the dead tasks, by goal and task."""
    return {
        (goal.id, task.id): task
        for goal in board.goals.values()
        for task in goal.tasks.values()
        if task.state == "dead"
    }
