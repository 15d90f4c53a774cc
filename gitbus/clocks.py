"""Workers' clocks held against the one here, as far as signs of life allow it.

A sign of life carries the time at which its worker made it. One that is ahead of the time at which it
was first seen is by a clock that is ahead. One that was not there at an earlier look, and says that it
was made before that look, is by a clock that is behind (or was that long on its way). Both say by how
much at the least; nothing is guessed. What a clone saw is kept in its local state, so that a look of a
second knows what a conductor saw.

Example: looked at 20:00 and again at 20:03, a new sign of life of 19:50 is 10 minutes behind at least.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from gitbus import ids
from gitbus.history import Oid
from gitbus.pins import write_file

NONE = timedelta(0)
CLOCK = timedelta(minutes=1)
"""How far a clock may be off before it is shown."""


class Clocks:
    """What this clone knows of workers' clocks.

    Args:
        state: the clone's local state; nothing is kept unless given.
    """

    def __init__(self, state: Path | None = None) -> None:
        self._path = state / "clocks.json" if state is not None else None
        self._looked_at: datetime | None = None
        self._looked = False  # whether this process did, and not only one before it
        self._seen: dict[str, tuple[Oid, timedelta]] = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            self._read()

    def off(self, worker: str, sign: Oid) -> timedelta:
        """Return how far ahead (behind: negative) a worker's clock is at the least, as a sign of life says."""
        known = self._seen.get(worker)
        return known[1] if known is not None and known[0] == sign else NONE

    def look(self, signs: Mapping[str, tuple[Oid, datetime]], now: datetime) -> None:
        """Take in the signs of life that there are now.

        Args:
            signs: of each worker the commit, and the time at which it says it was made.
            now: the time here.
        """
        seen = {
            worker: known
            if (known := self._seen.get(worker)) and known[0] == oid
            else (oid, self._bound(at, now))
            for worker, (oid, at) in signs.items()
        }
        keep = seen != self._seen or not self._looked
        self._seen, self._looked_at, self._looked = seen, now, True
        if keep:
            self._write(now)

    def _bound(self, made: datetime, now: datetime) -> timedelta:
        if made > now:
            return made - now
        if self._looked_at is not None and made < self._looked_at <= now:
            return made - self._looked_at
        return NONE

    def _read(self) -> None:
        if self._path is None:
            return
        kept = json.loads(self._path.read_text("utf-8"))
        self._seen = {
            worker: (str(oid), timedelta(seconds=float(off))) for worker, (oid, off) in kept["seen"].items()
        }
        self._looked_at = ids.parse_time(kept["at"])

    def _write(self, now: datetime) -> None:
        if self._path is None:
            return
        seen = {worker: [oid, off.total_seconds()] for worker, (oid, off) in self._seen.items()}
        data = json.dumps({"at": ids.time_text(now), "seen": seen}, sort_keys=True)
        with contextlib.suppress(OSError):  # it is a memory, and nothing depends on it
            write_file(self._path, data.encode())


def in_words(off: timedelta) -> str:
    """Return how far a clock is off, as people say it: ``14 minutes behind``, ``2 hours ahead of``."""
    seconds = abs(int(off.total_seconds()))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 2 * size or unit == "second":
            count = seconds // size
            return f"{count} {unit}s {'ahead of' if off > NONE else 'behind'}"
    raise AssertionError
