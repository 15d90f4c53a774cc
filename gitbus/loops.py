"""The actors as loops: each for itself, and together for one goal or one machine. Signals end them cleanly.

Rules: everything that touches git runs in the calling thread, one actor after the other; an actor
that cannot reach the hub waits longer and longer, and the others go on.

Example: ``Together(bus, conductor=True, workers=[worker]).until(lambda: done)``.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from gitbus.errors import Unreachable
from gitbus.roster import Roster
from gitbus.sender import Sender, Sent
from gitbus.worker import WorkerActor

if TYPE_CHECKING:
    from gitbus.bus import Bus

IDLE = 5.0
"""Seconds after which an idle actor looks even though nothing seems to have changed."""

SENDER_PAUSE = 5.0
LONGEST = 60.0


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let Python look for garbage in cycles less often: an actor's records are many, live long and hold none."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set; a second SIGINT interrupts at once."""
    event = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        if event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        event.set()

    before: Mapping[int, object] = {
        number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        with seldom_collecting():
            yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


class Together:
    """Some actors in one process, stepping in turn.

    Args:
        bus: the bus.
        conductor: whether a conductor runs.
        workers: the workers, not yet announced.
        sender: the sender, if one runs.
        roster: the declared workers of this machine, which come and go while it runs; needs a conductor.
        tell: told of what the sender did, and of what goes wrong and passes.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        conductor: bool,
        workers: Sequence[WorkerActor] = (),
        sender: Sender | None = None,
        roster: Roster | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.bus = bus
        self.conductor = bus.conductor() if conductor else None
        self._workers = list(workers)
        self.roster = roster
        self.sender = sender
        self.tell = tell
        self._last_send = 0.0
        self._said: dict[str, str | None] = {}

    @property
    def workers(self) -> list[WorkerActor]:
        """The workers that run now."""
        return [*self._workers, *(self.roster.actors() if self.roster else ())]

    def announce(self) -> None:
        """Announce the workers, so that the conductor knows them before its first tick."""
        for worker in self.workers:
            worker.announce()

    def step(self) -> bool:
        """Let each actor act once; say whether any of them did anything."""
        acted = self._conduct()
        acted = self._follow() or acted
        for worker in self.workers:
            acted = worker.step() or acted
        return self._send() or acted

    def _conduct(self) -> bool:
        """Let the conductor act, and tell what the forge could not do, each trouble once."""
        if self.conductor is None:
            return False
        acted = self.conductor.tick()
        troubles, self.conductor.forge.troubles = self.conductor.forge.troubles, []
        for trouble in troubles:
            if self._said.get(trouble) is None:
                self.tell(trouble)
                self._said[trouble] = trouble
        return acted

    def _follow(self) -> bool:
        """Let the declared workers be those of the board that the conductor just saw."""
        if self.roster is None or self.conductor is None:
            return False
        return self.roster.follow(self.conductor.reader.board(self.conductor.seen[self.bus.hub.main]))

    def _send(self) -> bool:
        if self.sender is None or time.monotonic() - self._last_send < SENDER_PAUSE:
            return False
        self._last_send = time.monotonic()
        acted = False
        for sent in self.sender.round():
            if sent.outcome not in ("later", "refused") or self._said.get(sent.item) != sent.reason:
                self.tell(describe(sent))
            self._said[sent.item] = sent.reason
            acted = acted or sent.outcome in ("sent", "failed", "stuck")
        return acted

    def busy(self) -> bool:
        """Say whether a worker runs something."""
        return any(worker.busy() for worker in self.workers)

    def run(self, stop: threading.Event, finished: Callable[[bool], bool], *, patient: bool = True) -> None:
        """Step until ``finished(acted)`` or the stop event.

        Args:
            stop: ends it.
            finished: told whether anybody acted; says whether it is over.
            patient: wait for a hub that is away for a while.

        Raises:
            Unreachable: the hub is away, and nobody wants to wait for it.
        """
        away = 1.0
        while not stop.is_set():
            try:
                acted = self.step()
                away = 1.0
            except Unreachable as error:
                if not patient:
                    raise
                self.tell(f"{error} (trying again in {away:.0f} s)")
                stop.wait(away)
                away = min(LONGEST, away * 2)
                continue
            if finished(acted):
                return
            if not acted:
                self._rest(stop)

    def _rest(self, stop: threading.Event) -> None:
        for worker in self.workers:
            if worker.running:
                worker.rest(0.05)
                return
        end = time.monotonic() + IDLE
        while not stop.is_set() and time.monotonic() < end:
            seen = self.bus.hub.look()
            before = time.monotonic()
            self.bus.hub.wait(min(0.5, end - before), seen)
            if time.monotonic() - before < 0.45:
                return

    def close(self) -> None:
        """End every actor cleanly."""
        for worker in self.workers:
            with contextlib.suppress(Unreachable):
                worker.close()
        if self.sender is not None:
            self.sender.journal.close()


def describe(sent: Sent) -> str:
    """Return what the sender did with an item, as a line."""
    return f"{sent.item}: {sent.outcome}" + (f" ({sent.reason})" if sent.reason else "")
