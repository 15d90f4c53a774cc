"""Hubs of every kind with clones of them, for tests of what a hub promises.

Example::

    with hub_of("http", tmp_path, setenv) as made:
        hub = made.open("ada")          # a clone of its own, opened as an actor does
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gitbus.history import Oid
from gitbus.hub import Author, Draft, RefMove, create_clone, create_hub, open_hub
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from tests.support import httpgit, sshgit

ADA = Author("Ada", "ada@acme.example")
WHEN = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
MAIN = "refs/heads/main"
FOREIGN_HOOK = "#!/bin/sh\nexit 0\n"


@dataclass
class Made:
    """A hub with its first commit, and the clones that were opened."""

    kind: str
    bare: Path
    url: str
    root: Oid
    drop: threading.Event = field(default_factory=threading.Event)
    hubs: list[Any] = field(default_factory=list)

    def clone(self, name: str) -> Path:
        """Return the clone of this name, which is made if needed."""
        folder = self.bare.parent / name
        if not folder.exists():
            create_clone(self.url, folder, "main")
        return folder

    def open(self, name: str) -> Any:
        """Open the hub from the clone of this name."""
        hub = open_hub(self.clone(name))
        self.hubs.append(hub)
        return hub

    def fsck(self) -> None:
        """Have git look whether everything is as it should be."""
        subprocess.run(
            ["git", "fsck", "--strict", "--no-dangling"], cwd=self.bare, check=True, capture_output=True
        )


def add_hook(bare: Path, name: str, text: str = FOREIGN_HOOK) -> None:
    """Give a repository a hook that is not gitbus's own."""
    path = bare / "hooks" / name
    path.write_text(text)
    path.chmod(0o755)


def first_commit(git: Git, files: dict[str, bytes] | None = None, branch: str = "main") -> Oid:
    """Put a first commit on a branch of a new repository."""
    store = GitStore(git, git)
    tree = store.write_tree(None, files or {"bus.yaml": b"kind: Bus\n", "goals/a/goal.yaml": b"a\n"})
    root = store.write_commit(Draft(tree, (), "begin", ADA, WHEN))
    store.flush()
    store.close()
    git.text("update-ref", f"refs/heads/{branch}", root)
    return root


@contextmanager
def hub_of(kind: str, folder: Path, setenv: Callable[[str, str], None]) -> Iterator[Made]:
    """Make a hub that is reached in one of the ways: direct, path, file, http, ssh."""
    git = create_hub(folder / "acme.git", "main")
    made = Made(kind, git.git_dir, str(git.git_dir), first_commit(git))
    if kind in ("path", "file"):
        add_hook(git.git_dir, "post-receive")
    if kind == "file":
        made.url = f"file://{git.git_dir}"
    try:
        if kind == "http":
            git.text("config", "http.receivepack", "true")
            with httpgit.serve(folder) as (url, drop):
                made.url, made.drop = f"{url}/acme.git", drop
                yield made
        elif kind == "ssh":
            (folder / "keys").mkdir()
            with sshgit.serve(folder / "keys") as (url, command):
                setenv("GIT_SSH_COMMAND", command)
                made.url = f"{url}{git.git_dir}"
                yield made
        else:
            yield made
    finally:
        for hub in made.hubs:
            hub.close()


def commit_on(hub: Any, parents: tuple[Oid, ...], files: dict[str, Any], message: str = "change") -> Oid:
    """Write a commit that changes some files of its first parent."""
    base = hub.store.commit(parents[0]).tree if parents else None
    tree = hub.store.write_tree(base, files)
    return hub.store.write_commit(Draft(tree, parents, message, ADA, WHEN))


def advance(hub: Any, files: dict[str, Any], message: str = "change") -> Oid:
    """Move the bus's branch forward by one commit; it has to work."""
    tip = hub.look()[hub.main]
    new = commit_on(hub, (tip,), files, message)
    assert hub.move([RefMove(hub.main, tip, new)]).moved(hub.main)
    return new
