"""The hub as a bare repository on this machine: objects into its store, refs by git's own transaction.

Example: ``DirectHub(Git(bare), Git(clone), "refs/heads/main")``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Unreachable
from gitbus.history import Oid
from gitbus.hub.base import Moves, RefMove
from gitbus.hub.refs import RefFiles
from gitbus.hub.run import Git, said
from gitbus.hub.store import GitStore

GITBUS = "refs/heads/gitbus/"
POLL = 0.015
"""Seconds between two looks at the ref files while waiting."""

ZERO = "0" * 40


class DirectHub:
    """A hub whose repository this process can write.

    Args:
        git: the hub's repository.
        user: the clone that the actor works in.
        main: the full name of the bus's branch.
    """

    def __init__(self, git: Git, user: Git, main: str) -> None:
        self.git = git
        self.main = main
        self.store = GitStore(git, user)
        self._refs = RefFiles(git)
        self._seen: object = None

    def look(self) -> Mapping[str, Oid]:
        """Return the refs as they are now."""
        if not self.git.git_dir.is_dir():
            raise Unreachable(
                f"the hub {self.git.git_dir} is gone",
                rule="hub-gone",
                remedy="bring it back, or set the remote's URL",
            )
        self._seen = self._refs.fingerprint(self.main, GITBUS)
        refs = self._refs.below(self.main, GITBUS)
        if self.main not in refs:
            raise Unreachable(f"the hub has no branch {self.main}", rule="no-branch")
        return refs

    def move(self, moves: Sequence[RefMove]) -> Moves:
        """Flush, then move refs, each by compare-and-swap; the bus's branch first."""
        self.store.flush()
        ordered = sorted(moves, key=lambda one: one.ref != self.main)
        done: set[str] = set()
        lost: set[str] = set()
        for move in ordered:
            if self._one(move):
                done.add(move.ref)
                continue
            lost.add(move.ref)
            if move.ref == self.main:
                lost.update(one.ref for one in ordered if one.ref not in done)
                break
        return Moves(frozenset(done), frozenset(lost))

    def _one(self, move: RefMove) -> bool:
        refuse_rewrite(self.store, move)
        effect("ref-move", f"{move.ref} {move.old} {move.new}")
        verb = "delete" if move.new is None else "update" if move.old else "create"
        values = {"delete": [move.old], "update": [move.new, move.old], "create": [move.new]}[verb]
        line = f"{verb} {move.ref} " + " ".join(one or ZERO for one in values) + "\n"
        for _ in range(20):
            ran = self.git.run("update-ref", "--no-deref", "--stdin", given=line.encode())
            if ran.code == 0:
                return True
            if self._refs.below(move.ref).get(move.ref) != move.old:
                return False
            if not self._lock(move.ref).exists():
                time.sleep(0.002)  # somebody held the lock just now
                continue
            time.sleep(0.01)
        raise Unreachable(
            f"{move.ref} cannot be moved: {said(ran.err)}",
            rule="ref-locked" if self._lock(move.ref).exists() else "ref-refused",
            remedy=f"if no git runs there, remove {self._lock(move.ref)} (`gitbus doctor --fix` does)",
        )

    def _lock(self, ref: str) -> Path:
        return self.git.git_dir / (ref + ".lock")

    def wait(self, seconds: float, seen: Mapping[str, Oid]) -> None:  # noqa: ARG002 - it keeps finer marks
        """Return when the ref files changed since the last look, or after ``seconds``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._refs.fingerprint(self.main, GITBUS) != self._seen:
                return
            time.sleep(min(POLL, left))

    def close(self) -> None:
        """End what child processes there are."""
        self.store.close()


def refuse_rewrite(store: GitStore, move: RefMove) -> None:
    """Refuse a move that would not keep what the ref holds, unless it is meant to start anew.

    Raises:
        ValueError: the new value does not descend from the old one.
    """
    if move.replace or move.old is None or move.new is None:
        return
    if not store.is_ancestor(move.old, move.new):
        raise ValueError(f"{move.ref}: {move.new} does not descend from {move.old}")
