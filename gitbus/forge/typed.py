"""What people committed on an approval branch, so that nothing they typed is lost.

Rules: a branch that holds anything typed is replaced or deleted only once the bus's branch holds it,
or a branch below ``gitbus/kept/`` does. An edit is taken in where the payload that it was made on, or
one that came of it, is the present one; anything else is kept for a person to look at.

Example: ``Typist(store).typed(tip, main).files`` maps (item, path) to the blobs that the file had, oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gitbus import paths
from gitbus.board import Board
from gitbus.history import FILE, Commit, Delta, Entry, Oid
from gitbus.hub.base import Store
from gitbus.states import WAITING
from gitbus.writing import CONDUCTOR

REVISED = (*WAITING, "approved", "expired")
"""The states of an item that an edit on its branch makes a new revision of."""

File = tuple[str, str]
"""An item, and a file's path below its folder."""


@dataclass(frozen=True)
class Typed:
    """What the commits of people on a branch changed that the bus's branch does not hold."""

    since: Oid | None = None  # the commit that they are based on
    files: Mapping[File, tuple[Oid, ...]] = field(default_factory=dict)  # its blobs, oldest first
    authors: Mapping[str, str] = field(default_factory=dict)  # item → who edited it last
    more: bool = False  # something other than files below items' folders

    def changes(self, board: Board) -> Mapping[str, Mapping[str, Oid]]:
        """Return the payload files that can be taken in, by item: path → blob; empty where not all can be."""
        if self.more or not all(_is_payload(board, file) for file in self.files):
            return {}
        items = {item for item, _ in self.files}
        return {item: found for item in sorted(items) if (found := self._of(board, item))}

    def is_on(self, board: Board) -> bool:
        """Say whether a board holds all of it."""
        return not self.more and all(
            (part := board.items.get(item)) is not None
            and (here := part.files.get(path)) is not None
            and here.oid == blobs[-1]
            for (item, path), blobs in self.files.items()
        )

    def _of(self, board: Board, item: str) -> Mapping[str, Oid]:
        part = board.items[item]
        if part.problems or part.state not in REVISED:
            return {}
        found: dict[str, Oid] = {}
        for (owner, path), blobs in self.files.items():
            here = part.files.get(path)
            if owner != item or (here is not None and here.oid == blobs[-1]):
                continue
            if here is None or here.oid not in blobs:
                return {}
            found[path] = blobs[-1]
        return found


class Typist:
    """Reads what people committed on approval branches.

    Args:
        store: where the objects are.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._merged: dict[Oid, bool] = {}
        self._untouched: set[Oid] = set()  # tips on which nobody typed anything, and so nobody ever will have

    def typed(self, tip: Oid, main: Oid) -> Typed:
        """Return what people committed on a branch and the bus's branch does not hold yet."""
        if tip in self._untouched:
            return Typed()
        found = self._read(tip, main)
        if found.more:
            return found
        if not found.files:
            self._untouched.add(tip)
        files = {
            file: blobs
            for file, blobs in found.files.items()
            if not self._held(file, blobs[-1], found.since, main)
        }
        return Typed(found.since, files, found.authors)

    def is_merge_by_git(self, commit: Commit) -> bool:
        """Say whether a merge holds what git made of its two sides, and nothing else."""
        if commit.oid not in self._merged:
            made = self.store.remerge(*commit.parents) if len(commit.parents) == 2 else None
            self._merged[commit.oid] = made == commit.tree
        return self._merged[commit.oid]

    def _read(self, tip: Oid, main: Oid) -> Typed:
        since: Oid | None = None
        files: dict[File, tuple[Oid, ...]] = {}
        authors: dict[str, str] = {}
        for oid in self.store.between([tip], [main]):
            commit = self.store.commit(oid)
            since = since or next(iter(commit.parents), None)
            if len(commit.parents) > 1 and self.is_merge_by_git(commit):
                continue
            if len(commit.parents) != 1:
                return Typed(more=True)
            deltas = self.store.diff(self.store.commit(commit.parents[0]).tree, commit.tree)
            if _is_flip(commit, deltas):
                continue
            for delta in deltas:
                file = _file(delta)
                if file is None or delta.new is None:
                    return Typed(more=True)
                files[file] = _longer(files.get(file, ()), delta.old, delta.new.oid)
                authors[file[0]] = f"{commit.author.name} <{commit.author.email}>"
        return Typed(since, files, authors)

    def _held(self, file: File, blob: Oid, since: Oid | None, main: Oid) -> bool:
        """Say whether the bus's branch holds a blob at its place, or did since the edit was begun."""
        path = f"{paths.item_folder(file[0])}/{file[1]}"
        here = self.store.entry(main, path)
        if here is not None and here.oid == blob:
            return True
        without = [since] if since is not None else []
        passed = (self.store.entry(oid, path) for oid in self.store.between([main], without, touching=[path]))
        return any(one is not None and one.oid == blob for one in passed)


def _file(delta: Delta) -> File | None:
    """Return the file of an item that a plain change is about; None where it is none."""
    match delta.path.split("/", 2):
        case ["outbox", item, inner] if delta.new is not None and delta.new.mode == FILE:
            return item, inner
        case _:
            return None


def _is_payload(board: Board, file: File) -> bool:
    part = board.items.get(file[0])
    return part is not None and part.item is not None and file[1] in {one.path for one in part.item.payload}


def _longer(blobs: tuple[Oid, ...], old: Entry | None, new: Oid) -> tuple[Oid, ...]:
    if old is not None and blobs[-1:] != (old.oid,):
        blobs = (*blobs, old.oid)
    return (*blobs, new)


def _is_flip(commit: Commit, deltas: Sequence[Delta]) -> bool:
    """Say whether a commit is the conductor's own, in which nobody typed anything."""
    by = (commit.committer.name, commit.committer.email)
    return by == (CONDUCTOR.name, CONDUCTOR.email) and all(
        delta.path.startswith("outbox/") and delta.path.endswith(("/item.yaml", "/approval.yaml"))
        for delta in deltas
    )
