"""Reading what history holds: records at a commit, and what a commit changed, path by path.

Rules: no rename detection; a path that is no plain file holds no record; a merge by itself changed
the paths in which it differs from *every* parent.

Example: ``more_than(history, commit, allowed)`` is the first path that a commit was not to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from gitbus import codec
from gitbus.errors import Invalid
from gitbus.history import FILE, Commit, Delta, Entry, History, Oid
from gitbus.records import Record

R = TypeVar("R", bound=Record)
Allowed = Callable[[Delta], bool]

_WAITING = (b"state: in_review", b"state: awaiting_approval")
_APPROVED = b"state: approved"


def read_at(history: History, commit: Oid, path: str, model: type[R]) -> R | None:
    """Return the record at a path in a commit; None where there is none that can be read."""
    return read_entry(history, history.entry(commit, path), path, model)


def read_entry(history: History, entry: Entry | None, path: str, model: type[R]) -> R | None:
    """Return the record in a tree's entry; None where there is none that can be read."""
    if entry is None or entry.mode != FILE or history.size(entry.oid) > codec.LIMIT:
        return None
    known = _read.get((entry.oid, model))
    if known is None:
        try:
            known = codec.read(history.blob(entry.oid), model, path=path)
        except Invalid:
            return None
        if len(_read) >= _KEPT:
            _read.clear()
        _read[entry.oid, model] = known
    return known  # type: ignore[return-value]


_read: dict[tuple[Oid, type[Record]], Record] = {}
"""Records by blob and kind: a blob's id is its content, and ``bus.yaml``, as people write it, takes long to read."""

_KEPT = 1_000


def first_parent(history: History, oid: Oid) -> Oid | None:
    """Return a commit's first parent; None for a root."""
    parents = history.commit(oid).parents
    return parents[0] if parents else None


def parent_tree(history: History, commit: Commit) -> Oid | None:
    """Return the tree of a commit's first parent; None for a root."""
    return history.commit(commit.parents[0]).tree if commit.parents else None


def changed(history: History, oid: Oid, under: str = "") -> Sequence[Delta]:
    """Return what a commit changed against its first parent (a root: against nothing)."""
    commit = history.commit(oid)
    return history.diff(parent_tree(history, commit), commit.tree, under)


def own_changes(history: History, commit: Commit, under: str = "") -> Sequence[Delta]:
    """Return what a commit changed by itself: of a merge, the paths unlike those of every parent."""
    if len(commit.parents) < 2:
        return changed(history, commit.oid, under)
    sides = [history.diff(history.commit(parent).tree, commit.tree, under) for parent in commit.parents]
    everywhere = set.intersection(*({delta.path for delta in side} for side in sides))
    return [delta for delta in sides[0] if delta.path in everywhere]


def brought_by(history: History, oid: Oid, line: Sequence[Oid]) -> Oid:
    """Return the first commit of a line, given oldest first, that reaches a commit beside it."""
    low, high = 0, len(line) - 1
    while low < high:
        middle = (low + high) // 2
        if history.is_ancestor(oid, line[middle]):
            high = middle
        else:
            low = middle + 1
    return line[low]


def more_than(history: History, oid: Oid, allowed: Allowed) -> tuple[Oid, str] | None:
    """Return the first change, of a commit of the line or of what it brought, that is not allowed.

    Looked at are the whole difference from its first parent, and each commit that it brought, and
    itself where it is a merge, by itself.

    Returns:
        The commit and the path; None where every change is allowed.
    """
    commit = history.commit(oid)
    path = _first(changed(history, oid), allowed)
    if path is not None:
        return oid, path
    if len(commit.parents) < 2:
        return None
    for one in (oid, *history.between(commit.parents[1:], commit.parents[:1])):
        brought = history.commit(one)
        path = _first(own_changes(history, brought), _nothing if len(brought.parents) > 1 else allowed)
        if path is not None:
            return one, path
    return None


_flips: WeakKeyDictionary[History, dict[Oid, tuple[Oid, str] | None]] = WeakKeyDictionary()
"""What approving commits hold beside flips: the same for every item of a batch, and a commit never changes."""

_MOST = 1_000


def more_than_flips(history: History, oid: Oid) -> tuple[Oid, str] | None:
    """Return the first change of a commit, or of what it brought, that is no flip (:func:`more_than`)."""
    known = _flips.setdefault(history, {})
    if oid not in known:
        if len(known) >= _MOST:
            known.clear()
        known[oid] = more_than(history, oid, is_flip(history))
    return known[oid]


def _nothing(_: Delta) -> bool:
    """Allow no change: what a merge may change by itself."""
    return False


def _first(deltas: Iterable[Delta], allowed: Allowed) -> str | None:
    return next((delta.path for delta in deltas if not allowed(delta)), None)


def is_flip(history: History) -> Allowed:
    """Return the test whether a change is one of the two of a flip."""

    def test(delta: Delta) -> bool:
        match delta.path.split("/"):
            case ["outbox", _, "approval.yaml"]:
                return delta.old is None and delta.new is not None and delta.new.mode == FILE
            case ["outbox", _, "item.yaml"]:
                return flips_state(history, delta)
        return False

    return test


def flips_state(history: History, delta: Delta) -> bool:
    """Say whether a change of ``item.yaml`` is that of one line: the state, from waiting to approved."""
    if delta.old is None or delta.new is None or (delta.old.mode, delta.new.mode) != (FILE, FILE):
        return False
    old = history.blob(delta.old.oid).split(b"\n")
    new = history.blob(delta.new.oid).split(b"\n")
    if len(old) != len(new):
        return False
    lines = [(before, now) for before, now in zip(old, new, strict=True) if before != now]
    return len(lines) == 1 and lines[0][0] in _WAITING and lines[0][1] == _APPROVED
