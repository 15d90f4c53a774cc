"""The audit: walks the whole line once and proves it, commit by commit. A tuple of small checks.

Each check looks at one commit of the line, knows the items before and after it, and yields
findings with the commit as their source. What only waits for a human is listed as open. Without a
forge what one said is weighed as receipts froze it, and counted apart.

Example: ``audit_bus(store, tip, root, now=now).ok``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from gitbus import ids, paths
from gitbus.auditing.checks import CHECKS
from gitbus.auditing.exporting import export_audit
from gitbus.auditing.values import Audited, Finding, Open, Window
from gitbus.auditing.walking import Step, Walk
from gitbus.edits import Edit, Look, Memo
from gitbus.history import Delta, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.claims import Claims
from gitbus.proof.forge import Forge
from gitbus.proof.line import line_findings
from gitbus.proof.reads import parent_tree, read_entry
from gitbus.proof.recorded import Recorded
from gitbus.records import Item, Receipt

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
    claims = Claims.of(history, tip)
    walk = Walk(history, root, branch, start, start, told, Memo(history), claims)
    for oid in line:
        walk.before, walk.at = walk.at, _at(walk, oid)
        findings += _step(walk, oid)
    wrong = claims.findings(history, tip, found)
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


def _step(walk: Walk, oid: Oid) -> list[Finding]:
    """Look at one commit of the line, and take in what it leaves."""
    commit = walk.history.commit(oid)
    deltas = tuple(walk.history.diff(parent_tree(walk.history, commit), commit.tree))
    whole = Look(walk.memo, commit, deltas, walk.before.bus, walk.items)
    look = walk.still.fresh(whole)
    step = Step(oid, commit, tuple(look.deltas), look)
    found = [one for check in CHECKS for one in check(walk, step)]
    walk.still = walk.still.after(whole, (Edit(one.rule, one.subject, one.message) for one in found))
    _learn(walk, deltas)
    return found


def _learn(walk: Walk, deltas: Iterable[Delta]) -> None:
    """Take the items as a commit leaves them; one that cannot be read is known as it was."""
    for delta in deltas:
        match delta.path.split("/"):
            case ["outbox", name, "item.yaml"]:
                item = walk.memo.read(delta.new, delta.path, Item)
                if item is not None:
                    walk.items[name] = item
                elif delta.new is None:
                    walk.items.pop(name, None)
            case _:
                pass


def _open(walk: Walk, tip: Oid, now: datetime) -> Iterator[Open]:
    del now
    for name, item in sorted(walk.items.items()):
        if item.state in ("in_review", "awaiting_approval", "stuck", "failed", "sending"):
            newest = walk.history.line(tip, touching=[paths.item(name)])[0]
            yield Open(name, item.state, ids.time_text(walk.history.commit(newest).committer.when))
