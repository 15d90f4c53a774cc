"""Running a task as a command: a folder, a session and an environment of its own.

Rules: the task is JSON on stdin (an agent gets a prompt there) and in the file that ``$GITBUS_TASK``
names; needed artifacts stand below ``$GITBUS_INPUTS``; the program may write a Result to
``$GITBUS_RESULT`` and files to ``$GITBUS_ARTIFACTS``, or simply print. Nothing of it lives past the
deadline. It inherits a few variables and those that were named, and no others.

Example: ``CommandRunner(("git", "log", "-3"))(job, event)``.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gitbus.clock import utc_now
from gitbus.errors import Invalid
from gitbus.runner.adapters import PLAIN, Adapter, bad_exit
from gitbus.runner.answers import DETAIL, Span, answer, failed, trouble
from gitbus.runner.base import Answer, Job
from gitbus.runner.isolate import DIRECT, Isolation
from gitbus.runner.process import Ended, run
from gitbus.runner.room import Room, room
from gitbus.runner.text import tail

PASSED = frozenset({"PATH", "HOME", "LANG", "TZ", "TERM", "USER", "TMPDIR"})
"""Variables that every command inherits, beside ``LC_*``."""

_STOPPED = {
    "deadline": "it did not end before its deadline and was killed",
    "cancelled": "the worker was asked to stop, and ended it",
}


@dataclass(frozen=True)
class CommandRunner:
    """A runner around a command.

    Args:
        command: program and arguments; the adapter's own where empty.
        env: names of further environment variables that it inherits.
        cwd: where it runs; its own temporary folder unless given.
        adapter: how it is asked and read.
        isolation: as whom, or inside what.
        now: what time it is.
    """

    command: Sequence[str] = ()
    env: tuple[str, ...] = ()
    cwd: str | Path | None = None
    adapter: Adapter = PLAIN
    isolation: Isolation = DIRECT
    now: Callable[[], datetime] = utc_now

    def __call__(self, job: Job, cancelled: threading.Event) -> Answer:
        """Run one task; never raises for what the program does."""
        started = self.now()
        try:
            with room(job, self.isolation.guest) as place:
                ended = self._run(job, place, cancelled)
                return self._answer(job, place, ended, Span(started, self.now()))
        except (OSError, ValueError) as error:
            return failed(job, Span(started, self.now()), f"it cannot be run here: {error}")

    def _run(self, job: Job, place: Room, cancelled: threading.Event) -> Ended:
        words = _rooted(self.command or self.adapter.command)
        call = self.adapter.call(words, job, place)
        env = {**inherited(self.env), **place.environment}
        cwd = Path(self.cwd).resolve() if self.cwd else place.work
        start = self.isolation.start(call.argv, call.stdin, env, place.folder, cwd, self.adapter.state)
        keep = self.adapter.keep or job.limits.record
        return run(start, keep=keep, seconds=job.seconds, cancelled=cancelled)

    def _answer(self, job: Job, place: Room, ended: Ended, span: Span) -> Answer:
        said = tail(ended.stderr, DETAIL)
        if ended.errno is not None:
            return failed(job, span, f"{self._name()} cannot be started: {os.strerror(ended.errno)}")
        if ended.stopped:
            stopped = trouble(_STOPPED[ended.stopped], said, retry=ended.stopped == "cancelled")
            return answer(job, span, stopped, {})
        raw = said or tail(ended.stdout, DETAIL)
        try:
            fields = self.adapter.read(ended, place, job)
            files = {} if bad_exit(ended) else place.artifacts(job.limits)
        except Invalid as error:
            return failed(job, span, f"{error.rule}: {error.message}", raw)
        return answer(job, span, fields, files, tail(ended.stdout, DETAIL) or raw)

    def _name(self) -> str:
        return next(iter(self.command or self.adapter.command), "the command")


def inherited(names: Sequence[str]) -> dict[str, str]:
    """Return the part of this process's environment that a command may see."""
    wanted = PASSED | set(names)
    found: Mapping[str, str] = os.environ
    return {name: value for name, value in found.items() if name in wanted or name.startswith("LC_")}


def words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """Return a command's words: those given, or a text split as a shell splits it (and nothing expanded).

    Raises:
        ValueError: a quote is never closed.
    """
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


def mislaid(command: Sequence[str], cwd: str | Path | None) -> str | None:
    """Return a warning where a word names a file here that the command will not find where it runs."""
    if cwd is not None:
        return None
    for word in command[1:]:
        if word and not Path(word).is_absolute() and Path(word).is_file():
            return f"{word} is here, but the command runs in a temporary folder: say --cwd . or its full path"
    return None


def _rooted(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command with a program that is named by its path found from here."""
    if not command or "/" not in command[0]:
        return tuple(command)
    return (str(Path(command[0]).absolute()), *command[1:])
