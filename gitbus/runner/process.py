r"""Running a command under a keeper (:mod:`gitbus.runner.keeper`): what it said, how it ended.

Rules: it is told to stop (SIGTERM) a little before its time is over, and nothing of it lives past
that time; the same when the worker is asked to stop, and when the worker dies. Of what it prints a
bounded part is kept and the rest is read and dropped, so that it never blocks on a full pipe.

Example: ``run(("git", "--version"), …).stdout == b"git version 2.39.5\n"``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gitbus.effects import effect

GRACE = 2.0
"""Seconds between the request to stop and SIGKILL; at a deadline at most a tenth of the whole time."""

STDERR = 16 << 10
"""Bytes of the end of standard error that are kept."""

_KEEPER = Path(__file__).with_name("keeper.py")
_LOOK = 0.1  # seconds between two looks at whether the worker was asked to stop
_CHUNK = 1 << 16
_LAST = 64  # chunks that are read of a pipe whose keeper is gone; somebody else may still write to it

Stopped = Literal["deadline", "cancelled"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended and what it said.

    ``code`` is its exit code, or minus the signal that killed it. ``errno`` is set when it could
    not be started, ``stopped`` when it was made to end. ``cut`` says that ``stdout`` went on past what
    was kept; ``stderr`` holds the end. ``left`` says that something of it could not be ended.
    """

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    stopped: Stopped | None = None
    errno: int | None = None
    left: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """What to start: words, environment, folder, and as whom (only where sudo has to end it)."""

    argv: Sequence[str]
    stdin: bytes
    env: Mapping[str, str]
    cwd: Path
    sudo_user: str = ""


def run(start: Start, *, keep: int, seconds: float | None, cancelled: threading.Event) -> Ended:
    """Run a command to its end.

    Args:
        start: what to start.
        keep: how many bytes of standard output are kept.
        seconds: how long it may take; no limit where None.
        cancelled: set when the worker is asked to stop.

    Raises:
        OSError: the keeper itself could not be started, for want of memory or an argument too long.
        ValueError: an argument holds a NUL byte.
    """
    if seconds is not None and seconds <= 0:
        return Ended(-signal.SIGKILL, stopped="deadline")
    effect("process", start.argv[0])
    grace = GRACE if seconds is None else min(GRACE, seconds / 10)
    control, hold = os.pipe()
    said, status = os.pipe()
    try:
        keeper = _start(start, control, status, grace)
    except BaseException:
        _close(hold, said)
        raise
    finally:
        _close(control, status)
    until = None if seconds is None else time.monotonic() + seconds - grace
    return _Following(keeper, said, hold, keep, grace).follow(until, cancelled)


def _close(*descriptors: int) -> None:
    for one in descriptors:
        with contextlib.suppress(OSError):
            os.close(one)


def _start(start: Start, control: int, status: int, grace: float) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-I", "-S", str(_KEEPER), str(control), str(status), f"{grace:.3f}"]
    with tempfile.TemporaryFile() as given:
        given.write(start.stdin)
        given.seek(0)
        return subprocess.Popen(
            [*words, start.sudo_user, *start.argv],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(start.env),
            cwd=start.cwd,
            start_new_session=True,
            pass_fds=(control, status),
        )


class _Following:
    """Reads what keeper and command say until the keeper is gone."""

    def __init__(
        self, keeper: subprocess.Popen[bytes], said: int, hold: int, keep: int, grace: float
    ) -> None:
        self.keeper = keeper
        self.said = said
        self.hold: int | None = hold
        self.keep = keep
        self.grace = grace
        self.kept = {"stdout": bytearray(), "stderr": bytearray(), "status": bytearray()}
        self.selector = selectors.DefaultSelector()
        for name, stream in (("stdout", keeper.stdout), ("stderr", keeper.stderr), ("status", said)):
            if stream is not None:
                descriptor = stream if isinstance(stream, int) else stream.fileno()
                os.set_blocking(descriptor, False)
                self.selector.register(descriptor, selectors.EVENT_READ, name)

    def follow(self, until: float | None, cancelled: threading.Event) -> Ended:
        """Return how it ended."""
        stopped: Stopped | None = None
        try:
            while self._open("status"):
                if stopped is None:
                    stopped = _why_stop(until, cancelled)
                    until = self._stop() if stopped else until
                elif until is not None and time.monotonic() >= until:
                    break
                self._read(_LOOK if until is None else max(0.0, min(_LOOK, until - time.monotonic())))
            return self._ended(stopped)
        finally:
            self._finish()

    def _open(self, name: str) -> bool:
        return any(key.data == name for key in self.selector.get_map().values())

    def _stop(self) -> float:
        """Let go of the control pipe; return when the keeper has had all the time it may want."""
        if self.hold is not None:
            _close(self.hold)
            self.hold = None
        return time.monotonic() + self.grace + 15

    def _read(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            self._take(key.fd, str(key.data))

    def _take(self, descriptor: int, name: str) -> bool:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(descriptor)
            return False
        kept = self.kept[name]
        if name == "stdout":
            kept += data[: max(0, self.keep + 1 - len(kept))]
        else:
            kept += data
            del kept[:-STDERR]
        return True

    def _ended(self, stopped: Stopped | None) -> Ended:
        for key in list(self.selector.get_map().values()):
            for _ in range(_LAST):
                if not self._take(key.fd, str(key.data)):
                    break
        told = {word: number for word, _, number in (line.partition(" ") for line in self._lines())}
        code = int(told["exit"]) if "exit" in told else -int(told.get("signal", signal.SIGKILL))
        return Ended(
            code,
            bytes(self.kept["stdout"][: self.keep]),
            bytes(self.kept["stderr"]),
            stopped,
            int(told["errno"]) if "errno" in told else None,
            "gone" not in told and self._end_group(told.get("pid")),
            len(self.kept["stdout"]) > self.keep,
        )

    def _lines(self) -> list[str]:
        return self.kept["status"].decode("ascii").splitlines()

    def _end_group(self, leader: str | None) -> bool:
        """End the command's group where the keeper could not (it was killed); say that more may be left."""
        with contextlib.suppress(OSError):
            if leader:
                os.killpg(int(leader), signal.SIGKILL)
        return True

    def _finish(self) -> None:
        self.selector.close()
        self._stop()
        _close(self.said)
        try:
            self.keeper.wait(self.grace + 15)
        except subprocess.TimeoutExpired:
            self.keeper.kill()
            self.keeper.wait()
        for stream in (self.keeper.stdout, self.keeper.stderr):
            if stream is not None:
                stream.close()


def _why_stop(until: float | None, cancelled: threading.Event) -> Stopped | None:
    if cancelled.is_set():
        return "cancelled"
    return "deadline" if until is not None and time.monotonic() >= until else None
