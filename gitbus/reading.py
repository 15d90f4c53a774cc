"""From git to a board: reads what is open, and of what was read before only what changed.

Rules: no record is read twice (records are kept by blob and kind), settled goals give their report
only, and the archive is not looked into. A record that cannot be read becomes a problem of what it
belongs to.

Example: ``Reader(hub, root).board(tip)`` on a warm reader costs what changed since its last call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gitbus import codec, paths
from gitbus.board import Board, File, GoalBoard, ItemBoard, Problem
from gitbus.codec.emitting import scalar
from gitbus.errors import Invalid
from gitbus.history import FILE, TREE, Delta, Entry, Oid
from gitbus.hub.base import Store
from gitbus.proof.bus import Effective, effective
from gitbus.proof.forge import Forge
from gitbus.records import Record

FOLDERS = ("goals", "outbox", "workers", "refused")
_KEEP = 50_000


class Reader:
    """Boards of one bus, read through one store.

    Args:
        store: where the objects are.
        root: the commit that began the bus.
        forge: what knows who merged, where there is a forge.
    """

    folders: tuple[str, ...] = FOLDERS

    def __init__(self, store: Store, root: Oid, forge: Forge | None = None) -> None:
        self.store = store
        self.root = root
        self.forge = forge
        self._records: dict[tuple[Oid, str], Record] = {}
        self._last: tuple[Board, Oid] | None = None  # with its tree
        self._effective: Effective | None = None

    def effective(self, tip: Oid) -> Effective:
        """Return the effective Bus at a commit of the line.

        Raises:
            Refused: there is none (rule ``no-bus``).
        """
        self._effective = effective(self.store, tip, self.root, known=self._effective, forge=self.forge)
        return self._effective

    def board(self, tip: Oid) -> Board:
        """Return the board at a commit of the line."""
        tree = self.store.commit(tip).tree
        bus = self.effective(tip).bus
        if self._last is None:
            board = self._cold(Board(bus), tree)
        else:
            board, before = self._last
            board = self._warm(replace(board, bus=bus), before, tree)
        board = replace(board, commit=tip)
        self._last = (board, tree)
        return board

    def adopt(self, board: Board, tip: Oid) -> None:
        """Take a board that was decided, and is now committed as ``tip``, for the last one read."""
        self._last = (replace(board, commit=tip), self.store.commit(tip).tree)

    def remember(self, entry: Entry, record: Record) -> None:
        """Keep the record that was just written as this blob."""
        if len(self._records) > _KEEP:
            self._records.clear()
        self._records[entry.oid, record.kind] = record

    def known(self, blob: Oid, kind: str) -> Record | None:
        """Return the record in a blob, if it was read or written as one of this kind before."""
        return self._records.get((blob, kind))

    def opened(self, board: Board, goals: Iterable[str]) -> Board:
        """Return the board with some settled goals loaded whole."""
        tree = self.store.commit(board.commit).tree
        for goal in goals:
            part = board.goals.get(goal)
            if part is not None and not part.open:
                found = self.store.diff(None, tree, paths.goal_folder(goal))
                board = replace(board, goals={**board.goals, goal: GoalBoard(goal)})
                board = board.apply((one.path, self._file(one.path, one.new)) for one in found)
        if self._last is not None and self._last[0].commit == board.commit:
            self._last = (board, tree)
        return board

    def archived(self, tip: Oid, item: str) -> tuple[str, ItemBoard] | None:
        """Return an item that is in the archive, and its folder there; None where it is not."""
        archive = self.store.entry(tip, "archive")
        for year, months in sorted(self._inner(archive).items(), reverse=True):
            for month, inner in sorted(self._inner(months).items(), reverse=True):
                there = self._inner(self._inner(inner).get("outbox")).get(item)
                if there is None or there.mode != TREE:
                    continue
                found = self.store.diff(None, there.oid)
                folder = paths.item_folder(item)
                files = (
                    (f"{folder}/{one.path}", self._file(f"{folder}/{one.path}", one.new)) for one in found
                )
                board = Board(self.effective(tip).bus).apply(files)
                return f"archive/{year}/{month}/{folder}", board.items[item]
        return None

    def _inner(self, entry: Entry | None) -> Mapping[str, Entry]:
        """Return what a folder holds; nothing where there is no folder."""
        return self.store.tree(entry.oid) if entry is not None and entry.mode == TREE else {}

    def _cold(self, board: Board, tree: Oid) -> Board:
        top = self.store.tree(tree)
        files: list[tuple[str, File | None]] = []
        closed: list[str] = []
        for folder in self.folders:
            entry = top.get(folder)
            if entry is None or entry.mode != TREE:
                continue
            if folder == "goals":
                closed = [
                    name for name, inner in self.store.tree(entry.oid).items() if self._is_closed(inner)
                ]
                files += self._goals(entry.oid, frozenset(closed))
            else:
                files += self._whole(tree, folder)
        return _closed(board.apply(files), closed)

    def _is_closed(self, entry: Entry) -> bool:
        return entry.mode == TREE and "report.yaml" in self.store.tree(entry.oid)

    def _goals(self, tree: Oid, closed: frozenset[str]) -> Iterator[tuple[str, File | None]]:
        for name, entry in self.store.tree(tree).items():
            if entry.mode != TREE:
                continue
            if name not in closed:
                yield from (
                    (f"goals/{name}/{path}", file) for path, file in self._below(entry.oid, f"goals/{name}/")
                )
                continue
            inner = self.store.tree(entry.oid)
            for leaf in ("goal.yaml", "report.yaml"):
                path = f"goals/{name}/{leaf}"
                yield path, self._file(path, inner.get(leaf))

    def _below(self, tree: Oid, prefix: str) -> Iterator[tuple[str, File | None]]:
        found = self.store.diff(None, tree)
        self._prefetch((prefix + delta.path, delta.new) for delta in found)
        for delta in found:
            yield delta.path, self._file(prefix + delta.path, delta.new)

    def _whole(self, tree: Oid, folder: str) -> Iterator[tuple[str, File | None]]:
        found = self.store.diff(None, tree, folder)
        self._prefetch((delta.path, delta.new) for delta in found)
        for delta in found:
            yield delta.path, self._file(delta.path, delta.new)

    def _changed(self, board: Board, before: Oid, after: Oid) -> Iterable[Delta]:  # noqa: ARG002 - for others
        """Return what differs between the tree of the board and the one that comes after."""
        return (delta for folder in self.folders for delta in self.store.diff(before, after, folder))

    def _warm(self, board: Board, before: Oid, after: Oid) -> Board:
        deltas = list(self._changed(board, before, after))
        self._prefetch((delta.path, delta.new) for delta in deltas)
        touched = {delta.path.split("/")[1] for delta in deltas if delta.path.startswith("goals/")}
        stale = [name for name in touched if name in board.goals and not board.goals[name].open]
        for name in stale:
            board = replace(board, goals={**board.goals, name: GoalBoard(name)})
            found = self.store.diff(None, after, paths.goal_folder(name))
            board = board.apply((one.path, self._file(one.path, one.new)) for one in found)
            if not found:
                board = replace(
                    board, goals={other: part for other, part in board.goals.items() if other != name}
                )
        left = [
            delta
            for delta in deltas
            if not (delta.path.startswith("goals/") and delta.path.split("/")[1] in stale)
        ]
        return board.apply((delta.path, self._file(delta.path, delta.new)) for delta in left)

    def _prefetch(self, entries: Iterable[tuple[str, Entry | None]]) -> None:
        """Load the records among some files at once."""
        wanted = [
            entry.oid for path, entry in entries if entry and entry.mode == FILE and self._reads(path, entry)
        ]
        self.store.prefetch(wanted, codec.LIMIT)

    def _reads(self, path: str, entry: Entry) -> bool:
        """Say whether a file's bytes will be looked at."""
        kind = codec.kind_of_path(path)
        return kind is not None and (entry.oid, str(kind.model_fields["kind"].default)) not in self._records

    def _file(self, path: str, entry: Entry | None) -> File | None:
        if entry is None:
            return None
        kind = codec.kind_of_path(path)
        if kind is None:
            return File(entry)
        name = str(kind.model_fields["kind"].default)
        record = self._records.get((entry.oid, name))
        if record is None:
            try:
                record = self._read(path, entry, kind)
            except Invalid as error:
                return File(entry, None, _problem(path, error))
            if len(self._records) > _KEEP:
                self._records.clear()
            self._records[entry.oid, name] = record
        return File(entry, record)

    def _read(self, path: str, entry: Entry, kind: type[Record]) -> Record:
        if entry.mode != FILE:
            raise Invalid("this is no plain file", rule="forbidden-kind", path=path)
        size = self.store.size(entry.oid)
        if size > codec.LIMIT:
            raise Invalid(
                f"{size} bytes are more than the limit of {codec.LIMIT}", rule="too-large", path=path
            )
        return codec.read(self.store.blob(entry.oid), kind, path=path)


