"""The line: the branch's first-parent history, and that nothing was put aside or brought back beside it.

Rules: the root is on it; every tip that was seen is on it; and what a merge brought from beside the
line was taken in as it is, not taken in and dropped. A merge that makes an old tip its first parent,
or keeps an old tree, is seen by a fresh clone too.

Example: ``line_findings(history, tip, root, seen=None)`` is empty for an honest history.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import paths
from gitbus.history import Commit, History, Oid
from gitbus.proof.bus import Effective
from gitbus.proof.common import combined, only_flips, parent_tree, signer, trailers
from gitbus.proof.values import Missing, missing

ACCEPT = "Gitbus-Accept-History"
"""The trailer in which an approver names a tip whose history he accepts."""


def line_findings(
    history: History,
    tip: Oid,
    root: Oid,
    found: Effective,
    *,
    seen: Oid | None = None,
    proved: Oid | None = None,
) -> tuple[Missing, ...]:
    """Return what is wrong with the line.

    Args:
        history: the repository.
        tip: the commit to look from.
        root: the commit that began the bus.
        found: the effective Bus at ``tip``.
        seen: a tip that this clone has seen; it has to be on the line.
        proved: a tip up to which the line is known to hold.
    """
    stop = proved if proved is not None and proved != tip else None
    line = list(history.line(tip, until=stop or root))
    end = history.commit(line[-1]).parents[:1] if line else (tip,)
    if proved == tip:
        return ()
    if stop is not None and end != (stop,):
        accepted = _accepted(history, tip, found)
        if stop not in accepted:
            return (
                missing(
                    "not-on-line", f"the tip {stop[:10]} that was seen here is gone from the line", _REMEDY
                ),
            )
        line = list(history.line(tip, until=root))
    elif stop is None and tip != root and end != (root,):
        return (missing("not-on-line", f"the root {root[:10]} is not on the line"),)
    if seen is not None and seen != tip and seen not in line and not _holds(history, tip, seen, found):
        return (
            missing("not-on-line", f"the tip {seen[:10]} that was seen here is gone from the line", _REMEDY),
        )
    accepted = _accepted(history, tip, found)
    return tuple(one for oid in reversed(line) for one in _hidden(history, oid, found, accepted))


_REMEDY = "an approver looks at it and says: gitbus doctor --accept-history"


def _holds(history: History, tip: Oid, seen: Oid, found: Effective) -> bool:
    if seen in _accepted(history, tip, found):
        return True
    after = list(history.line(tip, until=seen))
    return bool(after) and history.commit(after[-1]).parents[:1] == (seen,)


def _accepted(history: History, tip: Oid, found: Effective) -> frozenset[Oid]:
    """Return the tips that an approver accepted, and the effective Bus with them."""
    accepted: set[Oid] = set()
    for oid in history.line(tip, until=found.since):
        accepted |= _accepts(history, oid, found)
    return frozenset(accepted | _accepts(history, found.since, found))


def _accepts(history: History, oid: Oid, found: Effective) -> set[Oid]:
    commit = history.commit(oid)
    named = trailers(commit.message, ACCEPT)
    if not named or not set(named) <= set(commit.parents[1:]):
        return set()
    if trailers(commit.message, "Gitbus-Bus") != (found.blob,):
        return set()
    return {*named} if signer(history, oid, found.bus.with_role("approver")).person else set()


def _hidden(history: History, oid: Oid, found: Effective, accepted: frozenset[Oid]) -> Iterator[Missing]:
    """Yield what a merge on the line brought in and did not keep."""
    commit = history.commit(oid)
    if len(commit.parents) < 2:
        return
    sides = [parent for parent in commit.parents[1:] if parent not in accepted]
    for side in sides:
        aside = history.between([side], commit.parents[:1], touching=paths.PROTECTED)
        for other in aside:
            one = history.commit(other)
            why = _why_hidden(history, commit, side, one, found)
            if why:
                yield missing("hidden-history", f"{why} in {other[:10]}, merged by {oid[:10]}", _REMEDY)


def _why_hidden(history: History, merge: Commit, side: Oid, one: Commit, found: Effective) -> str | None:
    """Return which protected path a commit beside the line changes without its merge keeping it."""
    if len(one.parents) > 1:
        if len(one.parents) != 2 or history.remerge(*one.parents) != one.tree:
            touched = [path for path in combined(history, one) if _is_protected(path)]
            return touched[0] if touched else None
        return None
    deltas = [
        delta for delta in history.diff(parent_tree(history, one), one.tree) if _is_protected(delta.path)
    ]
    if not deltas or only_flips(history, deltas) is None:
        return None
    for delta in deltas:
        if history.entry(merge.oid, delta.path) != history.entry(side, delta.path):
            return delta.path
        if (
            delta.path == paths.BUS
            and _is_decision(history, one, found)
            and merge.oid not in _advancing(found)
        ):
            return delta.path
    return None


def _is_decision(history: History, one: Commit, found: Effective) -> bool:
    people = [person for advance in found.advances for person in advance.bus.with_role("approver")]
    return signer(history, one.oid, people).person is not None


def _advancing(found: Effective) -> frozenset[Oid]:
    return frozenset(advance.commit for advance in found.advances)


def _is_protected(path: str) -> bool:
    return path.split("/", 1)[0] in paths.PROTECTED
