"""Accepting a history that does not hold: an approver's signed word, after he looked at it.

Example: ``accept_history(bus)`` names the tips that were put aside, and demotes what was approved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitbus.board import Board
from gitbus.change import Change
from gitbus.errors import Refused
from gitbus.flow.items import demote
from gitbus.history import Oid
from gitbus.hub.base import Store
from gitbus.pins import seen_tip
from gitbus.proof.line import ACCEPT, line_findings
from gitbus.proof.reads import brought_by

if TYPE_CHECKING:
    from gitbus.bus.core import Done, OpenBus


def accept_history(bus: OpenBus) -> Done:
    """Commit that the tips beside the line are accepted, signed with the user's key.

    Raises:
        Refused: the line holds; there is nothing to accept.
    """
    store = bus.hub.store
    tip = bus.refs()[bus.hub.main]
    effective = bus.effective()
    seen = seen_tip(bus.state)
    findings = line_findings(store, tip, bus.root, effective, seen=seen, proved=None)
    if not findings:
        raise Refused("the line holds; there is nothing to accept", rule="nothing-to-accept")
    aside = _aside(store, tip, seen, [one.commit for one in findings if one.rule == "hidden-history"])

    def decide(board: Board) -> Change:
        approved = [
            (name, "history was accepted")
            for name, part in sorted(board.items.items())
            if part.state == "approved"
        ]
        back = demote(board, approved, bus.now())
        writes = back[0].writes if back else {}
        about = back[0].about if back else ()
        trailers = (("Gitbus-Bus", effective.blob), *((ACCEPT, one) for one in aside))
        return Change("accept", "the history as it is", writes, about, parents=aside, trailers=trailers)

    return bus.commit(decide, sign=True)


def _aside(store: Store, tip: Oid, seen: Oid | None, hidden: Iterable[Oid]) -> tuple[Oid, ...]:
    """Return the tips that merges brought from beside the line, and the seen tip that is gone."""
    line = store.line(tip)
    found: dict[Oid, None] = {seen: None} if seen is not None and seen not in line else {}
    oldest_first = list(reversed(line))
    for oid in hidden:
        merge = store.commit(brought_by(store, oid, oldest_first))
        found |= {side: None for side in merge.parents[1:] if store.is_ancestor(oid, side)}
    return tuple(found)
