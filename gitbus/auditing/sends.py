"""The checks of what was sent: leases, receipts, the state ``sent``, and words on what was stuck.

Example: a lease whose approval was none yields ``Finding("approval-unproved", …)`` at its commit.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import ids, paths
from gitbus.auditing.values import Finding, Open
from gitbus.auditing.walking import Check, Step, Walk
from gitbus.proof.approval import prove_approval
from gitbus.proof.decisions import prove_resolution
from gitbus.proof.leases import leases_of, proved_resolutions
from gitbus.proof.values import Proof
from gitbus.records import Item, Lease, Receipt, Resolution
from gitbus.seals import opened


def _approvals(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every lease stands on an approval that was proved at the commit before it."""
    for name, lease in _leased(walk, step):
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


def _leased(walk: Walk, step: Step) -> Iterator[tuple[str, Lease]]:
    """Yield the leases that a commit takes; one that is told again with its receipt was taken before."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if leaf.startswith("lease.") and delta.old is None:
                lease = walk.read(delta.new, delta.path, Lease)
            case _:
                continue
        if lease is not None and step.commit.parents and not _is_told_again(walk, step, name, lease):
            yield name, lease


def _is_told_again(walk: Walk, step: Step, name: str, lease: Lease) -> bool:
    path = paths.receipt(name, lease.attempt)
    receipt = step.look.new(path, Receipt) if step.look.adds(path) else None
    item = walk.items.get(name)
    return receipt is not None and (item is None or item.state != "approved")


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


def _alone(walk: Walk, step: Step) -> Iterator[Finding]:
    """No attempt is leased twice, nor anything while an earlier lease is open."""
    for name, lease in _leased(walk, step):
        if walk.claims.leases(name) < 2:
            continue
        for other in leases_of(
            walk.history,
            step.commit.parents[0],
            name,
            root=walk.root,
            bus=walk.before,
            branch=walk.branch,
            now=lease.leased_at,
            forge=walk.forge,
        ):
            if other.attempt == lease.attempt:
                yield Finding("lease-twice", name, step.oid, f"attempt {lease.attempt} had a lease already")
            elif not other.closed:
                yield Finding("lease-open", name, step.oid, f"the lease of attempt {other.attempt} was open")


def _receipts(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every receipt answers a lease about the same content."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] | ["archive", _, _, "outbox", name, leaf] if (
                leaf.startswith("receipt.") and delta.old is None and not step.look.is_moved(delta.path)
            ):
                receipt = walk.read(delta.new, delta.path, Receipt)
            case _:
                continue
        if receipt is None:
            continue
        path = delta.path.removesuffix(leaf) + f"lease.{receipt.attempt}.yaml"
        lease = step.look.new(path, Lease)
        if lease is None:
            yield Finding("receipt-without-lease", name, step.oid, f"attempt {receipt.attempt} has no lease")
        elif (lease.digest, lease.revision) != (receipt.digest, receipt.revision):
            yield Finding("receipt-mismatch", name, step.oid, "lease and receipt are about different content")
        elif opened(lease, receipt) == "sent":
            walk.sent += 1


def _sent_states(walk: Walk, step: Step) -> Iterator[Finding]:
    """Nothing becomes ``sent`` but by an opened receipt or a proved resolution."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                item = walk.read(delta.new, delta.path, Item)
            case _:
                continue
        old = walk.items.get(name)
        if item is None or item.state != "sent" or (old is not None and old.state == "sent"):
            continue
        if not _is_sent(walk, step, name) and not _word(walk, step, name)[1].unasked:
            yield Finding("sent-unproved", name, step.oid, "neither a receipt nor a resolution proves it")


def _is_sent(walk: Walk, step: Step, name: str) -> bool:
    folder = f"{paths.item_folder(name)}/receipt."
    for delta in walk.history.diff(None, step.commit.tree, paths.item_folder(name)):
        receipt = walk.read(delta.new, delta.path, Receipt) if delta.path.startswith(folder) else None
        lease = step.look.new(paths.lease(name, receipt.attempt), Lease) if receipt else None
        if lease is not None and opened(lease, receipt) == "sent":
            return True
    found = proved_resolutions(walk.history, step.oid, name, walk.at, walk.branch, forge=walk.forge)
    return any(one.resolution.verdict == "sent" for one in found)


def _resolutions(walk: Walk, step: Step) -> Iterator[Finding]:
    """Every word on what was stuck is an approver's, and closes what it is about."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if leaf.startswith("resolution.") and delta.new is not None:
                yield from _resolved(walk, step, name)
            case ["outbox", name, "item.yaml"] if (old := walk.items.get(name)) and old.state == "stuck":
                item = walk.read(delta.new, delta.path, Item)
                path = paths.resolution(name, old.attempt)
                if item is not None and item.state == "awaiting_approval" and path not in step.look.touched:
                    yield Finding(
                        "resolution-unproved", name, step.oid, "no approver's word says that it was not sent"
                    )
            case _:
                continue


def _resolved(walk: Walk, step: Step, name: str) -> Iterator[Finding]:
    resolution, proof = _word(walk, step, name)
    if proof.unasked:
        walk.open.append(Open(name, "unasked", ids.time_text(step.commit.committer.when)))
        return
    for one in proof.missing[:1]:
        yield Finding("resolution-unproved", name, step.oid, one.message)
    if resolution is None or not proof.proved or resolution.verdict != "not_sent":
        return
    for lease in leases_of(
        walk.history, step.oid, name, root=walk.root, bus=walk.at, branch=walk.branch, forge=walk.forge
    ):
        if not lease.closed and "sent" not in lease.opened:
            yield Finding(
                "resolution-early",
                name,
                step.oid,
                f"the lease of attempt {lease.attempt} could still be in use until {ids.time_text(lease.ends)}",
            )


def _word(walk: Walk, step: Step, name: str) -> tuple[Resolution | None, Proof]:
    """Return the word on a stuck item that a commit brought, and what is known of it."""
    return prove_resolution(walk.history, step.oid, name, walk.at, walk.branch, forge=walk.forge)


SENDS: tuple[Check, ...] = (_approvals, _alone, _receipts, _sent_states, _resolutions)
"""The checks of what was sent."""
