"""Steps 4 to 6, journal, send, journal: one transmission under a lease, with its word on disk before and after.

Example: ``transmitting.transmit(transport, identity, channel, ready, lease, commit, nonces).answer``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from gitbus import ids
from gitbus.board import ItemBoard
from gitbus.errors import Refused, Unreachable
from gitbus.flow.sending import Nonces
from gitbus.history import Oid
from gitbus.hub.base import Hub
from gitbus.journal import Journal, JournalEntry
from gitbus.proof.bus import sending_on
from gitbus.reading import Reader
from gitbus.records import Channel, Lease
from gitbus.sending.receipts import answer_json, on_whose_word, over_what
from gitbus.sending.values import Ready
from gitbus.transports.base import Answer, Identity, Outgoing, Part, Transport, clock


class Transmitting:
    """Sends what is leased, each item once.

    Args:
        hub: the shared repository.
        now: what time it is.
        reader: reads the bus.
        journal: what this clone sent or was about to send.
    """

    def __init__(self, hub: Hub, now: Callable[[], datetime], reader: Reader, journal: Journal) -> None:
        self.hub = hub
        self.now = now
        self.reader = reader
        self.journal = journal

    def transmit(
        self,
        transport: Transport,
        identity: Identity,
        definition: Channel,
        one: Ready,
        claim: Lease,
        commit: Oid,
        nonces: Nonces,
    ) -> JournalEntry:
        """Send one item once, with the journal before and after it."""
        entry = JournalEntry(
            item=claim.item,
            attempt=claim.attempt,
            digest=claim.digest,
            lease_commit=commit,
            lease=claim.model_dump(mode="json"),
            nonces={"sent": nonces.sent, "not_sent": nonces.not_sent},
            context={**on_whose_word(one.proof), "channel": over_what(identity, definition)},
        )
        self.journal.begin(entry)
        answer = self._answer(transport, one, claim)
        over = over_what(answer.identity, definition) if answer.identity else None
        return self.journal.answered(entry, answer_json(answer), over, ids.time_text(self.now()))

    def _answer(self, transport: Transport, one: Ready, claim: Lease) -> Answer:
        """Return what came of the one transmission; before it began, a living sender knows that nothing did."""
        try:
            why = self._why_no_more(claim)
            outgoing = self._outgoing(one.part)
        except Unreachable as error:
            return Answer(
                outcome="not_sent", reason=f"the hub could not be looked at: {error.message}", passing=True
            )
        except Refused as error:
            return Answer(outcome="not_sent", reason=f"{error.rule}: {error.message}")
        if why is not None:
            return Answer(outcome="not_sent", reason=why, passing=True)
        left = (claim.expires_at - self.now()).total_seconds()
        return transport.send(outgoing, clock() + left)

    def _why_no_more(self, claim: Lease) -> str | None:
        """Return why a lease that was taken must not be used any more; None if it may."""
        tip = self.hub.look()[self.hub.main]
        board = self.reader.board(tip)
        part = board.items.get(claim.item)
        mine = part.leases.get(claim.attempt) if part else None
        if part is None or part.state != "sending" or mine is None or mine.seals != claim.seals:
            return "the item is no longer being sent under this lease"
        off = sending_on(self.reader.effective(tip), self.hub.store)
        if off is not None:
            return f"{off.rule}: {off.message}"
        if self.now() >= claim.expires_at:
            return "the lease is over"
        return None

    def _outgoing(self, part: ItemBoard) -> Outgoing:
        """Return what a transport gets.

        Raises:
            Refused: the payload is not what was approved (rule ``payload-changed``).
        """
        item = part.item
        if item is None:
            raise Refused(f"{part.id} has no record", rule="broken")
        parts = []
        for file in item.payload:
            entry = part.files.get(file.path)
            data = self.hub.store.blob(entry.oid) if entry else b""
            if entry is None or ids.sha256(data) != file.sha256:
                raise Refused(f"{file.path} is not what was approved", rule="payload-changed")
            parts.append(Part(file.role, file.name, file.media_type, data))
        return Outgoing(
            item=item.id,
            revision=item.revision,
            digest=item.digest,
            date=ids.time_text(self.now()),
            message=item.message.model_dump(mode="json", by_alias=True),
            parts=tuple(parts),
        )
