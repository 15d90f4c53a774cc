"""Leases: every claim that was ever made on an item, and whether anybody may still be sending under it.

A lease is looked for by path in every commit that the branch can reach, side branches and all, and
told apart by its seals. It is closed by its own receipt that opens it as ``not_sent``, or by an
approver's resolution after everybody's clock has passed its end.

Example: ``[one for one in leases_of(history, tip, item, root=root, now=now) if not one.closed]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gitbus import ids, paths
from gitbus.history import TREE, Delta, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.common import made_by_committer, merged_names, parent_tree, read_entry, signer, trailers
from gitbus.records import Bus, Lease, Receipt, Resolution


@dataclass(frozen=True, slots=True)
class FoundLease:
    """A lease, the commit that first showed it, and what was said of it since."""

    lease: Lease
    commit: Oid
    opened: frozenset[str]  # the outcomes that receipts prove: sent, not_sent
    resolved: bool

    @property
    def attempt(self) -> int:
        """The attempt that it was for."""
        return self.lease.attempt

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
) -> tuple[FoundLease, ...]:
    """Return every lease of an item in any commit reachable from ``tip``, in the order they came."""
    found = bus if bus is not None and bus.tip == tip else effective(history, tip, root, known=bus)
    first: dict[tuple[str, str], tuple[Lease, Oid]] = {}
    receipts: list[Receipt] = []
    for oid, delta in _said(history, tip, item):
        match delta.path.rsplit("/", 1)[-1].split(".")[0]:
            case "lease":
                lease = read_entry(history, delta.new, delta.path, Lease)
                if lease is not None and lease.item == item:
                    first.setdefault((lease.seals.sent, lease.seals.not_sent), (lease, oid))
            case "receipt":
                receipt = read_entry(history, delta.new, delta.path, Receipt)
                if receipt is not None and receipt.item == item:
                    receipts.append(receipt)
            case _:
                pass
    resolutions = proved_resolutions(history, tip, item, found, branch)
    return tuple(
        FoundLease(
            lease, oid, _opened(lease, receipts), _resolved(lease, resolutions, found.bus.sending.quarantine)
        )
        for lease, oid in first.values()
    )


def _said(history: History, tip: Oid, item: str) -> list[tuple[Oid, Delta]]:
    """Return every version of a lease or receipt of an item, with the commit that wrote it."""
    folder = paths.item_folder(item)
    archived = _archived(history, tip, item)
    changes: list[tuple[Oid, Delta]] = []
    where = [folder, *archived]
    for oid in history.between([tip], [], touching=where):
        commit = history.commit(oid)
        parents: list[Oid | None] = [history.commit(parent).tree for parent in commit.parents]
        for parent in parents or [None]:
            for path in where:
                changes += [
                    (oid, delta) for delta in history.diff(parent, commit.tree, path) if _is_claim(delta)
                ]
    return changes


def _archived(history: History, tip: Oid, item: str) -> list[str]:
    archive = history.entry(tip, "archive")
    if archive is None:
        return []
    return [
        f"archive/{year}/{month}/outbox/{item}"
        for year, inner in history.tree(archive.oid).items()
        for month in (history.tree(inner.oid) if inner.mode == TREE else {})
    ]


def _is_claim(delta: Delta) -> bool:
    return delta.new is not None and delta.path.rsplit("/", 1)[-1].startswith(("lease.", "receipt."))


def _opened(lease: Lease, receipts: list[Receipt]) -> frozenset[str]:
    seals = {"sent": lease.seals.sent, "not_sent": lease.seals.not_sent}
    return frozenset(
        one.outcome for one in receipts if one.nonce and seals.get(one.outcome) == ids.seal_of(one.nonce)
    )


@dataclass(frozen=True, slots=True)
class ProvedResolution:
    """An approver's word on a stuck item, the commit that brought it, and when that was made."""

    resolution: Resolution
    commit: Oid
    at: datetime
    person: str


def _resolved(lease: Lease, resolutions: tuple[ProvedResolution, ...], quarantine: timedelta) -> bool:
    until = lease.expires_at + quarantine
    return any(
        one.resolution.verdict == "not_sent" and lease.attempt <= one.resolution.attempt and one.at >= until
        for one in resolutions
    )


def proved_resolutions(
    history: History, tip: Oid, item: str, found: Effective, branch: str = "main"
) -> tuple[ProvedResolution, ...]:
    """Return the resolutions of an item that an approver signed, the oldest first."""
    proved = []
    folder = paths.item_folder(item)
    for oid in reversed(history.line(tip, touching=[folder])):
        commit = history.commit(oid)
        deltas = history.diff(parent_tree(history, commit), commit.tree)
        said = [delta for delta in deltas if delta.path.startswith(f"{folder}/resolution.") and delta.new]
        if len(said) != 1 or not _only(item, deltas):
            continue
        resolution = read_entry(history, said[0].new, said[0].path, Resolution)
        if resolution is None or resolution.item != item:
            continue
        bus = found.at(history, commit.parents[0]) if commit.parents else found.bus
        person = _decider(history, oid, item, bus, branch)
        if person is not None and person == resolution.person:
            proved.append(ProvedResolution(resolution, oid, commit.committer.when, person))
    return tuple(proved)


def _only(item: str, deltas: Sequence[Delta]) -> bool:
    folder = paths.item_folder(item) + "/"
    allowed = ("item.yaml", "approval.yaml", "resolution.")
    return all(
        delta.path.startswith(folder) and delta.path.removeprefix(folder).startswith(allowed)
        for delta in deltas
    )


def _decider(history: History, oid: Oid, item: str, bus: Bus, branch: str) -> str | None:
    """Return the approver who signed a commit as a decision on this item."""
    commit = history.commit(oid)
    if len(commit.parents) == 1:
        if not made_by_committer(commit):
            return None
    elif item not in trailers(commit.message, "Gitbus-Item") and not _merges_decision(
        commit.subject, item, branch
    ):
        return None
    person = signer(history, oid, bus.with_role("approver")).person
    return person.id if person else None


def _merges_decision(subject: str, item: str, branch: str) -> bool:
    named, _ = merged_names(subject.replace("gitbus/decide/", "gitbus/approve/"), branch)
    return item in named and "gitbus/decide/" in subject
