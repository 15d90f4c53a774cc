"""What direct and push have in common: which refs count, and which moves may be tried at all.

Example: ``ordered(store, moves, "refs/heads/main")`` has the bus's branch first.
"""

from __future__ import annotations

from collections.abc import Sequence

from gitbus.errors import Misuse, NoBus
from gitbus.hub.base import RefMove
from gitbus.hub.store import GitStore

HEADS = "refs/heads/"
GITBUS = "refs/heads/gitbus"
"""Below it stand all refs of the bus but its branch."""


def ordered(store: GitStore, moves: Sequence[RefMove], main: str) -> list[RefMove]:
    """Return the moves with the bus's branch first, each of them checked.

    Raises:
        Misuse: a new value does not keep the old one: it does not descend from it, or on the bus's
            branch the old one is not on its first-parent line (rule ``not-descendant``).
    """
    for move in moves:
        if move.replace and move.ref != main:
            continue
        if move.old is None:
            continue
        if not _keeps(store, move, main):
            raise Misuse(
                f"{move.ref}: {move.new} does not keep {move.old} in its history", rule="not-descendant"
            )
    return sorted(moves, key=lambda move: move.ref != main)


def _keeps(store: GitStore, move: RefMove, main: str) -> bool:
    if move.new is None:
        return move.ref != main
    if move.old is None:
        return True
    if move.ref == main:
        return store.walker.is_on_line(move.old, move.new)
    return store.is_ancestor(move.old, move.new)


def no_branch(main: str) -> NoBus:
    """Return the error for a hub without the bus's branch."""
    branch = main.removeprefix(HEADS)
    return NoBus(
        f"the hub has no branch {branch} that holds a bus",
        rule="no-bus",
        remedy="name the branch (git config gitbus.branch NAME), or make a bus: gitbus init DIR",
    )
