"""The audit: walks the whole line once and proves it, commit by commit. A tuple of small checks.

Each check looks at one commit of the line, knows the items before and after it, and yields
findings with the commit as their source. What only waits for a human is listed as open.

Example: ``audit_bus(store, tip, root, now=now).ok``.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from gitbus import ids, paths
from gitbus.codec import kind_of_path
from gitbus.edits import unproved_edits
from gitbus.effects import effect
from gitbus.errors import Misuse
from gitbus.history import Commit, Delta, History, Oid
from gitbus.hub.base import Hub
from gitbus.hub.run import Git, environment
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import Effective, effective
from gitbus.proof.leases import proved_resolutions
from gitbus.proof.line import line_findings
from gitbus.proof.messages import trailers
from gitbus.proof.reads import parent_tree, read_entry
from gitbus.proof.standing import signer
from gitbus.records import Item, Lease, Receipt, Review, Task
from gitbus.states import NONE, may


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the history should not hold."""

    rule: str
    subject: str
    commit: Oid
    message: str


@dataclass(frozen=True, slots=True)
class Open:
    """Something that waits for a human; no finding."""

    subject: str
    state: str
    since: str


@dataclass(frozen=True)
class Audited:
    """What an audit found."""

    commits: int
    findings: tuple[Finding, ...]
    open: tuple[Open, ...]
    sent: int
    approvals: int

    @property
    def ok(self) -> bool:
        """Whether there is no finding."""
        return not self.findings

    def document(self) -> dict[str, Any]:
        """Return the ``Audit`` document."""
        return {
            "kind": "Audit",
            "ok": self.ok,
            "commits": self.commits,
            "sent": self.sent,
            "approvals": {"proved": self.approvals, "recorded": 0},
            "open": [asdict(one) for one in self.open],
            "findings": [asdict(one) for one in self.findings],
        }


@dataclass(frozen=True)
class Window:
    """Which findings are reported; the whole history is proved all the same."""

    since: Oid | None = None
    first: datetime | None = None
    last: datetime | None = None

    @classmethod
    def of(cls, since: str | None, first: str | None, last: str | None) -> Window:
        """Parse a commit and two days.

        Raises:
            Misuse: one of the days is none.
        """
        try:
            start = datetime.combine(datetime.fromisoformat(first).date(), time(), UTC) if first else None
            end = (
                datetime.combine(datetime.fromisoformat(last).date(), time(), UTC) + timedelta(days=1)
                if last
                else None
            )
        except ValueError:
            raise Misuse("a day reads like 2026-11-30", rule="usage") from None
        return cls(since, start, end)

    def holds(self, history: History, oid: Oid) -> bool:
        """Say whether findings of a commit are reported."""
        if self.since is not None and history.is_ancestor(oid, self.since):
            return False
        when = history.commit(oid).committer.when
        return not (self.first and when < self.first) and not (self.last and when >= self.last)


@dataclass
class _Walk:
    """The audit on its way along the line."""

    history: History
    root: Oid
    branch: str
    found: Effective
    items: dict[str, Item] = field(default_factory=dict)
    leases: dict[str, dict[int, Lease]] = field(default_factory=dict)
    sent: int = 0
    approvals: int = 0


@dataclass(frozen=True)
class _Step:
    """One commit of the line, with what it changed."""

    oid: Oid
    commit: Commit
    deltas: tuple[Delta, ...]
    verb: str


Check = Callable[[_Walk, _Step], Iterator[Finding]]


