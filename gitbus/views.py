"""What programs are told of a bus: the documents of ``status``, ``missing`` and ``dead``, and drawings. Pure.

Example: ``status(board, crew, sending=False).goals[0].state``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gitbus import documents, graph
from gitbus import mermaid as drawn
from gitbus.board import Board, GoalBoard, ItemBoard
from gitbus.documents import StatusTask
from gitbus.incoming import Crew, load
from gitbus.records import Task
from gitbus.records.work import PastAttempt


def status(
    board: Board,
    crew: Mapping[str, Crew],
    *,
    sending: bool,
    goal: str | None = None,
    problems: tuple[documents.Problem, ...] = (),
) -> documents.Status:
    """Return the ``Status`` document.

    Args:
        board: the bus, with settled goals loaded whole.
        crew: the workers.
        sending: whether the flag is on.
        goal: show this goal alone.
        problems: what is wrong beside the records that cannot be read.
    """
    goals = [part for name, part in sorted(board.goals.items()) if goal in (None, name)]
    items = [part for name, part in sorted(board.items.items()) if goal in (None, name.split(".", 1)[0])]
    unread = tuple(
        documents.Problem(path=one.path, line=one.line, message=one.message, remedy=one.remedy)
        for one in board.all_problems()
    )
    return documents.Status(
        main=board.commit,
        sending=sending,
        goals=tuple(
            documents.StatusGoal(id=part.id, state=part.state, tasks=tasks(board, part)) for part in goals
        ),
        items=tuple(_item(part) for part in items),
        workers=workers(board, crew),
        missing=tuple(missing(board)),
        problems=unread + problems,
    )


def _item(part: ItemBoard) -> documents.StatusItem:
    item = part.item
    return documents.StatusItem(
        id=part.id,
        state=part.state,
        channel=item.channel if item else None,
        confidence=item.confidence if item else None,
        digest=item.digest if item else None,
        attempt=item.attempt if item else None,
        revision=item.revision if item else None,
    )


def workers(board: Board, crew: Mapping[str, Crew]) -> tuple[documents.StatusWorker, ...]:
    """Return the workers with what they have to do, by name."""
    busy = load(board)
    return tuple(
        documents.StatusWorker(
            id=name,
            healthy=one.healthy,
            capabilities=tuple(sorted(one.capabilities)),
            capacity=one.capacity,
            assigned=busy.get(name, 0),
        )
        for name, one in sorted(crew.items())
    )


def tasks(board: Board, part: GoalBoard) -> tuple[StatusTask, ...]:
    """Return a goal's tasks with their states, those that did not begin yet too."""
    if part.goal is None:
        return ()
    if not part.open and part.report is not None:
        return tuple(
            StatusTask(
                id=one.id,
                state=one.state,
                attempt=one.attempts,
                worker=one.worker,
                capability=one.capability,
                reason=one.reason,
            )
            for one in part.report.tasks
        )
    whole = graph.of(board, part)
    return tuple(_task(whole, name, part.tasks.get(name)) for name in whole.tasks)


def _task(whole: graph.Graph, name: str, task: Task | None) -> StatusTask:
    if task is None:
        return StatusTask(
            id=name,
            state=graph.NOT_STARTED,
            attempt=None,
            worker=None,
            capability=whole.tasks[name].node.capability,
            reason=None,
        )
    return StatusTask(
        id=name,
        state=task.state,
        attempt=task.attempt,
        worker=task.worker,
        capability=task.capability,
        reason=task.reason,
    )


def missing(board: Board) -> dict[str, list[str]]:
    """Return the capabilities that tasks were skipped for: capability → ``goal/task``."""
    found: dict[str, list[str]] = {}
    for name, part in sorted(board.goals.items()):
        if part.open:
            for task in part.tasks.values():
                if task.reason == "worker_absent":
                    found.setdefault(task.capability, []).append(f"{name}/{task.id}")
        elif part.report is not None:
            for one in part.report.tasks:
                if one.reason == "worker_absent" and one.capability:
                    found.setdefault(one.capability, []).append(f"{name}/{one.id}")
    return dict(sorted(found.items()))


