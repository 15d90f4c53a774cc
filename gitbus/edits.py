"""Changes on the line that no move allows: an edit of what is nobody's to change any more.

Rules: an item's content changes with a new revision only, its payload with its record; a task at its
end and a goal that was added stay as they are; a result is what a worker's own commit holds; what is
archived stays, but for a receipt that came late.

Example: a commit that changes a recipient in ``item.yaml`` and leaves the revision as it was yields
``("a.mail.item", "what would be sent was changed without a revision")``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gitbus import paths
from gitbus.codec import kind_of_path
from gitbus.history import Commit, Delta, History
from gitbus.proof.reads import read_entry
from gitbus.records import Goal, Item, Result, Task

Edit = tuple[str, str]
"""The subject (an item, a goal, ``goal/task``), and what was done to it."""


def unproved_edits(
    history: History, commit: Commit, deltas: Sequence[Delta], items: Mapping[str, Item]
) -> Iterator[Edit]:
    """Yield what a commit of the line changed and must not.

    Args:
        history: the repository.
        commit: the commit.
        deltas: what it changed against its first parent.
        items: the items as they were before it.
    """
    touched = frozenset(one.path for one in deltas)
    for delta in deltas:
        match delta.path.split("/"):
            case ["outbox", name, *_]:
                yield from _item(history, delta, name, items.get(name), touched)
            case ["archive", _, _, "outbox", name, *_] if delta.old is not None:
                if not any(f"/outbox/{name}/receipt." in one for one in touched):
                    yield name, f"{delta.path} was changed in the archive"
            case ["goals", goal, "goal.yaml"] if delta.old is not None:
                yield from _goal(history, delta, goal, deltas)
            case ["goals", goal, "tasks", leaf]:
                yield from _task(history, delta, f"{goal}/{leaf.removesuffix('.yaml')}")
            case ["goals", goal, "results", leaf]:
                yield from _result(history, commit, delta, f"{goal}/{leaf.removesuffix('.yaml')}")
            case _:
                pass


def _item(
    history: History, delta: Delta, name: str, old: Item | None, touched: Collection[str]
) -> Iterator[Edit]:
    if delta.path == paths.item(name):
        new = read_entry(history, delta.new, delta.path, Item)
        told = any(one.startswith(f"outbox/{name}/receipt.") for one in touched)
        if old is not None and new is not None and (why := _edited(old, new, told=told)):
            yield name, why
    elif paths.item(name) not in touched and kind_of_path(delta.path) is None:
        yield name, f"{delta.path} was changed without a revision"


def _edited(old: Item, new: Item, *, told: bool) -> str | None:
    """Return what no move from one record of an item to the next allows.

    Args:
        old: the record before.
        new: the record after.
        told: whether a receipt came along.
    """
    if new.revision != old.revision + (new.state == "persisted"):
        return f"revision {old.revision} became {new.revision}"
    if new.state == "persisted":
        return None
    if new.digest != old.digest or new.source != old.source:
        return "what would be sent was changed without a revision"
    return None if new.state != old.state or told else f"its record was changed, and it stayed {new.state}"


def _task(history: History, delta: Delta, name: str) -> Iterator[Edit]:
    old = read_entry(history, delta.old, delta.path, Task)
    new = read_entry(history, delta.new, delta.path, Task)
    if old and new and old.state == new.state and old.state not in ("ready", "assigned"):
        yield name, f"its record was changed, and it stayed {new.state}"


def _goal(history: History, delta: Delta, name: str, deltas: Sequence[Delta]) -> Iterator[Edit]:
    old = read_entry(history, delta.old, delta.path, Goal)
    new = read_entry(history, delta.new, delta.path, Goal)
    moved = any(one.path.endswith(f"/{delta.path}") and one.new == delta.old for one in deltas)
    if delta.new is None and not moved:
        yield name, "a goal is archived, never removed"
    elif old and new and old != new.model_copy(update={"cancelled": old.cancelled}):
        yield name, "the goal was changed after it was added"


def _result(history: History, commit: Commit, delta: Delta, name: str) -> Iterator[Edit]:
    result = read_entry(history, delta.new, delta.path, Result)
    if result is not None and result not in _brought(history, commit, delta.path):
        yield name, "no commit of a worker holds this result"


def _brought(history: History, commit: Commit, path: str) -> Iterator[Result | None]:
    """Yield a result as the workers' commits that were merged have it, their tips first."""
    sides = commit.parents[1:]
    for parent in sides:
        yield read_entry(history, history.entry(parent, path), path, Result)
    for oid in history.between(sides, commit.parents[:1], touching=[path]) if sides else ():
        yield read_entry(history, history.entry(oid, path), path, Result)
