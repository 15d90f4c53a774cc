"""Claims: every lease and receipt that any commit ever wrote, and whether who wrote it was to.

Rules: a claim is looked for by path in every commit that the branch can reach, side branches and all;
what an archive commit moved is the same claim. Where ``sending.keys`` is set, one counts only in a
commit that one of those keys signed. A receipt that opens no lease of its attempt proves nothing.

Example: ``Claims.of(history, tip).findings(history, tip, found)`` is empty for an honest history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gitbus import paths
from gitbus.history import TREE, Delta, History, Oid
from gitbus.proof.bus import Effective
from gitbus.proof.reads import brought_by, first_parent, own_changes, read_entry
from gitbus.proof.values import Finding, finding
from gitbus.records import Bus, Lease, Receipt
from gitbus.seals import opened

_CLAIM = re.compile(r"(?:archive/[^/]+/[^/]+/)?outbox/([^/]+)/((lease|receipt)\.[^/]*)")
"""A lease's or receipt's path; what an attachment is called says nothing. Groups: item, name, kind."""


@dataclass(frozen=True, slots=True)
class Said:
    """A version of a lease's or receipt's file, and the commit that wrote it."""

    commit: Oid
    delta: Delta
    item: str
    name: str
    kind: str  # lease | receipt

    @property
    def attempt(self) -> int:
        """The attempt that its path says; 0 where that is none."""
        number = self.name.removesuffix(".yaml").rpartition(".")[2]
        return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def claims_of(history: History, tip: Oid, item: str) -> list[Said]:
    """Return every version of a lease or receipt of an item that any reachable commit wrote, in order."""
    return _said(history, tip, [paths.item_folder(item), *_archived(history, tip, item)])


def _said(history: History, tip: Oid, places: Sequence[str]) -> list[Said]:
    """Return what was said below some places; what was moved into the archive was said before."""
    found: list[Said] = []
    known: set[tuple[str, str, Oid]] = set()
    for oid in history.between([tip], [], touching=places):
        for place in places:
            for delta in own_changes(history, history.commit(oid), place):
                claim = _CLAIM.fullmatch(delta.path)
                if claim is None or delta.new is None:
                    continue
                key = (claim[1], claim[2], delta.new.oid)
                if key not in known or not delta.path.startswith("archive/"):
                    found.append(Said(oid, delta, claim[1], claim[2], claim[3]))
                known.add(key)
    return found


def _archived(history: History, tip: Oid, item: str) -> list[str]:
    """Return where the item may stand in the archive, or have stood: a month's folder outlives it."""
    archive = history.entry(tip, "archive")
    years = history.tree(archive.oid).items() if archive and archive.mode == TREE else ()
    return [
        f"archive/{year}/{month}/outbox/{item}"
        for year, inner in years
        for month in (history.tree(inner.oid) if inner.mode == TREE else {})
    ]


def receipts_in(history: History, said: Iterable[Said]) -> Iterator[tuple[Said, Receipt]]:
    """Yield the receipts among some claims that can be read."""
    for one in said:
        if one.kind == "receipt":
            receipt = read_entry(history, one.delta.new, one.delta.path, Receipt)
            if receipt is not None:
                yield one, receipt


# --- by whom it was to be


def keyed_line(history: History, tip: Oid, found: Effective, item: str | None = None) -> Sequence[Oid]:
    """Return the line since an item's beginning, oldest first; nothing where no key was ever asked for."""
    if not any(advance.bus.sending.keys for advance in found.advances):
        return ()
    if item is None:
        return list(reversed(history.line(tip)))
    born = history.line(tip, touching=[paths.item_folder(item)])[-1]
    return list(reversed(history.line(tip, until=first_parent(history, born))))


def counts(history: History, one: Said, found: Effective, keyed: Sequence[Oid]) -> bool:
    """Say whether a claim was written by whoever may: with ``sending.keys``, one of them.

    What stands beside the line is judged by the Bus of the merge that brought it as well.

    Args:
        history: the repository.
        one: the claim.
        found: the effective Bus at the tip.
        keyed: the line that brought it (:func:`keyed_line`).
    """
    places = {one.commit, brought_by(history, one.commit, keyed)} if keyed else ()
    return all(
        not keys or history.signature(one.commit, keys).verdict == "good"
        for keys in (bus_before(history, oid, found).sending.keys for oid in places)
    )


def bus_before(history: History, oid: Oid, found: Effective) -> Bus:
    """Return the Bus that was effective before a commit."""
    parents = history.commit(oid).parents
    return found.at(history, parents[0]) if parents else found.advances[0].bus


# --- all of them at once


@dataclass(frozen=True, slots=True)
class Claims:
    """Every claim of a whole history, by item, in the order they came."""

    said: Mapping[str, tuple[Said, ...]]

    @classmethod
    def of(cls, history: History, tip: Oid) -> Claims:
        """Return every claim that is reachable from ``tip``; history is looked through once for all."""
        found: dict[str, list[Said]] = {}
        for one in _said(history, tip, ("outbox", "archive")):
            found.setdefault(one.item, []).append(one)
        return cls({item: tuple(said) for item, said in found.items()})

    def leases(self, item: str) -> int:
        """Return how often a lease of the item was written."""
        return sum(one.kind == "lease" for one in self.said.get(item, ()))

    def findings(self, history: History, tip: Oid, found: Effective) -> Iterator[Finding]:
        """Yield every lease and receipt that proves nothing, each at the commit that made it."""
        keyed = keyed_line(history, tip, found)
        for item, said in sorted(self.said.items()):
            yield from claim_findings(history, said, item, found, keyed)


def claim_findings(
    history: History, said: Sequence[Said], item: str, found: Effective, keyed: Sequence[Oid]
) -> Iterator[Finding]:
    """Yield the claims of an item that prove nothing."""
    leases = [
        lease
        for one in said
        if one.kind == "lease" and (lease := read_entry(history, one.delta.new, one.delta.path, Lease))
    ]
    for one in said:
        yield from _wrong(history, one, item, leases, found, keyed)


def _wrong(
    history: History, one: Said, item: str, leases: Sequence[Lease], found: Effective, keyed: Sequence[Oid]
) -> Iterator[Finding]:
    model = Lease if one.kind == "lease" else Receipt
    record = read_entry(history, one.delta.new, one.delta.path, model)
    if record is None:
        yield finding("lease-unreadable", item, one.commit, one.delta.path)
        return
    if not counts(history, one, found, keyed):
        yield finding(f"foreign-{one.kind}", item, one.commit, one.delta.path)
    if isinstance(record, Lease):
        first = next(other for other in leases if other.seals == record.seals)
        if first != record:
            yield finding("lease-changed", item, one.commit, one.delta.path)
    elif isinstance(record, Receipt) and record.nonce and not _opens(record, leases):
        yield finding("receipt-opens-nothing", item, one.commit, one.delta.path)


def _opens(receipt: Receipt, leases: Iterable[Lease]) -> bool:
    return any(opened(lease, receipt) and lease.attempt == receipt.attempt for lease in leases)
