"""Lease and attest: the sender's two commits, and what each outcome leaves of an item. All pure.

Rules: a lease shows the seals of two secrets, a receipt opens the one of its outcome; an outcome
that nobody knows leaves the item ``stuck``, whatever anybody would like; only what was surely not
sent, for a reason that passes by itself, is tried again, and only so often.

Example: ``after(item, "not_sent", passing=True, tried=1, bus=bus, now=now).state == "approved"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gitbus import ids, paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, Content, Thread, plain
from gitbus.records import Bus, Item, Lease, Receipt
from gitbus.records.item import Seals
from gitbus.seals import opened

PAUSES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=25))
"""How long an item waits after its first, second and every later passing failure."""


@dataclass(frozen=True, slots=True)
class Nonces:
    """The two secrets of a lease, 32 hex digits each, that only its holder has."""

    sent: str
    not_sent: str

    def seals(self) -> Seals:
        """Return what the lease shows of them."""
        return Seals(sent=ids.seal_of(self.sent), not_sent=ids.seal_of(self.not_sent))


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a transmission, in the flow's words."""

    outcome: Literal["sent", "not_sent", "unknown"]
    passing: bool
    reason: str | None


def why_not_now(item: Item, bus: Bus, approved_at: datetime, now: datetime) -> tuple[str, str] | None:
    """Return (rule, reason) for an approved item that must not go yet or any more; None if it may."""
    if item.expires_at is not None and now >= item.expires_at:
        return "expired", f"it expired at {ids.time_text(item.expires_at)}"
    for rule, until in (
        ("hold", approved_at + bus.sending.hold),
        ("send-at", item.send_at),
        ("not-before", item.not_before),
    ):
        if until is not None and now < until:
            return rule, f"it waits until {ids.time_text(until)}"
    return None


def room(board: Board, channel: str, now: datetime) -> int | None:
    """Return how many items the channel's rate lets through now; None where it has none."""
    definition = board.bus.channels.get(channel)
    if definition is None or definition.rate is None:
        return None
    most, period = ids.rate(definition.rate)
    since = now - period
    used = sum(
        lease.leased_at > since
        for part in board.items.values()
        if part.item is not None and part.item.channel == channel
        for lease in part.leases.values()
    )
    return max(0, most - used)


def lease_of(
    item: Item, *, approval: str, bus_blob: str, holder: str, nonces: Nonces, now: datetime, lasts: timedelta
) -> Lease:
    """Return the claim on an item's present attempt."""
    return Lease(
        item=item.id,
        revision=item.revision,
        attempt=item.attempt,
        digest=item.digest,
        approval=approval,
        bus=bus_blob,
        holder=holder,
        seals=nonces.seals(),
        leased_at=now,
        expires_at=now + lasts,
    )


def lease(parts: Iterable[tuple[ItemBoard, Lease]]) -> Change:
    """Return the one commit that takes some approved items."""
    writes: dict[str, Content] = {}
    lines, about = [], []
    for part, claim in parts:
        if part.item is None:
            continue
        writes[paths.lease(claim.item, claim.attempt)] = claim
        writes[paths.item(claim.item)] = part.item.model_copy(update={"state": "sending", "reason": None})
        lines.append(f"{claim.item}#{claim.attempt}: until {ids.time_text(claim.expires_at)}")
        about.append(Thread(item=claim.item, attempt=claim.attempt))
    subject = lines[0] if len(lines) == 1 else f"{len(lines)} items"
    return Change("lease", subject, writes, tuple(about), tuple(lines) if len(lines) > 1 else ())


def after(item: Item, told: Told, *, tried: int, bus: Bus, now: datetime) -> Item:
    """Return an item in ``sending`` once its own lease's outcome is told.

    Args:
        item: the item, in ``sending``.
        told: the outcome.
        tried: how many attempts there were under this approval, this one included.
        bus: the effective Bus.
        now: the time.
    """
    if told.outcome == "sent":
        return item.model_copy(update={"state": "sent", "reason": None, "not_before": None})
    if told.outcome == "unknown":
        return item.model_copy(update={"state": "stuck", "reason": told.reason or "the outcome is unknown"})
    if told.passing and tried < bus.sending.attempts:
        pause = PAUSES[min(tried, len(PAUSES)) - 1]
        return item.model_copy(
            update={
                "state": "approved",
                "attempt": item.attempt + 1,
                "not_before": now + pause,
                "reason": told.reason,
            }
        )
    return item.model_copy(update={"state": "failed", "reason": told.reason})


