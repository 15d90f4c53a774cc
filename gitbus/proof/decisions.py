"""A human's word on a stuck item: a Resolution, proved as an approval is, but for what it may change.

Rules: it is an approver's signed commit with one parent, or his merge of ``gitbus/decide/<item>`` by
name. It brings the record, moves the item from ``stuck`` to where its verdict says, takes an old
approval away and what nobody can read of leases and receipts, and changes nothing else.

Example: ``proved_resolutions(history, tip, item, found)[-1].resolution.verdict``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from gitbus import paths
from gitbus.codec import kind_of_path
from gitbus.history import FILE, Delta, History, Oid
from gitbus.proof.bus import Effective
from gitbus.proof.deciding import Decision, decided_by
from gitbus.proof.forge import Forge
from gitbus.proof.reads import Allowed, changed, more_than, read_at, read_entry
from gitbus.proof.standing import Standing
from gitbus.proof.times import SKEW
from gitbus.proof.values import Missing, Proof, missing
from gitbus.records import Item, Lease, Receipt, Resolution

_OUTCOME = {"sent": "sent", "not_sent": "awaiting_approval"}
_CHANGED = {"state", "attempt", "expires_at", "not_before", "reason"}


@dataclass(frozen=True, slots=True)
class ProvedResolution:
    """An approver's word on a stuck item, the commit that brought it, and when that was made."""

    resolution: Resolution
    commit: Oid
    at: datetime
    person: str


def proved_resolutions(
    history: History,
    tip: Oid,
    item: str,
    found: Effective,
    branch: str = "main",
    *,
    now: datetime | None = None,
    forge: Forge | None = None,
) -> tuple[ProvedResolution, ...]:
    """Return the resolutions of an item that are proved, the oldest first.

    Args:
        history: the repository.
        tip: the commit of the line to look from.
        item: the item's id.
        found: the effective Bus there.
        branch: the bus's branch.
        now: the time, where a date in the future is to disprove.
        forge: what a forge knows of merges, where there is one.
    """
    return tuple(
        ProvedResolution(resolution, oid, history.commit(oid).committer.when, proof.people[0])
        for oid, resolution, proof in resolutions(history, tip, item, found, branch, now=now, forge=forge)
        if proof.proved
    )


def resolutions(
    history: History,
    tip: Oid,
    item: str,
    found: Effective,
    branch: str = "main",
    *,
    now: datetime | None = None,
    forge: Forge | None = None,
) -> Iterator[tuple[Oid, Resolution, Proof]]:
    """Yield every resolution of an item that the line holds, the oldest first, and what is known of it.

    The arguments are those of :func:`proved_resolutions`.
    """
    for oid in reversed(history.line(tip, touching=[paths.item_folder(item)])):
        resolution, proof = prove_resolution(history, oid, item, found, branch, now=now, forge=forge)
        if resolution is not None:
            yield oid, resolution, proof


def prove_resolution(
    history: History,
    oid: Oid,
    item: str,
    found: Effective,
    branch: str = "main",
    *,
    now: datetime | None = None,
    forge: Forge | None = None,
) -> tuple[Resolution | None, Proof]:
    """Prove that a commit of the line is an approver's word on a stuck item.

    Returns:
        The record that it brought (None: it brought none) and what is known of it.
    """
    commit = history.commit(oid)
    said = _said(history, oid, item)
    if not said or not commit.parents:
        return None, Proof(item, None, (), (), (missing("no-decision"),))
    resolution = read_entry(history, said[0].new, said[0].path, Resolution)
    expected = paths.resolution(item, resolution.attempt) if resolution else ""
    if resolution is None or len(said) != 1 or resolution.item != item or said[0].path != expected:
        return None, Proof(item, oid, (), (), (missing("no-decision", said[0].path),))
    standing = Standing(found.at(history, commit.parents[0]), found.bus)
    word = decided_by(history, commit, standing, Decision.resolving(item, branch), forge)
    lacking = [*word.missing, *_not_resolved(history, oid, resolution)]
    if word.people and word.people[0] != resolution.person:
        lacking.append(missing("wrong-person", f"{word.people[0]} signed, {resolution.person} is named"))
    if now is not None and commit.committer.when > now + SKEW:
        lacking.append(missing("future", unasked=True))
    return resolution, Proof(item, oid, word.people, word.verified, tuple(lacking))


def _said(history: History, oid: Oid, item: str) -> list[Delta]:
    folder = f"{paths.item_folder(item)}/"
    return [
        delta
        for delta in changed(history, oid, paths.item_folder(item))
        if delta.path.startswith(f"{folder}resolution.") and delta.new is not None
    ]


def _not_resolved(history: History, oid: Oid, resolution: Resolution) -> Iterator[Missing]:
    more = more_than(history, oid, _allowed(history, resolution))
    if more is not None:
        yield missing("holds-more", f"{more[1]} in {more[0][:10]}")
    path = paths.item(resolution.item)
    before = read_at(history, history.commit(oid).parents[0], path, Item)
    after = read_at(history, oid, path, Item)
    if before is None or before.state != "stuck" or before.attempt != resolution.attempt:
        yield missing("not-stuck", f"it was {before.state if before else 'nothing'}")
    elif after is None or after.state != _OUTCOME[resolution.verdict] or not _same(before, after, resolution):
        yield missing("holds-more", f"{path} says more than the verdict")


def _allowed(history: History, resolution: Resolution) -> Allowed:
    files = (paths.item(resolution.item), paths.resolution(resolution.item, resolution.attempt))
    folder = f"{paths.item_folder(resolution.item)}/"

    def test(delta: Delta) -> bool:
        if delta.path in files:
            return delta.new is not None and delta.new.mode == FILE
        if delta.path == paths.approval(resolution.item):
            return delta.new is None
        return delta.path.startswith(folder) and _is_unreadable(history, delta, folder)

    return test


def _is_unreadable(history: History, delta: Delta, folder: str) -> bool:
    """Say whether a lease or receipt was taken away that nobody can read; history keeps it."""
    kind = delta.path.removeprefix(folder).partition(".")[0]
    models: dict[str, type[Lease] | type[Receipt]] = {"lease": Lease, "receipt": Receipt}
    model = models.get(kind)
    return (
        model is not None
        and kind_of_path(delta.path) is model
        and delta.new is None
        and read_entry(history, delta.old, delta.path, model) is None
    )


def _same(before: Item, after: Item, resolution: Resolution) -> bool:
    raised = (
        after.attempt > before.attempt
        if resolution.verdict == "not_sent"
        else after.attempt == before.attempt
    )
    return raised and before.model_dump(exclude=_CHANGED) == after.model_dump(exclude=_CHANGED)