def audit_bus(
    history: History,
    tip: Oid,
    root: Oid,
    *,
    now: datetime,
    branch: str = "main",
    window: Window | None = None,
) -> Audited:
    """Prove the history of a bus.

    Args:
        history: the repository.
        tip: the branch's tip.
        root: the commit that began the bus.
        now: the time.
        branch: the bus's branch, by its short name.
        window: which findings are reported.
    """
    within = window or Window()
    found = effective(history, tip, root)
    walk = _Walk(history, root, branch, found)
    findings = [
        Finding(one.rule, "main", tip, one.message) for one in line_findings(history, tip, root, found)
    ]
    findings += [
        Finding("bus-unproved", paths.BUS, one.commit, "an edit that no approver decided on")
        for one in found.pending
    ]
    line = list(reversed(history.line(tip)))
    for oid in line:
        commit = history.commit(oid)
        deltas = tuple(history.diff(parent_tree(history, commit), commit.tree))
        step = _Step(oid, commit, deltas, next(iter(trailers(commit.message, "Gitbus-Verb")), ""))
        for check in CHECKS:
            findings += check(walk, step)
        _learn(walk, step)
    kept = [one for one in findings if within.holds(history, one.commit)]
    return Audited(len(line), tuple(kept), tuple(_open(walk, now)), walk.sent, walk.approvals)


def _learn(walk: _Walk, step: _Step) -> None:
    """Take the items and leases as this commit leaves them."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                item = read_entry(walk.history, delta.new, delta.path, Item)
                if item is None:
                    walk.items.pop(name, None)
                else:
                    walk.items[name] = item
            case ["outbox", name, leaf] if leaf.startswith("lease."):
                lease = read_entry(walk.history, delta.new, delta.path, Lease)
                if lease is not None:
                    walk.leases.setdefault(name, {})[lease.attempt] = lease
            case _:
                pass


def _open(walk: _Walk, now: datetime) -> Iterator[Open]:
    del now
    for name, item in sorted(walk.items.items()):
        if item.state in ("in_review", "awaiting_approval", "stuck", "failed", "sending"):
            newest = walk.history.line(walk.found.tip, touching=[paths.item(name)])[0]
            yield Open(name, item.state, ids.time_text(walk.history.commit(newest).committer.when))


# --- the checks


def _records(walk: _Walk, step: _Step) -> Iterator[Finding]:
    """Every record can be read."""
    for delta in step.deltas:
        kind = kind_of_path(delta.path)
        if kind is None or delta.new is None or delta.path == paths.BUS:
            continue
        if read_entry(walk.history, delta.new, delta.path, kind) is None:
            yield Finding(
                "unreadable", delta.path, step.oid, f"this is no {kind.model_fields['kind'].default}"
            )


def _item_moves(walk: _Walk, step: _Step) -> Iterator[Finding]:
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


def _archived(step: _Step, name: str) -> bool:
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


def _payload(walk: _Walk, step: _Step, name: str, item: Item) -> Iterator[Finding]:
    for file in item.payload:
        entry = walk.history.entry(step.oid, f"{paths.item_folder(name)}/{file.path}")
        if entry is None or ids.sha256(walk.history.blob(entry.oid)) != file.sha256:
            yield Finding("payload-mismatch", name, step.oid, f"{file.path} is not what the item names")


def _task_moves(walk: _Walk, step: _Step) -> Iterator[Finding]:
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


def _edits(walk: _Walk, step: _Step) -> Iterator[Finding]:
    """Nothing changes but by a move that may change it."""
    for subject, message in unproved_edits(walk.history, step.commit, step.deltas, walk.items):
        yield Finding("unproved-edit", subject, step.oid, message)


def _approvals(walk: _Walk, step: _Step) -> Iterator[Finding]:
    """Every lease stands on an approval that was proved at the commit before it."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, leaf] if leaf.startswith("lease.") and delta.old is None:
                lease = read_entry(walk.history, delta.new, delta.path, Lease)
            case _:
                continue
        if lease is None or not step.commit.parents:
            continue
        yield from _sender_key(walk, step, name, "lease")
        proof = prove_approval(
            walk.history,
            step.commit.parents[0],
            name,
            root=walk.root,
            now=lease.leased_at,
            branch=walk.branch,
        )
        if proof.proved:
            walk.approvals += 1
            if proof.commit != lease.approval:
                yield Finding("lease-mismatch", name, step.oid, "the lease names another approval")
            continue
        for one in proof.missing:
            yield Finding("approval-unproved", name, step.oid, f"{one.rule}: {one.message}")


