"""What a forge is to gitbus: it shows what waits, hears what people say there, and knows who merged.

A third forge implements :class:`Forge`; the branches below ``gitbus/approve/`` are kept by
:mod:`gitbus.forge.plain` on every host alike. Rules: a forge never changes the bus. What it hears is
a word that narrows (reject, redo), which the conductor commits; what widens is proved from the merge.
Everything it does is level-triggered: it compares what is shown with what shall be, and may be
interrupted anywhere.

Example::

    for said in forge.hear(board, refs):
        print(said.verb, said.item, said.by)
    while forge.keep(View(board, refs, flips, now)):
        pass
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from gitbus.board import Board
from gitbus.history import Oid
from gitbus.proof.forge import Forge as ProofForge


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said of an item on the forge: it is rejected, or is to be done again."""

    verb: Literal["reject", "redo"]
    item: str
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """What shall be shown: the board, the hub's refs, and which items each approval branch puts up.

    ``bus`` is the blob of the effective ``bus.yaml``.
    """

    board: Board
    bus: Oid
    refs: Mapping[str, Oid]
    branches: Mapping[str, tuple[str, ...]]  # name below gitbus/approve/ → items
    now: datetime


class Acting(Protocol):
    """What a person does on the forge from a terminal, to the branch that puts something up."""

    def merge(self, ref: str, commit: Oid) -> Oid:
        """Merge what shows a branch, if it is still at this commit; return the merge."""
        ...

    def review(self, ref: str, commit: Oid, verdict: Literal["ok", "no"], note: str | None) -> bool:
        """Review it at this commit; False where the forge lets its author not do that."""
        ...

    def close(self, ref: str, commit: Oid, reason: str) -> None:
        """Close it without a merge, which rejects what it shows."""
        ...


class Forge(Protocol):
    """One repository on a forge, with the rights of the token that this process has."""

    troubles: list[str]
    """What could not be done of late, for people; whoever shows it clears it."""

    @property
    def proof(self) -> ProofForge | None:
        """What knows who merged; None where only signatures prove anything."""
        ...

    @property
    def acting(self) -> Acting | None:
        """What a person does there; None where only git is there."""
        ...

    def hear(self, board: Board, refs: Mapping[str, Oid]) -> Sequence[Said]:
        """Return what people said there and the bus does not hold yet; nothing where it cannot be asked."""
        ...

    def keep(self, view: View) -> bool:
        """Do the next few things that make what is shown what it shall be; say whether anything was done."""
        ...

    def close(self) -> None:
        """End the connections."""
        ...


class PlainForge:
    """A git host, and nothing more: branches are merged, and nobody is heard."""

    def __init__(self) -> None:
        """Begin without troubles."""
        self.troubles: list[str] = []

    @property
    def proof(self) -> ProofForge | None:
        """Return nothing: only signatures prove."""
        return None

    @property
    def acting(self) -> Acting | None:
        """Return nothing: people use git."""
        return None

    def hear(self, board: Board, refs: Mapping[str, Oid]) -> Sequence[Said]:
        """Hear nobody."""
        del board, refs
        return ()

    def keep(self, view: View) -> bool:
        """Do nothing; the branches themselves are what is shown."""
        del view
        return False

    def close(self) -> None:
        """Have nothing to end."""
