"""The audit on its way along the line: what it knows before each commit, and what that commit changed.

Example: ``Step(oid, commit, deltas, "absorb")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gitbus.auditing.values import Finding, Open
from gitbus.history import Commit, Delta, History, Oid
from gitbus.proof.bus import Effective
from gitbus.proof.forge import Forge
from gitbus.records import Item, Lease


@dataclass
class Walk:
    """The audit on its way along the line: the effective Bus ``before`` the present commit, and ``at`` it."""

    history: History
    root: Oid
    branch: str
    before: Effective
    at: Effective
    forge: Forge | None
    items: dict[str, Item] = field(default_factory=dict)
    leases: dict[str, dict[int, Lease]] = field(default_factory=dict)
    open: list[Open] = field(default_factory=list)
    sent: int = 0
    proved: int = 0
    recorded: int = 0


@dataclass(frozen=True)
class Step:
    """One commit of the line, with what it changed."""

    oid: Oid
    commit: Commit
    deltas: tuple[Delta, ...]
    verb: str


Check = Callable[[Walk, Step], Iterator[Finding]]
"""Looks at one commit of the line and yields what the history should not hold."""
