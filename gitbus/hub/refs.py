"""Reading a repository's refs without starting a process, where its files are laid out as usual.

Example: ``RefFiles(Path("acme.git"), git).read("refs/heads/main")`` is an object id, or None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from gitbus.history import Oid
from gitbus.hub.run import Git

_OID = re.compile(r"[0-9a-f]{40}")


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
        """Return the refs that are, or stand below, one of the prefixes."""
        if not self._usual:
            return self._by_git(prefixes)
        packed = self._read_packed()
        found = {
            ref: oid for ref, oid in packed.items() if any(_is_below(ref, prefix) for prefix in prefixes)
        }
        for prefix in prefixes:
            for ref in self._loose(prefix.rstrip("/")):
                oid = self._read_loose(ref)
                if oid is None:
                    return self._by_git(prefixes)  # a symbolic ref, or one just being written
                if oid:
                    found[ref] = oid
        return found

    def fingerprint(self, *prefixes: str) -> object:
        """Return a value that differs when the refs may have changed; cheap."""
        stats = [_stat(self.folder / "packed-refs")]
        for prefix in prefixes:
            stats += self._stats(self.folder / prefix.rstrip("/"))
        return tuple(stats)

    def _stats(self, path: Path) -> list[object]:
        found: list[object] = [_stat(path)]
        if path.is_dir():
            for entry in sorted(os.scandir(path), key=lambda one: one.name):
                found += (
                    self._stats(Path(entry.path))
                    if entry.is_dir()
                    else [(entry.name, _stat(Path(entry.path)))]
                )
        return found

    def _loose(self, prefix: str) -> Iterator[str]:
        path = self.folder / prefix
        if path.is_file():
            yield prefix
        elif path.is_dir():
            for entry in os.scandir(path):
                if entry.is_dir():
                    yield from self._loose(f"{prefix}/{entry.name}")
                elif not entry.name.endswith(".lock"):
                    yield f"{prefix}/{entry.name}"

    def _read_loose(self, ref: str) -> Oid | None:
        """Return a loose ref's value, "" where it has gone, None where git itself must look."""
        try:
            text = (self.folder / ref).read_text("ascii").strip()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError):
            return None
        return text if _OID.fullmatch(text) else None

    def _read_packed(self) -> dict[str, Oid]:
        path = self.folder / "packed-refs"
        now = _stat(path)
        if now != self._packed[0]:
            try:
                lines = path.read_text("utf-8").splitlines()
            except FileNotFoundError:
                lines = []
            refs = {line[41:]: line[:40] for line in lines if line[40:41] == " " and not line.startswith("#")}
            self._packed = (now, refs)
        return self._packed[1]

    def _by_git(self, prefixes: tuple[str, ...]) -> dict[str, Oid]:
        listed = self.git.text(
            "for-each-ref", "--format=%(refname) %(objectname)", *(one.rstrip("/") for one in prefixes)
        )
        return dict(line.split(" ", 1) for line in listed.splitlines() if line)


def _is_below(ref: str, prefix: str) -> bool:
    return ref == prefix.rstrip("/") or ref.startswith(prefix.rstrip("/") + "/")


def _stat(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
