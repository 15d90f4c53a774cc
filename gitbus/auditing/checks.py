"""The checks of an audit: each looks at one commit of the line and yields what should not be there.

Example: ``[finding for check in CHECKS for finding in check(walk, step)]``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import ids, paths
from gitbus.auditing.sends import SENDS
from gitbus.auditing.values import Finding
from gitbus.auditing.walking import Check, Step, Walk
from gitbus.codec import kind_of_path
from gitbus.edits import unproved_edits
from gitbus.proof.reviews import prove_review
from gitbus.proof.standing import Standing
from gitbus.records import Item, Review

_BOUND = frozenset({"persisted", "scored", "in_review", "awaiting_approval", "sending", "sent"})
"""States whose payload has to be what the item names; a merge of an edited text is no approval, and no harm."""


def _records(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every record can be read."""
    for delta in step.deltas:
        kind = kind_of_path(delta.path)
        if kind is None or delta.new is None or delta.path == paths.BUS:
            continue
        if walk.read(delta.new, delta.path, kind) is None:
            yield Finding(
                "unreadable", delta.path, step.oid, f"this is no {kind.model_fields['kind'].default}"
            )


def _edits(walk: Walk, step: Step) -> Iterator[Finding]:
    """Nothing changes but by a move that may change it."""
    del walk
    for one in unproved_edits(step.look):
        yield Finding(one.rule, one.subject, step.oid, one.message)


def _payloads(walk: Walk, step: Step) -> Iterator[Finding]:
    """A payload is what its item says."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                item = walk.read(delta.new, delta.path, Item)
            case _:
                continue
        if item is not None and item.state in _BOUND:
            yield from _payload(walk, step, name, item)


def _payload(walk: Walk, step: Step, name: str, item: Item) -> Iterator[Finding]:
    for file in item.payload:
        entry = walk.history.entry(step.oid, f"{paths.item_folder(name)}/{file.path}")
        if entry is None or ids.sha256(walk.history.blob(entry.oid)) != file.sha256:
            yield Finding("payload-mismatch", name, step.oid, f"{file.path} is not what the item names")


def _reviews(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every Review that says yes is the signed word of the person it names, and nothing else."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "reviews", _]:
                review = walk.read(delta.new, delta.path, Review)
            case _:
                continue
        if review is None or review.verdict != "ok":
            continue
        bus = walk.before.bus
        proof = prove_review(walk.history, step.oid, review, Standing(bus, bus))
        for one in proof.missing[:1]:
            yield Finding("review-unproved", name, step.oid, f"{review.person}: {one.message}")


CHECKS: tuple[Check, ...] = (_records, _edits, _payloads, _reviews, *SENDS)
"""Every check of the audit."""
