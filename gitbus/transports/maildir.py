"""Delivery into a Maildir: what a program reads with ``mailbox.Maildir``.

Rules: the file is written and flushed in ``tmp``, moved into ``new`` in one step, and the folder is
flushed. Before the move nothing was delivered, after it it was. The name tells the item's content
again (its idempotency key), but every delivery is a file of its own: it also holds the time in
nanoseconds and the process.

Example: ``new/1796068800.4f…c2P17N812345.gitbus`` is item and digest ``4f…c2``, at that second.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Refused
from gitbus.transports.base import MARGIN, Answer, Identity, Opening, Outgoing, Unusable, clock
from gitbus.transports.message import Letter, build


def open_transport(opening: Opening) -> Maildir:
    """Return the transport of a channel with a ``path``."""
    return Maildir(opening)


class Maildir:
    """A Maildir on this machine. It is made where there is none."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._path = Path(str(opening.channel.get("path", ""))).expanduser()

    def check(self) -> Identity:
        """See that mail can be put there, and make the folders.

        Raises:
            Unusable: they cannot be made or written.
        """
        if not self._opening.channel.get("path"):
            raise Unusable("the channel has no path", rule="channel-path", remedy="give it a `path`")
        try:
            self._make_folders()
        except OSError as error:
            raise Unusable(
                f"{self._path} cannot be used: {error.strerror}",
                rule="maildir-path",
                remedy="make it a folder that the sender may write",
            ) from None
        return Identity(self._opening.name, transport="maildir", host=str(self._path))

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        """Deliver once."""
        try:
            letter = build(outgoing, self._opening.channel.get("from") or ())
        except Refused as error:
            return Answer("not_sent", reason=f"{error.rule}: {error.message}")
        name = f"{int(time.time())}.{outgoing.idempotency_key}P{os.getpid()}N{time.time_ns()}.gitbus"
        draft = self._path / "tmp" / name
        try:
            self._make_folders()
            _write(draft, letter.data)
        except OSError as error:
            _remove(draft)
            return _passing(f"cannot write {self._path}: {error.strerror}", letter)
        try:
            return self._deliver(draft, self._path / "new" / name, letter, deadline)
        finally:
            _remove(draft)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _make_folders(self) -> None:
        folders = (self._path, *(self._path / name for name in ("tmp", "new", "cur")))
        missing = [folder for folder in folders if not folder.is_dir()]
        for folder in missing:
            effect("file-write", str(folder))
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for parent in dict.fromkeys(folder.parent for folder in missing):
            _flush(parent)  # or a power cut takes the folder away with what was delivered into it
        if not os.access(self._path / "tmp", os.W_OK) or not os.access(self._path / "new", os.W_OK):
            raise PermissionError(13, "Permission denied")

    def _deliver(self, draft: Path, goal: Path, letter: Letter, deadline: float) -> Answer:
        if clock() >= deadline - MARGIN:
            return _passing("there was no time left", letter)
        self._opening.began()
        effect("deliver", str(goal))
        try:
            draft.rename(goal)
        except OSError as error:
            return _after_failed_move(draft, letter, error)
        return _flushed(goal, letter)


def _flushed(goal: Path, letter: Letter) -> Answer:
    try:
        _flush(goal.parent)
    except OSError as error:
        reason = f"{goal} was delivered but not flushed: {error.strerror}"
        return Answer("unknown", reason=reason, message_id=letter.message_id)
    return Answer(
        "sent",
        reason=f"delivered as {goal.name}",
        recipients=dict.fromkeys(letter.recipients, "delivered"),
        message_id=letter.message_id,
        provider_id=goal.name,
    )


def _after_failed_move(draft: Path, letter: Letter, error: OSError) -> Answer:
    try:
        draft.lstat()
    except OSError:
        reason = f"it may be delivered: {error.strerror}"
        return Answer("unknown", reason=reason, message_id=letter.message_id)
    return _passing(f"cannot deliver: {error.strerror}", letter)


def _passing(reason: str, letter: Letter) -> Answer:
    return Answer("not_sent", reason=reason, passing=True, message_id=letter.message_id)


def _write(path: Path, data: bytes) -> None:
    effect("file-write", str(path))
    with path.open("xb") as file:
        file.write(data.replace(b"\r\n", b"\n"))  # as every Maildir holds them
        file.flush()
        effect("fsync", str(path))
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    effect("fsync", str(folder))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
