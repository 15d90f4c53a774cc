"""Any program as a transport, pinned by the SHA-256 of its file.

Rules: the program is started once for each verb, reads one request on stdin and prints one answer
(:mod:`gitbus.transports.wire`); it must leave with exit status 0. What is run is a private copy of
the very bytes that were hashed. Once a ``send`` was started, everything but a valid answer is
``unknown``. At the deadline the program and all that it started are killed. What it says of itself
is kept on one line, and it cannot pass for another channel.

The hash holds the program's file alone. So the command's further words may not name files, and
what a script imports or an interpreter is, is not pinned.

Example of a program, in a language of your choice: read the line; for ``describe`` print
``{"description": {"protocol": 1}}``; for ``check`` ``{"identity": {"channel": NAME}}``; for ``send``
``{"answer": {"outcome": "sent"}}``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gitbus.effects import effect
from gitbus.transports.base import MARGIN, Answer, Identity, Opening, Outgoing, Unusable, clock, plain
from gitbus.transports.wire import (
    PROTOCOL,
    Garbage,
    Json,
    line,
    only,
    parse,
    read_answer,
    read_identity,
    read_unusable,
    request,
)

_MAX_OUTPUT = 256 << 10  # what it says becomes part of a record
_SHA256 = re.compile("[0-9a-f]{64}")


def open_transport(opening: Opening) -> Exec:
    """Return the transport of a channel with a ``command`` and its ``sha256``."""
    return Exec(opening)


class Exec:
    """A program; only to be used in the child, whose whole process group dies at the deadline."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def check(self) -> Identity:
        """Ask the program what it is and whether it can be used.

        Raises:
            Unusable: it says no, it is another program, or it speaks no such protocol.
        """
        try:
            self._describe()
            answer = self._ask("check", self._opening.until(), lambda: None)
            if "unusable" not in answer:
                return self._own(read_identity(only(answer, "identity"), channel=self._opening.name))
            said = read_unusable(only(answer, "unusable"))
            problem = _unusable(
                plain(said.message), plain(said.rule), _tame(said.remedy), passing=said.passing
            )
        except Garbage as error:
            problem = _unusable(f"the program gives no valid answer: {error}", "exec-answer")
        raise problem

    def _describe(self) -> None:
        described = only(self._ask("describe", self._opening.until(), lambda: None), "description")
        if not isinstance(described, dict) or described.get("protocol") != PROTOCOL:
            raise Garbage(f"it does not speak protocol {PROTOCOL}")

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        """Have the program transmit once."""
        if clock() >= deadline - MARGIN:
            return Answer("not_sent", reason="there was no time left", passing=True)
        try:
            answer = self._ask("send", deadline, self._opening.began, outgoing)
            return self._plain(read_answer(only(answer, "answer")))
        except Unusable as error:
            return Answer("not_sent", reason=error.message, passing=error.passing)
        except Garbage as error:
            return Answer("unknown", reason=f"the program gave no valid answer: {error}")

    def close(self) -> None:
        """No program runs between two verbs."""

    def _plain(self, said: Answer) -> Answer:
        return replace(
            said,
            reason=_tame(said.reason),
            recipients={plain(one): plain(text) for one, text in said.recipients.items()},
            message_id=_tame(said.message_id),
            provider_id=_tame(said.provider_id),
            identity=self._own(said.identity) if said.identity else None,
        )

    def _own(self, said: Identity) -> Identity:
        """Return what the program says of itself, as this channel's."""
        if said.certificate_sha256 and not _SHA256.fullmatch(said.certificate_sha256):
            raise Garbage("`certificate_sha256` is no SHA-256")
        return Identity(
            channel=self._opening.name,
            transport="exec",
            host=_tame(said.host),
            tls_version=_tame(said.tls_version),
            certificate_subject=_tame(said.certificate_subject),
            certificate_sha256=said.certificate_sha256 or None,
            authenticated_as=_tame(said.authenticated_as),
        )

    def _ask(
        self, verb: str, until: float, began: Callable[[], None], outgoing: Outgoing | None = None
    ) -> Json:
        """Run the program for one verb.

        Raises:
            Unusable: it surely did not run.
            Garbage: it ran and gave no answer.
        """
        words = self._command()
        asked = line(request(verb, self._opening.name, self._opening.channel, until, outgoing))
        with tempfile.TemporaryDirectory(prefix="gitbus-exec-") as folder:
            program = _pinned(Path(words[0]), str(self._opening.channel.get("sha256", "")), Path(folder))
            began()
            effect("deliver" if verb == "send" else "protocol-line", f"{verb} {words[0]}")
            status, out, err = _run([str(program), *words[1:]], dict(self._opening.environment), asked, until)
        if status or len(out) > _MAX_OUTPUT:
            raise Garbage(f"exit status {status}; {plain(err.decode('utf-8', 'replace')[-300:])}")
        return parse(out)

    def _command(self) -> list[str]:
        words = [str(word) for word in self._opening.channel.get("command") or ()]
        found = shutil.which(words[0], path=self._opening.environment.get("PATH")) if words else None
        if found is None:
            raise _unusable(
                f"there is no program {words[0] if words else ''!r} that can be run", "exec-program"
            )
        loose = next((word for word in words[1:] if _is_file(word) or _is_file(word.partition("=")[2])), None)
        if loose is not None:
            raise _unusable(
                f"{loose!r} is a file that `sha256` does not hold",
                "exec-unpinned",
                "make the script itself the program, with its interpreter in the first line",
            )
        return [found, *words[1:]]


def _tame(text: str | None) -> str | None:
    return None if text is None else plain(text)


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # too long for a path
        return False


def _pinned(program: Path, sha256: str, folder: Path) -> Path:
    """Copy a program to where nobody else writes, and see that the copy is the one that was pinned."""
    try:
        data = program.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256.lower():
            raise _unusable(
                f"{program} is not the program that was pinned",
                "exec-changed",
                "put it back, or decide on its new `sha256` in bus.yaml",
            )
        copy = folder / program.name
        effect("file-write", str(copy))
        copy.write_bytes(data)
        copy.chmod(0o500)
    except OSError as error:
        raise _unusable(f"{program} cannot be copied: {error.strerror}", "exec-program") from None
    return copy


def _run(
    words: list[str], environment: dict[str, str], data: bytes, until: float
) -> tuple[int, bytes, bytes]:
    signal.signal(signal.SIGALRM, _kill_all)

    def bounded() -> None:  # in the new process: the alarm outlives exec, and its action is death
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(until - clock(), 0.001))

    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            preexec_fn=bounded,
        )
    except OSError as error:
        raise _unusable(f"{words[0]} cannot be started: {error.strerror}", "exec-program") from None
    with process:
        out, err = process.communicate(data)
    return process.returncode, out, err


def _kill_all(number: int, frame: object) -> None:  # noqa: ARG001 - the signal's
    """End this process and everything it started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _unusable(message: str, rule: str, remedy: str | None = None, *, passing: bool = True) -> Unusable:
    return Unusable(message, rule=rule, remedy=remedy, passing=passing)
