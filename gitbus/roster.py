"""The workers that one machine runs because the bus declares them, kept as the bus declares them.

Rules: a worker that is new starts, one that is gone stops, one that changed starts anew; but what a
worker is doing it finishes first, and takes on nothing new meanwhile. One that cannot be started is
told of once, and tried again when its declaration changes.

Example::

    roster = Roster("my-machine", lambda name, worker: bus.worker(offer(name, worker), runner(worker)))
    roster.begin(board)
    roster.follow(board)  # again whenever the board may have changed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gitbus.board import Board
from gitbus.errors import GitbusError, Misuse, Refused
from gitbus.records import Worker
from gitbus.worker import WorkerActor

Make = Callable[[str, Worker], WorkerActor]
"""Returns the actor of a worker by its name and declaration, not yet announced; raises what keeps it from running here."""


@dataclass(frozen=True)
class _Running:
    declared: Worker
    actor: WorkerActor


class Roster:
    """The declared workers of one machine.

    Args:
        host: the machine's name, as workers' ``host`` has it.
        make: makes a worker's actor.
        tell: told of what is started and stopped, and of what cannot be.
    """

    def __init__(self, host: str, make: Make, tell: Callable[[str], None] = lambda _: None) -> None:
        self._host = host
        self._make = make
        self._tell = tell
        self._running: dict[str, _Running] = {}
        self._refused: dict[str, Worker] = {}

    def actors(self) -> list[WorkerActor]:
        """Return those that run, by name."""
        return [self._running[name].actor for name in sorted(self._running)]

    def begin(self, board: Board) -> None:
        """Make every declared worker, without announcing any.

        Raises:
            GitbusError: one of them cannot run here.
        """
        for name, worker in self._wanted(board).items():
            self._running[name] = _Running(worker, self._make(name, worker))

    def follow(self, board: Board) -> bool:
        """Start, stop and start anew what the board no longer declares as it runs; say whether any was.

        Raises:
            Unreachable: the hub cannot be used; nothing is lost, and the next call goes on.
        """
        wanted = self._wanted(board)
        ended = [self._end(name, stays=name in wanted) for name in self._differing(wanted)]
        started = [
            self._start(name, worker)
            for name, worker in wanted.items()
            if name not in self._running and self._refused.get(name) != worker
        ]
        self._refused = {name: worker for name, worker in self._refused.items() if name in wanted}
        return any(ended) or any(started)

    def _wanted(self, board: Board) -> dict[str, Worker]:
        return {
            name: worker
            for name, worker in sorted(board.workers.items())
            if worker.host == self._host and worker.run is not None
        }

    def _differing(self, wanted: Mapping[str, Worker]) -> list[str]:
        return [name for name, one in sorted(self._running.items()) if wanted.get(name) != one.declared]

    def _end(self, name: str, *, stays: bool) -> bool:
        """End a worker unless it still works; one that ``stays`` begins anew without having been gone."""
        actor = self._running[name].actor
        actor.leave()
        if actor.busy():
            return False
        del self._running[name]
        if stays:
            actor.let_go()
        else:
            actor.close()
            self._tell(f"worker {name} is stopped: it is not declared for this machine any more")
        return True

    def _start(self, name: str, worker: Worker) -> bool:
        try:
            actor = self._make(name, worker)
            self._announce(actor)
        except (Refused, Misuse) as error:
            self._refused[name] = worker
            self._tell(f"worker {name} is not started: {error}")
            return False
        self._running[name] = _Running(worker, actor)
        self._tell(f"worker {name} is started as workers/{name}.yaml says")
        return True

    @staticmethod
    def _announce(actor: WorkerActor) -> None:
        try:
            actor.announce()
        except GitbusError:
            actor.let_go()
            raise
