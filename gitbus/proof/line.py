"""The line: the branch's first-parent history, and that nothing was put aside or brought back beside it.

Rules: the root is on it; every tip that was seen is on it; what a merge brought from beside the line
it left as every side that touched it has it, and what was undone there (a withdrawal, a stop) is not
hidden by it; a merge beside the line is the one that git makes by itself; and an approver's word on
``bus.yaml`` beside the line counts for nothing unless the merge that brought it is such a word
itself. A flip beside the line is what approval branches are for.

So a merge that makes an old tip its first parent, or keeps an old tree, is seen by a fresh clone
too. An approver's later commit may accept what was found (:mod:`gitbus.proof.accepting`).

Example: ``line_findings(history, tip, root, found)`` is empty for an honest history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gitbus import paths
from gitbus.errors import Refused
from gitbus.history import Commit, Delta, Entry, History, Oid
from gitbus.proof.accepting import acceptances
from gitbus.proof.bus import Effective, line_since
from gitbus.proof.forge import may_know
from gitbus.proof.messages import ACCEPT, BUS, trailers
from gitbus.proof.reads import brought_by, changed, is_flip, read_at
from gitbus.proof.standing import approver_of
from gitbus.proof.values import Finding, finding
from gitbus.records import Bus

REMEDY = "an approver looks at it and says: gitbus doctor --accept-history"
LINE = "main"


def line_findings(
    history: History,
    tip: Oid,
    root: Oid,
    found: Effective,
    *,
    seen: Oid | Collection[Oid] | None = None,
    proved: Oid | None = None,
) -> tuple[Finding, ...]:
    """Return what is wrong with the line.

    Args:
        history: the repository.
        tip: the commit to look from.
        root: the commit that began the bus.
        found: the effective Bus at ``tip``.
        seen: tips that this clone has seen; each has to be on the line.
        proved: a tip up to which the line is known to hold; one that is gone from it counts as seen.
    """
    try:
        return tuple(_findings(history, tip, root, found, _known(seen, proved), proved))
    except (Refused, KeyError) as error:
        return (finding("shallow", LINE, tip, str(error), "git fetch --unshallow"),)


def _known(seen: Oid | Collection[Oid] | None, proved: Oid | None) -> list[Oid]:
    tips = [seen] if isinstance(seen, str) else list(seen or ())
    return list(dict.fromkeys([*tips, *([proved] if proved else [])]))


def _findings(
    history: History, tip: Oid, root: Oid, found: Effective, known: Sequence[Oid], proved: Oid | None
) -> list[Finding]:
    new = _since(history, tip, proved)
    if new is None:
        new = _since(history, tip, root)
    if new is None:
        return [finding("not-on-line", LINE, tip, f"the root {root[:10]} is not on it", REMEDY)]
    gone = [one for one in known if one not in new and _since(history, tip, one) is None]
    lacks = [
        finding("not-on-line", LINE, one, f"the tip {one[:10]} that was seen here is gone", REMEDY)
        for one in gone
    ]
    lacks += _hidden(history, new, found) if new else ()
    accepted = acceptances(history, new, root, found) if lacks else []
    return [one for one in lacks if not any(other.covers(history, one.commit) for other in accepted)]


def _since(history: History, tip: Oid, base: Oid | None) -> list[Oid] | None:
    """Return the line after ``base``, newest first; None where that is not on it, or not here any more."""
    if base is None:
        return None
    try:
        history.commit(base)
    except KeyError:
        return None
    return line_since(history, tip, base)


# --- what stands beside the line


def _hidden(history: History, new: Sequence[Oid], found: Effective) -> Iterator[Finding]:
    """Yield what is wrong beside a stretch of the line, given newest first."""
    line = list(reversed(new))
    base = history.commit(line[0]).parents[:1]
    aside = _aside(history, line, base)
    named = _named_in_clouds(history, found, line, base)
    done: set[Oid] = set()
    for oid in (*aside, *named):
        if oid not in done:
            merge = history.commit(brought_by(history, oid, line))
            brought = history.between(merge.parents[1:], merge.parents[:1])
            done.update(brought)
            yield from _merge_findings(history, merge, found, frozenset(named) & frozenset(brought))


def _aside(history: History, line: Sequence[Oid], base: Sequence[Oid]) -> list[Oid]:
    """Return the commits beside the line that touch a protected path with more than a flip."""
    on_line = frozenset(line)
    flips = is_flip(history)
    touching = history.between(line[-1:], base, touching=paths.PROTECTED)
    return [
        oid
        for oid in touching
        if oid not in on_line
        and (len(history.commit(oid).parents) > 1 or not all(map(flips, _protected(history, oid))))
    ]


def _protected(history: History, oid: Oid) -> list[Delta]:
    return [delta for folder in paths.PROTECTED for delta in changed(history, oid, folder)]


def _merge_findings(
    history: History, merge: Commit, found: Effective, named: frozenset[Oid]
) -> Iterator[Finding]:
    """Yield what a merge on the line brought in and did not keep."""
    for side in merge.parents[1:]:
        brought = history.between([side], merge.parents[:1], touching=paths.PROTECTED)
        for oid in brought:
            yield from _not_remade(history, history.commit(oid), merge)
            yield from _not_kept(history, oid, side, merge)
            yield from _not_stopped(history, oid, merge, found)
            yield from _not_decided(history, oid, merge, found)
    for oid in named:
        yield from _not_decided(history, oid, merge, found)


def _not_remade(history: History, one: Commit, merge: Commit) -> Iterator[Finding]:
    if len(one.parents) < 2:
        return
    if len(one.parents) > 2 or history.remerge(*one.parents) != one.tree:
        yield _finding(
            one.oid, merge, f"the merge {one.oid[:10]} beside the line is not what git makes of its parents"
        )


def _not_kept(history: History, oid: Oid, side: Oid, merge: Commit) -> Iterator[Finding]:
    if len(history.commit(oid).parents) > 1:
        return
    flips = is_flip(history)
    for delta in _protected(history, oid):
        if flips(delta):
            continue
        kept = history.entry(merge.oid, delta.path)
        if kept != history.entry(side, delta.path):
            yield _finding(oid, merge, f"what {oid[:10]} made of {delta.path} was taken in and dropped")
        elif _is_undone(history, delta, kept, merge):
            yield _finding(oid, merge, f"what {oid[:10]} made of {delta.path} was undone beside the line")


def _is_undone(history: History, delta: Delta, kept: Entry | None, merge: Commit) -> bool:
    """Say whether a merge hides a change of an item: the line shows the item as if there had been none.

    A withdrawal that was reverted, both beside the line, would otherwise leave the approval as it was.
    """
    match delta.path.split("/"):
        case ["outbox", _, "item.yaml" | "approval.yaml"] if kept is not None:
            return delta.new != kept == history.entry(merge.parents[0], delta.path)
    return False


def _not_stopped(history: History, oid: Oid, merge: Commit, found: Effective) -> Iterator[Finding]:
    """Yield that somebody stopped sending beside the line, and that nothing on the line shows it."""
    commit = history.commit(oid)
    if len(commit.parents) != 1 or not changed(history, oid, paths.BUS):
        return
    if _is_on(history, oid) or not _is_on(history, commit.parents[0]):
        return
    if _is_on(history, merge.oid) and not _decides(history, merge, found):
        yield _finding(oid, merge, f"{oid[:10]} stopped sending, which was undone beside the line")


def _is_on(history: History, oid: Oid) -> bool:
    """Say whether the bus.yaml in a commit can be read, and says that sending is on."""
    bus = read_at(history, oid, paths.BUS, Bus)
    return bus is not None and bus.sending.enabled


def _not_decided(history: History, oid: Oid, merge: Commit, found: Effective) -> Iterator[Finding]:
    """Yield an approver's word on the Bus that was put beside the line."""
    commit = history.commit(oid)
    if not trailers(commit.message, BUS) and not changed(history, oid, paths.BUS):
        return
    if _is_word(history, commit, merge, found) and not _decides(history, merge, found):
        yield _finding(oid, merge, f"the decision {oid[:10]} on bus.yaml stands beside the line")


