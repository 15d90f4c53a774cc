"""The sender's side of a channel: a child process behind the Protocol ``Transport``.

Rules: the child gets the few variables that every program needs and the channel's secrets, no
others, and nothing on its command line. Once a request was written whole, its death, its silence
until the deadline or a line that is no answer is ``unknown``; only its own last word says
``not_sent``. At the deadline its whole process group is killed.

Example: ``open_channel("news", channel, os.environ).check()`` raises ``Unusable`` naming
``ACME_SMTP_PASSWORD`` where that is not set.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from gitbus.effects import effect
from gitbus.transports.base import (
    SCRATCH,
    Answer,
    Channel,
    Identity,
    Outgoing,
    Unusable,
    clock,
    plain,
    secrets,
)
from gitbus.transports.wire import (
    Garbage,
    Json,
    line,
    only,
    parse,
    read_answer,
    read_identity,
    read_unusable,
    request,
    scrubber,
)

PATIENCE = 60.0
"""Seconds that a check may take."""

GRACE = 0.5
"""Seconds after a deadline at which a child that should be dead is killed."""

_INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "SSL_CERT_FILE", "SSL_CERT_DIR")
_MAX_LINE = 4 << 20
_ROOT = str(Path(__file__).resolve().parents[2])
# Isolated: neither the working folder nor PYTHON* can put another module in the way.
_BOOT = "import sys; sys.path.append(sys.argv.pop()); from gitbus.transports.child import main; main()"


def open_channel(
    name: str,
    channel: Channel,
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    command: Sequence[str] | None = None,
    patience: float = PATIENCE,
) -> ChannelProcess:
    """Return a channel. No process is started before it is needed.

    Args:
        name: the channel's id.
        channel: its definition.
        environment: where its secrets are looked up.
        folder: where the child runs; an ``exec`` channel's program is looked up from there.
        command: what to start in place of the child (tests).
        patience: how many seconds a check may take.
    """
    return ChannelProcess(name, channel, environment, folder, tuple(command or ()), patience)


class ChannelProcess:
    """A channel, as the sender sees it; see the Protocol ``Transport``."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        environment: Mapping[str, str],
        folder: Path | None,
        command: tuple[str, ...],
        patience: float,
    ) -> None:
        self._name = name
        self._channel = channel
        self._source = environment
        self._folder = folder
        self._command = command or (sys.executable, "-I", "-c", _BOOT, _ROOT)
        self._patience = patience
        self._pipe: Pipe | None = None

    def check(self) -> Identity:
        """Connect, verify, authenticate.

        Raises:
            Unusable: any of it failed, or the child did.
        """
        deadline = clock() + self._patience
        pipe = self._open()
        try:
            pipe.write(line(request("check", self._name, self._channel, deadline)), deadline)
            answer = pipe.read(deadline)
            if "identity" in answer:
                return read_identity(only(answer, "identity"))
            raise read_unusable(only(answer, "unusable"))
        except (Garbage, Broken) as error:
            raise Unusable(
                f"channel {self._name} gave no answer: {self._gone(error)}", rule="channel-process"
            ) from None

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        """Have the child transmit once."""
        if clock() >= deadline:
            return Answer("not_sent", reason="there was no time left", passing=True)
        asked = line(request("send", self._name, self._channel, deadline, outgoing))
        try:
            pipe = self._open()
            pipe.write(asked, deadline)
        except Unusable as error:
            return Answer("not_sent", reason=error.message, passing=error.passing)
        except Broken as error:  # it never had the whole line, so it cannot have begun
            return Answer("not_sent", reason=self._gone(error), passing=True)
        return self._hear(pipe, deadline)

    def close(self) -> None:
        """Ask the child to take leave, then end it and all that it started."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.leave()

    def _hear(self, pipe: Pipe, deadline: float) -> Answer:
        began = False
        try:
            answer = pipe.read(deadline)
            while answer == {"began": True} and not began:
                began = True
                answer = pipe.read(deadline)
            return read_answer(only(answer, "answer"))
        except (Garbage, Broken) as error:
            when = "after" if began else "before"
            return Answer("unknown", reason=f"{self._gone(error)}, {when} it said that it began")

    def _open(self) -> Pipe:
        if self._pipe is not None and self._pipe.idle():
            return self._pipe
        self.close()
        found = secrets(self._name, self._channel, self._source)
        given = {key: value for key, value in self._source.items() if key in _INHERITED or key[:3] == "LC_"}
        self._pipe = Pipe(self._command, {**given, **found}, self._folder, found)
        return self._pipe

    def _gone(self, error: Exception) -> str:
        """End the child, and return why."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.kill()
        return str(error)


