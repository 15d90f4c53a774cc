"""A change: one commit on the bus's branch, before anybody wrote it.

Stages of the flow return changes; an actor writes them as commits, in order. A change says what
its message says and which files it writes; whose line it stands on is the actor's to know.

Example: ``Change("assign", "release-1-0/gather#1: laptop", {path: task}, about=(Thread(...),))``
becomes a commit whose subject is ``assign release-1-0/gather#1: laptop``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gitbus.history import Entry, Oid
from gitbus.records import Record


@dataclass(frozen=True, slots=True)
class Kept:
    """A record that is an object already, in the very bytes that gitbus would write."""

    entry: Entry
    record: Record


Content = Record | Kept | bytes | Entry | None
"""What a path shall hold: a record, bytes, an object that exists already, or nothing (removed)."""

TRAILERS = ("Gitbus-Goal", "Gitbus-Task", "Gitbus-Item", "Gitbus-Attempt", "Gitbus-Worker")


@dataclass(frozen=True, slots=True)
class Thread:
    """What a commit is about; its trailers let ``git log`` find the thread again."""

    goal: str | None = None
    task: str | None = None
    item: str | None = None
    attempt: int | None = None
    worker: str | None = None

    def trailers(self) -> list[tuple[str, str]]:
        """Return the trailers of this thread, in their order."""
        values = (self.goal, self.task, self.item, self.attempt, self.worker)
        return [(key, str(value)) for key, value in zip(TRAILERS, values, strict=True) if value is not None]


@dataclass(frozen=True)
class Change:
    """One commit to be made.

    ``subject`` goes on after the verb. ``body`` are lines of explanation; nothing in them may come
    from a worker unless it went through :func:`plain`.
    """

    verb: str
    subject: str
    writes: Mapping[str, Content] = field(default_factory=dict)
    about: tuple[Thread, ...] = ()
    body: tuple[str, ...] = ()
    parents: tuple[Oid, ...] = ()  # further ones, beside the line
    trailers: tuple[tuple[str, str], ...] = ()  # beside those of the threads
    sources: Mapping[tuple[str, str], Oid] = field(default_factory=dict)  # (goal, task) → worker's commit

    def message(self) -> str:
        """Return the commit's whole message."""
        lines = [("Gitbus-Verb", self.verb), *self.trailers]
        for thread in self.about:
            lines += thread.trailers()
        block = "\n".join(f"{key}: {value}" for key, value in _fewer(lines))
        parts = [f"{self.verb} {self.subject}", "\n".join(self.body), block]
        return "\n\n".join(part for part in parts if part) + "\n"


def _fewer(lines: list[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """Drop a trailer that repeats the one of the same key just before it."""
    last: dict[str, str] = {}
    for key, value in lines:
        if last.get(key) != value:
            last[key] = value
            yield key, value


def plain(text: str, limit: int = 120) -> str:
    """Return text from outside as one harmless line: no control, no newline, no trailer, bounded.

    In a commit's message it also starts nothing on a forge: it mentions nobody, closes no issue and
    keeps no workflow from running (GitHub reads ``@name``, ``fixes #1`` and ``[skip ci]`` there).
    """
    shown = "".join(char if char.isprintable() else " " for char in text)
    shown = " ".join(shown.split())
    for pattern, instead in _ACTIVE:
        shown = pattern.sub(instead, shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


_ACTIVE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![\w.+-])@(?=\w)"), "＠"),  # a mention; an email address has a word before it
    (re.compile(r"(?i)\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:? +)(\S*)#(?=\d)"), r"\1\2\3＃"),
    (re.compile(r"(?i)\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:? +https?):(?=//)"), r"\1\2："),
    (re.compile(r"(?i)\[(?=(?:skip|no|ci|actions) (?:ci|skip|actions)\])"), "［"),
    (re.compile(r"(?i)\bskip-(?=checks\s*:)"), "skip\u2011"),
)


def blob_oid(data: bytes) -> Oid:
    """Return the object id that git gives to these bytes as a blob (SHA-1 object format)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
