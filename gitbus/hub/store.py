r"""A repository as values: the view that the core reads, and the writing that actors do.

Example::

    tree = store.write_tree(store.commit(tip).tree, {"goals/a/goal.yaml": b"…"})
    commit = store.write_commit(Draft(tree, (tip,), "add a\\n"))
    store.flush()
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from gitbus.errors import Misuse
from gitbus.history import FILE, TREE, Commit, Delta, Entry, Oid, Signature
from gitbus.hub.base import Author, Draft
from gitbus.hub.database import Database
from gitbus.hub.merging import remerge
from gitbus.hub.objects import oid_of, parse_commit, parse_tree, render_commit, render_tree
from gitbus.hub.run import Git
from gitbus.hub.signing import clean, sign_commit, user_identity
from gitbus.hub.verifying import Verifier
from gitbus.hub.walking import Walker

T = TypeVar("T")

TREES = 20_000
"""Trees that are kept parsed."""

COMMITS = 50_000
"""Commits that are kept parsed."""


class GitStore:
    """The objects of one repository, read and written.

    Args:
        git: the repository whose object store it is.
        user: the clone whose configuration says who the user is and how he signs.
    """

    def __init__(self, git: Git, user: Git) -> None:
        self.git = git
        self.user = user
        self.database = Database(git)
        self.walker = Walker(git, self.commit, self._touches, self.flush)
        self._commits: Recent[Commit] = Recent(COMMITS)
        self._trees: Recent[dict[str, Entry]] = Recent(TREES)
        self._verifier = Verifier(self.database)
        self._identity: Author | None = None

    # --- objects

    def commit(self, oid: Oid) -> Commit:
        """Return the commit."""
        found = self._commits.get(oid)
        if found is None:
            found = self._read(oid, "commit", lambda data: parse_commit(oid, data))
            self._commits.put(oid, found)
        return found

    def tree(self, oid: Oid) -> Mapping[str, Entry]:
        """Return the tree's own entries by name."""
        found = self._trees.get(oid)
        if found is None:
            found = self._read(oid, "tree", parse_tree)
            self._trees.put(oid, found)
        return found

    def blob(self, oid: Oid) -> bytes:
        """Return the blob's bytes."""
        return self._read(oid, "blob", bytes)

    def prefetch(self, oids: Iterable[Oid], limit: int) -> None:
        """Load several objects at once, those of up to ``limit`` bytes."""
        self.database.prefetch(oids, limit)

    def size(self, oid: Oid) -> int:
        """Return an object's size in bytes."""
        return self.database.size(oid)

    def _read(self, oid: Oid, kind: str, parse: Callable[[bytes], T]) -> T:
        found, data = self.database.read(oid)
        if found != kind:
            raise KeyError(oid)
        try:
            return parse(data)
        except ValueError:
            raise KeyError(oid) from None

    def entry(self, commit: Oid, path: str) -> Entry | None:
        """Return what stands at ``path`` in the commit's tree."""
        return self._below(Entry(TREE, self.commit(commit).tree), path)

    def _below(self, entry: Entry, path: str) -> Entry | None:
        here: Entry | None = entry
        for name in path.split("/") if path else ():
            if here is None or here.mode != TREE:
                return None
            here = self.tree(here.oid).get(name)
        return here

    def diff(self, old: Oid | None, new: Oid | None, under: str = "") -> Sequence[Delta]:
        """Return the files that differ between two trees below ``under``, by path."""
        found: list[Delta] = []
        before = self._below(Entry(TREE, old), under) if old else None
        after = self._below(Entry(TREE, new), under) if new else None
        left = [(under, before, after)]
        while left:  # no recursion: a stranger's tree may be deep
            path, one, other = left.pop()
            if one == other:
                continue
            old_leaf, new_leaf = _leaf(one), _leaf(other)
            if old_leaf or new_leaf:
                found.append(Delta(path, old_leaf, new_leaf))
            if one is not old_leaf or other is not new_leaf:
                left += self._differing(path, one, other)
        return sorted(found, key=lambda delta: delta.path)

    def _differing(
        self, path: str, old: Entry | None, new: Entry | None
    ) -> list[tuple[str, Entry | None, Entry | None]]:
        before = self.tree(old.oid) if old and old.mode == TREE else {}
        after = self.tree(new.oid) if new and new.mode == TREE else {}
        prefix = path + "/" if path else ""
        names = {name for name, _ in before.items() ^ after.items()}
        return [(prefix + name, before.get(name), after.get(name)) for name in names]

    # --- history

    def line(self, tip: Oid, *, until: Oid | None = None, touching: Collection[str] = ()) -> Sequence[Oid]:
        """Return the first-parent chain from ``tip``, newest first."""
        return self.walker.line(tip, until, touching)

    def between(
        self, tips: Collection[Oid], without: Collection[Oid], *, touching: Collection[str] = ()
    ) -> Sequence[Oid]:
        """Return the commits reachable from ``tips`` and not from ``without``, parents before children."""
        return self.walker.between(tips, without, touching)

    def _touches(self, oid: Oid, paths: Collection[str], first: bool) -> bool:
        commit = self.commit(oid)
        mine = self._at(commit.tree, paths)
        if not commit.parents:
            return any(one is not None for one in mine)
        parents = commit.parents[:1] if first else commit.parents
        return any(self._at(self.commit(parent).tree, paths) != mine for parent in parents)

    def _at(self, tree: Oid, paths: Collection[str]) -> list[Entry | None]:
        return [self._below(Entry(TREE, tree), path) for path in paths]

    def is_ancestor(self, old: Oid, new: Oid) -> bool:
        """Say whether ``old`` is reachable from ``new``."""
        return old == new or self.walker.is_ancestor(old, new)

    def remerge(self, first: Oid, second: Oid) -> Oid | None:
        """Return the tree of the merge of two commits as git itself makes it."""
        self.commit(first), self.commit(second)
        self.flush()
        made = remerge(self.git, first, second)
        if made is None:
            return None
        self.database.lent.update(made.objects)
        return made.tree

    def signature(self, commit: Oid, keys: Collection[str]) -> Signature:
        """Check the commit's signature against ``keys``."""
        return self._verifier.check(commit, keys)

    # --- writing

    def write_blob(self, data: bytes) -> Oid:
        """Write a blob and return its id."""
        return self._write("blob", data)

    def _write(self, kind: str, data: bytes) -> Oid:
        oid = oid_of(kind, data)
        self.database.write(oid, kind, data)
        return oid

    def write_tree(self, base: Oid | None, changes: Mapping[str, bytes | Entry | None]) -> Oid:
        """Return the tree that is ``base`` with some paths changed.

        A change of a folder counts before the changes below it, in whatever order they are given.
        """
        nested = Folder()
        self._take_up(base)
        for path, content in changes.items():
            nested.at(path).content = content
            self._take_up(content.oid if isinstance(content, Entry) else None)
        start = Entry(TREE, base) if base else None
        made = self._written(start, nested) if nested.below else start
        return made.oid if made else self._write("tree", b"")

    def _take_up(self, oid: Oid | None) -> None:
        """See that what only a remerge made is written, now that it is used."""
        found = self.database.lent.pop(oid, None) if oid else None
        if oid and found:
            self.database.write(oid, *found)
            for entry in self.tree(oid).values() if found[0] == "tree" else ():
                self._take_up(entry.oid)

    def _written(self, old: Entry | None, node: Folder) -> Entry | None:
        """Write what a node says; None where nothing is left."""
        content = node.content
        if content is not KEEP:
            old = self._leaf(old, content) if isinstance(content, bytes) else content
        if not node.below:
            return old
        base = old.oid if old and old.mode == TREE else None
        entries = dict(self.tree(base)) if base else {}
        for name, below in node.below.items():
            made = self._written(entries.get(name), below)
            if made is None:
                entries.pop(name, None)
            else:
                entries[name] = made
        if not entries:
            return _leaf(old)  # a file stays where only something below it was to go
        return Entry(TREE, self._folder(base, entries))

    def _leaf(self, old: Entry | None, data: bytes) -> Entry:
        made = Entry(FILE, oid_of("blob", data))
        if made != old:  # what stands in the base is there already
            self.database.write(made.oid, "blob", data)
        return made

    def _folder(self, base: Oid | None, entries: dict[str, Entry]) -> Oid:
        data = render_tree(entries)
        oid = oid_of("tree", data)
        if oid != base:
            self.database.write(oid, "tree", data)
            self._trees.put(oid, entries)
        return oid

    def write_commit(self, draft: Draft) -> Oid:
        """Write a commit and return its id."""
        self._take_up(draft.tree)
        author = draft.author or self.identity()
        stamp = f"{int((draft.when or datetime.now(UTC)).timestamp())} +0000"
        if draft.sign:
            self.flush()
            return sign_commit(self.git, self.user, draft, author, stamp)
        who = f"{clean(author.name)} <{clean(author.email)}> {stamp}"
        return self._write("commit", render_commit(draft.tree, draft.parents, who, draft.message))

    def identity(self) -> Author:
        """Return who the user is, as his git says it."""
        if self._identity is None:
            self._identity = user_identity(self.user)
        return self._identity

    def flush(self) -> None:
        """Make everything written so far durable."""
        self.database.flush()

    def close(self) -> None:
        """End the child processes and forget the imported keys."""
        self.database.close()
        self._verifier.close()


