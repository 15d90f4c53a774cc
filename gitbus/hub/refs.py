"""Refs of a repository on this machine: read from their files without a process, moved by git itself.

Rules: loose files are read before ``packed-refs``, as git does, so that a ref which is being packed
is never missed. Whatever is laid out unusually (reftable, a symbolic ref) is left to git. A ref
moves in a transaction of git's own with the old value named.

Example: ``RefFiles(git).below("refs/heads/main")`` maps the ref to its object id.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gitbus.history import Oid
from gitbus.hub.base import RefMove
from gitbus.hub.database import end
from gitbus.hub.objects import OID
from gitbus.hub.run import Git

ZERO = "0" * 40
_PACKED = re.compile(r"^([0-9a-f]{40}) (\S+)$", re.MULTILINE)


class RefFiles:
    """The refs of one repository, loose and packed.

    Args:
        git: the repository.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self.folder = git.git_dir
        self._packed: tuple[object, dict[str, Oid]] = (None, {})
        self._usual = not (self.folder / "reftable").exists()

    def below(self, *prefixes: str) -> dict[str, Oid]:
        """Return the refs that are, or stand below, one of the prefixes (without a slash at the end)."""
        loose = self._read_loose(prefixes) if self._usual else None
        if loose is None:
            return self._by_git(prefixes)
        packed = self._read_packed()
        return {ref: oid for ref, oid in packed.items() if _stands_below(ref, prefixes)} | loose

    def value(self, ref: str) -> Oid | None:
        """Return one ref's value; None where there is none."""
        return self.below(ref).get(ref)

    def _read_loose(self, prefixes: tuple[str, ...]) -> dict[str, Oid] | None:
        found = {}
        for prefix in prefixes:
            for name in _files(f"{self.folder}/{prefix}"):
                try:
                    text = Path(name).read_text("ascii").strip()
                except FileNotFoundError:
                    continue
                except (OSError, ValueError):
                    return None
                if not OID.fullmatch(text):
                    return None
                found[name[len(str(self.folder)) + 1 :]] = text
        return found

    def _read_packed(self) -> dict[str, Oid]:
        path = self.folder / "packed-refs"
        now = _stat(path)
        if now != self._packed[0]:
            try:
                text = path.read_text("utf-8", "surrogateescape")
            except FileNotFoundError:
                text = ""
            self._packed = (now, {ref: oid for oid, ref in _PACKED.findall(text)})
        return self._packed[1]

    def _by_git(self, prefixes: tuple[str, ...]) -> dict[str, Oid]:
        listed = self.git.text("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
        return {ref: oid for oid, ref in _PACKED.findall(listed)}

    def fingerprint(self, *prefixes: str) -> object:
        """Return a value that differs when one of the refs may have changed; it costs a stat for each."""
        found = [_stat(self.folder / "packed-refs")]
        for prefix in prefixes:
            found += [(name, _stat(name)) for name in _files(f"{self.folder}/{prefix}")]
        if not self._usual:
            found.append(_stat(self.folder / "reftable/tables.list"))
        return tuple(sorted(found, key=repr))


def _files(path: str) -> Iterator[str]:
    """Yield the ref files at or below a path."""
    try:
        entries = list(os.scandir(path))
    except NotADirectoryError:
        yield path
        return
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif not entry.name.endswith(".lock"):
            yield entry.path


def _stands_below(ref: str, prefixes: tuple[str, ...]) -> bool:
    return any(ref == prefix or ref.startswith(prefix + "/") for prefix in prefixes)


def _stat(path: str | Path) -> object:
    try:
        found = os.stat(path)  # noqa: PTH116 - it stands in the polling loop
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def instruction(move: RefMove) -> str:
    """Return what ``git update-ref --stdin`` is told for a move."""
    if move.new is None:
        return f"delete {move.ref} {move.old or ZERO}\n"
    return f"update {move.ref} {move.new} {move.old or ZERO}\n"


class RefMover:
    """A git that moves refs one after the other; a move that fails ends it, and the next starts another.

    Args:
        git: the repository.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: subprocess.Popen[bytes] | None = None

    def move(self, move: RefMove) -> Literal["moved", "failed", "unknown"]:
        """Move a ref; ``unknown`` where git ended without an answer, so that the ref has to be read."""
        try:
            taken = self._transact(move)
        except OSError:  # it was ended before it could read
            taken = False
        except BaseException:
            self.close()
            raise
        if taken:
            return "moved"
        code = self._ended()
        return "failed" if code > 0 else "unknown"

    def _transact(self, move: RefMove) -> bool:
        if self._process is None:
            self._process = self._git.start("update-ref", "--no-deref", "--stdin")
        give, take = self._process.stdin, self._process.stdout
        if give is None or take is None:
            return False
        give.write(f"start\n{instruction(move)}commit\n".encode())
        give.flush()
        return take.readline() == b"start: ok\n" and take.readline() == b"commit: ok\n"

    def _ended(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        return process.wait()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            end(process)