def _is_word(history: History, commit: Commit, merge: Commit, found: Effective) -> bool:
    """Say whether an approver, then or now, signed a decision on the Bus, or the forge made it.

    A merge that an approver signed is one only where it names the Bus.
    """
    buses = [advance.bus for advance in found.advances]
    if may_know(commit) and any(bus.approval.proof == "github" for bus in buses):
        return len(commit.parents) < 2 or not _is_brought_up_to_date(history, commit, merge)
    if len(commit.parents) > 1 and not trailers(commit.message, BUS):
        return False
    return any(approver_of(history, commit.oid, bus) is not None for bus in buses)


def _is_brought_up_to_date(history: History, commit: Commit, merge: Commit) -> bool:
    """Say whether a merge beside the line only took in a bus.yaml that stood on the line before."""
    here = history.entry(commit.oid, paths.BUS)
    return any(
        history.entry(parent, paths.BUS) == here and history.is_ancestor(parent, merge.parents[0])
        for parent in commit.parents
    )


def _decides(history: History, merge: Commit, found: Effective) -> bool:
    """Say whether a merge on the line made its bus.yaml effective, or affirmed it by name."""
    if found.advanced_by(merge.oid):
        return True
    named = trailers(merge.message, BUS)
    bus = found.at(history, merge.parents[0])
    return (
        named == (found.version(history, merge.oid).blob,)
        and approver_of(history, merge.oid, bus) is not None
    )


def _named_in_clouds(
    history: History, found: Effective, line: Sequence[Oid], base: Sequence[Oid]
) -> list[Oid]:
    """Return the commits beside the line that name a Bus while one waited for its decision.

    Such a commit may change nothing, so that no path gives it away.
    """
    on_line = frozenset(line)
    stretches = (
        history.between([end], [*history.commit(start).parents[:1], *base])
        for start, end in found.clouds
        if end in on_line
    )
    return [
        oid
        for stretch in stretches
        for oid in stretch
        if oid not in on_line and trailers(history.commit(oid).message, BUS)
    ]


def _finding(oid: Oid, merge: Commit, detail: str) -> Finding:
    return finding("hidden-history", LINE, oid, f"{detail}, by the merge {merge.oid[:10]}", REMEDY)


__all__ = ["ACCEPT", "LINE", "REMEDY", "line_findings"]
