"""The whole bus at one commit, as one read-only value from which every status is derived.

A board is a fold over files: :meth:`Board.apply` takes what changed and returns the next board,
sharing everything else. Settled goals keep their report only (``open`` is False) until somebody
needs more; the archive is not on the board.

Example: ``board.goals["a"].tasks["write"].state`` and ``board.items["a.mail.item"].item.state``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gitbus import paths
from gitbus.change import Change, Content, Kept, blob_oid
from gitbus.history import EXECUTABLE, FILE, Entry, Oid
from gitbus.records import (
    Approval,
    Bus,
    Goal,
    Item,
    Lease,
    Receipt,
    Record,
    Refusal,
    Report,
    Resolution,
    Result,
    Review,
    Task,
    Worker,
)

_ATTEMPT = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
"""An attempt's number as it stands in a file's name; nothing else is one."""


EDITED = "unproved-edit"
"""The rule of a problem that is no record's own: somebody changed what no move changes."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that cannot be read: it stops what it belongs to and is never skipped silently."""

    path: str
    line: int
    column: int
    rule: str
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class File:
    """What stands at a path: the entry, and the record read from it (or why it could not be)."""

    entry: Entry | None
    record: Record | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class GoalBoard:
    """One goal: what was asked, and how far it is."""

    id: str
    goal: Goal | None = None
    tasks: Mapping[str, Task] = field(default_factory=dict)
    results: Mapping[str, Result] = field(default_factory=dict)
    artifacts: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)  # task → path → entry
    refusals: Mapping[tuple[str, int], Refusal] = field(default_factory=dict)
    report: Report | None = None
    sources: Mapping[str, Oid] = field(
        default_factory=dict
    )  # task → the worker's commit that its result came with
    problems: Mapping[str, Problem] = field(default_factory=dict)
    open: bool = True  # False: settled, only goal and report are loaded

    @property
    def halted(self) -> bool:
        """Whether something of it was edited against the rules, so that none of its answers is taken."""
        return any(one.rule == EDITED for one in self.problems.values())

    @property
    def state(self) -> str:
        """The goal's state: ``running`` until its report says otherwise."""
        if self.problems:
            return "broken"
        return self.report.state if self.report else "running"


@dataclass(frozen=True)
class ItemBoard:
    """One outbound thing, and everything that was said about it."""

    id: str
    item: Item | None = None
    files: Mapping[str, Entry] = field(default_factory=dict)  # payload, by path below the item's folder
    reviews: Mapping[str, Review] = field(default_factory=dict)
    approval: Approval | None = None
    leases: Mapping[int, Lease] = field(default_factory=dict)
    receipts: Mapping[int, Receipt] = field(default_factory=dict)
    resolutions: Mapping[int, Resolution] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[Problem, ...]:
        """The payload's files that the item names and that are not there."""
        return tuple(
            Problem(
                f"{paths.item_folder(self.id)}/{file.path}",
                1,
                1,
                "payload-missing",
                "the item names this file, and it is not there",
                "put it back: git show COMMIT:PATH, of the commit before it went",
            )
            for file in (self.item.payload if self.item else ())
            if file.path not in self.files
        )

    @property
    def state(self) -> str:
        """The item's state; ``broken`` where its record cannot be read."""
        return self.item.state if self.item and not self.problems else "broken"


@dataclass(frozen=True)
class Board:
    """The bus at a commit, under the effective ``bus``."""

    bus: Bus
    commit: Oid = ""
    goals: Mapping[str, GoalBoard] = field(default_factory=dict)
    items: Mapping[str, ItemBoard] = field(default_factory=dict)
    workers: Mapping[str, Worker] = field(default_factory=dict)
    branch_refusals: Mapping[str, Refusal] = field(
        default_factory=dict
    )  # worker → the tip that broke the rules
    problems: Mapping[str, Problem] = field(default_factory=dict)  # of what belongs to no goal and no item
    archived_goals: frozenset[str] = field(default_factory=frozenset)

    def apply(self, files: Iterable[tuple[str, File | None]]) -> Board:
        """Return the board with some files changed (None: removed)."""
        edit = _Edit(self)
        for path, file in files:
            edit.put(path, file)
        return edit.done()

    def after(self, change: Change) -> Board:
        """Return the board as it will be once ``change`` is committed."""
        board = self.apply((path, _file(content)) for path, content in change.writes.items())
        return board if not change.sources else board.with_sources(change.sources)

    def with_sources(self, sources: Mapping[tuple[str, str], Oid]) -> Board:
        """Return the board that knows which worker's commit a task's result came with."""
        goals = dict(self.goals)
        for (goal, task), commit in sources.items():
            goals[goal] = replace(goals[goal], sources={**goals[goal].sources, task: commit})
        return replace(self, goals=goals)

    def all_problems(self) -> list[Problem]:
        """Return every record that cannot be read, by path."""
        found = dict(self.problems)
        for goal in self.goals.values():
            found.update(goal.problems)
        for item in self.items.values():
            found.update(item.problems)
            found.update({one.path: one for one in item.missing})
        return [found[path] for path in sorted(found)]


def _file(content: Content) -> File | None:
    match content:
        case None:
            return None
        case Entry():
            return File(content)
        case Kept(entry, kept):
            return File(entry, kept)
        case bytes():
            return File(Entry(FILE, blob_oid(content)))
        case record:
            return File(None, record)


