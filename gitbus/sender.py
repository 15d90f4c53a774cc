"""The sender: takes what is approved, proves it once more, sends it at most once, and says so.

A round begins with the journal: what was begun is finished before anything new is looked at. Then,
channel by channel: look, identity, lease, journal, send, journal, attest. The steps and what is
left when any of them is the last stand in ``docs/sending.md``.

Example::

    with Sender(hub, root, state, os.environ) as sender:
        for sent in sender.round():
            print(sent.item, sent.outcome)
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from gitbus import ids, paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change
from gitbus.clock import utc_now
from gitbus.errors import HubMoved, Refused, Unreachable
from gitbus.flow.archive import late
from gitbus.flow.items import strand_broken
from gitbus.flow.sending import Nonces, attest, lease, lease_of, room, why_not_now
from gitbus.history import Oid
from gitbus.hub.base import Hub, RefMove
from gitbus.journal import Journal, JournalEntry
from gitbus.pins import see_tip, seen_tip
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import Effective, sending_on
from gitbus.proof.forge import Forge
from gitbus.proof.leases import leases_of
from gitbus.proof.line import line_findings
from gitbus.proof.values import Proof
from gitbus.proposals import why_not_message
from gitbus.reading import Reader
from gitbus.records import Channel, Lease, Receipt
from gitbus.records.item import Delivery, ProofLine, ReceiptApproval, ReceiptChannel
from gitbus.transports.base import Answer, Identity, Outgoing, Part, Transport, Unusable, clock
from gitbus.transports.spawn import open_channel
from gitbus.version import refuse_old
from gitbus.writing import SENDER, Writer

TRIES = 30
Outcome = Literal["sent", "later", "failed", "stuck", "refused", "would-send"]
Opener = Callable[[str, Mapping[str, Any], Mapping[str, str]], Transport]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a round did with one item."""

    item: str
    outcome: Outcome
    reason: str | None = None
    receipt: str | None = None


@dataclass(frozen=True)
class _Ready:
    """An item that passed every check, on the board that it passed them."""

    part: ItemBoard
    proof: Proof


