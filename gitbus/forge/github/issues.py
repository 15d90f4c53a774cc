"""The issues by which people are told of what waits for them. Pure.

Rules: one issue for one fact, named by what it is and about whom; it is found again by the hidden marker
in its last line, and closed when the fact is no more. It tags nobody by itself.

Example: ``issue(board, "stuck", "a.mail.item").title == "a.mail.item is stuck"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gitbus import views
from gitbus.board import Board, GoalBoard, ItemBoard
from gitbus.forge.github.markdown import block, code, marker
from gitbus.forge.github.notes import resolving, retrying
from gitbus.records import Item, Task
from gitbus.views import since

LABELS = frozenset({"gitbus"})
MOST = 10
"""Attempts that an issue shows, the last ones."""


@dataclass(frozen=True)
class Issue:
    """What an issue shall say; ``key`` is what :func:`~gitbus.forge.github.markdown.marked` finds in it."""

    title: str
    body: str
    labels: frozenset[str]
    key: str


def issue(board: Board, what: str, subject: str) -> Issue | None:
    """Return the issue of one fact; None where the board does not hold it (any more).

    Args:
        board: the board.
        what: ``in_review``, ``awaiting_approval``, ``stuck``, ``failed``, ``expiring`` or ``dead``.
        subject: an item's id, for ``dead`` a ``goal/task``.
    """
    if what == "dead":
        return _dead(board, subject)
    part = board.items.get(subject)
    if part is None or part.item is None or what not in _ITEMS:
        return None
    words, made = _ITEMS[what]
    item = part.item
    more = frozenset({"stuck"}) if what == "stuck" else frozenset()
    numbers = (item.revision, item.attempt)
    return _issue(
        what, subject, numbers, f"{subject} {words}", [*_about(item), *made(board, part, item)], more
    )


def _issue(
    what: str, subject: str, numbers: tuple[int, ...], title: str, parts: list[str], more: frozenset[str]
) -> Issue:
    line = marker(what, subject, *numbers)
    key = " ".join([what, subject, *map(str, numbers)])
    return Issue(title, "\n\n".join([*parts, line]) + "\n", LABELS | more, key)


def _about(item: Item) -> Iterator[str]:
    subject = f": {code(item.message.subject, 120)}" if item.message.subject else ""
    whom = f" to {code(item.message.to[0], 120)}" if item.message.to else ""
    yield f"{code(item.id)} over {code(item.channel)}{whom}{subject}"
    if item.reason:
        yield f"Reason: {code(item.reason)}"


def _waits(_: Board, __: ItemBoard, item: Item) -> Iterator[str]:
    until = f" until {since(item.expires_at)}" if item.expires_at else ""
    yield f"It waits{until}. Its pull request says what would be sent, and what merging does."


def _review(board: Board, part: ItemBoard, item: Item) -> Iterator[str]:
    yield f"Its confidence is {item.confidence or 0:g}, under {board.bus.score.threshold:g}."
    yield from _waits(board, part, item)


def _stuck(board: Board, part: ItemBoard, item: Item) -> Iterator[str]:
    yield f"Nobody knows whether attempt {item.attempt} was sent. Nothing is sent again by itself."
    yield resolving(board.bus, part, item)


def _failed(_: Board, __: ItemBoard, item: Item) -> Iterator[str]:
    yield f"Attempt {item.attempt} was surely not sent, and it is not tried again by itself."
    yield retrying(item.id)


_Made = Callable[[Board, ItemBoard, Item], Iterator[str]]
_ITEMS: Mapping[str, tuple[str, _Made]] = {
    "in_review": ("needs a review", _review),
    "awaiting_approval": ("waits for approval", _waits),
    "expiring": ("expires soon", _waits),
    "stuck": ("is stuck", _stuck),
    "failed": ("failed", _failed),
}


def _dead(board: Board, subject: str) -> Issue | None:
    goal, _, name = subject.partition("/")
    part = board.goals.get(goal)
    task = part.tasks.get(name) if part else None
    if part is None or task is None or task.state != "dead":
        return None
    todo = (
        f"Mend the cause, then give it a new budget: {code(f'gitbus retry {subject}')}. "
        f"{code(f'gitbus dead {subject}')} shows all of it."
    )
    parts = [
        f"The task {code(subject)} (capability {code(task.capability)}) is dead: {_reason(task)}.",
        *_attempts(board, part, task),
        todo,
    ]
    return _issue("dead", subject, (task.attempt,), f"{subject} is dead", parts, frozenset())


def _reason(task: Task) -> str:
    return (task.reason or "nobody says why").replace("_", " ")


def _attempts(board: Board, part: GoalBoard, task: Task) -> Iterator[str]:
    """Yield the last attempts, each with what was wrong with it."""
    told = [one for letter in views.dead(board, (part.id, task.id)) for one in letter.attempts]
    for one in told[-MOST:]:
        rule = f", rule {code(one.rule)}" if one.rule else ""
        where = f" at {code(one.place)}" if one.place else ""
        by = f" by {code(one.worker)}" if one.worker else ""
        yield f"**Attempt {one.attempt}**{by}: {one.outcome}{rule}{where}"
        if one.message:
            yield block(one.message, most=400)
