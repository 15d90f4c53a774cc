r"""A repository as values: the view that the core reads, and the writing that actors do.

Example::

    tree = store.write_tree(store.commit(tip).tree, {"goals/a/goal.yaml": b"…"})
    commit = store.write_commit(Draft(tree, (tip,), "add a\\n"))
    store.flush()
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from gitbus.errors import Refused, Unreachable
from gitbus.history import FILE, TREE, Commit, Delta, Entry, Oid, Signature
from gitbus.hub.base import Author, Draft
from gitbus.hub.database import Database
from gitbus.hub.objects import oid_of, parse_commit, parse_tree, render_commit, render_tree
from gitbus.hub.run import Git, said
from gitbus.hub.signing import Verifier, sign_commit

T = TypeVar("T")

WALKED = 300
"""Up to so many commits are walked here before git is asked."""

_TREES = 20_000
_COMMITS = 50_000


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
        self._commits: _Recent[Commit] = _Recent(_COMMITS)
        self._trees: _Recent[dict[str, Entry]] = _Recent(_TREES)
        self._verifier = Verifier(self.database)
        self._identity: Author | None = None

    # --- objects

    def commit(self, oid: Oid) -> Commit:
        """Return the commit."""
        found = self._commits.get(oid)
        if found is None:
            found = parse_commit(oid, self._of_kind(oid, "commit"))
            self._commits.put(oid, found)
        return found

    def tree(self, oid: Oid) -> Mapping[str, Entry]:
        """Return the tree's own entries by name."""
        found = self._trees.get(oid)
        if found is None:
            found = parse_tree(self._of_kind(oid, "tree"))
            self._trees.put(oid, found)
        return found

    def blob(self, oid: Oid) -> bytes:
        """Return the blob's bytes."""
        return self._of_kind(oid, "blob")

    def size(self, oid: Oid) -> int:
        """Return an object's size in bytes."""
        return self.database.size(oid)

    def _of_kind(self, oid: Oid, kind: str) -> bytes:
        found, data = self.database.read(oid)
        if found != kind:
            raise KeyError(oid)
        return data

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
        self._differ(under, before, after, found)
        return sorted(found, key=lambda one: one.path)

    def _differ(self, path: str, old: Entry | None, new: Entry | None, found: list[Delta]) -> None:
        if old == new:
            return
        old_tree = self.tree(old.oid) if old and old.mode == TREE else {}
        new_tree = self.tree(new.oid) if new and new.mode == TREE else {}
        leaf = (old if old and old.mode != TREE else None, new if new and new.mode != TREE else None)
        if leaf != (None, None):
            found.append(Delta(path, *leaf))
        prefix = path + "/" if path else ""
        for name in old_tree.keys() | new_tree.keys():
            self._differ(prefix + name, old_tree.get(name), new_tree.get(name), found)

    # --- history

    def line(self, tip: Oid, *, until: Oid | None = None, touching: Collection[str] = ()) -> Sequence[Oid]:
        """Return the first-parent chain from ``tip``, newest first."""
        walked: list[Oid] = []
        here: Oid | None = tip
        while here is not None and here != until:
            if len(walked) >= WALKED:
                return self._picked(walked, touching) + self._line_by_git(here, until, touching)
            walked.append(here)
            parents = self.commit(here).parents
            here = parents[0] if parents else None
        return self._picked(walked, touching)

    def _picked(self, line: list[Oid], touching: Collection[str]) -> list[Oid]:
        return [oid for oid in line if self._touches(oid, touching, first=True)] if touching else line

    def _line_by_git(self, tip: Oid, until: Oid | None, touching: Collection[str]) -> list[Oid]:
        self.database.flush()
        paths = ["--", *sorted(touching)] if touching else []
        command = ["rev-list", "--first-parent", "--full-history", tip]
        if until is None or not self._is_on_line(until, tip):
            return self.git.text(*command, *paths).split()
        return self.git.text(*command, f"^{until}", *paths).split()

    def _is_on_line(self, old: Oid, tip: Oid) -> bool:
        """Say whether ``old`` is on the first-parent chain of ``tip``."""
        chain = self.git.text("rev-list", "--first-parent", "--parents", tip, f"^{old}").split("\n")
        return chain[-1].split()[1:2] == [old]

    def between(
        self, tips: Collection[Oid], without: Collection[Oid], *, touching: Collection[str] = ()
    ) -> Sequence[Oid]:
        """Return the commits reachable from ``tips`` and not from ``without``, parents before children."""
        short = self._straight(tips, without)
        if short is None:
            self.database.flush()
            order = self.git.text(
                "rev-list",
                "--topo-order",
                "--reverse",
                "--stdin",
                given="\n".join([*tips, *(f"^{one}" for one in without)]).encode() + b"\n",
            )
            short = order.split()
        if not touching:
            return short
        return [oid for oid in short if self._touches(oid, touching, first=False)]

    def _straight(self, tips: Collection[Oid], without: Collection[Oid]) -> list[Oid] | None:
        """Walk a single chain without merges down to ``without``; None where it is not that simple."""
        if len(tips) != 1 or len(without) != 1:
            return None
        base = next(iter(without))
        line = self._recent_line(base)
        walked: list[Oid] = []
        here = next(iter(tips))
        while here != base and here not in line:
            parents = self.commit(here).parents
            if len(parents) != 1 or len(walked) >= WALKED:
                return None
            walked.append(here)
            here = parents[0]
        return walked[::-1]

    def _recent_line(self, tip: Oid) -> frozenset[Oid]:
        """Return some commits that are surely reachable from ``tip``: its newest ones, merged ones too."""
        known: set[Oid] = set()
        here: Oid | None = tip
        while here is not None and len(known) < WALKED:
            known.add(here)
            parents = self.commit(here).parents
            known.update(parents)
            here = parents[0] if parents else None
        return frozenset(known)

    def _touches(self, oid: Oid, paths: Collection[str], *, first: bool) -> bool:
        commit = self.commit(oid)
        parents = commit.parents[:1] if first else commit.parents
        here = Entry(TREE, commit.tree)
        mine = [self._below(here, path) for path in paths]
        if not parents:
            return any(one is not None for one in mine)
        return any(
            [self._below(Entry(TREE, self.commit(parent).tree), path) for path in paths] != mine
            for parent in parents
        )

    def is_ancestor(self, old: Oid, new: Oid) -> bool:
        """Say whether ``old`` is reachable from ``new``."""
        if old == new or old in self._recent_line(new):
            return True
        self.database.flush()
        ran = self.git.run("merge-base", "--is-ancestor", old, new)
        if ran.code not in (0, 1):
            raise KeyError(old)
        return ran.code == 0

    def remerge(self, first: Oid, second: Oid) -> Oid | None:
        """Return the tree of the merge of two commits as git itself makes it."""
        self.database.flush()
        ran = self.git.run(
            "merge-tree", "--write-tree", "--no-messages", "--allow-unrelated-histories", first, second
        )
        if ran.code == 0:
            return ran.out.decode().split()[0]
        if ran.code == 1:
            return None
        raise Unreachable(
            f"git merge-tree failed: {said(ran.err)}", rule="git-failed", remedy="git 2.38 or newer"
        )

    def signature(self, commit: Oid, keys: Collection[str]) -> Signature:
        """Check the commit's signature against ``keys``."""
        return self._verifier.check(commit, tuple(keys))

    # --- writing

    def write_blob(self, data: bytes) -> Oid:
        """Write a blob and return its id."""
        return self._write("blob", data)

    def _write(self, kind: str, data: bytes) -> Oid:
        oid = oid_of(kind, data)
        self.database.write(oid, kind, data)
        return oid

    def write_tree(self, base: Oid | None, changes: Mapping[str, bytes | Entry | None]) -> Oid:
        """Return the tree that is ``base`` with some paths changed."""
        nested: dict[str, Any] = {}
        for path, content in changes.items():
            folder = nested
            *above, name = path.split("/")
            for step in above:
                inner = folder.get(step)
                if not isinstance(inner, dict):
                    inner = folder[step] = {}
                folder = inner
            if not isinstance(folder.get(name), dict):
                folder[name] = content
        return self._written(base, nested) or self._write("tree", b"")

    def _written(self, base: Oid | None, changes: Mapping[str, Any]) -> Oid | None:
        """Write a folder; None where nothing is left in it."""
        entries = dict(self.tree(base)) if base else {}
        for name, content in changes.items():
            entry: Entry | None
            if isinstance(content, dict):
                old = entries.get(name)
                below = self._written(old.oid if old and old.mode == TREE else None, content)
                entry = Entry(TREE, below) if below else None
            elif isinstance(content, bytes):
                entry = Entry(FILE, self.write_blob(content))
            else:
                entry = content
            if entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        if not entries:
            return None
        oid = self._write("tree", render_tree(entries))
        self._trees.put(oid, entries)
        return oid

    def write_commit(self, draft: Draft) -> Oid:
        """Write a commit and return its id."""
        author = draft.author or self.identity()
        when = draft.when or datetime.now(UTC)
        stamp = f"{int(when.timestamp())} +0000"
        line = f"{_clean(author.name)} <{_clean(author.email)}> {stamp}"
        if draft.sign:
            self.database.flush()
            return sign_commit(self.git, self.user, draft, author, stamp)
        return self._write("commit", render_commit(draft.tree, draft.parents, line, line, draft.message))

    def identity(self) -> Author:
        """Return who the user is, as his git says it.

        Raises:
            Refused: it does not say (rule ``no-identity``).
        """
        if self._identity is None:
            ran = self.user.run("var", "GIT_COMMITTER_IDENT")
            name, _, rest = ran.out.decode("utf-8", "replace").rpartition(" <")
            named = self.user.run("config", "user.email").code == 0
            if ran.code != 0 or not named:
                raise Refused(
                    "git does not know who you are",
                    rule="no-identity",
                    remedy="git config --global user.name 'Your Name' && git config --global user.email you@example.org",
                )
            self._identity = Author(name, rest.partition(">")[0])
        return self._identity

    def flush(self) -> None:
        """Make everything written so far durable."""
        self.database.flush()

    def close(self) -> None:
        """End the reader."""
        self.database.close()


def _clean(text: str) -> str:
    return "".join(char for char in text if char not in "<>\n\0").strip() or "unknown"


class _Recent(Generic[T]):
    """The values that were used most recently, up to a number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: OrderedDict[Oid, T] = OrderedDict()

    def get(self, oid: Oid) -> T | None:
        found = self.values.get(oid)
        if found is not None:
            self.values.move_to_end(oid)
        return found

    def put(self, oid: Oid, value: T) -> None:
        self.values[oid] = value
        if len(self.values) > self.most:
            self.values.popitem(last=False)
