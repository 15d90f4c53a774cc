"""The effective Bus: the last ``bus.yaml`` that an approver decided on under the one before it.

Rules: an edit that nobody decided on is pending and changes nothing, and it cannot ride on a later
signature: a signed commit counts only where it stands directly on the effective version, or names
the blob. One thing needs no decision because it only stops: whoever writes that sending is off
turns it off, until an approver turns it on again.

Example: ``effective(history, tip, root).bus.sending.enabled``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gitbus import paths
from gitbus.errors import Refused
from gitbus.history import Commit, Delta, Entry, History, Oid
from gitbus.proof.forge import Forge, may_know
from gitbus.proof.messages import BUS, trailers
from gitbus.proof.reads import changed, first_parent, read_entry
from gitbus.proof.standing import Standing, Word, approver_of, own_work
from gitbus.proof.values import Missing, Verified, missing
from gitbus.records import Bus

_RATIFY = "gitbus ratify, or gitbus ratify --discard"


@dataclass(frozen=True, slots=True)
class Advance:
    """A commit of the line from which on a version of ``bus.yaml`` is the effective one."""

    commit: Oid
    blob: Oid
    bus: Bus
    person: str | None = None  # None: the root, which is pinned
    recorded: tuple[Verified, ...] = ()  # what a forge said of the merge that decided on it


@dataclass(frozen=True, slots=True)
class Pending:
    """An edit of ``bus.yaml`` that nobody decided on: the commit and what it left there."""

    commit: Oid
    blob: Oid | None  # None: no plain file
    line: int  # the first that differs from the effective version, from 1; 0 where there is none to name


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective Bus at ``tip``, a commit of the line.

    ``since`` is the commit at which it last advanced or was affirmed by name. ``pending`` are the
    edits that prove nothing and still stand in the tip's file; ``stops`` the commits since then
    that say that sending is off, or that cannot be read. ``clouds`` are the stretches of the line,
    both ends included, in which an edit waited for a decision or a stop stood. ``unasked`` says
    which merges only a forge can tell of that was not asked: what is effective is not known then.
    """

    tip: Oid
    advances: tuple[Advance, ...]
    since: Oid
    pending: tuple[Pending, ...] = ()
    stops: tuple[Oid, ...] = ()
    clouds: tuple[tuple[Oid, Oid], ...] = ()
    unasked: tuple[Missing, ...] = ()

    @property
    def bus(self) -> Bus:
        """The effective Bus."""
        return self.advances[-1].bus

    @property
    def blob(self) -> Oid:
        """The blob of the effective ``bus.yaml``."""
        return self.advances[-1].blob

    @property
    def commit(self) -> Oid:
        """The commit that brought it."""
        return self.advances[-1].commit

    def version(self, history: History, commit: Oid) -> Advance:
        """Return the version that was effective at an earlier commit of the same line."""
        later = self.advances[1:]
        return next(
            (one for one in reversed(later) if history.is_ancestor(one.commit, commit)), self.advances[0]
        )

    def at(self, history: History, commit: Oid) -> Bus:
        """Return the Bus that was effective at an earlier commit of the same line."""
        return self.version(history, commit).bus

    def advanced_by(self, commit: Oid) -> bool:
        """Say whether this commit of the line made another version the effective one."""
        return any(advance.commit == commit for advance in self.advances[1:])


def effective(
    history: History, tip: Oid, root: Oid, *, known: Effective | None = None, forge: Forge | None = None
) -> Effective:
    """Return the effective Bus at a commit of the line.

    Args:
        history: the repository.
        tip: the commit to look from.
        root: the commit that began the bus.
        known: what was found at an earlier commit of the same line, to go on from.
        forge: what a forge knows of merges; without one nothing counts that it alone could prove.

    Raises:
        Refused: the root is not on the line (rule ``not-on-line``), the history is not all here
            (``shallow``), or the root holds no Bus that can be read (``no-bus``).
    """
    if known is not None and known.unasked and forge is not None:
        known = None
    if known is not None and known.tip == tip and known.advances[0].commit == root:
        return known
    found, new = _start(history, tip, root, known)
    touching = frozenset(history.line(tip, until=found.tip, touching=[paths.BUS])) if new else frozenset()
    for oid in reversed(new):
        if oid in touching or found.pending or found.stops:
            found = _next(history, found, oid, oid in touching, forge)
    return replace(found, tip=tip)


def line_since(history: History, tip: Oid, base: Oid) -> list[Oid] | None:
    """Return the line from ``base`` (left out) to ``tip``, newest first; None where base is not on it.

    Raises:
        Refused: the history ends before its beginning (rule ``shallow``).
    """
    if tip == base:
        return []
    new = list(history.line(tip, until=base))
    last = history.commit(new[-1])
    if last.parents[:1] == (base,):
        return new
    if last.parents:
        raise Refused(
            "this clone is shallow: it cannot prove anything",
            rule="shallow",
            remedy="git fetch --unshallow",
            place=last.oid,
        )
    return None


def _start(history: History, tip: Oid, root: Oid, known: Effective | None) -> tuple[Effective, list[Oid]]:
    if known is not None and known.advances[0].commit == root:
        new = line_since(history, tip, known.tip)
        if new is not None:
            return known, new
    new = line_since(history, tip, root)
    if new is None:
        raise Refused(
            f"the root {root[:12]} is not on the first-parent line of the bus's branch",
            rule="not-on-line",
            remedy="somebody rewrote the branch, or the root that is pinned here is another bus's",
        )
    entry = history.entry(root, paths.BUS)
    bus = read_entry(history, entry, paths.BUS, Bus)
    if bus is None or entry is None:
        raise Refused(f"the root {root[:12]} holds no bus.yaml that can be read", rule="no-bus")
    return Effective(root, (Advance(root, entry.oid, bus),), root), new


