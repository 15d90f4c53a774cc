"""Keeping a repository quick: many small packs and loose objects become one pack, without losing any.

Rules: safe beside writers and readers; no object is ever thrown away, reachable or not; one process
at a time, and nothing is done where little would be gained.

Example: ``maintain(hub)`` after a tick.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

from gitbus.effects import effect
from gitbus.hub.base import Hub
from gitbus.hub.direct import DirectHub
from gitbus.hub.push import PushHub
from gitbus.hub.run import Git

PACKS = 50
"""More packs than these are rolled up."""

LOOSE = 2_000
"""More loose objects than these (as estimated from one folder of 256) are packed."""


def maintain(hub: Hub | Git, *, packs: int = PACKS, loose: int = LOOSE) -> bool:
    """Repack a repository where it is worth it, and write its commit-graph.

    Args:
        hub: the repository, or the hub whose objects it holds.
        packs: so many packs are left as they are.
        loose: so many loose objects are left as they are.

    Returns:
        Whether something was done.

    Raises:
        Unreachable: git could not do it (the disk is full, say); nothing was lost.
    """
    git = hub.git if isinstance(hub, DirectHub | PushHub) else hub
    if not isinstance(git, Git) or not _is_worth_it(git.git_dir / "objects", packs, loose):
        return False
    with (git.git_dir / "gitbus-maintenance").open("ab") as file:  # stays: it is no lock that was left behind
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        effect("object-write", "repack")
        git.text("repack", "--geometric=2", "-d", "-q", "--no-write-bitmap-index")
        git.text("commit-graph", "write", "--reachable", "--changed-paths", "--split", "--no-progress")
    return True


def _is_worth_it(objects: Path, packs: int, loose: int) -> bool:
    if sum(1 for _ in (objects / "pack").glob("*.pack")) > packs:
        return True
    sample = sum(1 for _ in (objects / "17").glob("*"))
    return sample * 256 > loose
