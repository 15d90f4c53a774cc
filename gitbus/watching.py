"""Looking at workers: their signs of life and the new commits on their branches.

Example: ``Tips(hub).look(refs, main, board)`` returns a :class:`~gitbus.incoming.Tip` for every
branch that holds something which ``main`` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from gitbus import codec, ids, paths
from gitbus.board import Board
from gitbus.clocks import CLOCK, Clocks, in_words
from gitbus.errors import Invalid
from gitbus.history import EXECUTABLE, FILE, SYMLINK, Entry, Oid
from gitbus.hub.base import Hub
from gitbus.incoming import Answer, Crew, FoundFile, Tip, Touched, WorkerCommit
from gitbus.records import Presence


class Sightings:
    """When each worker's presence was last seen to change, by this conductor's own clock.

    Args:
        hub: the shared repository.
        state: the clone's local state, where it is kept what was seen of workers' clocks.
    """

    def __init__(self, hub: Hub, state: Path | None = None) -> None:
        self.hub = hub
        self.clocks = Clocks(state)
        self.seen: dict[str, tuple[Oid, Presence | None, datetime]] = {}

    def look(self, refs: Mapping[str, Oid], board: Board, now: datetime) -> dict[str, Crew]:
        """Return the crew as it is now."""
        declared = {
            name: Crew(name, frozenset(worker.capabilities), worker.capacity, healthy=True)
            for name, worker in board.workers.items()
            if worker.ci
        }
        crew = dict(declared)
        for ref, oid in refs.items():
            if ref.startswith(paths.PRESENCE) and ref.removeprefix(paths.PRESENCE) not in declared:
                found = self._sight(
                    ref.removeprefix(paths.PRESENCE), oid, board.bus.conductor.worker_ttl, now
                )
                if found:
                    crew[found.id] = found
        self.clocks.look(self._signs(refs), now)
        return crew

    def _signs(self, refs: Mapping[str, Oid]) -> dict[str, tuple[Oid, datetime]]:
        """Return the signs of life that there are: commit, and the time that it says."""
        return {
            name: (oid, presence.announced_at)
            for name, (oid, presence, _) in self.seen.items()
            if presence is not None and refs.get(paths.PRESENCE + name) == oid
        }

    def _sight(self, name: str, oid: Oid, ttl: timedelta, now: datetime) -> Crew | None:
        known = self.seen.get(name)
        if known is None or known[0] != oid:
            presence = self._read(name, oid)
            first = self._made_at(name, oid, presence) if presence and known is None else now
            known = self.seen[name] = (oid, presence, min(first, now))
        _, presence, at = known
        if presence is None:
            return None
        healthy = not presence.gone and now - at < ttl
        return Crew(name, frozenset(presence.capabilities), presence.capacity, healthy, presence.nonce)

    def _made_at(self, name: str, oid: Oid, presence: Presence) -> datetime:
        """Return when a sign of life was made: as it says, put right by what is known of its clock."""
        return presence.announced_at - self.clocks.off(name, oid)

    def _read(self, name: str, oid: Oid) -> Presence | None:
        entry = self.hub.store.entry(oid, "presence.yaml")
        if entry is None or entry.mode != FILE or self.hub.store.size(entry.oid) > codec.LIMIT:
            return None
        try:
            presence = codec.read(self.hub.store.blob(entry.oid), Presence, path="presence.yaml")
        except Invalid:
            return None
        return presence if presence.worker == name else None


SET_CLOCK = "set the clock that is wrong: timedatectl set-ntp true"


def odd(
    refs: Mapping[str, Oid], hub: Hub, sightings: Sightings, now: datetime
) -> Iterator[tuple[str, str, str]]:
    """Yield (where, what, remedy) of signs of life that cannot be read, and of clocks that are off."""
    for ref in sorted(one for one in refs if one.startswith(paths.PRESENCE)):
        name = ref.removeprefix(paths.PRESENCE)
        known = sightings.seen.get(name)
        where = ref.removeprefix(paths.HEADS)
        if known is not None and known[1] is None:
            what = "this is no Presence of this worker"
            yield (
                f"{where}:presence.yaml",
                what,
                f"restart the worker, or forget it: gitbus worker retire {name}",
            )
            continue
        off = sightings.clocks.off(name, refs[ref])
        if abs(off) > CLOCK:
            late = ", or its sign of life was that long on its way" if off < timedelta(0) else ""
            yield where, f"the clock of worker {name} is {in_words(off)} the one here{late}", SET_CLOCK
    ahead = hub.store.commit(refs[hub.main]).committer.when - now
    if ahead > CLOCK:
        where = hub.main.removeprefix(paths.HEADS)
        yield where, f"the clock of who made the newest commit is {in_words(ahead)} the one here", SET_CLOCK


class Tips:
    """The new commits on workers' branches."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.absorbed: dict[str, Oid] = {}  # branch → the tip that main is known to hold

    def look(self, refs: Mapping[str, Oid], main: Oid, board: Board) -> tuple[Tip, ...]:
        """Return the branches that hold something new, by worker."""
        tips = []
        for ref, oid in sorted(refs.items()):
            if not ref.startswith(paths.WORKERS) or self.absorbed.get(ref) == oid:
                continue
            worker = ref.removeprefix(paths.WORKERS)
            refused = board.branch_refusals.get(worker)
            if refused is not None and refused.tip == oid:
                continue
            new = self.hub.store.between([oid], [main])
            if not new:
                self.absorbed[ref] = oid
                continue
            tips.append(Tip(worker, oid, tuple(self.commit(one, worker, board) for one in new)))
        return tuple(tips)

    def commit(self, oid: Oid, worker: str, board: Board) -> WorkerCommit:
        """Return one commit of a worker, with all that is needed to judge it."""
        store = self.hub.store
        commit = store.commit(oid)
        parent = store.commit(commit.parents[0]).tree if commit.parents else None
        deltas = store.diff(parent, commit.tree)
        limit = board.bus.limits.artifact
        store.prefetch((one.new.oid for one in deltas if one.new and one.new.mode == FILE), limit)
        touched = tuple(Touched(one.path, one.new, self._size(one.new)) for one in deltas)
        answers = tuple(answer for one in touched if (answer := self._answer(commit.tree, one, board)))
        owner = board.bus.workers.get(worker)
        signed = not (owner and owner.keys) or store.signature(oid, owner.keys).verdict == "good"
        return WorkerCommit(oid, commit.parents, touched, answers, signed)

    def _size(self, entry: Entry | None) -> int:
        if entry is None or entry.mode not in (FILE, EXECUTABLE, SYMLINK):
            return 0
        return self.hub.store.size(entry.oid)

    def _answer(self, tree: Oid, touched: Touched, board: Board) -> Answer | None:
        match touched.path.split("/"):
            case ["goals", goal, "results", name] if name.endswith(".yaml"):
                task = name.removesuffix(".yaml")
            case _:
                return None
        if touched.entry is None or touched.entry.mode != FILE:
            return None
        small = touched.size <= board.bus.limits.record
        data = self.hub.store.blob(touched.entry.oid) if small else None
        found = self.hub.store.diff(None, tree, paths.artifacts(goal, task))
        prefix = len(paths.artifacts(goal, task)) + 1
        artifacts = {one.path[prefix:]: self._file(one.new, board) for one in found if one.new is not None}
        return Answer(goal, task, touched.path, touched.entry, touched.size, data, artifacts)

    def _file(self, entry: Entry, board: Board) -> FoundFile:
        size = self._size(entry)
        if entry.mode != FILE or size > board.bus.limits.artifact:
            return FoundFile(entry, size, None)
        data = self.hub.store.blob(entry.oid)
        return FoundFile(entry, size, ids.sha256(data), ids.why_not_text(data))
