"""The audit: walks the whole line once and proves it, commit by commit. A tuple of small checks.

Each check looks at one commit of the line, knows the items before and after it, and yields
findings with the commit as their source. What only waits for a human is listed as open. Without a
forge what one said is weighed as receipts froze it, and counted apart.

Example: ``audit_bus(store, tip, root, now=now).ok``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gitbus import ids, paths
from gitbus.auditing.checks import CHECKS
from gitbus.auditing.exporting import export_audit
from gitbus.auditing.values import Audited, Finding, Open, Window
from gitbus.auditing.walking import Step, Walk
from gitbus.history import Delta, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.forge import Forge
from gitbus.proof.leases import lease_findings
from gitbus.proof.line import line_findings
from gitbus.proof.messages import trailers
from gitbus.proof.reads import parent_tree, read_entry
from gitbus.proof.recorded import Recorded
from gitbus.records import Item, Lease, Receipt

__all__ = ["Audited", "Finding", "Open", "Window", "audit_bus", "export_audit"]


def audit_bus(
    history: History,
    tip: Oid,
    root: Oid,
    *,
    now: datetime,
    branch: str = "main",
    window: Window | None = None,
    forge: Forge | None = None,
) -> Audited:
    """Prove the history of a bus.

    Args:
        history: the repository.
        tip: the branch's tip.
        root: the commit that began the bus.
        now: the time.
        branch: the bus's branch, by its short name.
        window: which findings are reported.
        forge: asked again who merged; what receipts froze is weighed unless given.
    """
    within = window or Window()
    told = forge or Recorded.of(_receipts(history, tip), branch)
    found = effective(history, tip, root, forge=told)
    findings = [*_of_the_whole(history, tip, root, found)]
    line = list(reversed(history.line(tip)))
    start = effective(history, root, root)
    walk = Walk(history, root, branch, start, start, told)
    for oid in line:
        commit = history.commit(oid)
        deltas = tuple(history.diff(parent_tree(history, commit), commit.tree))
        step = Step(oid, commit, deltas, next(iter(trailers(commit.message, "Gitbus-Verb")), ""))
        walk.before, walk.at = walk.at, _at(walk, oid)
        for check in CHECKS:
            findings += check(walk, step)
        _learn(walk, step)
    for name in sorted(walk.leases):
        wrong = lease_findings(history, tip, name, root=root, bus=found)
        findings += [Finding(one.rule, one.subject, one.commit, one.message) for one in wrong]
    kept = [one for one in findings if within.holds(history, one.commit)]
    waiting = (*_unasked(history, found), *walk.open, *_open(walk, tip, now))
    return Audited(len(line), tuple(kept), waiting, walk.sent, walk.proved, walk.recorded)


def _of_the_whole(history: History, tip: Oid, root: Oid, found: Effective) -> Iterator[Finding]:
    """Yield what is wrong with the line as such, and the edits of the Bus that nobody decided on."""
    for one in line_findings(history, tip, root, found):
        yield Finding(one.rule, "main", tip, one.message)
    for edit in () if found.unasked else found.pending:
        yield Finding("bus-unproved", paths.BUS, edit.commit, "an edit that no approver decided on")


def _unasked(history: History, found: Effective) -> Iterator[Open]:
    """Yield what only a forge could say of the Bus, where none was asked and no receipt tells."""
    for _ in found.unasked[:1]:
        since = history.commit(found.pending[0].commit if found.pending else found.tip).committer.when
        yield Open(paths.BUS, "unasked", ids.time_text(since))


def _receipts(history: History, tip: Oid) -> Iterator[Receipt]:
    """Yield every receipt that stands on the branch, the archive's too."""
    tree = history.commit(tip).tree
    for folder in ("outbox", "archive"):
        for delta in history.diff(None, tree, folder):
            if _is_receipt(delta) and (receipt := read_entry(history, delta.new, delta.path, Receipt)):
                yield receipt


def _is_receipt(delta: Delta) -> bool:
    folder, _, leaf = delta.path.rpartition("/")
    return leaf.startswith("receipt.") and folder.rpartition("/")[0].endswith("outbox")


def _at(walk: Walk, oid: Oid) -> Effective:
    """Return the effective Bus at a commit; up to the root it is the root's."""
    if walk.history.is_ancestor(oid, walk.root):
        return walk.before
    return effective(walk.history, oid, walk.root, known=walk.at, forge=walk.forge)


def _learn(walk: Walk, step: Step) -> None:
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


def _open(walk: Walk, tip: Oid, now: datetime) -> Iterator[Open]:
    del now
    for name, item in sorted(walk.items.items()):
        if item.state in ("in_review", "awaiting_approval", "stuck", "failed", "sending"):
            newest = walk.history.line(tip, touching=[paths.item(name)])[0]
            yield Open(name, item.state, ids.time_text(walk.history.commit(newest).committer.when))