class Broken(Exception):
    """The child is gone, or does not answer."""


class Pipe:
    """A child process and the lines to and from it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None,
        hidden: Mapping[str, str],
    ) -> None:
        self._scrub = scrubber(hidden)
        self._heard = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._scratch = tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True)
        effect("connect", command[0])
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**environment, "TMPDIR": self._scratch.name},
                cwd=folder,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            self._scratch.cleanup()
            raise Unusable(
                f"{command[0]} cannot be started: {error.strerror}", rule="channel-process"
            ) from None
        self._in, self._out = self._process.stdin, self._process.stdout
        assert self._in is not None  # noqa: S101 - both are pipes
        assert self._out is not None  # noqa: S101
        os.set_blocking(self._in.fileno(), False)

    def idle(self) -> bool:
        """Say whether the child lives and has said nothing that nobody asked for."""
        return not self._heard and not _ready(self._fd(write=False), select.POLLIN, 0.0)

    def write(self, data: bytes, deadline: float) -> None:
        """Write a line; its end is written by itself, so that half a line is never one.

        Raises:
            Broken: the child did not take it; it has at most a part of it.
        """
        effect("protocol-line", "to the channel's process")
        for piece in (data[:-1], data[-1:]):
            left = memoryview(piece)
            while left:
                self._wait(deadline, write=True)
                try:
                    left = left[os.write(self._fd(write=True), left) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise Broken("the channel's process is gone") from None

    def read(self, deadline: float) -> Json:
        """Read one line, until a moment after the deadline, at which the child should be dead by itself.

        Raises:
            Broken: there is none.
            Garbage: it is none of the protocol's.
        """
        while b"\n" not in self._heard:
            if len(self._heard) > _MAX_LINE:
                raise Garbage("the line does not end")
            self._wait(deadline + GRACE, write=False)
            data = os.read(self._fd(write=False), 1 << 16)
            if not data:
                raise Broken(self._ending(deadline))
            self._heard += data
        row, _, self._heard = self._heard.partition(b"\n")
        return parse(row)

    def leave(self) -> None:
        """Say ``close``, wait a little, and end the child."""
        with suppress(Broken, Garbage):
            self.write(line({"verb": "close"}), clock() + 1.0)
            self.read(clock() + 2.0)
        self.kill()

    def kill(self) -> str:
        """Kill the child's process group, and return what it last said on stderr, without secrets."""
        if self._process.returncode is None:  # a process that was waited for may have a successor
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._in, self._out):
            if pipe is not None:
                pipe.close()
        words = self._last_words()
        self._errors.close()
        self._scratch.cleanup()
        return words

    def _last_words(self) -> str:
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        return plain(self._scrub(self._errors.read()[-2000:].decode("utf-8", "replace")).strip()[-300:])

    def _ending(self, deadline: float) -> str:
        words = self.kill()
        status = self._process.returncode
        if clock() >= deadline:
            how = "was ended at the deadline"
        else:
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the channel's process {how}{': ' + words if words else ''}"

    def _fd(self, *, write: bool) -> int:
        pipe = self._in if write else self._out
        assert pipe is not None  # noqa: S101 - see the constructor
        return pipe.fileno()

    def _wait(self, until: float, *, write: bool) -> None:
        """Wait until the pipe is ready; in steps, as a sleeping machine's time counts too."""
        fd = self._fd(write=write)
        while (left := until - clock()) > 0:
            if _ready(fd, select.POLLOUT if write else select.POLLIN, min(left, 1.0)):
                return
        raise Broken("the channel's process did not answer in time")


def _ready(fd: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(seconds * 1000))