class Sender:
    """The one sender of a clone.

    Args:
        hub: the shared repository.
        root: the commit that began the bus, as it is pinned.
        state: the clone's local state.
        environment: where the channels' secrets are.
        now: what time it is.
        opener: makes a channel's transport.
        holder: who sends, as leases and receipts say it.
        forge: what knows who merged, where there is a forge.
    """

    def __init__(
        self,
        hub: Hub,
        root: Oid,
        state: Path,
        environment: Mapping[str, str],
        now: Callable[[], datetime] = utc_now,
        opener: Opener = open_channel,
        holder: str | None = None,
        forge: Forge | None = None,
    ) -> None:
        self.hub = hub
        self.root = root
        self.state = state
        self.environment = environment
        self.now = now
        self.opener = opener
        self.holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        self.stopping: Callable[[], bool] = lambda: False
        """Asked before every new lease; what is leased is finished whatever it says."""
        self.journal = Journal(state)
        self.forge = forge
        self.reader = Reader(hub.store, root, forge)
        self.writer = Writer(hub.store, SENDER, self.reader.remember)

    def __enter__(self) -> Self:
        """Return the sender."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let another sender have the clone."""
        self.journal.close()

    # --- a round

    def round(self, items: Iterable[str] = (), *, dry_run: bool = False) -> list[Sent]:
        """Finish what was begun, then send what may be sent now.

        Args:
            items: only these, where any are named.
            dry_run: stop before the lease and say what would be sent.

        Raises:
            Refused: the line does not hold, or the flag is off and items were named.
            Unreachable: the hub cannot be used.
        """
        done = [] if dry_run else self._finish()
        named = tuple(items)
        board, effective = self._look()
        ready, refused = self._ready(board, effective, named)
        done += refused if dry_run else self._stranded(board, refused)
        for channel in sorted({one.part.item.channel for one in ready if one.part.item}):
            mine = [one for one in ready if one.part.item and one.part.item.channel == channel]
            done += (self._would if dry_run else self._over)(channel, mine, board)
        return done

    def _look(self) -> tuple[Board, Effective]:
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

    # --- step 1: look

    def _ready(
        self, board: Board, effective: Effective, named: tuple[str, ...]
    ) -> tuple[list[_Ready], list[Sent]]:
        off = sending_on(effective, self.hub.store)
        ready: list[_Ready] = []
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
            if isinstance(found, Sent):
                refused.append(found)
            else:
                ready.append(found)
        return ready, refused

    def _examine(self, board: Board, effective: Effective, part: ItemBoard) -> _Ready | Sent:
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
        return _Ready(part, proof)

    def _stranded(self, board: Board, refused: list[Sent]) -> list[Sent]:
        """Put what has a lease that nobody closed before a human, where the board alone does not show it.

        Lost to somebody faster it is done in the next round.
        """
        broken = {
            one.item: one for one in refused if (one.reason or "").startswith(("lease-open", "lease-exists"))
        }
        why = [(item, "stuck", (one.reason or "").split(": ", 1)[-1]) for item, one in broken.items()]
        for change in strand_broken(board, why):
            made = self.writer.commits(board.commit, [change], self.now(), sign=self._signs(board))[0]
            self.hub.move([RefMove(self.hub.main, board.commit, made)])
        return [replace(one, outcome="stuck") if one.item in broken else one for one in refused]

    # --- steps 2 to 7, for one channel

    def _would(self, name: str, ready: list[_Ready], board: Board) -> list[Sent]:
        """Say what would be sent over one channel, once it let itself be checked."""
        fields = board.bus.channels[name].model_dump(mode="json", by_alias=True)
        try:
            transport = self.opener(name, fields, self.environment)
            try:
                transport.check()
            finally:
                transport.close()
        except Unusable as error:
            return [_unusable(one, error) for one in ready]
        return [Sent(one.part.id, "would-send") for one in ready]

    def _over(self, name: str, ready: list[_Ready], board: Board) -> list[Sent]:
        """Send what is ready over one channel, batch by batch on one connection."""
        definition = board.bus.channels[name]
        most = room(board, name, self.now())
        mine = ready if most is None else ready[:most]
        done = [
            Sent(one.part.id, "later", "rate: the channel's rate is used up") for one in ready[len(mine) :]
        ]
        if not mine:
            return done
        fields = definition.model_dump(mode="json", by_alias=True)
        try:
            transport = self.opener(name, fields, self.environment)
        except Unusable as error:
            return done + [_unusable(one, error) for one in mine]
        try:
            identity = transport.check()
            size = board.bus.sending.batch
            for start in range(0, len(mine), size):
                if self.stopping():
                    break
                done += self._batch(transport, identity, definition, mine[start : start + size])
        except Unusable as error:
            told = {one.item for one in done}
            done += [_unusable(one, error) for one in mine if one.part.id not in told]
        finally:
            transport.close()
        return done

    def _batch(
        self, transport: Transport, identity: Identity, definition: Channel, batch: list[_Ready]
    ) -> list[Sent]:
        leased, refused = self._lease(batch)
        entries = [
            self._transmit(transport, identity, definition, one, claim, commit, nonces)
            for one, claim, commit, nonces in leased
        ]
        self._attest(entries)
        return refused + [self._told(entry) for entry in entries] + self._untouched(leased, entries)

    def _lease(self, batch: list[_Ready]) -> tuple[list[tuple[_Ready, Lease, Oid, Nonces]], list[Sent]]:
        """Take what is still ready on the very branch that was looked at, by compare-and-swap."""
        names = tuple(one.part.id for one in batch)
        for attempt in range(TRIES):
            board, effective = self._look()
            ready, refused = self._ready(board, effective, names)
            if not ready:
                return [], refused
            now = self.now()
            claims = [self._claim(one, board, effective, now) for one in ready]
            change = lease((one.part, claim) for one, claim, _ in claims)
            tip = board.commit
            made = self.writer.commits(tip, [change], now, sign=self._signs(board))[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                return [(one, claim, made, nonces) for one, claim, nonces in claims], refused
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
        raise HubMoved("the bus's branch moved each time a lease was made", rule="hub-moved")

    def _claim(
        self, one: _Ready, board: Board, effective: Effective, now: datetime
    ) -> tuple[_Ready, Lease, Nonces]:
        if one.part.item is None or one.proof.commit is None:
            raise ValueError("an item that is not ready")
        nonces = Nonces(secrets.token_hex(16), secrets.token_hex(16))
        claim = lease_of(
            one.part.item,
            approval=one.proof.commit,
            bus_blob=effective.blob,
            holder=self.holder,
            nonces=nonces,
            now=now,
            lasts=board.bus.sending.lease,
        )
        return one, claim, nonces

    @staticmethod
    def _signs(board: Board) -> bool:
        return bool(board.bus.sending.keys)

    def _transmit(
        self,
        transport: Transport,
        identity: Identity,
        definition: Channel,
        one: _Ready,
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
            context={**_on_whose_word(one.proof), "channel": _over_what(identity, definition)},
        )
        self.journal.begin(entry)
        answer = self._answer(transport, one, claim)
        over = _over_what(answer.identity, definition) if answer.identity else None
        return self.journal.answered(entry, _answer_json(answer), over, ids.time_text(self.now()))

    def _answer(self, transport: Transport, one: _Ready, claim: Lease) -> Answer:
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

    # --- step 7, and what was left open

    def _finish(self) -> list[Sent]:
        """Attest what earlier rounds left open; what has no answer is unknown, whatever it was."""
        entries = []
        for entry in self.journal.unfinished():
            if entry.stage == "about":
                answer = _answer_json(
                    Answer(outcome="unknown", reason="the sender died while it was sending")
                )
                entry = self.journal.answered(entry, answer, None, ids.time_text(self.now()))
            entries.append(entry)
        if entries:
            self._attest(entries)
        return [self._told(entry) for entry in entries]

    def _attest(self, entries: list[JournalEntry]) -> None:
        """Commit the receipts, on newer and newer tips until they land."""
        pairs = [(Lease.model_validate(entry.lease), _receipt(entry)) for entry in entries]
        attempt = 0
        while pairs:
            tip = self.hub.look()[self.hub.main]
            board = self.reader.board(tip)
            away = self._archived(board, entries)
            parts = {name: part for name, (_, part) in away.items()}
            whole = replace(board, items={**board.items, **parts})
            change: Change | None = attest(whole, pairs, self.now())
            if change is None:
                break
            change = late(change, {name: folder for name, (folder, _) in away.items()})
            made = self.writer.commits(tip, [change], self.now(), sign=self._signs(board))[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                break
            attempt += 1
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 7)))  # noqa: S311 - jitter
        for entry in entries:
            part = self._part(entry.item)
            if part is not None and entry.attempt in part.receipts:
                self.journal.attested(entry)

    def _archived(self, board: Board, entries: Iterable[JournalEntry]) -> dict[str, tuple[str, ItemBoard]]:
        """Return what is archived of these items by now, each with its folder there."""
        gone = [entry.item for entry in entries if entry.item not in board.items]
        found = {item: self.reader.archived(board.commit, item) for item in gone}
        return {item: there for item, there in found.items() if there is not None}

    def _part(self, item: str) -> ItemBoard | None:
        """Return an item as it stands now, in the archive too."""
        tip = self.hub.look()[self.hub.main]
        here = self.reader.board(tip).items.get(item)
        there = self.reader.archived(tip, item) if here is None else None
        return there[1] if there is not None else here

    def _told(self, entry: JournalEntry) -> Sent:
        part = self._part(entry.item)
        state = part.state if part else "stuck"
        outcome: Outcome = {"sent": "sent", "failed": "failed", "approved": "later"}.get(state, "stuck")  # type: ignore[assignment]
        answer = entry.answer or {}
        return Sent(entry.item, outcome, answer.get("reason"), paths.receipt(entry.item, entry.attempt))

    @staticmethod
    def _untouched(
        leased: list[tuple[_Ready, Lease, Oid, Nonces]], entries: list[JournalEntry]
    ) -> list[Sent]:
        done = {entry.item for entry in entries}
        return [
            Sent(one.part.id, "stuck", "leased and not sent")
            for one, _, _, _ in leased
            if one.part.id not in done
        ]


