"""The audit on its way along the line: what it knows before each commit, and what that commit changed.

Example: ``Step(oid, commit, deltas, look)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from gitbus.auditing.values import Finding, Open
from gitbus.edits import Look, Memo, Still
from gitbus.history import Commit, Delta, Entry, History, Oid
from gitbus.proof.bus import Effective
from gitbus.proof.claims import Claims
from gitbus.proof.forge import Forge
from gitbus.records import Item, Record

R = TypeVar("R", bound=Record)


@dataclass
class Walk:
    """The audit on its way along the line: the effective Bus ``before`` the present commit, and ``at`` it.

    ``items`` are the items as they could be read last, ``still`` what was changed against the rules and
    not put right since, and ``claims`` every lease and receipt of the whole history.
    """

    history: History
    root: Oid
    branch: str
    before: Effective
    at: Effective
    forge: Forge | None
    memo: Memo
    claims: Claims
    items: dict[str, Item] = field(default_factory=dict)
    still: Still = field(default_factory=Still)
    open: list[Open] = field(default_factory=list)
    sent: int = 0
    proved: int = 0
    recorded: int = 0

    def read(self, entry: Entry | None, path: str, model: type[R]) -> R | None:
        """Return the record in a tree's entry; None where there is none that can be read."""
        return self.memo.read(entry, path, model)


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of the line, with what it changed but did not merely put back."""

    oid: Oid
    commit: Commit
    deltas: tuple[Delta, ...]
    look: Look


Check = Callable[[Walk, Step], Iterator[Finding]]
"""Looks at one commit of the line and yields what the history should not hold."""