def _leaf(entry: Entry | None) -> Entry | None:
    return entry if entry and entry.mode != TREE else None


KEEP: Any = object()
"""The content of a node that is not changed itself."""


class Folder:
    """A node of nested changes: what itself becomes, and the changes below it."""

    __slots__ = ("below", "content")

    def __init__(self) -> None:
        self.content: bytes | Entry | None = KEEP
        self.below: dict[str, Folder] = {}

    def at(self, path: str) -> Folder:
        """Return the node at a path, which is made if needed.

        Raises:
            Misuse: the path is none that git can hold (rule ``bad-path``).
        """
        node = self
        for name in path.split("/"):
            if name in ("", ".", "..") or name.lower() == ".git" or "\0" in name:
                raise Misuse(f"{path!r} is no path that git can hold", rule="bad-path")
            node = node.below.setdefault(name, Folder())
        return node


class Recent(Generic[T]):
    """The values that were used most recently, up to a number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: OrderedDict[Oid, T] = OrderedDict()

    def get(self, oid: Oid) -> T | None:
        """Return the value, if it is still known."""
        found = self.values.get(oid)
        if found is not None:
            self.values.move_to_end(oid)
        return found

    def put(self, oid: Oid, value: T) -> None:
        """Remember a value; the one unused for longest goes."""
        self.values[oid] = value
        if len(self.values) > self.most:
            self.values.popitem(last=False)
