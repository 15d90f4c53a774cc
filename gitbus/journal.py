"""The sender's journal: what it is about to do and what came of it, on disk before anything follows.

Rules: one file for each lease, written whole, fsynced and renamed into place. The nonces of a lease
are on no disk before ``about to send``. A journal that says nothing proves nothing.

Example: ``Journal(folder).begin(entry)``, then one transmission, then ``answered(entry, answer)``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable


@dataclass(frozen=True)
class JournalEntry:
    """One lease of this sender: the records as JSON values, and how far it got.

    ``stage`` is ``about`` (a transmission may have begun), ``answered`` or ``attested``.
    """

    item: str
    attempt: int
    digest: str
    lease_commit: str
    lease: dict[str, Any]
    nonces: dict[str, str]
    stage: str = "about"
    answer: dict[str, Any] | None = None
    context: dict[str, Any] | None = None  # what the receipt says beside the answer
    finished_at: str | None = None

    @property
    def name(self) -> str:
        """The entry's file name; the seal tells leases of one attempt apart."""
        return f"{self.item}.{self.attempt}.{self.lease['seals']['sent'][7:19]}.json"


class Journal:
    """The journal of the one sender process that this clone may have.

    Args:
        folder: the clone's local state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "journal"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked(folder / "sender.lock")

    @staticmethod
    def _locked(path: Path) -> int:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise Refused(
                "another sender runs in this clone",
                rule="sender-running",
                remedy="one sender serves a clone; wait for it or stop it",
            ) from None
        return handle

    def close(self) -> None:
        """Let another sender have the clone."""
        os.close(self._lock)

    def begin(self, entry: JournalEntry) -> None:
        """Write that a transmission is about to begin.

        Raises:
            Unreachable: the disk does not take it; then nothing may be sent.
        """
        self._write(entry)

    def answered(
        self, entry: JournalEntry, answer: dict[str, Any], over: dict[str, Any] | None, at: str
    ) -> JournalEntry:
        """Write what came of it and return the entry as it stands now.

        Args:
            entry: the entry.
            answer: the transport's answer.
            over: over what it went, where that is not what was known before.
            at: when, as RFC 3339.
        """
        context = {**(entry.context or {}), **({"channel": over} if over else {})}
        known = replace(entry, stage="answered", answer=answer, context=context, finished_at=at)
        self._write(known)
        return known

    def attested(self, entry: JournalEntry) -> None:
        """Write that the receipt has landed; the secrets are of no use any more."""
        self._write(replace(entry, stage="attested", nonces={}))

    def unfinished(self) -> list[JournalEntry]:
        """Return the entries whose receipt is not known to have landed, by name."""
        return [entry for entry in self._entries() if entry.stage != "attested"]

    def knows(self, item: str, attempt: int) -> bool:
        """Say whether this clone ever was about to send this attempt."""
        return any(self.folder.glob(f"{item}.{attempt}.*.json"))

    def _entries(self) -> Iterator[JournalEntry]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                yield JournalEntry(**json.loads(path.read_text("utf-8")))
            except (ValueError, TypeError) as error:
                raise Refused(
                    f"the journal's file {path} cannot be read: {error}",
                    rule="journal-broken",
                    remedy="nothing is sent until it is looked at; resolve the item, then move the file away",
                ) from None

    def _write(self, entry: JournalEntry) -> None:
        path = self.folder / entry.name
        data = json.dumps(asdict(entry), sort_keys=True).encode()
        temporary = path.with_suffix(".tmp")
        try:
            effect("journal", f"{entry.stage} {path.name}")
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, data)
                effect("fsync", path.name)
                os.fsync(handle)
            finally:
                os.close(handle)
            effect("file-write", path.name)
            temporary.replace(path)
            _sync_folder(self.folder)
        except OSError as error:
            raise Unreachable(
                f"the journal cannot be written: {error.strerror}",
                rule="journal-unwritable",
                remedy="free some space",
            ) from None


def _sync_folder(folder: Path) -> None:
    effect("fsync", folder.name)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
