"""What stands still at the tip: what somebody changed against the rules, until it is put right.

Rules: of what is open, each commit of the line that touched it is looked at once, as the audit looks at
it; a clone remembers how far it is. While nothing stands still an actor's own commits need no look. An
item that stands still is not scored, routed or put up, a goal neither released nor settled; what is
approved already is left to the proof, and the sender refuses it.

Example: ``Stillness(store, reader, state).halt(board).items["a.mail.item"].problems``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gitbus import ids, paths
from gitbus.board import EDITED, Board, GoalBoard, ItemBoard, Problem
from gitbus.edits import Look, Memo, Still, Wrong, unproved_edits
from gitbus.history import Entry, Oid
from gitbus.hub.base import Store
from gitbus.pins import write_file
from gitbus.proof.bus import Effective
from gitbus.proof.reads import first_parent, parent_tree
from gitbus.reading import Reader
from gitbus.states import ITEM_SETTLED

BEFORE_APPROVAL = frozenset({"persisted", "scored", "in_review", "awaiting_approval"})
_ELSEWHERE = "evidence-changed"
"""Leases and receipts that were changed are left to their own proof, which puts the item before a human."""
_SAVE_AFTER = 50
"""Changed paths looked at until the clone remembers it anew."""


class Stillness:
    """What stands still on one bus, kept up as the line grows.

    Args:
        store: where the objects are.
        reader: knows the effective Bus.
        state: the clone's local state.
    """

    def __init__(self, store: Store, reader: Reader, state: Path | None = None) -> None:
        self.store = store
        self.reader = reader
        self._memo = Memo(store, reader.known)
        self._file = state / "edits.json" if state is not None else None
        self._still, self._at = _load(self._file)
        self._looked = 0

    def wrong(self, board: Board) -> Mapping[str, Problem]:
        """Return what stands still at a board's commit: item or goal → what was changed there, and where.

        Args:
            board: the bus at a commit of the line, as it was read.
        """
        self._look(board)
        found: dict[str, Problem] = {}
        for path, one in sorted(self._still.wrong.items()):
            name = one.subject if one.subject in board.items else one.subject.partition("/")[0]
            if name in board.items or name in board.goals:
                found.setdefault(name, _problem(path, one))
        return found

    def halt(self, board: Board) -> Board:
        """Return the board on which whatever stands still cannot be moved on."""
        wrong = self.wrong(board)
        if not wrong:
            return board
        items = {name: _halted(part, wrong.get(name)) for name, part in board.items.items()}
        goals = {name: _stopped(part, wrong.get(name)) for name, part in board.goals.items()}
        return replace(board, items=items, goals=goals)

    @property
    def any(self) -> bool:
        """Whether anything stood still when it was looked at last."""
        return bool(self._still.wrong)

    def passed(self, before: Oid, after: Oid) -> None:
        """Take it that the commits between two tips are this actor's own."""
        if self._at == before and not self.any:
            self._at = after

    def _look(self, board: Board) -> None:
        if board.commit == self._at:
            return
        before = self._still
        effective = self.reader.effective(board.commit)
        for oid in self._unseen(board):
            self._take(oid, effective)
        self._at = board.commit
        if self._file is not None and (self._looked >= _SAVE_AFTER or self._still.wrong != before.wrong):
            _save(self._file, self._still, self._at)
            self._looked = 0

    def _unseen(self, board: Board) -> list[Oid]:
        """Return the commits that were not looked at yet, the oldest first."""
        if self._at is not None:
            since = self.store.line(board.commit, until=self._at)
            if since and first_parent(self.store, since[-1]) == self._at:
                return list(reversed(since))
            self._still = Still()  # the branch was put back: what was seen before says nothing
        folders = sorted(_open(board))
        return list(reversed(self.store.line(board.commit, touching=folders))) if folders else []

    def _take(self, oid: Oid, effective: Effective) -> None:
        commit = self.store.commit(oid)
        if not commit.parents:
            return
        deltas = self.store.diff(parent_tree(self.store, commit), commit.tree)
        whole = Look(self._memo, commit, deltas, effective.at(self.store, commit.parents[0]))
        found = unproved_edits(self._still.fresh(whole))
        self._still = self._still.after(whole, [one for one in found if one.rule != _ELSEWHERE])
        self._looked += len(deltas)


def _open(board: Board) -> Iterator[str]:
    for name, item in board.items.items():
        if item.state not in ITEM_SETTLED:
            yield paths.item_folder(name)
    for name, goal in board.goals.items():
        if goal.open:
            yield paths.goal_folder(name)


def _problem(path: str, one: Wrong) -> Problem:
    return Problem(
        path,
        1,
        1,
        EDITED,
        f"{one.message}, in commit {one.commit[:10]}; {one.subject} stands still",
        f"put it back: git revert {one.commit[:10]}, or git checkout {one.commit[:10]}^ -- {path}, and push",
    )


def _halted(part: ItemBoard, problem: Problem | None) -> ItemBoard:
    if problem is None or part.state not in BEFORE_APPROVAL:
        return part
    return replace(part, problems={**part.problems, problem.path: problem})


def _stopped(part: GoalBoard, problem: Problem | None) -> GoalBoard:
    if problem is None or not part.open or part.report is not None:
        return part
    return replace(part, problems={**part.problems, problem.path: problem})


# --- what a clone remembers


def _save(path: Path, still: Still, at: Oid) -> None:
    wrong = {
        where: [one.commit, one.subject, one.message, *(one.good or (None, None))]
        for where, one in still.wrong.items()
    }
    write_file(path, json.dumps({"at": at, "wrong": wrong}, sort_keys=True).encode())


def _load(path: Path | None) -> tuple[Still, Oid | None]:
    """Return what was remembered; nothing where that cannot be read."""
    try:
        told = json.loads(path.read_bytes()) if path is not None else None
        if told is None or not ids.OID.fullmatch(told["at"]):
            return Still(), None
        wrong = {
            where: Wrong(commit, subject, message, Entry(mode, oid) if oid else None)
            for where, (commit, subject, message, mode, oid) in told["wrong"].items()
        }
        return Still(wrong), told["at"]
    except (OSError, ValueError, TypeError, KeyError):
        return Still(), None