def _next(history: History, found: Effective, oid: Oid, touches: bool, forge: Forge | None) -> Effective:
    """Return the effective Bus after one more commit of the line, one that may say something about it."""
    here = history.entry(oid, paths.BUS)
    bus = read_entry(history, here, paths.BUS, Bus)
    word = _decided(history, found, oid, here, touches, forge) if bus is not None else Word()
    unasked = tuple(one for one in word.missing if one.kind == "unasked")
    found = replace(found, unasked=(*found.unasked, *unasked))
    if word.people and not word.missing and here is not None and bus is not None:
        advances = found.advances
        if here.oid != found.blob:
            advances = (*advances, Advance(oid, here.oid, bus, word.people[0], word.verified))
        return _clouded(found, replace(found, advances=advances, since=oid, pending=(), stops=()), oid)
    if not touches:
        return _clouded(found, found, oid)
    stops = found.stops if bus is not None and bus.sending.enabled else (*found.stops, oid)
    settled = here is not None and here.oid == found.blob
    pending = () if settled else (*found.pending, _pending(history, found, oid, here))
    return _clouded(found, replace(found, pending=pending, stops=stops), oid)


def _clouded(before: Effective, after: Effective, oid: Oid) -> Effective:
    """Return ``after`` with the cloud in which this commit stands, if it stands in one."""
    if before.pending or before.stops:
        return replace(after, clouds=(*before.clouds[:-1], (before.clouds[-1][0], oid)))
    if after.pending or after.stops:
        return replace(after, clouds=(*before.clouds, (oid, oid)))
    return after


def _pending(history: History, found: Effective, oid: Oid, here: Entry | None) -> Pending:
    if here is None:
        return Pending(oid, None, 0)
    try:
        new, old = history.blob(here.oid).split(b"\n"), history.blob(found.blob).split(b"\n")
    except KeyError:
        return Pending(oid, None, 0)
    same = next((at for at, (one, other) in enumerate(zip(new, old, strict=False)) if one != other), None)
    return Pending(oid, here.oid, (min(len(new), len(old)) if same is None else same) + 1)


def _decided(
    history: History,
    found: Effective,
    oid: Oid,
    here: Entry | None,
    touches: bool,
    forge: Forge | None,
) -> Word:
    """Return the word of the approver who decided on what stands in this commit; nobody's where none did.

    What only a forge could tell, and was not asked, is missing.
    """
    if here is None:
        return Word()
    commit = history.commit(oid)
    by_name = set(trailers(commit.message, BUS)) == {here.oid}
    parent = history.entry(commit.parents[0], paths.BUS) if commit.parents else None
    directly = touches and parent is not None and parent.oid == found.blob and parent.mode == here.mode
    alone = len(commit.parents) == 1 and directly and not _touches_outbox(history, oid)
    if (by_name or alone) and own_work(commit, named=by_name) is None:
        person = approver_of(history, oid, found.bus)
        if person is not None:
            return Word((person,))
    if directly and found.bus.approval.proof == "github":
        return _by_forge(history, found, commit, forge)
    return Word()


def _touches_outbox(history: History, oid: Oid) -> bool:
    """Say whether a commit that decides on the Bus changes items too, which no such decision does."""
    return any(changed(history, oid, folder) for folder in ("outbox", "archive"))


def _by_forge(history: History, found: Effective, commit: Commit, forge: Forge | None) -> Word:
    deltas: tuple[Delta, ...] = tuple(changed(history, commit.oid))
    if [delta.path for delta in deltas] != [paths.BUS]:
        return Word()
    if forge is not None:
        standing = Standing(found.bus, found.bus)
        word = forge.word(history, commit.oid, standing, ())
        ours = word.people[:1] and word.people[0] in standing.with_role("approver")
        return word if ours or word.missing else Word()
    why = missing("unasked", f"only GitHub knows who merged {commit.oid[:10]}", unasked=True)
    return Word((), (), (why,) if may_know(commit) else ())


def sending_on(found: Effective, history: History, tip: Oid | None = None) -> Missing | None:
    """Return why nothing may be sent at a commit of the line; None where sending is on.

    Args:
        found: the effective Bus there.
        history: the repository.
        tip: that commit; ``found.tip`` where it is left out.
    """
    if found.unasked:
        return found.unasked[0]
    entry = history.entry(tip or found.tip, paths.BUS)
    here = read_entry(history, entry, paths.BUS, Bus)
    if not found.bus.sending.enabled:
        return missing("sending-off", "`sending.enabled` is false", "gitbus config set sending.enabled=true")
    if here is None:
        return missing("bus-unreadable", remedy="gitbus ratify --discard puts the effective version back")
    if not here.sending.enabled:
        return missing("sending-stopped", "the bus.yaml on the branch says off", _RATIFY)
    if found.stops:
        parent = first_parent(history, found.stops[-1])
        where = f"by commit {found.stops[-1][:10]}" + (f" after {parent[:10]}" if parent else "")
        return missing("sending-stopped", where, "gitbus ratify, by an approver, lifts the stop")
    return None
