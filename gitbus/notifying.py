"""Telling people what waits for them: the commands of ``notify`` in ``bus.yaml``, each fact once.

A command gets one JSON document on stdin and nothing that a worker wrote on its command line. What
it does or fails to do changes nothing on the bus.

Example: ``Notifier(state).tell(board, now)``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from gitbus.board import Board
from gitbus.documents import Notice
from gitbus.effects import effect
from gitbus.pins import write_file

SOON = timedelta(days=1)
"""How long before it expires an item counts as ``expiring``."""

PATIENCE = 20.0
EXPIRES = ("in_review", "awaiting_approval", "approved")
MARK = {"in_review", "awaiting_approval", "stuck", "failed"}


def waiting(board: Board, now: datetime) -> Iterator[tuple[str, str, str]]:
    """Yield (what, subject, key) for everything that waits for a human; a key is told once."""
    for name, part in sorted(board.items.items()):
        if part.item is None or part.problems:
            continue
        item = part.item
        key = f"{name} {item.revision} {item.attempt}"
        if item.state in MARK:
            yield item.state, name, f"{item.state} {key}"
        left = item.expires_at - now if item.expires_at else None
        if item.state in EXPIRES and left is not None and timedelta(0) < left <= SOON:
            yield "expiring", name, f"expiring {key}"
    for goal in board.goals.values():
        for task in goal.tasks.values():
            if task.state == "dead":
                yield "dead", f"{goal.id}/{task.id}", f"dead {goal.id}/{task.id} {task.attempt}"


class Notifier:
    """Runs the commands of one conductor's bus.

    Args:
        state: the clone's local state, where what was told is remembered.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / "notified.json"
        self.told: set[str] = set()
        with contextlib.suppress(OSError, ValueError):
            self.told = set(json.loads(self.path.read_text("utf-8")))

    def tell(self, board: Board, now: datetime) -> None:
        """Tell what is new; never raises for what a command does."""
        if not board.bus.notify:
            return
        found = list(waiting(board, now))
        new = [one for one in found if one[2] not in self.told]
        for rule in board.bus.notify:
            for what, subject, _ in new:
                if what in rule.on and rule.command:
                    self._run(rule.command, Notice(on=what, subject=subject, bus=board.bus.name))
        now_told = {key for _, _, key in found}
        if now_told != self.told:
            self.told = now_told
            write_file(self.path, json.dumps(sorted(self.told)).encode())

    @staticmethod
    def _run(command: tuple[str, ...], notice: Notice) -> None:
        effect("process", command[0])
        text = json.dumps(notice.as_json())
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                list(command),
                input=text.encode(),
                timeout=PATIENCE,
                check=False,
                capture_output=True,
                env=dict(os.environ),
            )
