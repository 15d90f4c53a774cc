"""The folder in which one attempt runs: what is put there for the command, what is taken from it.

Rules: the folder is the attempt's own (mode 0700) and gone afterwards. What the command left is
opened step by step from the folder's own descriptor without following a link, so that nothing
outside of it is ever read; only plain files are artifacts.

Example::

    with room(job) as place:
        place.environment["GITBUS_TASK"]  # …/task.json
        place.artifacts(job.limits)       # {"notes.md": b"…"}
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gitbus import codec, ids
from gitbus.effects import effect
from gitbus.errors import Invalid
from gitbus.records.bus import Limits
from gitbus.runner.base import Job
from gitbus.runner.text import line

MAX_FILES = 1000
"""The most artifacts of one attempt."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Guest:
    """Another user, as whom the command runs.

    ``owns`` says that the folder can be given to it (the worker is root); otherwise the folder
    stands open below a name that nobody can guess or list, and ``remove`` is the command that
    empties it, run in it.
    """

    uid: int
    gid: int
    owns: bool
    remove: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """The folder: ``work`` is where the command runs unless it is told otherwise."""

    folder: Path
    descriptor: int
    task_json: bytes
    guest: Guest | None = None

    @property
    def work(self) -> Path:
        """Return the folder in which the command runs."""
        return self.folder / "work"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that tell the command where things are."""
        return {
            "GITBUS_TASK": str(self.folder / "task.json"),
            "GITBUS_INPUTS": str(self.folder / "inputs"),
            "GITBUS_ARTIFACTS": str(self.folder / "artifacts"),
            "GITBUS_RESULT": str(self.folder / "result"),
        }

    def keep(self, name: str, data: bytes) -> Path:
        """Put one more file beside the task for the command to read, and return its path."""
        path = self.folder / name
        path.write_bytes(data)
        if self.guest is not None:
            _open_to(path, self.guest)
        return path

    def result(self, limits: Limits) -> dict[str, Any] | None:
        """Return what the command wrote as its Result; None where it wrote nothing.

        Raises:
            Invalid: it cannot be read.
        """
        data = self._file(self.descriptor, "result", limits.record + 1)
        return None if data is None else dict(codec.load(data, path="result", limit=limits.record).data)

    def artifacts(self, limits: Limits) -> dict[str, bytes]:
        """Return the files that the command left, by path.

        Raises:
            Invalid: one of them may not be an artifact, or they are too large or too many.
        """
        found: dict[str, bytes] = {}
        total = 0
        for folder, name, path in self._walk():
            data = self._file(folder, name, limits.artifact + 1) or b""
            total += len(data)
            if len(data) > limits.artifact:
                raise _too_large(f"{path} has more than {limits.artifact} bytes")
            if total > limits.artifacts or len(found) >= MAX_FILES:
                raise _too_large(f"the artifacts are more than {MAX_FILES} files or {limits.artifacts} bytes")
            found[path] = data
        return found

    def _walk(self) -> Iterator[tuple[int, str, str]]:
        try:
            top = os.open("artifacts", _FOLDER, dir_fd=self.descriptor)
        except OSError as error:
            raise Invalid(f"the artifacts cannot be read: {error.strerror}", rule="forbidden-kind") from None
        yield from _files(top, "")

    def _file(self, folder: int, name: str, most: int) -> bytes | None:
        """Return at most ``most`` bytes of a plain file; None where there is none."""
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
            raise Invalid(f"{_shown(name)} {why}", rule="forbidden-kind") from None
        try:
            found = os.fstat(descriptor)
            foreign = self.guest is not None and found.st_uid != self.guest.uid
            if foreign or not stat.S_ISREG(found.st_mode):
                raise Invalid(f"{_shown(name)} is no plain file of the command's own", rule="forbidden-kind")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(most)
        finally:
            os.close(descriptor)


def _files(folder: int, above: str) -> Iterator[tuple[int, str, str]]:
    """Yield (folder's descriptor, name, path) of everything below a folder that is not a folder."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path = above + entry.name
            if why := ids.why_not_path(path):
                raise Invalid(f"the artifact {_shown(path)}: {why}", rule="bad-path")
            if not entry.is_dir(follow_symlinks=False):
                yield folder, entry.name, path
                continue
            yield from _files(os.open(entry.name, _FOLDER, dir_fd=folder), path + "/")
    finally:
        os.close(folder)


def _shown(name: str) -> str:
    return line(os.fsencode(name).decode("utf-8", "replace"), 200)


def _too_large(message: str) -> Invalid:
    return Invalid(message, rule="too-large", remedy="limits in bus.yaml say how much may be kept")


@contextlib.contextmanager
def room(job: Job, guest: Guest | None = None) -> Iterator[Room]:
    """Make the folder for a job, and remove it with everything in it.

    Raises:
        OSError: it cannot be made.
    """
    outer = Path(tempfile.mkdtemp(prefix="gitbus-"))
    try:
        folder = outer / secrets.token_hex(16)
        effect("file-write", str(folder))
        made = _furnish(folder, job, guest)
        if guest is not None:
            outer.chmod(0o711)
        descriptor = os.open(folder, _FOLDER)
        try:
            yield Room(folder, descriptor, made, guest)
        finally:
            os.close(descriptor)
    finally:
        _remove(outer, guest)


def _furnish(folder: Path, job: Job, guest: Guest | None) -> bytes:
    task = json.dumps(job.task.model_dump(mode="json", by_alias=True), ensure_ascii=False).encode()
    for name in ("work", "inputs", "artifacts"):
        (folder / name).mkdir(parents=True)
    (folder / "task.json").write_bytes(task)
    for name, files in job.inputs.items():
        (folder / "inputs" / name).mkdir()
        for path, data in files.items():
            target = folder / "inputs" / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    if guest is not None:
        for made in (folder, *folder.rglob("*")):
            _open_to(made, guest)
    return task


def _open_to(path: Path, guest: Guest) -> None:
    """Give a path to another user, or open it to whoever knows its name."""
    if guest.owns:
        os.chown(path, guest.uid, guest.gid)
    else:
        path.chmod(0o777 if path.is_dir() else 0o644)


def _remove(outer: Path, guest: Guest | None) -> None:
    """Remove the folder, with a second try for folders that the command closed to itself."""
    for inner in outer.iterdir():
        if guest is not None and guest.remove:
            subprocess.run(
                guest.remove, cwd=inner, check=False, capture_output=True, stdin=subprocess.DEVNULL
            )
    shutil.rmtree(outer, ignore_errors=True)
    if outer.exists():
        for folder, names, _ in os.walk(outer):
            for name in names:
                _open_up(Path(folder, name))
        shutil.rmtree(outer, ignore_errors=True)


def _open_up(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)
