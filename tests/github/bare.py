"""A bare repository as our small GitHub uses it: objects read once, refs moved by compare and swap.

Example: ``Bare.create(folder / "acme" / "bus.git").run("rev-parse", "HEAD")``.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

_IDENT = re.compile(r"(?P<name>.*?) ?<(?P<email>[^>]*)> (?P<time>\d+) (?P<zone>[+-]\d{4})")
_SIGNATURE = re.compile(rb"^gpgsig (?P<text>.*(?:\n .*)*)\n", re.MULTILINE)
ZERO = "0" * 40


class GitFailed(Exception):
    """A git command ended with an error."""


@dataclass(frozen=True)
class Line:
    """An author or committer line."""

    name: str
    email: str
    at: datetime

    @property
    def ident(self) -> str:
        """Name and address."""
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True)
class Made:
    """A commit: what it says, and its signature with what was signed."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Line
    committer: Line
    message: str
    signature: str | None
    payload: bytes


@dataclass
class Bare:
    """A bare repository; a copy of it is itself."""

    path: Path
    known: dict[Any, Any] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Bare:
        return self

    @classmethod
    def create(cls, path: Path) -> Bare:
        """Make an empty one, with ``main`` as its branch."""
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["git", "init", "-q", "--bare", "--template=", "-b", "main", str(path)], check=True, env=_plain()
        )
        config = "[http]\n\treceivepack = true\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n\thideRefs = refs/pull\n"
        config += "[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n"
        with (path / "config").open("a") as file:
            file.write(config)
        return cls(path)

    def run(self, *arguments: str, data: bytes | str = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git here and return what it printed.

        Raises:
            GitFailed: it ended with an error.
        """
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=data.encode() if isinstance(data, str) else data,
            capture_output=True,
            env=_plain() | dict(env or {}),
            check=False,
        )
        if done.returncode:
            raise GitFailed(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace").rstrip("\n")

    def lines(self, *arguments: str) -> list[str]:
        """Run git here and return the lines it printed."""
        return self.run(*arguments).splitlines()

    def ok(self, *arguments: str) -> bool:
        """Return whether git ends well."""
        try:
            self.run(*arguments)
        except GitFailed:
            return False
        return True

    def refs(self) -> dict[str, str]:
        """Return all refs."""
        found = (line.split() for line in self.lines("for-each-ref", "--format=%(objectname) %(refname)"))
        return {name: sha for sha, name in found}

    def move(self, ref: str, new: str | None, old: str | None = None) -> None:
        """Set a ref, or delete it.

        Raises:
            GitFailed: it was not ``old``.
        """
        if new is None:
            self.run("update-ref", "-d", ref, *([old] if old else []))
        else:
            self.run("update-ref", ref, new, *([old] if old else []))

    def commit(self, sha: str) -> Made | None:
        """Return a commit by its full id; None where there is none."""
        if sha not in self.known:
            if not re.fullmatch(r"[0-9a-f]{40}", sha):
                return None
            ask = ["git", "cat-file", "commit", sha]
            done = subprocess.run(ask, cwd=self.path, capture_output=True, check=False, env=_plain())
            if done.returncode:
                return None
            self.known[sha] = parse(sha, done.stdout)
        made: Made = self.known[sha]
        return made

    def must(self, sha: str) -> Made:
        """Return a commit that is there."""
        made = self.commit(sha)
        assert made is not None, sha
        return made

    def contains(self, tip: str, sha: str) -> bool:
        """Return whether a commit is reachable from a tip."""
        return bool(self.once("contains", tip, sha, make=lambda: self._contains(tip, sha)))

    def _contains(self, tip: str, sha: str) -> bool:
        return tip == sha or self.ok("merge-base", "--is-ancestor", sha, tip)

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor."""
        found: str | None = self.once("base", one, other, make=lambda: self._merge_base(one, other))
        return found

    def _merge_base(self, one: str, other: str) -> str | None:
        try:
            return self.run("merge-base", one, other)
        except GitFailed:
            return None

    def range(self, base: str, head: str) -> list[str]:
        """Return what is reachable from a head and not from a base, oldest first."""
        ask = ("rev-list", "--reverse", "--topo-order", head, f"^{base}")
        found: list[str] = self.once("range", base, head, make=lambda: self.lines(*ask))
        return found

    def merged_tree(self, one: str, other: str) -> str | None:
        """Return the tree of a merge; None where it conflicts."""
        found: str | None = self.once("merge", one, other, make=lambda: self._merged_tree(one, other))
        return found

    def _merged_tree(self, one: str, other: str) -> str | None:
        try:
            return self.run("merge-tree", "--write-tree", "--no-messages", one, other).splitlines()[0]
        except GitFailed:
            return None

    def once(self, *key: str, make: Any) -> Any:
        """Return what was made for a key, made now if it was not yet (keys hold object ids, which never change)."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def store(self, data: bytes) -> str:
        """Write a commit's bytes and return its id."""
        return self.run("hash-object", "-t", "commit", "-w", "--stdin", data=data)


def _plain() -> dict[str, str]:
    """Return an environment in which git knows nothing of whoever runs the tests."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def _line(text: str) -> Line:
    found = _IDENT.fullmatch(text)
    assert found, text
    sign = -1 if found["zone"][0] == "-" else 1
    offset = sign * timedelta(hours=int(found["zone"][1:3]), minutes=int(found["zone"][3:]))
    at = datetime.fromtimestamp(int(found["time"]), UTC).astimezone(timezone(offset))
    return Line(found["name"], found["email"], at)


def parse(sha: str, data: bytes) -> Made:
    """Return a commit from its bytes."""
    head, _, message = data.partition(b"\n\n")
    signature = _SIGNATURE.search(head + b"\n")
    fields = [line.split(" ", 1) for line in head.decode(errors="replace").splitlines() if line[:1] != " "]
    one = {name: value for name, value in fields if name != "parent"}
    return Made(
        sha=sha,
        tree=one["tree"],
        parents=tuple(value for name, value in fields if name == "parent"),
        author=_line(one["author"]),
        committer=_line(one["committer"]),
        message=message.decode(errors="replace"),
        signature=signature["text"].decode().replace("\n ", "\n") if signature else None,
        payload=_SIGNATURE.sub(b"", head + b"\n") + b"\n" + message if signature else data,
    )
