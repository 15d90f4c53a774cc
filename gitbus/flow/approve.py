"""Approve: what a human is shown, and the one-commit branch that he merges.

A flip changes one line of ``item.yaml`` (its state) and adds ``approval.yaml``, which holds all
that the receiver will get. It is made from the entry alone, so that whoever makes it makes the
same bytes.

Example: ``flip(item_board, entry, contents)`` returns the two files of an item's flip.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitbus import paths
from gitbus.approvals import approval_of
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, Content, Thread
from gitbus.graph import of
from gitbus.history import Oid
from gitbus.states import TASK_FINAL, WAITING


def branches(board: Board) -> dict[str, tuple[str, ...]]:
    """Return which approval branches there shall be: name below ``gitbus/approve/`` → its items."""
    wanted: dict[str, list[str]] = {}
    for name, part in sorted(board.items.items()):
        if part.item is None or part.problems or part.item.state not in WAITING or part.missing:
            continue
        together = part.item.together
        if together is None:
            wanted[name] = [name]
        elif _is_complete(board, together):
            wanted.setdefault(together, []).append(name)
    return {name: tuple(items) for name, items in wanted.items()}


def _is_complete(board: Board, together: str) -> bool:
    """Say whether every task of a batch is over, so that its items can go up as one."""
    goal, _, group = together.partition(".")
    part = board.goals.get(goal)
    if part is None or part.goal is None or part.report is not None:
        return True
    whole = of(board, part)
    return all(whole.state(name) in TASK_FINAL for name in whole.members(group))


def flip(part: ItemBoard, entry: Oid, contents: Mapping[str, bytes]) -> dict[str, Content]:
    """Return the two files that a flip of this item writes."""
    if part.item is None:
        raise ValueError(f"{part.id} has no item")
    return {
        paths.item(part.id): part.item.model_copy(update={"state": "approved"}),
        paths.approval(part.id): approval_of(part.item, entry, contents),
    }


def flip_change(items: Mapping[str, dict[str, Content]]) -> Change:
    """Return the flip of one item, or of a batch."""
    names = sorted(items)
    writes = {path: content for name in names for path, content in items[name].items()}
    subject = names[0] if len(names) == 1 else f"{len(names)} items"
    body = tuple(names) if len(names) > 1 else ()
    return Change("approve", subject, writes, tuple(Thread(item=name) for name in names), body)
