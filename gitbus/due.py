"""What is due for jobs in CI: which declared workers have tasks, what waits to be merged, what to be sent.

A job that only asks this needs no right to push and no secret. The answer may be out of date when it
is used, which does no harm: whoever acts looks again.

Example: ``due(bus).workers`` is ``("notes",)`` while a task is assigned to the CI worker ``notes``.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gitbus import codec, paths
from gitbus.board import Board, ItemBoard
from gitbus.errors import Invalid
from gitbus.history import Oid
from gitbus.proof.bus import sending_on
from gitbus.proposed import BRANCHES
from gitbus.records import Result, Task

if TYPE_CHECKING:
    from gitbus.bus import Bus


@dataclass(frozen=True, slots=True)
class Due:
    """What jobs would find to do."""

    workers: tuple[str, ...]
    send: bool
    proposed: bool

    def lines(self) -> str:
        """Return it as ``NAME=VALUE`` lines, as the outputs of a job are written."""
        return "".join(f"{name}={json.dumps(value)}\n" for name, value in asdict(self).items())


def due(bus: Bus) -> Due:
    """Look at the hub and return what is due.

    Raises:
        Unreachable: the hub cannot be reached.
    """
    refs = bus.refs()
    board = bus.reader.board(refs[bus.hub.main])
    names = [name for name, one in sorted(board.workers.items()) if one.ci]
    waiting = tuple(name for name in names if _has_tasks(bus, board, name, refs.get(paths.WORKERS + name)))
    may_send = sending_on(bus.effective(), bus.hub.store) is None
    now = bus.now()
    return Due(
        workers=waiting,
        send=may_send and any(_can_go(part, now) for part in board.items.values()),
        proposed=any(ref.startswith(BRANCHES) for ref in refs),
    )


def _has_tasks(bus: Bus, board: Board, name: str, tip: Oid | None) -> bool:
    return any(
        task.state == "assigned" and task.worker == name and not _answered(bus, task, tip)
        for goal in board.goals.values()
        for task in goal.tasks.values()
    )


def _answered(bus: Bus, task: Task, tip: Oid | None) -> bool:
    """Say whether a worker's branch holds an answer to a task's present attempt."""
    entry = bus.hub.store.entry(tip, paths.result(task.goal, task.id)) if tip else None
    if entry is None or bus.hub.store.size(entry.oid) > codec.LIMIT:
        return False
    with contextlib.suppress(Invalid):
        found = codec.read(bus.hub.store.blob(entry.oid), Result, path="result")
        return (found.attempt, found.worker) == (task.attempt, task.worker)
    return False


def _can_go(part: ItemBoard, now: datetime) -> bool:
    item = part.item
    if item is None or part.problems or item.state != "approved":
        return False
    return all(when is None or when <= now for when in (item.not_before, item.send_at))