def dead(board: Board, only: tuple[str, str] | None = None) -> tuple[documents.DeadTask, ...]:
    """Return the dead letters: each dead task with its attempts and what was refused."""
    return tuple(
        documents.DeadTask(
            goal=name,
            task=task.id,
            reason=task.reason,
            attempts=tuple(_attempt(part, task.id, past) for past in task.history),
        )
        for name, part in sorted(board.goals.items())
        for task in part.tasks.values()
        if task.state == "dead" and only in (None, (name, task.id))
    )


def _attempt(part: GoalBoard, task: str, past: PastAttempt) -> documents.DeadAttempt:
    refusal = part.refusals.get((task, past.attempt))
    return documents.DeadAttempt(
        attempt=past.attempt,
        worker=past.worker,
        outcome=past.outcome,
        rule=refusal.rule if refusal else None,
        message=refusal.message if refusal else past.reason,
        place=refusal.place if refusal else None,
        raw=refusal.raw if refusal else None,
    )


def edges(board: Board, part: GoalBoard) -> tuple[tuple[StatusTask, ...], list[tuple[str, str, bool]]]:
    """Return a goal's tasks, and the edges between them as (from, to, optional)."""
    whole = graph.of(board, part)
    nodes = tasks(board, part)
    shown = {one.id for one in nodes}
    found = [
        (name, one.id, need.optional)
        for one in whole.tasks.values()
        for need in one.needs
        for name in whole.members(need.task)
        if {name, one.id} <= shown
    ]
    return nodes, found


def mermaid(board: Board, part: GoalBoard) -> str:
    """Return a goal's graph as Mermaid."""
    nodes, arrows = edges(board, part)
    number = drawn.numbered(one.id for one in nodes)
    lines = [drawn.box(number[one.id], one.state, one.id, one.state) for one in nodes]
    lines += [
        drawn.arrow(number[source], number[target], optional=optional) for source, target, optional in arrows
    ]
    used: set[str] = {one.state for one in nodes}
    styles = {name: look for name, look in drawn.STYLES.items() if name in used}
    return "\n".join(drawn.graph(lines, styles)) + "\n"


def dot(board: Board, part: GoalBoard) -> str:
    """Return a goal's graph in Graphviz's language."""
    nodes, arrows = edges(board, part)
    lines = [f'digraph "{part.id}" {{', "  rankdir=LR; node [shape=box, style=rounded];"]
    lines += [f'  "{one.id}" [label="{one.id}\\n{one.state}"];' for one in nodes]
    lines += [
        f'  "{source}" -> "{target}"{" [style=dashed]" if optional else ""};'
        for source, target, optional in arrows
    ]
    return "\n".join([*lines, "}"]) + "\n"


def svg(board: Board, part: GoalBoard) -> str:
    """Return a goal's graph as a small SVG, laid out in columns by depth."""
    nodes, arrows = edges(board, part)
    depth = {one.id: 0 for one in nodes}
    for _ in nodes:
        for source, target, _ in arrows:
            depth[target] = max(depth[target], depth[source] + 1)
    rows: dict[int, int] = {}
    place: dict[str, tuple[int, int]] = {}
    for one in nodes:
        column = depth[one.id]
        place[one.id] = (20 + column * 200, 20 + rows.get(column, 0) * 70)
        rows[column] = rows.get(column, 0) + 1
    width = 40 + 200 * (max(depth.values(), default=0) + 1)
    height = 40 + 70 * max(rows.values(), default=1)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">'
    ]
    for source, target, optional in arrows:
        (x1, y1), (x2, y2) = place[source], place[target]
        dash = ' stroke-dasharray="4 3"' if optional else ""
        out.append(
            f'<path d="M{x1 + 160},{y1 + 22} C{x1 + 180},{y1 + 22} {x2 - 20},{y2 + 22} {x2},{y2 + 22}" fill="none" stroke="#868e96"{dash}/>'
        )
    for one in nodes:
        x, y = place[one.id]
        style = dict(
            part.split(":") for part in drawn.STYLES.get(one.state, "fill:#fff,stroke:#333").split(",")
        )
        out.append(
            f'<rect x="{x}" y="{y}" width="160" height="44" rx="6" fill="{style["fill"]}" stroke="{style["stroke"]}"/>'
        )
        out.append(f'<text x="{x + 10}" y="{y + 18}">{one.id}</text>')
        out.append(f'<text x="{x + 10}" y="{y + 35}" fill="#495057">{one.state}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def since(when: datetime) -> str:
    """Return a time for people."""
    return when.strftime("%Y-%m-%d %H:%M UTC")
