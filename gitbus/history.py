"""What the pure core is told about a git repository: values, and a read-only view of objects.

Objects are immutable and named by their content, so a function of object ids and a
:class:`History` is as pure as one of bytes. ``gitbus.hub`` implements the view over a real
repository; nothing here starts a process or opens a file.

Example: the bus at a commit is ``history.tree(history.commit(tip).tree)``, and what a merge
brought in is ``history.between([tip], [history.commit(tip).parents[0]])``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

Oid = str
"""A full object id: 40 lower-case hex digits."""

TREE = 0o040000
FILE = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
SUBMODULE = 0o160000


class Entry(NamedTuple):
    """One entry of a tree: its mode (``FILE``, ``TREE``, …) and object id."""

    mode: int
    oid: Oid


@dataclass(frozen=True, slots=True)
class Ident:
    """An author or committer line of a commit; ``when`` is aware, ``raw`` is the line as it stands."""

    name: str
    email: str
    when: datetime
    raw: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; ``signature`` is the armored ``gpgsig`` header's text, if there is one."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    author: Ident
    committer: Ident
    message: str
    signature: str | None = None

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class Delta:
    """A path that differs between two trees; ``old`` or ``new`` is None where it is absent."""

    path: str
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a commit's signature turned out to be, looked at with a set of known keys.

    ``good``: made by ``key``, one of the given keys. ``unknown``: well made, by none of them.
    ``bad``: does not fit the commit, or its key is expired or revoked. ``none``: unsigned.
    ``unasked``: it could not be checked (no gpg here, say); ``detail`` says why.
    """

    verdict: Literal["good", "unknown", "bad", "none", "unasked"]
    key: str | None = None
    fingerprint: str | None = None
    detail: str = ""


class History(Protocol):
    """A read-only view of a repository's objects. Every method raises ``KeyError`` for an absent object."""

    def commit(self, oid: Oid) -> Commit:
        """Return the commit."""
        ...

    def tree(self, oid: Oid) -> Mapping[str, Entry]:
        """Return the tree's own entries by name (not recursive)."""
        ...

    def blob(self, oid: Oid) -> bytes:
        """Return the blob's bytes."""
        ...

    def size(self, oid: Oid) -> int:
        """Return an object's size in bytes, without loading it."""
        ...

    def entry(self, commit: Oid, path: str) -> Entry | None:
        """Return what stands at ``path`` in the commit's tree; None where nothing does."""
        ...

    def diff(self, old: Oid | None, new: Oid | None, under: str = "") -> Sequence[Delta]:
        """Return the files (not trees) that differ between two *trees* below ``under``, by path.

        No rename detection. None is the empty tree.
        """
        ...

    def line(self, tip: Oid, *, until: Oid | None = None, touching: Collection[str] = ()) -> Sequence[Oid]:
        """Return the first-parent chain from ``tip``, newest first, ``until`` itself left out.

        With ``touching``, only commits that differ from their first parent (a root: from the
        empty tree) at or below one of the paths.
        """
        ...

    def between(
        self, tips: Collection[Oid], without: Collection[Oid], *, touching: Collection[str] = ()
    ) -> Sequence[Oid]:
        """Return the commits reachable from ``tips`` and not from ``without``, parents before children.

        With ``touching``, only those that differ from *any* parent (a root: from the empty tree) at
        or below one of the paths; history is never simplified.
        """
        ...

    def is_ancestor(self, old: Oid, new: Oid) -> bool:
        """Say whether ``old`` is reachable from ``new`` (a commit is its own ancestor)."""
        ...

    def remerge(self, first: Oid, second: Oid) -> Oid | None:
        """Return the tree of the merge of two commits as git itself makes it; None where it conflicts."""
        ...

    def signature(self, commit: Oid, keys: Collection[str]) -> Signature:
        """Check the commit's signature against ``keys``.

        Args:
            commit: the commit.
            keys: public keys as ``bus.yaml`` holds them: an OpenSSH line
                (``ssh-ed25519 AAAA… comment``) or an armored OpenPGP block.
        """
        ...
