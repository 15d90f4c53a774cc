"""From changes to commits: the one place where the bus's branch is written.

Example: ``Writer(store, author).commits(tip, changes)`` writes the commits one on the other and
returns their ids; moving the branch there is the hub's, by compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from gitbus import codec
from gitbus.change import Change, Content, Kept, blob_oid
from gitbus.history import FILE, Entry, Oid
from gitbus.hub.base import Author, Draft, Store
from gitbus.records import Record

CONDUCTOR = Author("gitbus conductor", "conductor@bus")
SENDER = Author("gitbus sender", "sender@bus")


class Writer:
    """Writes changes as commits, by one author.

    Args:
        store: where the objects go.
        author: the actor in its role; None is the user himself.
        remember: told of every record that was written, and as which blob.
    """

    def __init__(
        self, store: Store, author: Author | None, remember: Callable[[Entry, Record], None] | None = None
    ) -> None:
        self.store = store
        self.author = author
        self._remember = remember

    def commits(
        self, tip: Oid, changes: Iterable[Change], when: datetime | None = None, *, sign: bool = False
    ) -> list[Oid]:
        """Write one commit for each change, the first on ``tip``; return their ids in order."""
        made: list[Oid] = []
        tree = self.store.commit(tip).tree
        for change in changes:
            tree = self.tree(tree, change)
            parents = (made[-1] if made else tip, *change.parents)
            made.append(
                self.store.write_commit(Draft(tree, parents, change.message(), self.author, when, sign))
            )
        return made

    def tree(self, base: Oid, change: Change) -> Oid:
        """Return the tree that a change leaves."""
        if not change.writes:
            return base
        return self.store.write_tree(
            base, {path: self._bytes(content) for path, content in change.writes.items()}
        )

    def _bytes(self, content: Content) -> bytes | Entry | None:
        if isinstance(content, Kept):
            self._note(content.entry, content.record)
            return content.entry
        if not isinstance(content, Record):
            return content
        data = codec.write(content)
        self._note(Entry(FILE, blob_oid(data)), content)
        return data

    def _note(self, entry: Entry, record: Record) -> None:
        if self._remember is not None:
            self._remember(entry, record)
