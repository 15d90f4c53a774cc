r"""The child that holds one channel: its connection, its secrets, and nothing else.

Rules: it reads one request a line on stdin and answers each with one line on stdout
(:mod:`gitbus.transports.wire`); anything else that is printed goes to stderr. While a request runs,
SIGALRM's default action stands at its deadline, so that a SIGCONT delivers death before anything
else runs. The end of stdin ends it; SIGTERM does not, as a service manager sends that to a sender's
whole group, and the sender finishes what it leased. No text that leaves it holds a secret.

Example: ``printf '{"verb":"close"}\n' | python -m gitbus.transports.child`` prints ``{"closed":true}``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gitbus.errors import Refused
from gitbus.transports.base import (
    MARGIN,
    SCRATCH,
    Answer,
    Opening,
    Transport,
    Unusable,
    clock,
    factory,
    secrets,
)
from gitbus.transports.wire import (
    PROTOCOL,
    Garbage,
    Json,
    answer_json,
    identity_json,
    line,
    parse,
    read_outgoing,
    scrubber,
    unusable_json,
)


def main() -> None:
    """Serve the pipe until it ends or says ``close``."""
    requests, answers = _private_pipe()
    signal.signal(signal.SIGTERM, _stay)  # a handler, since "ignore" would be handed down to programs
    child = Child(answers, dict(os.environ))
    for row in requests:
        if not row.endswith(b"\n") or not child.serve(row):
            break
    child.close()
    _tidy(Path(os.environ.get("TMPDIR", "")))


def _stay(number: int, frame: object) -> None:
    """Go on; what ends a transmission is its deadline."""


def _tidy(scratch: Path) -> None:
    """Take the temporary folder away, for a parent that was killed; one that lives does it itself."""
    if scratch.name.startswith(SCRATCH):
        with suppress(OSError):
            scratch.rmdir()


def _private_pipe() -> tuple[BinaryIO, BinaryIO]:
    """Return stdin and stdout, and leave nothing there for a library to read or to write."""
    if os.getpgrp() != os.getpid():
        os.setpgrp()  # what is killed at a deadline is this process and what it started
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


class Child:
    """One channel's transport and the way its words go back."""

    def __init__(self, answers: BinaryIO, environment: Mapping[str, str]) -> None:
        self._answers = answers
        self._environment = environment
        self._transport: Transport | None = None
        self._channel: Mapping[str, Any] = {}
        self._scrub = scrubber({})
        self._began = False
        self._deadline = 0.0

    def serve(self, row: bytes) -> bool:
        """Do what one line asks for and answer it; False after ``close``."""
        request = parse(row)
        verb = request.get("verb")
        if verb == "close":
            self.close()
            self._say({"closed": True})
            return False
        self._deadline = float(request["deadline"])
        _alarm(self._deadline)
        try:
            self._say(self._answer(str(verb), request))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return True

    def close(self) -> None:
        """Let go of the connection."""
        transport, self._transport = self._transport, None
        if transport is not None:
            _alarm(clock() + 5.0)
            transport.close()

    def _answer(self, verb: str, request: Json) -> Json:
        verbs = {"describe": self._describe, "check": self._check, "send": self._send}
        if verb not in verbs:
            raise Garbage(f"there is no verb {verb!r}")
        return verbs[verb](request)

    def _describe(self, request: Json) -> Json:
        return {"description": {"protocol": PROTOCOL, "transport": request["channel"].get("transport")}}

    def _check(self, request: Json) -> Json:
        try:
            return identity_json(self._open(request).check())
        except Unusable as error:
            return unusable_json(error)
        except Refused as error:
            return unusable_json(Unusable(error.message, rule=error.rule, remedy=error.remedy))
        except Exception as error:  # noqa: BLE001 - nothing was sent, whatever it was
            return unusable_json(Unusable(_bug(error), rule="transport-error"))

    def _send(self, request: Json) -> Json:
        self._began = False
        try:
            answer = self._transmit(request)
        except Unusable as error:
            answer = Answer("not_sent", reason=error.message, passing=error.passing)
        except Refused as error:
            answer = Answer("not_sent", reason=f"{error.rule}: {error.message}")
        except Exception as error:  # noqa: BLE001 - it must become one of the three outcomes
            answer = Answer("unknown" if self._began else "not_sent", reason=_bug(error))
        return answer_json(answer)

    def _transmit(self, request: Json) -> Answer:
        from gitbus.transports.rules import look  # a check does without it

        outgoing = read_outgoing(request.get("outgoing"))
        transport = self._open(request)
        look(self._channel, outgoing)
        return transport.send(outgoing, self._deadline)

    def _open(self, request: Json) -> Transport:
        if self._transport is None:
            name, self._channel = str(request["name"]), request["channel"]
            self._scrub = scrubber(secrets(name, self._channel, self._environment))
            make = factory(str(self._channel.get("transport")))
            self._transport = make(
                Opening(name, self._channel, self._environment, self._begin, lambda: self._deadline - MARGIN)
            )
        return self._transport

    def _begin(self) -> None:
        """Say that the next byte cannot be taken back; dies here if nobody hears it."""
        self._began = True
        self._say({"began": True})

    def _say(self, value: Json) -> None:
        self._answers.write(line(self._scrub(value)))
        self._answers.flush()


def _alarm(deadline: float) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, max(deadline - clock(), 0.001))


def _bug(error: Exception) -> str:
    """Name an error that nobody foresaw; its text may hold anything, so it stays here."""
    print(f"{type(error).__name__} in the transport", file=sys.stderr)  # noqa: T201
    return f"the transport failed with {type(error).__name__}"


if __name__ == "__main__":
    main()
