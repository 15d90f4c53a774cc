"""Leases: every claim that was ever made on an item, and whether anybody may still be sending under it.

Rules: a lease is looked for by path in every commit that the branch can reach, side branches and
all, and told apart by its seals; it ends when it *first* said, whatever was written over it. It is
closed by a receipt that opens it as ``not_sent`` while none opens it as ``sent``, or by an approver's
resolution after everybody's clock has passed its end. Where ``sending.keys`` is set, a receipt
counts only in a commit that one of them signed.

Example: ``[one for one in leases_of(history, tip, item, root=root) if not one.closed]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from gitbus import paths
from gitbus.history import History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.claims import (
    Said,
    bus_before,
    claim_findings,
    claims_of,
    counts,
    keyed_line,
    receipts_in,
)
from gitbus.proof.decisions import ProvedResolution, proved_resolutions, resolutions
from gitbus.proof.forge import Forge
from gitbus.proof.reads import read_entry
from gitbus.proof.values import Finding, Proof
from gitbus.records import Lease, Receipt, Resolution
from gitbus.seals import opened

Outcome = Literal["sent", "not_sent"]


@dataclass(frozen=True, slots=True)
class FoundLease:
    """A lease, the commit that first showed it, and what was said of it since.

    ``lease`` is None where the file could not be read: somebody claims something, nobody knows what.
    """

    attempt: int
    commit: Oid
    lease: Lease | None
    ends: datetime  # as it first said
    opened: frozenset[Outcome] = frozenset()  # what receipts prove
    resolved: bool = False
    unasked: bool = False  # a resolution is there whose proof could not be asked for

    @property
    def closed(self) -> bool:
        """Whether nobody can be sending under it any more, and it surely sent nothing."""
        return "sent" not in self.opened and ("not_sent" in self.opened or self.resolved)


def leases_of(
    history: History,
    tip: Oid,
    item: str,
    *,
    root: Oid,
    bus: Effective | None = None,
    branch: str = "main",
    now: datetime | None = None,
    forge: Forge | None = None,
) -> tuple[FoundLease, ...]:
    """Return every lease of an item in any commit reachable from ``tip``, in the order they came.

    Args:
        history: the repository.
        tip: a commit of the line.
        item: the item's id.
        root: the commit that began the bus.
        bus: the effective Bus at ``tip`` or before, where it is known.
        branch: the bus's branch.
        now: the time; a resolution dated after it closes nothing.
        forge: what a forge knows of merges, where there is one.
    """
    said = claims_of(history, tip, item)
    claims = [one for one in said if one.kind == "lease"]
    if not claims:
        return ()
    found = effective(history, tip, root, known=bus, forge=forge)
    keyed = keyed_line(history, tip, found, item)
    receipts = [receipt for one, receipt in receipts_in(history, said) if counts(history, one, found, keyed)]
    words = list(resolutions(history, tip, item, found, branch, now=now, forge=forge))
    line = frozenset(history.line(tip, touching=[paths.item_folder(item)]))
    leases = _leases(history, claims, line, found)
    return tuple(_told(history, lease, receipts, words, found) for lease in leases)


# --- leases


def _leases(
    history: History, claims: Sequence[Said], line: frozenset[Oid], found: Effective
) -> Iterator[FoundLease]:
    """Yield each lease once, as the line first showed it; it ends no earlier than any version before says."""
    versions: dict[tuple[str, str], list[tuple[Said, Lease]]] = {}
    for one in claims:
        lease = read_entry(history, one.delta.new, one.delta.path, Lease)
        if lease is None:
            yield FoundLease(one.attempt, one.commit, None, _at_the_latest(history, one.commit, found))
        else:
            versions.setdefault((lease.seals.sent, lease.seals.not_sent), []).append((one, lease))
    for group in versions.values():
        first, lease = next((pair for pair in group if pair[0].commit in line), group[0])
        before = [
            other
            for one, other in group
            if first.commit not in line or history.is_ancestor(one.commit, first.commit)
        ]
        yield FoundLease(lease.attempt, first.commit, lease, max(other.expires_at for other in before))


def _at_the_latest(history: History, oid: Oid, found: Effective) -> datetime:
    """Return when a lease ends that nobody can read: the longest that the bus ever allowed until then.

    It is counted from its commit, or from the commit before where that is dated later.
    """
    commit = history.commit(oid)
    made = max(history.commit(one).committer.when for one in (oid, *commit.parents))
    allowed = [one.bus.sending.lease for one in found.advances if history.is_ancestor(one.commit, oid)]
    return made + max(allowed, default=found.bus.sending.lease)


def _told(
    history: History,
    found: FoundLease,
    receipts: Iterable[Receipt],
    words: Iterable[tuple[Oid, Resolution, Proof]],
    bus: Effective,
) -> FoundLease:
    said = {opened(found.lease, one) for one in receipts} if found.lease else set()
    closing = [proof for oid, resolution, proof in words if _closes(history, oid, resolution, found, bus)]
    return replace(
        found,
        opened=frozenset(one for one in said if one is not None),
        resolved=any(one.proved for one in closing),
        unasked=any(one.unasked for one in closing),
    )


def _closes(history: History, oid: Oid, resolution: Resolution, lease: FoundLease, bus: Effective) -> bool:
    """Say whether a resolution, if it is one, is about this lease too, after its end and the quarantine."""
    quarantine = bus_before(history, oid, bus).sending.quarantine
    return (
        resolution.verdict == "not_sent"
        and history.commit(oid).committer.when >= lease.ends + quarantine
        and history.is_ancestor(lease.commit, oid)
    )


# --- what was written by whom it was not to be


def lease_findings(
    history: History, tip: Oid, item: str, *, root: Oid, bus: Effective | None = None
) -> tuple[Finding, ...]:
    """Return every lease and receipt of an item that proves nothing, each at the commit that made it."""
    found = effective(history, tip, root, known=bus)
    said = claims_of(history, tip, item)
    keyed = keyed_line(history, tip, found, item) if said else ()
    return tuple(claim_findings(history, said, item, found, keyed))


__all__ = ["FoundLease", "ProvedResolution", "lease_findings", "leases_of", "proved_resolutions"]
