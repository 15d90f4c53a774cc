"""The stages of a goal's tasks: cancel, lose, reopen, place. All pure.

Each takes the board, what came in and the time, and returns the commits to make. They run in this
order, each on the board that the one before left.

Example: a task whose needs are met becomes ``ready`` by :func:`place`, or ``assigned`` at once
where a healthy worker has room for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from gitbus import attempts, graph, paths
from gitbus.board import Board, GoalBoard
from gitbus.change import Change, Content, Thread, plain
from gitbus.expressions import Unresolved, resolve
from gitbus.graph import Graph, Planned
from gitbus.incoming import Crew, Inbox, load
from gitbus.records import Task
from gitbus.records.work import PastAttempt
from gitbus.states import TASK_FINAL


def live(board: Board) -> Iterator[GoalBoard]:
    """Yield the goals that can move: loaded, readable, and without a report."""
    for _, part in sorted(board.goals.items()):
        if part.open and part.goal is not None and not part.problems and part.report is None:
            yield part


def _changes(
    verb: str, tasks: Iterable[tuple[Task, str]], writes: dict[str, Content] | None = None
) -> list[Change]:
    """Return one commit for some tasks, each with the words that say what became of it."""
    batch = list(tasks)
    if not batch:
        return []
    lines = tuple(f"{task.goal}/{task.id}#{task.attempt}: {what}" for task, what in batch)
    return [
        Change(
            verb,
            lines[0] if len(lines) == 1 else f"{len(lines)} tasks",
            {**{paths.task(task.goal, task.id): task for task, _ in batch}, **(writes or {})},
            tuple(Thread(task.goal, task.id, None, task.attempt, task.worker) for task, _ in batch),
            lines if len(lines) > 1 else (),
        )
    ]


# --- cancel


def cancel(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Cancel what is left of goals that somebody cancelled, and tasks that no plan names any more."""
    return _changes(
        "cancel",
        [one for part in live(board) for one in (*_cancelled(board, part, now), *_superseded(board, part))],
    )


def _cancelled(board: Board, part: GoalBoard, now: datetime) -> Iterator[tuple[Task, str]]:
    if part.goal is None or part.goal.cancelled is None:
        return
    tasks = dict(part.tasks)
    update = {"state": "cancelled", "reason": "goal_cancelled", "deadline": None}
    while True:  # what is cancelled may complete the list of a loop, whose tasks are then cancelled as well
        left = [
            task.model_copy(update=update)
            for planned in graph.of(board, part, tasks).tasks.values()
            if (task := tasks.get(planned.id) or _new_task(part, planned, now)).state not in TASK_FINAL
        ]
        if not left:
            return
        yield from ((task, "goal cancelled") for task in left)
        tasks.update({task.id: task for task in left})


def _superseded(board: Board, part: GoalBoard) -> Iterator[tuple[Task, str]]:
    """Yield the tasks that a planner or a loop made before it was done again, and does not make now."""
    whole = graph.of(board, part)
    for name, task in part.tasks.items():
        if name not in whole.tasks and task.state not in TASK_FINAL and _made(whole, name):
            yield (
                task.model_copy(update={"state": "cancelled", "reason": "superseded", "deadline": None}),
                "superseded",
            )


def _made(whole: Graph, name: str) -> bool:
    """Say whether everything that could make this task has spoken, so that its absence is meant."""
    return all(
        _has_spoken(whole, one)
        for one, node in whole.goal.tasks.items()
        if (node.expands or node.foreach) and name.startswith(one + "-")
    )


def _has_spoken(whole: Graph, maker: str) -> bool:
    """Say whether a planner or a loop has made what it makes, or never will."""
    if maker in whole.groups or maker in whole.broken:
        return True
    if whole.goal.tasks[maker].foreach:
        return whole.standing(whole.tasks[maker]) == "unmet"
    return whole.state(maker) in TASK_FINAL


# --- lose


