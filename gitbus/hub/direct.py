"""The hub as a bare repository on this machine: objects into its store, refs by git's own transaction.

Example: ``DirectHub(Git(bare), Git(clone), "refs/heads/main")``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable
from gitbus.history import Oid
from gitbus.hub.base import Moves, RefMove
from gitbus.hub.database import sync_folder
from gitbus.hub.moving import GITBUS, no_branch, ordered
from gitbus.hub.refs import RefFiles, RefMover, instruction
from gitbus.hub.run import Git, Ran, failed, no_git
from gitbus.hub.store import GitStore

SOON = 0.002
"""Seconds until the second look at the refs: whoever just acted is mostly answered at once."""
POLL = 0.02
"""Seconds between two looks at the ref files while waiting."""


class DirectHub:
    """A hub whose repository this process can write.

    Args:
        git: the hub's repository.
        user: the clone that the actor works in, whose configuration says who signs and how.
        main: the full name of the bus's branch.
    """

    def __init__(self, git: Git, user: Git, main: str) -> None:
        self.git = git
        self.user = user
        self.main = main
        self.store = GitStore(git, user)
        self._files = RefFiles(git)
        self._mover = RefMover(git)
        self._woken = False

    def look(self) -> Mapping[str, Oid]:
        """Return the refs as they are now."""
        if not self.git.git_dir.is_dir():
            raise no_git(self.git.git_dir)
        refuse_shallow(self.git)
        refs = self._refs()
        if self.main not in refs:
            raise no_branch(self.main)
        return refs

    def _refs(self) -> dict[str, Oid]:
        return self._files.below(self.main, GITBUS)

    def move(self, moves: Sequence[RefMove]) -> Moves:
        """Flush, then move refs, each by compare-and-swap; the bus's branch first."""
        todo = ordered(self.store, moves, self.main)
        if todo and todo[0].ref == self.main and self._files.value(self.main) != todo[0].old:
            return Moves(frozenset(), frozenset(move.ref for move in todo))  # nothing needs to be written
        self.store.flush()
        done: set[str] = set()
        for move in todo:
            if self._one(move):
                done.add(move.ref)
            elif move.ref == self.main:
                break
        self._make_durable(done)
        return Moves(frozenset(done), frozenset(move.ref for move in todo) - done)

    def _one(self, move: RefMove) -> bool:
        """Move one ref; False where somebody else was faster."""
        now = self._files.value(move.ref)
        if now != move.old:  # a transaction that fails costs the process that makes them
            return now == move.new is None
        effect("ref-move", f"{move.ref} {move.old} {move.new}")
        answer = self._mover.move(move)
        if answer == "moved":
            return True
        now = self._files.value(move.ref)
        if now != move.old:
            return now == move.new and (answer == "unknown" or move.new is None)
        ran = self.git.run("update-ref", "--no-deref", "--stdin", given=instruction(move).encode())
        if ran.code == 0:
            return True
        if self._files.value(move.ref) != move.old:
            return False
        raise self._stuck(move.ref, ran)

    def _stuck(self, ref: str, ran: Ran) -> Unreachable:
        named = (self.git.git_dir / f"{name}.lock" for name in (ref, "HEAD", "packed-refs"))
        lock = next((path for path in named if path.exists()), None)
        if lock:
            return locked(ref, lock)
        return failed(f"{ref} cannot be moved", ran, self.git.git_dir, rule="ref-refused")

    def _make_durable(self, refs: set[str]) -> None:
        """Make the moved refs' names durable; git does so for their contents alone."""
        folders = {self.git.git_dir / Path(ref).parent for ref in refs}
        for folder in sorted(folders):
            if folder.is_dir():
                sync_folder(folder)

    def wait(self, seconds: float, seen: Mapping[str, Oid]) -> None:
        """Return when the refs are not ``seen`` any more, when woken, or after ``seconds``."""
        end = time.monotonic() + seconds
        before: object = None
        pause = SOON
        while not self._woken:
            now = self._files.fingerprint(self.main, GITBUS)
            if now != before and (self._refs() != dict(seen)):
                return
            before = now
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(pause, left))
            pause = min(1.3 * pause, POLL)
        self._woken = False

    def wake(self) -> None:
        """End the wait that is going on, or the next one; for signal handlers and other threads."""
        self._woken = True

    def close(self) -> None:
        """End what child processes there are."""
        self._mover.close()
        self.store.close()


def locked(what: str, lock: Path) -> Unreachable:
    """Return the error for a lock that somebody holds, or left behind."""
    return Unreachable(
        f"{what} is locked by {lock}",
        rule="ref-locked",
        remedy=f"if no git is at work there, remove it: gitbus doctor --fix, or rm {lock}",
    )


def refuse_shallow(git: Git) -> None:
    """Refuse a repository without its whole history.

    Raises:
        Refused: it is shallow (rule ``shallow``).
    """
    try:
        shallow = (git.git_dir / "shallow").stat().st_size > 0
    except FileNotFoundError:
        return
    if shallow:
        raise Refused(
            f"{git.git_dir} is shallow: it does not hold the history that proves anything",
            rule="shallow",
            remedy="git fetch --unshallow",
        )