def _leases(walk: _Walk, step: _Step) -> Iterator[Finding]:
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


def _receipts(walk: _Walk, step: _Step) -> Iterator[Finding]:
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
        yield from _sender_key(walk, step, name, "receipt")


def _lease_in(walk: _Walk, step: _Step, name: str, attempt: int) -> Lease | None:
    path = paths.lease(name, attempt)
    return read_entry(walk.history, walk.history.entry(step.oid, path), path, Lease)


def _sender_key(walk: _Walk, step: _Step, name: str, what: str) -> Iterator[Finding]:
    bus = walk.found.at(walk.history, step.oid)
    if bus.sending.keys and walk.history.signature(step.oid, bus.sending.keys).verdict != "good":
        yield Finding("sender-unsigned", name, step.oid, f"the {what} is signed by none of sending.keys")


def _sent_states(walk: _Walk, step: _Step) -> Iterator[Finding]:
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
        if not _is_sent(walk, step, name):
            yield Finding("sent-unproved", name, step.oid, "neither a receipt nor a resolution proves it")


def _is_sent(walk: _Walk, step: _Step, name: str) -> bool:
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
    at = effective(walk.history, step.oid, walk.root)
    return any(
        one.resolution.verdict == "sent"
        for one in proved_resolutions(walk.history, step.oid, name, at, walk.branch)
    )


def _resolutions(walk: _Walk, step: _Step) -> Iterator[Finding]:
    """Nothing that is stuck waits for an approval again but by a proved resolution."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"] if (old := walk.items.get(name)) and old.state == "stuck":
                item = read_entry(walk.history, delta.new, delta.path, Item)
            case _:
                continue
        if item is None or item.state != "awaiting_approval":
            continue
        at = effective(walk.history, step.oid, walk.root)
        found = proved_resolutions(walk.history, step.oid, name, at, walk.branch)
        if not any((one.resolution.verdict, one.commit) == ("not_sent", step.oid) for one in found):
            yield Finding(
                "resolution-unproved", name, step.oid, "no approver's word says that it was not sent"
            )


def _decisions(walk: _Walk, step: _Step) -> Iterator[Finding]:
    """Every Review that says yes is signed by the person it names."""
    for delta in step.deltas:
        match delta.path.split("/"):
            case ["outbox", name, "reviews", _]:
                review = read_entry(walk.history, delta.new, delta.path, Review)
            case _:
                continue
        if review is None or review.verdict != "ok":
            continue
        bus = walk.found.at(walk.history, step.commit.parents[0]) if step.commit.parents else walk.found.bus
        by = signer(walk.history, step.oid, bus.people)
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


# --- for an auditor


def export_audit(hub: Hub, root: Oid, found: Audited, target: Path) -> None:
    """Write findings, receipts and a git bundle of the branch into one zip file."""
    tip = hub.look()[hub.main]
    git: Git = hub.store.git  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        bundle = Path(folder) / "bus.bundle"
        ref = (
            hub.main
            if git.run("rev-parse", "--verify", "--quiet", hub.main).code == 0
            else "refs/gitbus/hub/" + hub.main.removeprefix(paths.HEADS)
        )
        subprocess.run(
            [*git.command("bundle", "create", "--quiet", str(bundle), ref)],
            check=True,
            capture_output=True,
            env=environment(),
            stdin=subprocess.DEVNULL,
        )
        effect("file-write", str(target))
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("audit.json", json.dumps({**found.document(), "root": root, "tip": tip}, indent=2))
            for delta in hub.store.diff(None, hub.store.commit(tip).tree, "outbox"):
                if delta.new is not None and delta.path.endswith(".yaml"):
                    out.writestr(delta.path, hub.store.blob(delta.new.oid))
            out.write(bundle, "bus.bundle")