def lose(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    """Give up attempts whose deadline passed or whose worker is gone."""
    return _changes("lose", [one for part in live(board) for one in _lost(board, part, inbox, now)])


def _lost(board: Board, part: GoalBoard, inbox: Inbox, now: datetime) -> Iterator[tuple[Task, str]]:
    for task in part.tasks.values():
        if task.state != "assigned":
            continue
        why = _why_lost(task, inbox.crew.get(task.worker or ""), now)
        if why:
            node = part.goal.tasks.get(task.id) if part.goal else None
            ended = attempts.end(task, "lost", why, now, node, board.bus.conductor)
            yield ended, f"{task.worker} {why}" + (", no attempts left" if ended.state == "dead" else "")


def _why_lost(task: Task, crew: Crew | None, now: datetime) -> str | None:
    if task.deadline is not None and now >= task.deadline:
        return "passed its deadline"
    if crew is None or not crew.healthy:
        return "is gone"
    return None


# --- reopen


def reopen(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    """Open again what was skipped for a capability that somebody has now, and goals with an item to score."""
    unscored = [
        Change("reopen", f"{name}: an item is to be scored", {paths.report(name): None}, (Thread(goal=name),))
        for name in _unscored(board)
    ]
    return unscored + (_able_again(board, inbox, now) if board.bus.conductor.reopen == "auto" else [])


def _unscored(board: Board) -> list[str]:
    """Return the settled goals with an item that waits for a score which no task was made for."""
    found: dict[str, None] = {}
    for name, scorer in graph.scores_wanted(board):
        item = board.items[name].item
        part = board.goals.get(item.source.goal) if item else None
        if item is None or part is None or not part.open or part.problems or part.report is None:
            continue
        if graph.scoring_task(item, scorer) not in part.tasks:
            found[part.id] = None
    return sorted(found)


def _able_again(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    opened: list[tuple[Task, str]] = []
    reports: dict[str, Content] = {}
    for _, part in sorted(board.goals.items()):
        if not part.open or part.goal is None or part.problems or part.goal.cancelled is not None:
            continue
        found = [
            task
            for task in part.tasks.values()
            if task.reason == "worker_absent" and inbox.able(task.capability)
        ]
        if found and part.report is not None:
            reports[paths.report(part.id)] = None
        opened += [
            (
                task.model_copy(update={"state": "ready", "reason": None, "ready_at": now}),
                f"{task.capability} is here",
            )
            for task in found
        ]
    return _changes("reopen", opened, reports)


# --- release and assign


def place(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    """Make ready what has its needs, give it to a worker, and skip what nobody will ever do.

    A task that is given out at once is released and assigned by one commit.
    """
    ready, unmet = _all_released(board, now)
    writes: dict[str, Content] = {paths.task(task.goal, task.id): task for task, _ in (*ready, *unmet)}
    released = board.after(Change("release", "", writes)) if writes else board
    given, absent = _all_assigned(released, inbox, now)
    taken = {(task.goal, task.id) for task, _ in (*given, *absent)}
    left = [one for one in ready if (one[0].goal, one[0].id) not in taken]
    return _changes("release", left) + _changes("skip", [*unmet, *absent]) + _changes("assign", given)


def _all_released(board: Board, now: datetime) -> tuple[list[tuple[Task, str]], list[tuple[Task, str]]]:
    """Return what becomes ready, and what is skipped for its needs; one may decide the other."""
    ready: list[tuple[Task, str]] = []
    skipped: list[tuple[Task, str]] = []
    for part in live(board):
        if part.goal is not None and part.goal.cancelled is not None:
            continue
        for task, what in _released(board, part, now):
            (ready if task.state == "ready" else skipped).append((task, what))
    return ready, skipped


def _released(board: Board, part: GoalBoard, now: datetime) -> Iterator[tuple[Task, str]]:
    tasks = dict(part.tasks)
    while True:
        whole = graph.of(board, part, tasks)
        found = [
            one
            for planned in whole.tasks.values()
            if (one := _next(part, whole, planned, tasks.get(planned.id), now))
        ]
        yield from found
        tasks.update({task.id: task for task, _ in found})
        if not any(task.state != "ready" for task, _ in found):
            return


def _next(
    part: GoalBoard, whole: Graph, planned: Planned, task: Task | None, now: datetime
) -> tuple[Task, str] | None:
    """Return what a task becomes by what it needs; None where nothing changes."""
    if task is not None and not (task.state == "ready" or task.reason in ("needs_unmet", "superseded")):
        return None
    standing = whole.standing(planned)
    fresh = task or _new_task(part, planned, now)
    if fresh.reason == "superseded":
        fresh = attempts.anew(fresh, now)  # a planner or a loop makes it once more
    if standing == "pending":
        return None
    if standing == "unmet":
        if fresh.reason == "needs_unmet":
            return None
        return fresh.model_copy(update={"state": "skipped", "reason": "needs_unmet"}), "needs unmet"
    try:
        inputs = _inputs(whole, planned)
    except Unresolved as error:
        return _unresolved(fresh, plain(str(error), 300), now)
    if task is not None and task.state == "ready" and task.inputs == inputs:
        return None
    needs = tuple(dict.fromkeys(name for need in planned.needs for name in whole.members(need.task)))
    update = {"state": "ready", "reason": None, "inputs": inputs, "needs": needs, "ready_at": now}
    return fresh.model_copy(update=update), "ready"


def _inputs(whole: Graph, planned: Planned) -> dict[str, Any]:
    if planned.id in whole.broken:
        raise Unresolved(whole.broken[planned.id])
    if planned.node.foreach and planned.group is None:
        raise Unresolved(f"foreach.in of {planned.id} gave no list")
    scope = whole.scope(planned)
    return {name: resolve(value, scope) for name, value in planned.node.inputs.items()}


def _unresolved(task: Task, why: str, now: datetime) -> tuple[Task, str]:
    past = PastAttempt(attempt=task.attempt, worker=None, outcome="failed", reason=why, at=now)
    update = {"state": "dead", "reason": "inputs_unresolved", "history": (*task.history, past)}
    return task.model_copy(update=update), "dead, its inputs cannot be resolved"


def _new_task(part: GoalBoard, planned: Planned, now: datetime) -> Task:
    node = planned.node
    return Task(
        goal=part.id,
        id=planned.id,
        state="ready",
        ready_at=now,
        capability=node.capability,
        title=node.title,
        prompt=node.prompt,
        outputs=node.outputs,
        channels=node.channels,
        needs=tuple(dict.fromkeys(need.task for need in planned.needs)),
        priority=node.priority,
        lease=node.lease,
    )


def _all_assigned(
    board: Board, inbox: Inbox, now: datetime
) -> tuple[list[tuple[Task, str]], list[tuple[Task, str]]]:
    """Return the ready tasks that healthy workers get, and those that nobody can do.

    The least loaded worker with the capability and room takes one, ties by name; one that failed
    the same task comes last. What nobody can do is skipped once the grace is over.
    """
    busy = load(board)
    able_to: dict[str, list[Crew]] = {}
    given: list[tuple[Task, str]] = []
    skipped: list[tuple[Task, str]] = []
    for task, wait in _waiting(board, now):
        if task.capability not in able_to:
            able_to[task.capability] = inbox.able(task.capability)
        able = able_to[task.capability]
        free = [one for one in able if busy.get(one.id, 0) < one.capacity]
        if free:
            chosen = min(free, key=lambda one: (_failed(task, one.id), busy.get(one.id, 0), one.id))
            busy[chosen.id] = busy.get(chosen.id, 0) + 1
            given.append((_assigned(board, task, chosen.id, now), chosen.id))
        elif not able and not wait and now - task.ready_at >= board.bus.conductor.absent_grace:
            skipped.append(
                (
                    task.model_copy(update={"state": "skipped", "reason": "worker_absent"}),
                    f"nobody has {task.capability}",
                )
            )
    return given, skipped


def _waiting(board: Board, now: datetime) -> list[tuple[Task, bool]]:
    """Return the tasks that may be given out now, in their order, and whether each waits for ever."""
    found = []
    for part in live(board):
        ready = [task for task in part.tasks.values() if task.state == "ready"]
        whole = graph.of(board, part) if ready else None
        for task in ready:
            planned = whole.tasks.get(task.id) if whole else None
            due = task.not_before is None or now >= task.not_before
            if whole and planned and due and whole.standing(planned) == "met":
                found.append((task, planned.node.on_absent == "wait"))
    return sorted(found, key=lambda one: (-one[0].priority, one[0].ready_at, one[0].goal, one[0].id))


def _failed(task: Task, worker: str) -> bool:
    """Say whether a worker failed a task, or lost it since it was last to be done again."""
    return any(
        past.worker == worker and (past.outcome != "lost" or past.attempt >= task.first_attempt)
        for past in task.history
    )


def _assigned(board: Board, task: Task, worker: str, now: datetime) -> Task:
    return task.model_copy(
        update={
            "state": "assigned",
            "worker": worker,
            "assigned_at": now,
            "deadline": now + (task.lease or board.bus.conductor.lease),
            "not_before": None,
        }
    )
