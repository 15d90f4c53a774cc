"""The worker: takes what is assigned to it, runs it, and commits the answers on a branch of its own.

Rules: only the thread that calls :meth:`WorkerActor.step` touches git; tasks run in threads beside
it. What is about to be pushed is judged by the conductor's own code first, so that a mistake costs
a failed answer and not a refused branch.

Example::

    worker = WorkerActor(hub, root, state, Offer("laptop", ("git-log",)), run)
    worker.announce()
    while worker.step():
        pass
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gitbus import __version__, codec, paths
from gitbus.answering import Answers, author, failed
from gitbus.board import Board
from gitbus.change import plain
from gitbus.clock import utc_now
from gitbus.errors import Invalid, Refused
from gitbus.history import FILE, Oid
from gitbus.hub.base import Draft, Hub, RefMove
from gitbus.reading import TaskReader
from gitbus.records import Presence, Result, Task, Worker
from gitbus.runner.base import Answer, Job, Runner
from gitbus.version import refuse_old


@dataclass(frozen=True)
class Offer:
    """What a worker offers: its name, what it can do, and how many tasks at once."""

    name: str
    capabilities: tuple[str, ...]
    capacity: int = 1
    once: bool = False


Key = tuple[str, str, int]
"""Goal, task, attempt."""


class WorkerActor:
    """One worker in one clone.

    Args:
        hub: the shared repository.
        root: the commit that began the bus.
        state: the clone's local state.
        offer: what it offers.
        run: runs one task; called in threads.
        now: what time it is.

    Raises:
        Refused: a process of this name runs already (rule ``worker-running``).
    """

    def __init__(
        self,
        hub: Hub,
        root: Oid,
        state: Path,
        offer: Offer,
        run: Runner,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.hub = hub
        self.offer = offer
        self.run = run
        self.now = now
        self.reader = TaskReader(hub.store, root, offer.name)
        self.answers = Answers(hub, root, offer.name, now)
        self.branch = paths.WORKERS + offer.name
        self.cancelled = threading.Event()
        self.pool = ThreadPoolExecutor(offer.capacity, thread_name_prefix=f"gitbus-{offer.name}")
        self.running: dict[Key, Future[Answer]] = {}
        self.tasks: dict[Key, Task] = {}
        self.waiting: dict[Key, tuple[Task, Answer]] = {}  # answers that are not on the hub yet
        self.answered: set[Key] = set()
        self.announced: tuple[datetime, Oid] | None = None
        self.leaving = False
        self._news = False  # whether the last sign of life says something else than is so now
        self._lock: int | None
        self._lock, self.nonce = _take_name(state, offer.name)

    # --- presence

    def announce(self, *, gone: bool = False) -> None:
        """Tell the hub that this worker is here, or that it goes.

        Raises:
            Refused: another living process has this name (rule ``worker-running``).
        """
        refs = self.hub.look()
        if self._is_ci(refs):
            return
        if self.announced is None and not gone:
            try:
                self._is_alone(refs)
            except Refused:
                self.let_go()
                raise
        move = self._presence(refs, gone=gone)
        self.hub.move([move])

    def _presence(self, refs: Mapping[str, Oid], *, gone: bool = False) -> RefMove:
        now = self.now()
        presence = Presence(
            worker=self.offer.name,
            capabilities=self.offer.capabilities,
            capacity=self.offer.capacity,
            host=socket.gethostname(),
            version=__version__,
            nonce=self.nonce,
            announced_at=now,
            once=self.offer.once,
            gone=gone,
        )
        tree = self.hub.store.write_tree(None, {"presence.yaml": codec.write(presence)})
        what = "gone" if gone else "here"
        commit = self.hub.store.write_commit(
            Draft(tree, (), f"announce {self.offer.name}: {what}\n", author(self.offer.name), now)
        )
        ref = paths.PRESENCE + self.offer.name
        self.announced = (now, commit)
        self._news = False
        return RefMove(ref, refs.get(ref), commit, replace=True)

    def _is_ci(self, refs: Mapping[str, Oid]) -> bool:
        """Say whether this worker is declared as run by CI, and so counts as healthy without a word."""
        entry = self.hub.store.entry(refs[self.hub.main], paths.worker(self.offer.name))
        if entry is None or entry.mode != FILE or self.hub.store.size(entry.oid) > codec.LIMIT:
            return False
        with contextlib.suppress(Invalid):
            return codec.read(self.hub.store.blob(entry.oid), Worker, path="worker").ci
        return False

    def _is_alone(self, refs: Mapping[str, Oid]) -> None:
        oid = refs.get(paths.PRESENCE + self.offer.name)
        entry = self.hub.store.entry(oid, "presence.yaml") if oid else None
        if entry is None:
            return
        try:
            other = codec.read(self.hub.store.blob(entry.oid), Presence, path="presence.yaml")
        except Invalid:
            return
        ttl = self._board(refs).bus.conductor.worker_ttl
        alive = not other.gone and not other.once and self.now() - other.announced_at < ttl
        if alive and other.nonce != self.nonce:
            raise Refused(
                f"a worker called {self.offer.name} is alive on {plain(other.host or 'another machine')}",
                rule="worker-running",
                remedy="stop it there, or choose another name",
            )

    # --- a step

    def step(self) -> bool:
        """Look once, start what is new, push what is done; say whether anything happened."""
        refs = self.hub.look()
        board = self._board(refs)
        refuse_old(board.bus)
        started = self._start(board)
        self._collect()
        moves = self._answers(refs, board)
        if self._announcement_due(board) and not self._is_ci(refs):
            moves.append(self._presence(refs))
        if not moves:
            return started
        done = self.hub.move(moves)
        if done.moved(self.branch):
            self.answered |= set(self.waiting)
            self.waiting = {}
            self.answers.forget()
        return True

    def answer(self, job: Job, answer: Answer) -> None:
        """Push one answer that was made elsewhere.

        Raises:
            Refused: the conductor would not take it.
        """
        task = job.task
        for _ in range(10):
            refs = self.hub.look()
            board = self._board(refs)
            base, replaces = self.answers.base(refs.get(self.branch), refs[self.hub.main], board)
            refusal = self.answers.refused(board, base, [(task, answer)])
            if refusal is not None:
                raise Refused(refusal.message, rule=refusal.rule, place=refusal.place)
            commit = self.answers.commit(base, [(task, answer)])
            if self.hub.move([RefMove(self.branch, refs.get(self.branch), commit, replace=replaces)]).moved(
                self.branch
            ):
                return
        raise Refused(
            "the worker's branch moves all the time", rule="worker-running", remedy="stop the worker first"
        )

    def leave(self) -> None:
        """Begin nothing any more, and say so by a capacity that what runs fills; what runs goes on."""
        if not self.leaving:
            self.leaving = True
            self.offer = replace(self.offer, capacity=max(1, len(self.running)))
            self._news = True

    def let_go(self) -> None:
        """Let go of the name, without a word to the hub."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def busy(self) -> bool:
        """Say whether tasks run or answers wait."""
        return bool(self.running or self.waiting)

    def rest(self, seconds: float) -> None:
        """Wait until a task ends, the hub may have changed, or the time is over."""
        if self.running:
            wait_for(self.running.values(), timeout=min(seconds, 0.05), return_when="FIRST_COMPLETED")
        else:
            self.hub.wait(seconds, self._seen)

    def close(self) -> None:
        """Abandon what runs, say that this worker is gone (unless it steps by hand), and let go of the name."""
        self.cancelled.set()
        self.pool.shutdown(wait=True, cancel_futures=True)
        try:
            if self.announced is not None and not self.offer.once:
                self.announce(gone=True)
        finally:
            self.let_go()

    def _board(self, refs: Mapping[str, Oid]) -> Board:
        self._seen = refs
        return self.reader.board(refs[self.hub.main])

    def _announcement_due(self, board: Board) -> bool:
        if self.announced is None or self._news:
            return True
        return self.now() - self.announced[0] >= board.bus.conductor.worker_ttl / 3

    def _start(self, board: Board) -> bool:
        started = False
        for task in () if self.leaving else self.assigned(board):
            key = (task.goal, task.id, task.attempt)
            if key in self.running or key in self.waiting or key in self.answered:
                continue
            if self._has_answered(task):
                self.answered.add(key)
                continue
            self.tasks[key] = task
            self.running[key] = self.pool.submit(self._run, task, self._job(board, task))
            started = True
        return started

    def assigned(self, board: Board) -> list[Task]:
        """Return the tasks that are this worker's now."""
        return [
            task
            for goal in board.goals.values()
            for task in goal.tasks.values()
            if task.state == "assigned" and task.worker == self.offer.name
        ]

    def _has_answered(self, task: Task) -> bool:
        """Say whether this worker's own branch holds an answer to the task's present attempt."""
        tip = self._seen.get(self.branch)
        entry = self.hub.store.entry(tip, paths.result(task.goal, task.id)) if tip else None
        if entry is None:
            return False
        with contextlib.suppress(Invalid):
            result = codec.read(self.hub.store.blob(entry.oid), Result, path="result")
            return (result.attempt, result.worker) == (task.attempt, self.offer.name)
        return False

    def _job(self, board: Board, task: Task) -> Job:
        artifacts = board.goals[task.goal].artifacts
        inputs = {
            name: {path: self.hub.store.blob(entry.oid) for path, entry in artifacts.get(name, {}).items()}
            for name in task.needs
        }
        left = (task.deadline - self.now()).total_seconds() if task.deadline else None
        return Job(task, self.offer.name, inputs, board.bus.limits, left)

    def _run(self, task: Task, job: Job) -> Answer:
        try:
            return self.run(job, self.cancelled)
        except Exception as error:  # noqa: BLE001 - a worker's own code may raise anything
            return failed(task, self.offer.name, f"{type(error).__name__}: {error}")

    def _collect(self) -> None:
        for key, future in list(self.running.items()):
            if future.done():
                answer = self.running.pop(key).result()
                self.waiting[key] = (self.tasks.pop(key), answer)

    # --- answers

    def _answers(self, refs: Mapping[str, Oid], board: Board) -> list[RefMove]:
        if not self.waiting:
            return []
        tip = refs.get(self.branch)
        base, replaces = self.answers.base(tip, refs[self.hub.main], board)
        answers = [
            (task, self.answers.mended(refs, board, base, task, answer))
            for task, answer in self.waiting.values()
        ]
        commit = self.answers.commit(base, answers)
        return [RefMove(self.branch, tip, commit, replace=replaces)]


def _take_name(state: Path, name: str) -> tuple[int, str]:
    """Lock a worker's name in this clone and return the lock and the name's nonce here."""
    folder = state / "workers"
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise Refused(
            f"a worker called {name} runs in this clone already",
            rule="worker-running",
            remedy="choose another name",
        ) from None
    nonce = os.read(handle, 32).decode("ascii", "replace")
    if len(nonce) != 32:
        nonce = secrets.token_hex(16)
        os.pwrite(handle, nonce.encode(), 0)
    return handle, nonce