class _Edit:
    """A board being changed; copies a goal's or an item's mappings once, when it first touches them."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.parts: dict[tuple[str, str], dict[str, Any]] = {}
        self.top: dict[str, Any] = {}

    def put(self, path: str, file: File | None) -> None:
        match path.split("/"):
            case ["goals" | "outbox" as folder, name] if file is None:
                self._gone("goals" if folder == "goals" else "items", name)
            case ["goals", goal, *rest]:
                self._goal(goal, rest, path, file)
            case ["outbox", item, *rest]:
                self._item(item, rest, path, file)
            case ["workers", name]:
                self._set(self._top("workers"), self._top("problems"), path, name[: -len(".yaml")], file)
            case ["refused", name]:
                self._set(
                    self._top("branch_refusals"), self._top("problems"), path, name[: -len(".yaml")], file
                )
            case _:
                pass

    def done(self) -> Board:
        changes = dict(self.top)
        for attribute, part in (("goals", GoalBoard), ("items", ItemBoard)):
            touched = {name: values for (kind, name), values in self.parts.items() if kind == attribute}
            if touched:
                changes[attribute] = self._merged(attribute, part, touched)
        return replace(self.board, **changes)

    def _gone(self, kind: str, name: str) -> None:
        """Forget a whole folder."""
        part = GoalBoard if kind == "goals" else ItemBoard
        blank = part(name)
        self.parts[kind, name] = {field.name: getattr(blank, field.name) for field in fields(blank)}

    def _merged(self, attribute: str, part: type, touched: dict[str, dict[str, Any]]) -> dict[str, Any]:
        whole = dict(getattr(self.board, attribute))
        for name, values in touched.items():
            value = replace(whole.get(name) or part(name), **values)
            if value == part(name):
                whole.pop(name, None)
            else:
                whole[name] = value
        return whole

    def _goal(self, goal: str, rest: list[str], path: str, file: File | None) -> None:
        problems = self._part("goals", goal, "problems")
        match rest:
            case ["goal.yaml"]:
                self._one("goals", goal, "goal", path, file)
            case ["report.yaml"]:
                self._one("goals", goal, "report", path, file)
            case ["tasks", name]:
                self._set(self._part("goals", goal, "tasks"), problems, path, name[: -len(".yaml")], file)
            case ["results", name]:
                self._set(self._part("goals", goal, "results"), problems, path, name[: -len(".yaml")], file)
            case ["refused", name]:
                task, _, attempt = name[: -len(".yaml")].rpartition(".")
                key = (task, int(attempt)) if _ATTEMPT.fullmatch(attempt) else (name, 0)
                self._set(self._part("goals", goal, "refusals"), problems, path, key, file)
            case ["artifacts", task, *inner]:
                self._artifact(goal, task, "/".join(inner), file)
            case _:
                pass

    def _artifact(self, goal: str, task: str, inner: str, file: File | None) -> None:
        artifacts = self._part("goals", goal, "artifacts")
        files = dict(artifacts.get(task, {}))
        if not inner:
            files = {}  # the whole folder is replaced or removed
        elif file is None or file.entry is None:
            files.pop(inner, None)
        else:
            files[inner] = file.entry
        if files:
            artifacts[task] = files
        else:
            artifacts.pop(task, None)

    def _item(self, item: str, rest: list[str], path: str, file: File | None) -> None:
        problems = self._part("items", item, "problems")
        match rest:
            case ["item.yaml"]:
                self._one("items", item, "item", path, file)
            case ["approval.yaml"]:
                self._one("items", item, "approval", path, file)
            case ["reviews", name]:
                self._set(self._part("items", item, "reviews"), problems, path, name[: -len(".yaml")], file)
            case [name] if (numbered := _numbered(name)) is not None:
                kind, attempt = numbered
                self._set(self._part("items", item, kind), problems, path, attempt, file)
            case _:
                files = self._part("items", item, "files")
                inner = "/".join(rest)
                if file is None or file.entry is None or file.entry.mode not in (FILE, EXECUTABLE):
                    files.pop(inner, None)
                else:
                    files[inner] = file.entry

    def _one(self, kind: str, name: str, attribute: str, path: str, file: File | None) -> None:
        fields = self.parts.setdefault((kind, name), {})
        fields[attribute] = file.record if file else None
        _note(self._part(kind, name, "problems"), path, file)

    @staticmethod
    def _set(
        values: dict[Any, Any], problems: dict[str, Problem], path: str, key: Any, file: File | None
    ) -> None:
        if file is None or file.record is None:
            values.pop(key, None)
        else:
            values[key] = file.record
        _note(problems, path, file)

    def _part(self, kind: str, name: str, attribute: str) -> dict[Any, Any]:
        fields = self.parts.setdefault((kind, name), {})
        if attribute not in fields:
            whole = getattr(self.board, kind).get(name)
            fields[attribute] = dict(getattr(whole, attribute)) if whole else {}
        return fields[attribute]  # type: ignore[no-any-return]

    def _top(self, attribute: str) -> dict[Any, Any]:
        if attribute not in self.top:
            self.top[attribute] = dict(getattr(self.board, attribute))
        return self.top[attribute]  # type: ignore[no-any-return]


def _note(problems: dict[str, Problem], path: str, file: File | None) -> None:
    if file is not None and file.problem is not None:
        problems[path] = file.problem
    else:
        problems.pop(path, None)


def _numbered(name: str) -> tuple[str, int] | None:
    stem, _, attempt = name.removesuffix(".yaml").rpartition(".")
    kinds = {"lease": "leases", "receipt": "receipts", "resolution": "resolutions"}
    if stem in kinds and _ATTEMPT.fullmatch(attempt) and name.endswith(".yaml"):
        return kinds[stem], int(attempt)
    return None