def late(item: Item, told: Told) -> Item:
    """Return an item that is no longer in ``sending`` under this lease, once its outcome is told."""
    if told.outcome == "sent":
        return item.model_copy(update={"state": "sent", "reason": None, "not_before": None})
    if item.state in ("sent", "withdrawn") or told.outcome == "not_sent":
        return item
    return item.model_copy(update={"state": "stuck", "reason": told.reason or "the outcome is unknown"})


def attest(board: Board, receipts: Iterable[tuple[Lease, Receipt]], now: datetime) -> Change | None:
    """Return the commit that says what became of some leases; None where all of it is said already.

    A lease that the branch does not hold any more (it was put back) is written again: what was done
    was done.
    """
    writes: dict[str, Content] = {}
    lines: list[str] = []
    about: list[Thread] = []
    for claim, receipt in receipts:
        part = board.items.get(claim.item)
        if part is None or part.item is None:
            continue
        known = part.receipts.get(claim.attempt)
        if known is not None and known.lease == receipt.lease and part.leases.get(claim.attempt) == claim:
            continue
        told = Told(receipt.outcome, receipt.passing, receipt.reason)
        item = _attested(part, claim, told, board.bus, now)
        if part.leases.get(claim.attempt) is None:
            writes[paths.lease(claim.item, claim.attempt)] = claim
        writes[paths.receipt(claim.item, claim.attempt)] = receipt
        if item != part.item:
            writes[paths.item(claim.item)] = item
        shown = receipt.outcome + (f", {plain(receipt.reason)}" if receipt.reason else "")
        lines.append(f"{claim.item}#{claim.attempt}: {shown}")
        about.append(Thread(item=claim.item, attempt=claim.attempt))
    if not lines:
        return None
    subject = lines[0] if len(lines) == 1 else f"{len(lines)} items"
    return Change("attest", subject, writes, tuple(about), tuple(lines) if len(lines) > 1 else ())


def _attested(part: ItemBoard, claim: Lease, told: Told, bus: Bus, now: datetime) -> Item:
    item = part.item
    if item is None:
        raise ValueError(f"{part.id} has no item")
    mine = part.leases.get(claim.attempt)
    if (
        item.state == "sending"
        and item.attempt == claim.attempt
        and mine is not None
        and mine.seals == claim.seals
    ):
        tried = sum(one.approval == claim.approval for one in part.leases.values())
        return after(item, told, tried=tried, bus=bus, now=now)
    if mine is None and told.outcome != "sent" and item.state not in ("sent", "withdrawn"):
        return item.model_copy(
            update={
                "state": "stuck",
                "attempt": claim.attempt,
                "reason": "its lease had gone from the branch",
            }
        )
    return late(item, told)


def broken_rules(board: Board) -> Mapping[str, tuple[str, str]]:
    """Return the items that stand where their own leases say they cannot: item → (state to go to, why)."""
    found: dict[str, tuple[str, str]] = {}
    for name, part in board.items.items():
        item = part.item
        if item is None or part.problems:
            continue
        outcomes = {attempt: opened(one, part.receipts.get(attempt)) for attempt, one in part.leases.items()}
        if "sent" in outcomes.values():
            if item.state not in ("sent", "withdrawn"):
                found[name] = ("sent", "a receipt opens its lease as sent")
        elif item.state == "sent" and not any(one.verdict == "sent" for one in part.resolutions.values()):
            found[name] = ("stuck", "nothing proves that it was sent")
        elif item.state in ("in_review", "awaiting_approval", "approved", "failed"):
            why = _unclosed(part, item, outcomes)
            if why:
                found[name] = ("stuck", why)
    return found


def _unclosed(part: ItemBoard, item: Item, outcomes: Mapping[int, str | None]) -> str | None:
    if item.attempt in outcomes and item.state != "failed":
        return f"attempt {item.attempt} has a lease already"
    resolved = {attempt for attempt, one in part.resolutions.items() if one.verdict == "not_sent"}
    for attempt, outcome in outcomes.items():
        if outcome is None and not any(attempt <= one for one in resolved):
            return f"the lease of attempt {attempt} is not closed"
    return None
