"""A repository that a test writes commit by commit: unsigned or signed by anybody, on any branch, at any date.

Commits are written in this process; what a person does with git is done by git, with his key.

Example: ``GitRepo(folder, "main", START).commit({"a.txt": "hello\\n"}, parents=[], by="ada", key="ada")``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gitbus import codec
from gitbus.history import FILE, TREE, Entry, Oid
from gitbus.hub.objects import render_tree
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from gitbus.records import Record
from tests.support.busparts import ident, key, session, sign, with_signature

Content = bytes | str | Record | Entry | None


@functools.cache
def _template() -> Path:
    path = session() / "template"
    subprocess.run(["git", "init", "-q", "--template=", "-b", "main", str(path)], check=True)
    config = path / ".git" / "config"
    config.write_text(config.read_text() + "[receive]\n\tdenyCurrentBranch = ignore\n[gc]\n\tauto = 0\n")
    return path


class GitRepo:
    """One repository, hub and working clone at once.

    ``now`` goes a minute forward with every commit.

    Args:
        folder: where it goes.
        branch: the branch that commits go on.
        now: the time at which it begins.
    """

    def __init__(self, folder: Path, branch: str, now: datetime) -> None:
        self.folder = folder
        shutil.copytree(_template(), folder, symlinks=True)
        self.branch = branch
        self.now = now
        self._open: list[GitStore] = []
        self.store = self.fresh()
        if branch != "main":
            (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")

    # --- git

    def fresh(self) -> GitStore:
        """Return a view of the repository that remembers nothing."""
        git = Git(self.folder / ".git")
        self._open.append(GitStore(git, git))
        return self._open[-1]

    def close(self) -> None:
        """End the processes that read."""
        for store in self._open:
            store.close()
        self._open = []

    def git(
        self, who: str | None, *arguments: str, at: Path | None = None, check: bool = True, **env: str
    ) -> str:
        """Run git in the working clone (or at another place), as a person with his key; returns what it printed."""
        settings = ["-c", "gpg.format=ssh", "-c", "advice.diverging=false", "-c", "merge.conflictStyle=merge"]
        if who is not None:
            settings += ["-c", f"user.name={who.title()}", "-c", f"user.email={who}@test"]
            settings += ["-c", f"user.signingkey={key(who)}"]
        stamp = self.tick().isoformat()
        done = subprocess.run(
            ["git", "-C", str(at or self.folder), *settings, *arguments],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "GIT_AUTHOR_DATE": stamp,
                "GIT_COMMITTER_DATE": stamp,
                "GIT_MERGE_AUTOEDIT": "no",
                **env,
            },
        )
        if check and done.returncode != 0:
            raise AssertionError(f"git {arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def clone(self, who: str) -> Path:
        """Return a person's own clone, set up to sign; it is made at the first call."""
        place = self.folder.parent / f"clone-{who}"
        if not place.exists():
            self.git(
                who, "clone", "-q", "-b", self.branch, str(self.folder), str(place), at=self.folder.parent
            )
            for name, value in (
                ("user.name", who.title()),
                ("user.email", f"{who}@test"),
                ("pull.rebase", "false"),
            ):
                self.git(who, "config", name, value, at=place)
        return place

    def tick(self, **more: float) -> datetime:
        """Let time go on, by a minute unless told otherwise."""
        self.now += timedelta(**(more or {"minutes": 1}))
        return self.now

    @property
    def tip(self) -> Oid:
        """What the bus's branch is at."""
        return self.at(self.branch)

    def at(self, branch: str) -> Oid:
        """Return what a branch is at."""
        return (self.folder / ".git" / "refs" / "heads" / branch).read_text().strip()

    def point(self, branch: str, oid: Oid) -> Oid:
        """Let a branch be at a commit, whatever it was at."""
        path = self.folder / ".git" / "refs" / "heads" / branch
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(oid + "\n")
        return oid

    def checkout(self) -> None:
        """Bring the working tree to where the bus's branch is."""
        self.git(None, "reset", "-q", "--hard", self.branch)

    # --- commits

    def object(self, kind: str, data: bytes) -> Oid:
        """Write an object as git would, but for the fsync."""
        whole = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = self.folder / ".git" / "objects" / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
        return oid

    def blob(self, content: Content) -> Oid:
        """Write a blob: a record as it is written canonically, a text in UTF-8."""
        data = codec.write(content) if isinstance(content, Record) else content
        return self.object("blob", data.encode() if isinstance(data, str) else data)  # type: ignore[arg-type]

    def tree(self, base: Oid | None, changes: Mapping[str, Content]) -> Oid:
        """Return a tree: another one's with some paths changed."""
        entries = dict(self.store.tree(base)) if base else {}
        below: dict[str, dict[str, Content]] = {}
        for path, content in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = content
            elif content is None:
                entries.pop(name, None)
            else:
                entries[name] = content if isinstance(content, Entry) else Entry(FILE, self.blob(content))
        for name, inner in below.items():
            old = entries.pop(name, None)
            oid = self.tree(old.oid if old and old.mode == TREE else None, inner)
            if self.store.tree(oid):
                entries[name] = Entry(TREE, oid)
        return self.object("tree", render_tree(entries))

    def commit(
        self,
        changes: Mapping[str, Content] | None = None,
        message: str = "change",
        *,
        by: str = "conductor",
        key: str | None = None,
        parents: Sequence[Oid] | None = None,
        on: str | None = None,
        author: str | None = None,
        committer: str | None = None,
        when: datetime | None = None,
        tree: Oid | None = None,
    ) -> Oid:
        """Write a commit and move a branch to it.

        Args:
            changes: path to content, made to the first parent's tree.
            message: the whole message.
            by: author and committer.
            key: whose key signs it; nobody's where it is None.
            parents: the parents; the branch's tip where they are left out.
            on: the branch that moves, which need not exist yet; the bus's where it is left out.
            author: the whole author line, where it is to be another.
            committer: the whole committer line, where it is to be another.
            when: the date of both lines.
            tree: the whole tree, instead of the first parent's.
        """
        branch = on or self.branch
        found = list(parents) if parents is not None else [self.at(branch)]
        base = tree or (self.store.commit(found[0]).tree if found else None)
        line = ident(by, when or self.tick())
        head = [f"tree {self.tree(base, changes or {})}", *(f"parent {one}" for one in found)]
        head += [f"author {author or line}", f"committer {committer or line}"]
        data = ("\n".join(head) + "\n\n" + message.rstrip("\n") + "\n").encode()
        if key is not None:
            data = with_signature(data, sign(data, key))
        return self.point(branch, self.object("commit", data))

    def detached(
        self, changes: Mapping[str, Content] | None = None, message: str = "aside", **how: Any
    ) -> Oid:
        """Write a commit that no branch of the bus is at."""
        return self.commit(changes, message, on="scratch", **{"parents": [self.tip], **how})
