"""Accepting a history that does not hold: an approver's signed word on what was put beside the line.

Rules: the commit names the tips that it accepts and has them as further parents, names the Bus's
blob, and leaves no item approved. Its signer is an approver not only of the Bus on the line, but of
every Bus on what he accepts: somebody whose removal was put aside cannot accept that it was.

Example: ``acceptances(history, line, root, found)[0].covers(history, oid)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gitbus import paths
from gitbus.errors import Refused
from gitbus.history import TREE, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.messages import ACCEPT, BUS, trailers
from gitbus.proof.reads import read_at
from gitbus.proof.standing import approver_of, own_work
from gitbus.records import Item


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An approver's word: the commit, and the tips that it accepts."""

    commit: Oid
    tips: tuple[Oid, ...]
    root: Oid

    def covers(self, history: History, oid: Oid) -> bool:
        """Say whether a commit beside the line is accepted."""
        return any(history.is_ancestor(oid, tip) for tip in self.tips) and self._may(history, oid)

    def _may(self, history: History, oid: Oid) -> bool:
        """Say whether who signed was an approver under the Bus of the line that a commit stands on."""
        try:
            bus = effective(history, oid, self.root).bus
        except (Refused, KeyError):
            return True  # it stands on no line of this bus, so no Bus of ours says who may
        return approver_of(history, self.commit, bus) is not None


def acceptances(history: History, line: Iterable[Oid], root: Oid, found: Effective) -> list[Acceptance]:
    """Return every acceptance on a line that counts."""
    return [one for oid in line if (one := _acceptance(history, oid, root, found)) is not None]


def _acceptance(history: History, oid: Oid, root: Oid, found: Effective) -> Acceptance | None:
    commit = history.commit(oid)
    tips = trailers(commit.message, ACCEPT) if ACCEPT in commit.message else ()
    if not tips or not set(tips) <= set(commit.parents[1:]) or own_work(commit, named=True) is not None:
        return None
    if trailers(commit.message, BUS) != (found.version(history, oid).blob,):
        return None
    if approver_of(history, oid, found.at(history, commit.parents[0])) is None or _approved(history, oid):
        return None
    accepted = Acceptance(oid, tips, root)
    return accepted if all(accepted.covers(history, tip) for tip in tips) else None


def _approved(history: History, oid: Oid) -> bool:
    """Say whether any item is approved in a commit."""
    outbox = history.entry(oid, "outbox")
    names = history.tree(outbox.oid) if outbox is not None and outbox.mode == TREE else {}
    items = (read_at(history, oid, paths.item(name), Item) for name in names)
    return any(item is not None and item.state == "approved" for item in items)