def _unusable(one: _Ready, error: Unusable) -> Sent:
    return Sent(one.part.id, "later", f"{error.rule}: {error.message}")


def _unproved(item: str, proof: Proof) -> Sent:
    """Say why an approval proves nothing: for good, or because it could not be asked just now."""
    later = all(one.rule == "unasked" for one in proof.missing)
    first = proof.missing[0]
    return Sent(item, "later" if later else "refused", f"{first.rule}: {first.message}")


def _over_what(identity: Identity, definition: Channel) -> dict[str, Any]:
    channel = ReceiptChannel(
        id=identity.channel,
        transport=definition.transport,
        host=identity.host,
        tls=identity.tls_version,
        certificate_subject=identity.certificate_subject,
        certificate_sha256=identity.certificate_sha256,
        identity=identity.authenticated_as,
    )
    return channel.model_dump(mode="json")


def _on_whose_word(proof: Proof) -> dict[str, Any]:
    approval = ReceiptApproval(
        commit=proof.commit or "0" * 40,
        people=proof.people,
        proof="github" if any(one.assurance == "recorded" for one in proof.verified) else "signature",
        verified=tuple(
            ProofLine(what=one.what, assurance=one.assurance, evidence=one.evidence) for one in proof.verified
        ),
    )
    return {"approval": approval.model_dump(mode="json")}


def _answer_json(answer: Answer) -> dict[str, Any]:
    found = asdict(answer)
    found.pop("identity", None)
    return found


def _receipt(entry: JournalEntry) -> Receipt:
    answer, context = entry.answer or {}, entry.context or {}
    outcome = answer["outcome"]
    return Receipt.model_validate(
        {
            "item": entry.item,
            "revision": entry.lease["revision"],
            "attempt": entry.attempt,
            "digest": entry.digest,
            "outcome": outcome,
            "nonce": entry.nonces.get(outcome),
            "passing": bool(answer.get("passing")) and outcome == "not_sent",
            "reason": answer.get("reason"),
            "lease": entry.lease_commit,
            "sender": entry.lease["holder"],
            "approval": context["approval"],
            "channel": context["channel"],
            "recipients": [
                Delivery(recipient=who, answer=said) for who, said in (answer.get("recipients") or {}).items()
            ],
            "message_id": answer.get("message_id"),
            "provider_id": answer.get("provider_id"),
            "leased_at": entry.lease["leased_at"],
            "finished_at": entry.finished_at,
        }
    )
