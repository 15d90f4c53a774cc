"""The checks of an audit: each looks at one commit of the line and yields what should not be there.

Example: ``[finding for check in CHECKS for finding in check(walk, step)]``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import ids, paths
from gitbus.auditing.values import Finding, Open
from gitbus.auditing.walking import Check, Step, Walk
from gitbus.codec import kind_of_path
from gitbus.edits import unproved_edits
from gitbus.proof.approval import prove_approval
from gitbus.proof.decisions import prove_resolution, proved_resolutions
from gitbus.proof.reads import read_entry
from gitbus.proof.standing import signer
from gitbus.proof.values import Proof
from gitbus.records import Item, Lease, Receipt, Review, Task
from gitbus.states import NONE, may


def _records(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every record can be read."""
    for delta in step.deltas:
        kind = kind_of_path(delta.path)
        if kind is None or delta.new is None or delta.path == paths.BUS:
            continue
        if read_entry(walk.history, delta.new, delta.path, kind) is None:
            yield Finding(
                "unreadable", delta.path, step.oid, f"this is no {kind.model_fields['kind'].default}"
            )


def _item_moves(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every change of an item's state is legal, and its payload is what it says."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                old, new = walk.items.get(name), read_entry(walk.history, delta.new, delta.path, Item)
            case _:
                continue
        if delta.new is None:
            if not _archived(step, name):
                yield Finding("item-removed", name, step.oid, "an item is archived, never removed")
            continue
        if new is None:
            continue
        before, after = old.state if old else NONE, new.state
        if before != after and not _verbs(before, after):
            yield Finding("illegal-move", name, step.oid, f"{before} → {after} by {step.verb or 'nobody'}")
        if after in _BOUND:
            yield from _payload(walk, step, name, new)


def _archived(step: Step, name: str) -> bool:
    """Say whether this commit moved an item's record into the archive, as it was."""
    inner = f"/{paths.item(name)}"
    old = next((one.old for one in step.deltas if one.path == paths.item(name)), None)
    return any(
        one.path.startswith("archive/") and one.path.endswith(inner) and one.new == old for one in step.deltas
    )


_ALL_VERBS = [
    "persist",
    "score",
    "route",
    "approve",
    "lease",
    "attest",
    "strand",
    "resolve",
    "retry",
    "demote",
    "reject",
    "withdraw",
    "expire",
    "revise",
    "redo",
]


_BOUND = frozenset({"persisted", "scored", "in_review", "awaiting_approval", "sending", "sent"})
"""States whose payload has to be what the item names; a merge of an edited text is no approval, and no harm."""


def _verbs(before: str, after: str) -> set[str]:
    return {verb for verb in _ALL_VERBS if may("item", before, after, verb)}


def _payload(walk: Walk, step: Step, name: str, item: Item) -> Iterator[Finding]:
    for file in item.payload:
        entry = walk.history.entry(step.oid, f"{paths.item_folder(name)}/{file.path}")
        if entry is None or ids.sha256(walk.history.blob(entry.oid)) != file.sha256:
            yield Finding("payload-mismatch", name, step.oid, f"{file.path} is not what the item names")


def _task_moves(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every change of a task's state is legal."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["goals", goal, "tasks", leaf]:
                old = read_entry(walk.history, delta.old, delta.path, Task)
                new = read_entry(walk.history, delta.new, delta.path, Task)
            case _:
                continue
        if new is None or (old is not None and old.state == new.state):
            continue
        before = old.state if old else NONE
        if not any(may("task", before, new.state, verb) for verb in (step.verb, *_TASK_VERBS)):
            yield Finding(
                "illegal-move", f"{goal}/{leaf.removesuffix('.yaml')}", step.oid, f"{before} → {new.state}"
            )


_TASK_VERBS = ("release", "assign", "absorb", "lose", "skip", "reopen", "cancel", "redo", "retry")


def _edits(walk: Walk, step: Step) -> Iterator[Finding]:
    """Nothing changes but by a move that may change it."""
    for subject, message in unproved_edits(walk.history, step.commit, step.deltas, walk.items):
        yield Finding("unproved-edit", subject, step.oid, message)


def _approvals(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every lease stands on an approval that was proved at the commit before it."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if leaf.startswith("lease.") and delta.old is None:
                lease = read_entry(walk.history, delta.new, delta.path, Lease)
            case _:
                continue
        if lease is None or not step.commit.parents:
            continue
        proof = prove_approval(
            walk.history,
            step.commit.parents[0],
            name,
            root=walk.root,
            now=lease.leased_at,
            bus=walk.before,
            branch=walk.branch,
            forge=walk.forge,
        )
        yield from _weighed(walk, step, lease, proof)


def _weighed(walk: Walk, step: Step, lease: Lease, proof: Proof) -> Iterator[Finding]:
    """Count a proved approval by its assurance; what only a forge could tell waits to be asked."""
    name = proof.subject
    if proof.missing and all(one.rule == "unasked" for one in proof.missing):
        walk.open.append(Open(name, "unasked", ids.time_text(lease.leased_at)))
        return
    for one in proof.missing:
        yield Finding("approval-unproved", name, step.oid, f"{one.rule}: {one.message}")
    if not proof.proved:
        return
    if any(one.assurance == "recorded" for one in proof.verified):
        walk.recorded += 1
    else:
        walk.proved += 1
    if proof.commit != lease.approval:
        yield Finding("lease-mismatch", name, step.oid, "the lease names another approval")


def _leases(walk: Walk, step: Step) -> Iterator[Finding]:
    """No lease is changed, removed, or written twice for one attempt."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if (
                leaf.startswith(("lease.", "receipt.", "resolution.")) and delta.old is not None
            ):
                if delta.new is not None:
                    yield Finding("evidence-changed", name, step.oid, f"{leaf} was changed")
                elif walk.history.entry(step.oid, paths.item(name)) is not None:
                    yield Finding("evidence-changed", name, step.oid, f"{leaf} was removed")
            case _:
                continue


def _receipts(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every receipt answers its lease, opens the seal of its outcome, and is signed where that is asked."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if leaf.startswith("receipt.") and delta.old is None:
                receipt = read_entry(walk.history, delta.new, delta.path, Receipt)
            case _:
                continue
        if receipt is None:
            continue
        lease = walk.leases.get(name, {}).get(receipt.attempt) or _lease_in(walk, step, name, receipt.attempt)
        if lease is None:
            yield Finding("receipt-without-lease", name, step.oid, f"attempt {receipt.attempt} has no lease")
            continue
        if (lease.digest, lease.revision) != (receipt.digest, receipt.revision):
            yield Finding("receipt-mismatch", name, step.oid, "lease and receipt are about different content")
        seal = {"sent": lease.seals.sent, "not_sent": lease.seals.not_sent}.get(receipt.outcome)
        if seal is not None and (receipt.nonce is None or ids.seal_of(receipt.nonce) != seal):
            yield Finding("receipt-unopened", name, step.oid, "the receipt does not open its lease")
        elif receipt.outcome == "sent":
            walk.sent += 1


def _lease_in(walk: Walk, step: Step, name: str, attempt: int) -> Lease | None:
    path = paths.lease(name, attempt)
    return read_entry(walk.history, walk.history.entry(step.oid, path), path, Lease)


def _sent_states(walk: Walk, step: Step) -> Iterator[Finding]:
    """Nothing becomes ``sent`` but by an opened receipt or a proved resolution."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                item = read_entry(walk.history, delta.new, delta.path, Item)
            case _:
                continue
        old = walk.items.get(name)
        if item is None or item.state != "sent" or (old is not None and old.state == "sent"):
            continue
        if not _is_sent(walk, step, name) and not _waits_to_be_asked(walk, step, name):
            yield Finding("sent-unproved", name, step.oid, "neither a receipt nor a resolution proves it")


def _is_sent(walk: Walk, step: Step, name: str) -> bool:
    folder = paths.item_folder(name)
    tree = walk.history.commit(step.oid).tree
    for delta in walk.history.diff(None, tree, folder):
        receipt = (
            read_entry(walk.history, delta.new, delta.path, Receipt) if "/receipt." in delta.path else None
        )
        lease = _lease_in(walk, step, name, receipt.attempt) if receipt else None
        if (
            receipt
            and lease
            and receipt.outcome == "sent"
            and receipt.nonce
            and ids.seal_of(receipt.nonce) == lease.seals.sent
        ):
            return True
    found = proved_resolutions(walk.history, step.oid, name, walk.at, walk.branch, forge=walk.forge)
    return any(one.resolution.verdict == "sent" for one in found)


def _waits_to_be_asked(walk: Walk, step: Step, name: str) -> bool:
    """Say whether only a forge could tell whose word a resolution is, and list it as open then."""
    _, proof = prove_resolution(walk.history, step.oid, name, walk.at, walk.branch, forge=walk.forge)
    if proof.unasked:
        walk.open.append(Open(name, "unasked", ids.time_text(step.commit.committer.when)))
    return proof.unasked


def _resolutions(walk: Walk, step: Step) -> Iterator[Finding]:
    """Nothing that is stuck waits for an approval again but by a proved resolution."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"] if (old := walk.items.get(name)) and old.state == "stuck":
                item = read_entry(walk.history, delta.new, delta.path, Item)
            case _:
                continue
        if item is None or item.state != "awaiting_approval":
            continue
        found = proved_resolutions(walk.history, step.oid, name, walk.at, walk.branch, forge=walk.forge)
        if any((one.resolution.verdict, one.commit) == ("not_sent", step.oid) for one in found):
            continue
        if not _waits_to_be_asked(walk, step, name):
            yield Finding(
                "resolution-unproved", name, step.oid, "no approver's word says that it was not sent"
            )


def _decisions(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every Review that says yes is signed by the person it names."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "reviews", _]:
                review = read_entry(walk.history, delta.new, delta.path, Review)
            case _:
                continue
        if review is None or review.verdict != "ok":
            continue
        by = signer(walk.history, step.oid, walk.before.bus.people)
        if by.person is None or by.person.id != review.person:
            yield Finding("review-unproved", name, step.oid, f"nobody with {review.person}'s key signed it")


CHECKS: tuple[Check, ...] = (
    _records,
    _item_moves,
    _task_moves,
    _edits,
    _approvals,
    _leases,
    _receipts,
    _sent_states,
    _resolutions,
    _decisions,
)
"""Every check of the audit."""
