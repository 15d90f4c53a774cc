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
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gitbus import paths
from gitbus.history import TREE, Delta, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.decisions import ProvedResolution, proved_resolutions
from gitbus.proof.forge import Forge
from gitbus.proof.reads import brought_by, first_parent, own_changes, read_entry
from gitbus.proof.values import Finding, finding
from gitbus.records import Bus, Lease, Receipt
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

    @property
    def closed(self) -> bool:
        """Whether nobody can be sending under it any more, and it surely sent nothing."""
        return "sent" not in self.opened and ("not_sent" in self.opened or self.resolved)


@dataclass(frozen=True, slots=True)
class _Said:
    """A version of a lease's or receipt's file, and the commit that wrote it."""

    commit: Oid
    delta: Delta

    @property
    def kind(self) -> str:
        return self.name.split(".")[0]

    @property
    def name(self) -> str:
        return self.delta.path.rsplit("/", 1)[-1]

    @property
    def attempt(self) -> int:
        number = self.name.removesuffix(".yaml").rpartition(".")[2]
        return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


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
    said = _all_said(history, tip, item)
    claims = [one for one in said if one.kind == "lease"]
    if not claims:
        return ()
    found = effective(history, tip, root, known=bus, forge=forge)
    keyed = _keyed(history, tip, item, found)
    receipts = [receipt for one, receipt in _receipts(history, said) if _counts(history, one, found, keyed)]
    resolutions = proved_resolutions(history, tip, item, found, branch, now=now, forge=forge)
    line = frozenset(history.line(tip, touching=[paths.item_folder(item)]))
    leases = _leases(history, claims, line, found)
    return tuple(_told(history, lease, receipts, resolutions, found) for lease in leases)


# --- what stands in history


def _all_said(history: History, tip: Oid, item: str) -> list[_Said]:
    """Return every version of a lease or receipt of an item that any reachable commit wrote."""
    where = [paths.item_folder(item), *_archived(history, tip, item)]
    return [
        _Said(oid, delta)
        for oid in history.between([tip], [], touching=where)
        for path in where
        for delta in own_changes(history, history.commit(oid), path)
        if _is_claim(delta, path)
    ]


def _archived(history: History, tip: Oid, item: str) -> list[str]:
    """Return where the item may stand in the archive, or have stood: a month's folder outlives it."""
    archive = history.entry(tip, "archive")
    years = history.tree(archive.oid).items() if archive and archive.mode == TREE else ()
    return [
        f"archive/{year}/{month}/outbox/{item}"
        for year, inner in years
        for month in (history.tree(inner.oid) if inner.mode == TREE else {})
    ]


def _is_claim(delta: Delta, folder: str) -> bool:
    """Say whether a change wrote a lease or a receipt; what an attachment is called says nothing."""
    inner = delta.path.removeprefix(f"{folder}/")
    return delta.new is not None and inner.startswith(("lease.", "receipt."))


def _receipts(history: History, said: Iterable[_Said]) -> Iterator[tuple[_Said, Receipt]]:
    for one in said:
        if one.kind == "receipt":
            receipt = read_entry(history, one.delta.new, one.delta.path, Receipt)
            if receipt is not None:
                yield one, receipt


def _keyed(history: History, tip: Oid, item: str, found: Effective) -> Sequence[Oid]:
    """Return the line since the item's beginning, oldest first; nothing where no key was ever asked for."""
    if not any(advance.bus.sending.keys for advance in found.advances):
        return ()
    born = history.line(tip, touching=[paths.item_folder(item)])[-1]
    return list(reversed(history.line(tip, until=first_parent(history, born))))


def _counts(history: History, one: _Said, found: Effective, keyed: Sequence[Oid]) -> bool:
    """Say whether a lease or receipt was written by whoever may: with ``sending.keys``, one of them.

    What stands beside the line is judged by the Bus of the merge that brought it as well.
    """
    places = {one.commit, brought_by(history, one.commit, keyed)} if keyed else ()
    return all(
        not keys or history.signature(one.commit, keys).verdict == "good"
        for keys in (_bus_before(history, oid, found).sending.keys for oid in places)
    )


def _bus_before(history: History, oid: Oid, found: Effective) -> Bus:
    parents = history.commit(oid).parents
    return found.at(history, parents[0]) if parents else found.advances[0].bus


# --- leases


def _leases(
    history: History, claims: Sequence[_Said], line: frozenset[Oid], found: Effective
) -> Iterator[FoundLease]:
    """Yield each lease once, as the line first showed it; it ends no earlier than any version before says."""
    versions: dict[tuple[str, str], list[tuple[_Said, Lease]]] = {}
    for one in claims:
        lease = read_entry(history, one.delta.new, one.delta.path, Lease)
        if lease is None:
            made = history.commit(one.commit).committer.when
            ends = made + _bus_before(history, one.commit, found).sending.lease
            yield FoundLease(one.attempt, one.commit, None, ends)
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


def _told(
    history: History,
    found: FoundLease,
    receipts: Iterable[Receipt],
    resolutions: Iterable[ProvedResolution],
    bus: Effective,
) -> FoundLease:
    said = {opened(found.lease, one) for one in receipts} if found.lease else set()
    resolved = any(_closes(history, one, found, bus) for one in resolutions)
    outcomes = frozenset(one for one in said if one is not None)
    return FoundLease(found.attempt, found.commit, found.lease, found.ends, outcomes, resolved)


def _closes(history: History, one: ProvedResolution, lease: FoundLease, bus: Effective) -> bool:
    """Say whether a resolution was made on this lease too, after its end and the quarantine."""
    quarantine = _bus_before(history, one.commit, bus).sending.quarantine
    return (
        one.resolution.verdict == "not_sent"
        and one.at >= lease.ends + quarantine
        and history.is_ancestor(lease.commit, one.commit)
    )


# --- what was written by whom it was not to be


def lease_findings(
    history: History, tip: Oid, item: str, *, root: Oid, bus: Effective | None = None
) -> tuple[Finding, ...]:
    """Return every lease and receipt of an item that proves nothing, each at the commit that made it."""
    found = effective(history, tip, root, known=bus)
    said = _all_said(history, tip, item)
    keyed = _keyed(history, tip, item, found) if said else ()
    leases = [
        lease
        for one in said
        if one.kind == "lease" and (lease := read_entry(history, one.delta.new, one.delta.path, Lease))
    ]
    return tuple(problem for one in said for problem in _wrong(history, one, item, leases, found, keyed))


def _wrong(
    history: History,
    one: _Said,
    item: str,
    leases: Sequence[Lease],
    found: Effective,
    keyed: Sequence[Oid],
) -> Iterator[Finding]:
    model = Lease if one.kind == "lease" else Receipt
    record = read_entry(history, one.delta.new, one.delta.path, model)
    if record is None:
        yield finding("lease-unreadable", item, one.commit, one.delta.path)
        return
    if not _counts(history, one, found, keyed):
        yield finding(f"foreign-{one.kind}", item, one.commit, one.delta.path)
    if isinstance(record, Lease):
        first = next(other for other in leases if other.seals == record.seals)
        if first != record:
            yield finding("lease-changed", item, one.commit, one.delta.path)
    elif isinstance(record, Receipt) and record.nonce and not any(opened(other, record) for other in leases):
        yield finding("receipt-opens-nothing", item, one.commit, one.delta.path)


__all__ = ["FoundLease", "ProvedResolution", "lease_findings", "leases_of", "proved_resolutions"]
