"""How a command is asked and how its answer is read: the plain ways.

Rules: an adapter is a name, what to call and how to read what came of it. A Result that the command
wrote to ``$GITBUS_RESULT`` goes before what it printed; a failing exit code goes before both,
unless that Result says itself that it failed or should be tried again.

Example: ``ADAPTERS["json"].read(ended, room, job)`` gives the fields of a Result.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gitbus.errors import Invalid
from gitbus.runner.answers import DETAIL, from_object, from_text, printed, read_json, trouble
from gitbus.runner.base import Job
from gitbus.runner.process import Ended
from gitbus.runner.room import Room
from gitbus.runner.text import last_line, tail

EX_TEMPFAIL = 75
"""The exit code that asks to be tried again (sysexits.h)."""

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """What is run: its words and what it is given on standard input."""

    argv: Sequence[str]
    stdin: bytes


@dataclass(frozen=True, slots=True)
class Adapter:
    """A way to ask a command and to read its answer.

    Args:
        name: what ``--as`` calls it.
        call: from the user's command to what is run.
        read: from what it printed and wrote to fields of a Result; raises Invalid.
        command: what is run where the user names no command.
        state: paths below the home folder that the program keeps its login and sessions in.
        keep: how many bytes it may print; what a record may have where None.
    """

    name: str
    call: Callable[[Sequence[str], Job, Room], Call]
    read: Callable[[Ended, Room, Job], Fields]
    command: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    keep: int | None = None


def text_of(ended: Ended) -> str:
    """Return what was printed.

    Raises:
        Invalid: it is too much, or not UTF-8.
    """
    if ended.cut:
        raise Invalid(f"more than {len(ended.stdout)} bytes were printed", rule="too-large")
    try:
        return ended.stdout.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Invalid("what was printed is not UTF-8", rule="not-utf8") from None


def bad_exit(ended: Ended) -> Fields | None:
    """Return the fields that a failing exit code stands for; None where it did not fail."""
    if ended.code == 0:
        return None
    said = tail(ended.stderr, DETAIL)
    if ended.code == EX_TEMPFAIL:
        return trouble(last_line(said) or "it asks to be tried again", said, retry=True)
    how = f"exit code {ended.code}" if ended.code > 0 else f"killed by {_signal(-ended.code)}"
    return trouble(f"{how}: {last_line(said)}" if last_line(said) else how, said)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _plain(parse: Callable[[str], Fields]) -> Callable[[Ended, Room, Job], Fields]:
    def read(ended: Ended, room: Room, job: Job) -> Fields:
        trouble_found = bad_exit(ended)
        written = room.result(job.limits) if trouble_found is None else _own_word(room, job)
        if written is not None:
            return written
        return trouble_found or parse(text_of(ended))

    return read


def _own_word(room: Room, job: Job) -> Fields | None:
    """Return the Result of a command that failed, if it says so itself."""
    try:
        written = room.result(job.limits)
    except Invalid:
        return None
    return written if written and str(written.get("status")).lower() in ("failed", "retry") else None


def _object(text: str) -> Fields:
    value = read_json(text)
    if not isinstance(value, dict):
        raise Invalid("what was printed is no JSON object", rule="not-a-mapping")
    return from_object(value)


def _task_on_stdin(argv: Sequence[str], _job: Job, room: Room) -> Call:
    return Call(argv, room.task_json)


PLAIN = Adapter("plain", _task_on_stdin, _plain(printed))
"""A JSON object or text, whichever it is; the way without ``--as``."""

JSON = Adapter("json", _task_on_stdin, _plain(_object))
"""A JSON object and nothing else."""

TEXT = Adapter("text", _task_on_stdin, _plain(from_text))
"""Text, even where it looks like JSON."""
