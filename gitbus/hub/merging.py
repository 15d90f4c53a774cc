"""Making a merge again as git makes it by itself, where no configuration or attribute can have a say.

Rules: it runs in an empty repository of its own that only borrows the objects, so that no merge
driver, no attribute and no setting of anybody takes part, and nothing is written to the repository.

Example: ``remerge(git, ours, theirs)`` returns the tree and the new objects, or None for a conflict.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitbus.history import Oid
from gitbus.hub.run import Git, failed

_CLEAN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
_FILES = {
    "HEAD": "ref: refs/heads/none\n",
    "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
}


@dataclass(frozen=True)
class Remerged:
    """The tree of a merge, and the objects that were made for it (kind and bytes by id)."""

    tree: Oid
    objects: Mapping[Oid, tuple[str, bytes]]


def remerge(git: Git, first: Oid, second: Oid) -> Remerged | None:
    """Merge two commits; None where they conflict.

    Raises:
        Unreachable: git could not do it.
    """
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        room = _room(Path(folder), git.git_dir / "objects")
        ran = Git(room).run("merge-tree", "--write-tree", "--no-messages", first, second, env=_CLEAN)
        if ran.code == 1:
            return None
        if ran.code != 0:
            raise failed("git merge-tree failed", ran, room, rule="git-failed", remedy="git 2.38 or newer")
        return Remerged(ran.text.split()[0], _loose(room / "objects"))


def _room(room: Path, objects: Path) -> Path:
    """Make a bare repository with nothing of its own that sees the given objects."""
    for name in ("refs", "objects", "objects/info"):
        (room / name).mkdir()
    for name, text in _FILES.items():
        (room / name).write_text(text, "utf-8")
    (room / "objects/info/alternates").write_text(f"{_quoted(objects.resolve())}\n", "utf-8")
    return room


def _quoted(path: Path) -> str:
    """Return a path as ``alternates`` takes it; one that begins with a quote or ends oddly is quoted."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _loose(objects: Path) -> dict[Oid, tuple[str, bytes]]:
    found = {}
    for path in objects.glob("[0-9a-f][0-9a-f]/*"):
        header, _, data = zlib.decompress(path.read_bytes()).partition(b"\0")
        found[path.parent.name + path.name] = (header.split()[0].decode(), data)
    return found
