"""Archive: move what settled long ago out of the way, whole, with everything that was said of it.

Rules: a goal goes with its items, once its report is older than ``conductor.archive_after`` and none
of its items waits for anybody. Trees are moved by their ids; not one byte of them changes.

Example: ``due(board, now)`` names the goals, ``archive(board, ["a"], trees)`` is the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from gitbus import paths
from gitbus.board import Board
from gitbus.change import Change, Content, Thread
from gitbus.history import Entry
from gitbus.records import Item
from gitbus.states import ITEM_SETTLED

MOST = 500
"""Goals that one commit moves at the most."""


def due(board: Board, now: datetime, older: timedelta | None = None) -> tuple[str, ...]:
    """Return the goals that may be archived, by name.

    Args:
        board: the board.
        now: the time.
        older: how long ago they settled; the bus's ``archive_after`` unless given.
    """
    age = board.bus.conductor.archive_after if older is None else older
    found = [
        name
        for name, part in sorted(board.goals.items())
        if part.report is not None
        and not part.problems
        and now - part.report.settled_at >= age
        and _rests(board, name)
    ]
    return tuple(found[:MOST])


def _rests(board: Board, goal: str) -> bool:
    return all(
        part.item is not None and not part.problems and part.item.state in ITEM_SETTLED
        for name, part in board.items.items()
        if name.startswith(goal + ".")
    )


def folders(board: Board, goals: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that go with these goals: theirs, and their items'."""
    found = []
    for goal in goals:
        found.append(paths.goal_folder(goal))
        found += [paths.item_folder(name) for name in sorted(board.items) if name.startswith(goal + ".")]
    return tuple(found)


def archive(board: Board, goals: Iterable[str], trees: Mapping[str, Entry], now: datetime) -> Change:
    """Return the commit that archives some goals.

    Args:
        board: the board.
        goals: their names.
        trees: every folder that moves, with its entry.
        now: the time; it names the archive's year and month.
    """
    names = tuple(goals)
    writes: dict[str, Content] = {}
    for folder in folders(board, names):
        writes[f"archive/{now:%Y}/{now:%m}/{folder}"] = trees[folder]
        writes[folder] = None
    subject = names[0] if len(names) == 1 else f"{len(names)} goals"
    return Change(
        "archive",
        subject,
        writes,
        tuple(Thread(goal=name) for name in names),
        names if len(names) > 1 else (),
    )


def late(change: Change, archived: Mapping[str, str]) -> Change:
    """Return a change about archived items as it is made in the archive.

    A receipt that comes late is taken there too; what nobody can see there, a state to wait in, is not.

    Args:
        change: the change as if the items were in the outbox.
        archived: item → its folder in the archive.
    """
    writes: dict[str, Content] = {}
    for path, content in change.writes.items():
        match path.split("/", 2):
            case ["outbox", item, leaf] if item in archived:
                if leaf == "item.yaml" and isinstance(content, Item) and content.state not in ITEM_SETTLED:
                    continue
                writes[f"{archived[item]}/{leaf}"] = content
            case _:
                writes[path] = content
    return replace(change, writes=writes)
