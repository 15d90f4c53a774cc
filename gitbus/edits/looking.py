"""One commit of the line as the rules of edits look at it: what it changed, and what stood there.

Rules: records are read once for each blob, whoever asks; a record that cannot be read is None; what
an archive commit moved is told by tree, so that a moved folder costs nothing, however large it is.

Example: ``Look(Memo(history), commit, deltas, bus).new("outbox/a.mail.item/item.yaml", Item).state``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from gitbus import graph, paths
from gitbus.board import Board, File, GoalBoard
from gitbus.codec import kind_of_path
from gitbus.history import FILE, TREE, Commit, Delta, Entry, History, Oid
from gitbus.proof.messages import VERB, trailers
from gitbus.proof.reads import read_entry
from gitbus.records import Bus, Item, Record

R = TypeVar("R", bound=Record)

_KEEP = 20_000
_NO_BUS = Bus.model_construct(name="")
"""For a board that is asked for one goal alone."""

_ARCHIVED = re.compile(r"archive/[0-9]{4}/[0-9]{2}/((?:goals|outbox)/[^/]+)", re.ASCII)
"""A folder that was archived; its group is where it stood before."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a commit changed and must not: by which rule, of what (an item, a goal, ``goal/task``), and how."""

    rule: str
    subject: str
    message: str


def edit(subject: str, message: str) -> Edit:
    """Return an edit that no row of the tables allows."""
    return Edit("unproved-edit", subject, message)


def subject_of(path: str) -> str:
    """Return whose a path is: an item's, a task's (``goal/task``), a goal's; else the path itself."""
    found = _ARCHIVED.match(path)
    steps = (found[1] + path[found.end() :] if found else path).split("/")
    match steps:
        case ["outbox", item, _, *_]:
            return item
        case ["goals", goal, "tasks" | "results", leaf]:
            return f"{goal}/{leaf.removesuffix('.yaml')}"
        case ["goals", goal, "refused", leaf]:
            return f"{goal}/{leaf.removesuffix('.yaml').rpartition('.')[0]}"
        case ["goals", goal, "artifacts", task, *_]:
            return f"{goal}/{task}"
        case ["goals", goal, _, *_]:
            return goal
        case _:
            return path


class Memo:
    """What was read of a history, so that no record is read twice.

    Args:
        history: the repository.
        known: gives records that somebody has read already, by blob and kind.
    """

    def __init__(self, history: History, known: Callable[[Oid, str], Record | None] | None = None) -> None:
        self.history = history
        self._known = known
        self._records: dict[tuple[Oid, type[Record]], Record | None] = {}
        self._goals: dict[tuple[str, Oid], GoalBoard] = {}
        self._graph: tuple[GoalBoard, graph.Graph] | None = None

    def read(self, entry: Entry | None, path: str, model: type[R]) -> R | None:
        """Return the record in a tree's entry; None where there is none that can be read."""
        if entry is None or entry.mode != FILE:
            return None
        key = (entry.oid, model)
        if key not in self._records:
            if len(self._records) > _KEEP:
                self._records.clear()
            kind = str(model.model_fields["kind"].default)
            known = self._known(entry.oid, kind) if self._known is not None else None
            self._records[key] = known or read_entry(self.history, entry, path, model)
        return self._records[key]  # type: ignore[return-value]

    def goal(self, name: str, folder: Entry | None) -> GoalBoard:
        """Return a goal as a tree has it."""
        if folder is None or folder.mode != TREE:
            return GoalBoard(name)
        key = (name, folder.oid)
        if key not in self._goals:
            self._goals.clear()  # the next commit's goal is another tree
            found = self.history.diff(None, folder.oid)
            board = Board(_NO_BUS).apply(
                (path, self._file(path, one.new))
                for one, path in ((one, f"{paths.goal_folder(name)}/{one.path}") for one in found)
            )
            self._goals[key] = board.goals.get(name, GoalBoard(name))
        return self._goals[key]

    def graph(self, part: GoalBoard) -> graph.Graph | None:
        """Return a goal's graph; None where the goal cannot be read. The same goal is asked for again and again."""
        if part.goal is None:
            return None
        if self._graph is None or self._graph[0] is not part:
            self._graph = (part, graph.build(part.goal, part.tasks, part.results))
        return self._graph[1]

    def _file(self, path: str, entry: Entry | None) -> File:
        kind = kind_of_path(path)
        return File(entry, self.read(entry, path, kind) if kind is not None else None)


@dataclass(frozen=True)
class Look:
    """One commit of the line, and what may be asked of it.

    Args:
        memo: reads the history.
        commit: the commit.
        deltas: what it changed against its first parent, and is to be looked at.
        bus: the effective Bus before it.
        known: the items as they could be read last, for those whose record cannot be read before it.
    """

    memo: Memo
    commit: Commit
    deltas: Sequence[Delta]
    bus: Bus
    known: Mapping[str, Item] = field(default_factory=dict)

    @property
    def history(self) -> History:
        """The repository."""
        return self.memo.history

    @cached_property
    def verb(self) -> str:
        """What the commit says that it does; empty where it says nothing."""
        return next(iter(trailers(self.commit.message, VERB)), "")

    @cached_property
    def touched(self) -> Mapping[str, Delta]:
        """What it changed, by path."""
        return {one.path: one for one in self.deltas}

    def before(self, path: str) -> Entry | None:
        """Return what stood at a path before the commit."""
        return self.history.entry(self.commit.parents[0], path) if self.commit.parents else None

    def after(self, path: str) -> Entry | None:
        """Return what stands at a path in the commit."""
        return self.history.entry(self.commit.oid, path)

    def old(self, path: str, model: type[R]) -> R | None:
        """Return the record that stood at a path before."""
        return self.memo.read(self.before(path), path, model)

    def new(self, path: str, model: type[R]) -> R | None:
        """Return the record that stands at a path now."""
        return self.memo.read(self.after(path), path, model)

    def old_item(self, name: str) -> Item | None:
        """Return an item as it could be read last before the commit."""
        return self.old(paths.item(name), Item) or self.known.get(name)

    def goal(self, name: str) -> GoalBoard:
        """Return a goal as the commit leaves it."""
        return self.memo.goal(name, self.after(paths.goal_folder(name)))

    def adds(self, path: str) -> bool:
        """Say whether the commit puts something where nothing was."""
        delta = self.touched.get(path)
        return delta is not None and delta.old is None and delta.new is not None

    @cached_property
    def moved(self) -> Mapping[str, str]:
        """The folders that it moved into the archive as they were: where each stood → where it stands."""
        targets = {found[0]: found[1] for path in self.touched if (found := _ARCHIVED.match(path))}
        return {
            source: target
            for target, source in targets.items()
            if self.before(target) is None
            and self.after(source) is None
            and (there := self.before(source)) is not None
            and there == self.after(target)
        }

    def is_moved(self, path: str) -> bool:
        """Say whether a path lies in a folder that was moved as it was, at either end."""
        found = _ARCHIVED.match(path)
        if found:
            return self.moved.get(found[1]) == found[0]
        return "/".join(path.split("/")[:2]) in self.moved
