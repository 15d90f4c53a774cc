"""Runs a sender, or its transport's child, that dies or fails at its n-th effect.

``python -m tests.crash.driver sender CLONE NOW WHAT N [CHILD_WHAT CHILD_N]`` and
``python -m tests.crash.driver child WHAT N``; ``WHAT`` is ``kill``, ``fail`` or ``count``.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
from datetime import datetime
from pathlib import Path

from gitbus import effects

ROOT = Path(__file__).resolve().parents[2]


class Stopper:
    """An effects' hook that numbers them and stops at one."""

    def __init__(self, what: str, number: int) -> None:
        self.what, self.number, self.seen = what, number, 0

    def __call__(self, name: str, detail: str) -> None:
        self.seen += 1
        if self.seen != self.number:
            return
        if self.what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "fail":
            raise OSError(errno.ENOSPC, f"no space left for {name} {detail}")


def sender(
    clone: str, now: str, what: str, number: str, child_what: str = "count", child_number: str = "0"
) -> None:
    from gitbus.bus import Bus
    from gitbus.sender import Sender
    from gitbus.transports.spawn import open_channel

    stopper = effects.hook = Stopper(what, int(number))
    command = [sys.executable, str(Path(__file__).with_name("child.py")), child_what, child_number]
    with Bus.open(clone, now=lambda: datetime.fromisoformat(now)) as bus:
        opener = functools.partial(open_channel, command=command)
        with Sender(bus.hub, bus.root, bus.state, os.environ, bus.now, opener=opener) as acting:
            for one in acting.round():
                print(one.item, one.outcome, one.reason)
    print("effects", stopper.seen)


if __name__ == "__main__":
    sender(*sys.argv[1:])
