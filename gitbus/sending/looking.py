"""Step 1, look: does the line hold, and which items pass every check that needs no channel?

Example: ``looking.ready(*looking.look(), ())`` returns what may be sent, and what may not and why.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from gitbus.board import Board, ItemBoard
from gitbus.errors import Refused, Unreachable
from gitbus.flow.sending import why_not_now
from gitbus.history import Oid
from gitbus.hub.base import Hub
from gitbus.journal import Journal
from gitbus.pins import see_tip, seen_tip
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import Effective, sending_on
from gitbus.proof.forge import Forge
from gitbus.proof.leases import leases_of
from gitbus.proof.line import line_findings
from gitbus.proof.values import Proof
from gitbus.proposals import why_not_message
from gitbus.reading import Reader
from gitbus.sending.values import Ready, Sent
from gitbus.stillness import Stillness
from gitbus.version import refuse_old


class Looking:
    """Looks at one bus before anything is sent.

    Args:
        hub: the shared repository.
        root: the commit that began the bus, as it is pinned.
        state: the clone's local state, where the tip that was seen last is kept.
        now: what time it is.
        reader: reads the bus.
        journal: what this clone sent or was about to send.
        forge: what knows who merged, where there is a forge.
    """

    def __init__(
        self,
        hub: Hub,
        root: Oid,
        state: Path,
        now: Callable[[], datetime],
        reader: Reader,
        journal: Journal,
        forge: Forge | None,
    ) -> None:
        self.hub = hub
        self.root = root
        self.state = state
        self.now = now
        self.reader = reader
        self.journal = journal
        self.forge = forge
        self.stillness = Stillness(hub.store, reader, state)

    def look(self) -> tuple[Board, Effective]:
        """Fetch, and make sure that the line holds.

        Raises:
            Refused: it does not.
        """
        tip = self.hub.look()[self.hub.main]
        effective = self.reader.effective(tip)
        known = seen_tip(self.state)
        findings = line_findings(self.hub.store, tip, self.root, effective, seen=known, proved=known)
        if findings:
            raise Refused(findings[0].message, rule=findings[0].rule, remedy=findings[0].remedy)
        self._agreed(tip, effective)
        see_tip(self.state, tip)
        refuse_old(effective.bus)
        return self.reader.board(tip), effective

    def _agreed(self, tip: Oid, effective: Effective) -> None:
        """Make sure that a forge whose word may count tells of the very branch that git tells of.

        Raises:
            Unreachable: it does not, or could not be asked.
        """
        wrong = effective.unasked[:1]
        if not wrong and self.forge is not None and effective.bus.approval.proof == "github":
            lacking = self.forge.agrees(self.hub.store, tip)
            wrong = (lacking,) if lacking is not None else ()
        for one in wrong:
            raise Unreachable(one.message, rule=one.rule, remedy=one.remedy or None)

    def ready(
        self, board: Board, effective: Effective, named: tuple[str, ...]
    ) -> tuple[list[Ready], list[Sent]]:
        """Return the items that may be sent now, and what was found of the others; all, or those named."""
        off = sending_on(effective, self.hub.store)
        wrong = self.stillness.wrong(board)
        ready: list[Ready] = []
        refused: list[Sent] = []
        for name in named:
            if name not in board.items or board.items[name].state not in ("approved", "sent"):
                state = board.items[name].state if name in board.items else "unknown"
                refused.append(Sent(name, "refused", f"it is {state}, not approved"))
        for name, part in sorted(board.items.items()):
            if part.item is None or part.state != "approved" or (named and name not in named):
                continue
            if off is not None:
                refused.append(Sent(name, "refused", f"{off.rule}: {off.message}"))
                continue
            found = self._examine(board, effective, part)
            if isinstance(found, Ready) and name in wrong:
                found = Sent(name, "refused", f"{wrong[name].rule}: {wrong[name].message}")
            if isinstance(found, Sent):
                refused.append(found)
            else:
                ready.append(found)
        return ready, refused

    def _examine(self, board: Board, effective: Effective, part: ItemBoard) -> Ready | Sent:
        """Check one approved item in every respect that does not need its channel."""
        item, now = part.item, self.now()
        if item is None:
            return Sent(part.id, "refused", "its record cannot be read")
        if self.journal.knows(item.id, item.attempt):
            return Sent(item.id, "refused", "journal-knows: this clone was about to send this attempt before")
        store, branch = self.hub.store, self.hub.main
        proof = prove_approval(
            store,
            board.commit,
            item.id,
            root=self.root,
            now=now,
            bus=effective,
            branch=branch,
            forge=self.forge,
        )
        if not proof.proved or proof.commit is None:
            return _unproved(item.id, proof)
        approved_at = self.hub.store.commit(proof.commit).committer.when
        waiting = why_not_now(item, board.bus, approved_at, now)
        if waiting:
            return Sent(
                item.id, "refused" if waiting[0] == "expired" else "later", f"{waiting[0]}: {waiting[1]}"
            )
        channel = board.bus.channels.get(item.channel)
        if channel is None:
            return Sent(item.id, "refused", f"unknown-channel: bus.yaml has no channel {item.channel}")
        for rule, _, why in why_not_message(item.message, channel):
            return Sent(item.id, "refused", f"{rule}: {why}")
        for found in leases_of(
            store,
            board.commit,
            item.id,
            root=self.root,
            bus=effective,
            branch=branch,
            now=now,
            forge=self.forge,
        ):
            if found.attempt == item.attempt:
                return Sent(item.id, "refused", f"lease-exists: attempt {item.attempt} has a lease already")
            if not found.closed:
                return Sent(
                    item.id, "refused", f"lease-open: the lease of attempt {found.attempt} is not closed"
                )
        return Ready(part, proof)


def _unproved(item: str, proof: Proof) -> Sent:
    """Say why an approval proves nothing: for good, or because it could not be asked just now."""
    later = all(one.rule == "unasked" for one in proof.missing)
    first = proof.missing[0]
    return Sent(item, "later" if later else "refused", f"{first.rule}: {first.message}")
