r"""The hub: the repository that everybody shares, behind one interface.

Two implementations meet one contract (``tests/contracts``): *direct*, for a bare repository on
this machine, and *push*, for any git host. Both write objects first and then move refs with the
old value named, so that a reader sees a change whole or not at all.

Example, a change that is made again until nobody was faster::

    while True:
        refs = hub.look()
        tree = hub.store.write_tree(hub.store.commit(refs[hub.main]).tree, {"a.txt": b"hello\\n"})
        new = hub.store.write_commit(Draft(tree, (refs[hub.main],), "add a.txt"))
        if hub.move([RefMove(hub.main, refs[hub.main], new)]).moved(hub.main):
            break
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gitbus.history import Entry, History, Oid


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit says made it: a name and an email address."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be written.

    ``when`` is the date of author and committer (aware; the clock's where it is None).
    ``author`` is both author and committer.
    """

    tree: Oid
    parents: tuple[Oid, ...]
    message: str
    author: Author | None = None
    when: datetime | None = None
    sign: bool = False  # with the user's own key, as `git commit -S` does


@dataclass(frozen=True, slots=True)
class RefMove:
    """A ref (full name) that goes from ``old`` (None: it must not exist) to ``new`` (None: deleted).

    ``new`` must descend from ``old`` unless ``replace`` says that the ref starts anew.
    """

    ref: str
    old: Oid | None
    new: Oid | None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Moves:
    """What became of some moves: the refs that were moved, and those that were not.

    Of two who put the same object, one has moved the ref and the other has lost; a ref to be
    deleted that is gone already counts as moved.
    """

    done: frozenset[str]
    lost: frozenset[str]  # somebody else moved it first

    def moved(self, ref: str) -> bool:
        """Say whether this ref was moved."""
        return ref in self.done


class Store(History, Protocol):
    """Objects that can also be written. What was written can be read at once, before it is flushed."""

    def prefetch(self, oids: Iterable[Oid], limit: int) -> None:
        """Load several objects at once, so that reading them is quick; larger ones than ``limit`` bytes stay."""
        ...

    def write_blob(self, data: bytes) -> Oid:
        """Write a blob and return its id."""
        ...

    def write_tree(self, base: Oid | None, changes: Mapping[str, bytes | Entry | None]) -> Oid:
        """Return the tree that is ``base`` with some paths changed.

        Args:
            base: the tree to start from; None is the empty one.
            changes: path (``a/b/c``) to new bytes, an existing entry (also of a whole tree), or
                None to remove the file or folder there. Folders that become empty disappear.
        """
        ...

    def write_commit(self, draft: Draft) -> Oid:
        """Write a commit and return its id; signing runs the user's own git configuration.

        Raises:
            Refused: it was to be signed and could not be (rule ``cannot-sign``).
        """
        ...

    def identity(self) -> Author:
        """Return who the user is, as his git says it.

        Raises:
            Refused: it does not say (rule ``no-identity``).
        """
        ...

    def flush(self) -> None:
        """Make everything written so far durable (fsync) in the object store.

        Raises:
            Unreachable: the disk is full or cannot be written (rule ``disk``).
        """
        ...


class Hub(Protocol):
    """The shared repository, as one actor in one clone sees it."""

    @property
    def main(self) -> str:
        """The full name of the bus's branch, ``refs/heads/main`` by default."""
        ...

    @property
    def store(self) -> Store:
        """Where the objects are."""
        ...

    def look(self) -> Mapping[str, Oid]:
        """Return the refs as they are on the hub now: the bus's branch and everything below ``refs/heads/gitbus/``.

        Every object that they reach can be read from ``store`` afterwards.

        Raises:
            Unreachable: the hub is gone, refuses the login, or does not answer.
        """
        ...

    def move(self, moves: Sequence[RefMove]) -> Moves:
        """Flush the store and move refs on the hub, each by compare-and-swap on its own.

        ``main``, where it is among them, goes first and is judged alone: when it was lost the
        others need not be tried (a push tries them all at once, and says which it moved). An answer that was lost is found by reading the ref again.

        Raises:
            Unreachable: the hub could not be reached, or refuses for another reason than a race
                (a hook, a rule, a right); the message says which.
        """
        ...

    def wait(self, seconds: float, seen: Mapping[str, Oid]) -> None:
        """Return when the hub's refs may no longer be ``seen``, or after ``seconds``."""
        ...

    def close(self) -> None:
        """End what child processes there are; the hub can be used no more."""
        ...