class TaskReader(Reader):
    """Boards as one worker needs them: its own tasks, and the artifacts that they are given.

    Everything else is left out, so that a worker's look costs what is new for *it*. What gitbus
    wrote is canonical, so a task that is somebody else's is told by one line of its text.

    Args:
        store: where the objects are.
        root: the commit that began the bus.
        worker: the worker's name.
    """

    folders = ("goals", "refused")

    def __init__(self, store: Store, root: Oid, worker: str) -> None:
        super().__init__(store, root)
        self._mine = f"\nworker: {scalar(worker)}\n".encode()

    def _changed(self, board: Board, before: Oid, after: Oid) -> Iterator[Delta]:
        """Look at tasks and artifacts alone; of a goal that nothing is known of, at all of them."""
        goals = [self._folder(tree, "goals") for tree in (before, after)]
        for name in sorted({name for name, _ in goals[0].items() ^ goals[1].items()}):
            known = board.goals.get(name)
            base, folder = before if known else None, paths.goal_folder(name)
            yield from self._tasks(known or GoalBoard(name), self.store.diff(base, after, f"{folder}/tasks"))
            yield from self.store.diff(base, after, f"{folder}/artifacts")
        yield from self.store.diff(before, after, "refused")

    def _tasks(self, known: GoalBoard, deltas: Sequence[Delta]) -> Iterator[Delta]:
        """Drop the tasks that were nothing to this worker before and are nothing to it now."""
        self.store.prefetch((one.new.oid for one in deltas if one.new), codec.LIMIT)
        for delta in deltas:
            task = delta.path.rpartition("/")[2].removesuffix(".yaml")
            had = task in known.tasks or delta.path in known.problems
            if had or (delta.new is not None and not self._is_others(delta.new)):
                yield delta

    def _folder(self, tree: Oid, name: str) -> Mapping[str, Entry]:
        entry = self.store.tree(tree).get(name)
        return self.store.tree(entry.oid) if entry is not None and entry.mode == TREE else {}

    def _file(self, path: str, entry: Entry | None) -> File | None:
        match path.split("/"):
            case ["goals", _, "tasks", _] if entry is not None and self._is_others(entry):
                return File(entry)
            case ["goals", _, "tasks" | "artifacts", *_] | ["refused", _]:
                return super()._file(path, entry)
            case _:
                return None

    def _reads(self, path: str, entry: Entry) -> bool:
        return path.startswith(("goals/", "refused/")) and "/tasks/" in path and super()._reads(path, entry)

    def _is_others(self, entry: Entry) -> bool:
        """Say whether a task's file says by itself that this worker has nothing to do with it now."""
        if entry.mode != FILE or self.store.size(entry.oid) > codec.LIMIT:
            return False
        data = self.store.blob(entry.oid)
        return data.startswith(CANONICAL_TASK) and not (self._mine in data and ASSIGNED in data)


ASSIGNED = b"\nstate: assigned\n"
CANONICAL_TASK = b"apiVersion: gitbus/v1\nkind: Task\n"


def _closed(board: Board, names: Iterable[str]) -> Board:
    goals: Mapping[str, GoalBoard] = {
        **board.goals,
        **{name: replace(board.goals[name], open=False) for name in names if name in board.goals},
    }
    return replace(board, goals=goals)


def _problem(path: str, error: Invalid) -> Problem:
    return Problem(path, error.line, error.column, error.rule, error.message, error.remedy)
