"""What people do with goals: add, cancel, resume, try again, archive.

Example: ``bus.add_goal(Path("goal.yaml").read_bytes())``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from gitbus import codec, paths
from gitbus.board import Board
from gitbus.bus.core import Done, OpenBus
from gitbus.change import Change, plain
from gitbus.errors import Invalid, Refused
from gitbus.flow import people
from gitbus.goalcheck import check
from gitbus.history import TREE, Entry
from gitbus.records import Goal


class Goals(OpenBus):
    """The goals of a bus."""

    def add_goal(
        self, text: bytes, inputs: Mapping[str, Any] | None = None, *, name: str = "goal.yaml"
    ) -> Done:
        """Add a goal as its author wrote it.

        Args:
            text: the goal's YAML.
            inputs: values for its ``inputs``.
            name: where the text came from, for errors.

        Raises:
            Invalid: it cannot be added; the first thing wrong, with its place.
        """
        text = self._with_inputs(text, inputs or {}, name)

        def decide(board: Board) -> Change:
            return people.add_goal(self.checked_goal(text, board, name), text)

        return self.commit(decide)

    def checked_goal(self, text: bytes, board: Board, name: str = "goal.yaml") -> Goal:
        """Return the goal that a text holds, if it may be added.

        Raises:
            Invalid: it may not.
        """
        loaded = codec.load(text, path=name, limit=board.bus.limits.record)
        found = codec.problems(loaded, Goal)
        if isinstance(found, list):
            raise found[0]
        taken = {*board.goals, *self._archived(board)}
        for issue in check(found, board.bus, taken):
            line, column = loaded.place(issue.place)
            raise Invalid(
                issue.message,
                rule=issue.rule,
                path=name,
                line=line,
                column=column,
                remedy=issue.remedy or None,
            )
        return found

    def _archived(self, board: Board) -> set[str]:
        archive = self._inner(self.hub.store.entry(board.commit, "archive"))
        months = [month for year in archive.values() for month in self._inner(year).values()]
        return {goal for month in months for goal in self._inner(self._inner(month).get("goals"))}

    def _inner(self, entry: Entry | None) -> Mapping[str, Entry]:
        """Return what a folder holds; nothing where there is no folder."""
        return self.hub.store.tree(entry.oid) if entry is not None and entry.mode == TREE else {}

    @staticmethod
    def _with_inputs(text: bytes, inputs: Mapping[str, Any], name: str) -> bytes:
        for key, value in inputs.items():
            loaded = codec.load(text, path=name).data
            if key not in (loaded.get("inputs") or {}):
                known = ", ".join(loaded.get("inputs") or {}) or "none"
                raise Refused(
                    f"the goal has no input {plain(key)}", rule="no-such-input", remedy=f"it has: {known}"
                )
            text = codec.edit(text.decode("utf-8"), ("inputs", key), value).encode("utf-8")
        return text

    def cancel_goal(self, goal: str, reason: str) -> Done:
        """Cancel a goal; what runs is abandoned."""

        def decide(board: Board) -> Change:
            people.goal_of(board, goal)
            entry = self.hub.store.entry(board.commit, paths.goal(goal))
            text = self.hub.store.blob(entry.oid).decode("utf-8") if entry else ""
            return people.cancel_goal(
                board, goal, codec.edit(text, ("cancelled",), reason).encode("utf-8"), reason
            )

        return self.commit(decide)

    def resume(self, goal: str) -> Done:
        """Open what was skipped for want of a worker again."""
        return self.commit(lambda board: people.resume(self._open(board, goal), goal, self.now()))

    def retry_task(self, goal: str, task: str) -> Done:
        """Give a dead task a new budget."""
        return self.commit(lambda board: people.retry_task(self._open(board, goal), goal, task, self.now()))

    def archive(self, older: timedelta | None = None) -> Done | None:
        """Archive what settled long ago; None where there is nothing to archive.

        Args:
            older: how long ago it settled; the bus's ``archive_after`` unless given.
        """
        from gitbus.conductor import archived

        tip = self.hub.look()[self.hub.main]
        if not archived(self.hub.store, self.reader.board(tip), tip, (), self.now(), older):
            return None
        return self.commit(
            lambda board: archived(self.hub.store, board, board.commit, (), self.now(), older)[0]
        )
