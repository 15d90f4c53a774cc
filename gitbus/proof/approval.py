"""The proof of an approval: seven points, each verified on its own, from history alone.

Let A be the commit of the line that brought the item's present ``approval.yaml``. Only what A's
signature names is approved by it, only a flip may come along with it, and nothing of the item, its
payload, its channel or the approver's rights may be otherwise than when it was approved.

Example::

    proof = prove_approval(history, tip, "a.mail.item", root=root, now=now)
    if not proof.proved:
        print(proof.missing[0].message)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gitbus import ids, paths
from gitbus.approvals import approval_of
from gitbus.errors import Refused
from gitbus.history import FILE, Commit, History, Oid
from gitbus.proof.bus import Effective, effective
from gitbus.proof.deciding import Decision, decided_by
from gitbus.proof.forge import Forge
from gitbus.proof.quorum import quorum
from gitbus.proof.reads import first_parent, is_flip, more_than_flips, own_changes, read_at
from gitbus.proof.standing import Standing
from gitbus.proof.times import SKEW
from gitbus.proof.values import Missing, Proof, Verified, missing
from gitbus.records import Approval, Item, Lease, Receipt
from gitbus.seals import opened
from gitbus.states import WAITING

CHANGED_BY_SENDING = {"state", "attempt", "not_before", "reason"}
PUT_UP = "it has to be put up and approved anew"

Step = tuple[Oid, Item | None]
"""A commit of the line that changed an item, and the item that it left."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One approval while it is looked at: A is ``commit``, ``waited`` the item at A^1."""

    history: History
    tip: Oid
    name: str
    now: datetime
    standing: Standing
    commit: Commit
    waited: Item
    present: Item
    approval: Approval
    branch: str
    forge: Forge | None

    @property
    def before(self) -> Oid:
        """A^1."""
        return self.commit.parents[0]


Found = Iterator[Verified | Missing]


def prove_approval(
    history: History,
    tip: Oid,
    item: str,
    *,
    root: Oid,
    now: datetime,
    bus: Effective | None = None,
    branch: str = "main",
    forge: Forge | None = None,
) -> Proof:
    """Prove, or fail to prove, that an item is approved at a commit of the line.

    Args:
        history: the repository.
        tip: the commit that a lease would stand on; what was sent is judged by its lease's parent,
            with the lease's date for ``now``.
        item: the item's id.
        root: the commit that began the bus.
        now: the time.
        bus: the effective Bus at ``tip``, or at an earlier commit of its line, where it is known.
        branch: the bus's branch.
        forge: what a forge knows of merges, where there is one.
    """
    try:
        return _prove(history, tip, item, root, now, bus, branch, forge)
    except Refused as error:
        kind = error.rule if error.rule in ("shallow", "not-on-line") else "unasked"
        lacks = missing(kind, error.message, error.remedy or "", unasked=True)
    except KeyError as error:
        lacks = missing(
            "shallow", f"the object {error.args[0]} is not here", "git fetch --unshallow", unasked=True
        )
    return Proof(item, None, (), (), (lacks,))


def _prove(
    history: History,
    tip: Oid,
    item: str,
    root: Oid,
    now: datetime,
    bus: Effective | None,
    branch: str,
    forge: Forge | None,
) -> Proof:
    found = effective(history, tip, root, known=bus, forge=forge)
    if found.unasked:
        return Proof(item, None, (), (), found.unasked)
    present = read_at(history, tip, paths.item(item), Item)
    approval = read_at(history, tip, paths.approval(item), Approval)
    why = _why_none(item, present, approval)
    if why is not None or present is None or approval is None:
        return Proof(item, None, (), (), (why or missing("no-approval"),))
    commit = history.commit(history.line(tip, touching=[paths.approval(item)])[0])
    waited = read_at(history, commit.parents[0], paths.item(item), Item) if commit.parents else None
    if waited is None or waited.state not in WAITING:
        state = waited.state if waited else "nothing"
        return Proof(item, commit.oid, (), (), (missing("state-jump", f"from {state} to approved"),))
    standing = Standing(found.at(history, commit.parents[0]), found.bus)
    case = _Case(history, tip, item, now, standing, commit, waited, present, approval, branch, forge)
    return _weighed(case, _decisions(found))


def _why_none(item: str, present: Item | None, approval: Approval | None) -> Missing | None:
    if present is None or present.id != item:
        return missing("no-approval", "its item.yaml cannot be read")
    if present.state != "approved":
        return missing("not-approved", f"it is {present.state}")
    if approval is None:
        return missing("no-approval")
    return None


def _decisions(found: Effective) -> tuple[Verified, ...]:
    """Return what a forge said of the versions of the Bus, so that it can be weighed without asking again."""
    return tuple(one for advance in found.advances for one in advance.recorded)


def _weighed(case: _Case, decisions: tuple[Verified, ...]) -> Proof:
    about = Decision.approving(case.waited, case.branch)
    word = decided_by(case.history, case.commit, case.standing, about, case.forge)
    enough = quorum(case.history, case.tip, case.waited, case.standing, word)
    checks: Iterable[Iterable[Verified | Missing]] = (
        _states(case),
        _flip_alone(case),
        _content(case),
        _channel(case),
        (*word.verified, *word.missing),
        (*enough.verified, *enough.missing),
        _times(case),
    )
    found = [one for check in checks for one in check]
    return Proof(
        case.name,
        case.commit.oid,
        enough.people,
        (*(one for one in found if isinstance(one, Verified)), *decisions),
        tuple(one for one in found if isinstance(one, Missing)),
    )


# --- 1: the entry, and the states since


def _states(case: _Case) -> Found:
    steps = _steps(case)
    if steps is None or len(steps) < 2 or steps[1][0] != case.commit.oid:
        yield missing("entry-mismatch", f"it names {case.approval.entry[:10]}", PUT_UP)
        return
    states = [item.state if item else "broken" for _, item in steps]
    if states[0] not in WAITING:
        yield missing("entry-mismatch", "the item did not wait after the entry", PUT_UP)
    elif not _only_sending(states[1:]):
        yield missing("state-jump", " → ".join(states), PUT_UP)
    elif (odd := _not_given_back(case, steps[2:])) is not None:
        yield missing("state-jump", f"in {odd[:10]}", PUT_UP)
    elif (odd := _beside(case)) is not None:
        yield missing("state-jump", f"in {odd[:10]}, beside the line", PUT_UP)
    else:
        yield Verified(
            "it waited, was approved, and was only leased since", "proved", {"entry": case.approval.entry}
        )


def _steps(case: _Case) -> list[Step] | None:
    """Return the commits of the line that changed the item, from the entry on; None where it is not among them."""
    history, path = case.history, paths.item(case.name)
    try:
        until = first_parent(history, case.approval.entry)
    except KeyError:
        return None
    line = list(history.line(case.tip, until=until, touching=[path]))
    if case.approval.entry not in line:
        return None
    oids = line[: line.index(case.approval.entry) + 1]
    return [(oid, read_at(history, oid, path, Item)) for oid in reversed(oids)]


def _only_sending(states: Sequence[str]) -> bool:
    """Say whether states are ``approved``, then leases each given back."""
    return (
        all(state == ("sending" if at % 2 else "approved") for at, state in enumerate(states))
        and len(states) % 2 == 1
    )


def _not_given_back(case: _Case, steps: Sequence[Step]) -> Oid | None:
    """Return the first commit since A that is neither a lease of this approval nor its ``not_sent``."""
    lease: Lease | None = None
    attempt = case.waited.attempt
    for oid, item in steps:
        if item is None or _lasting(item) != _lasting(case.waited):
            return oid
        if item.state == "sending":
            lease = read_at(case.history, oid, paths.lease(case.name, attempt), Lease)
            if lease is None or lease.approval != case.commit.oid or item.attempt != attempt:
                return oid
        else:
            receipt = read_at(case.history, oid, paths.receipt(case.name, attempt), Receipt)
            if lease is None or opened(lease, receipt) != "not_sent" or item.attempt != attempt + 1:
                return oid
            attempt += 1
    return None


def _beside(case: _Case) -> Oid | None:
    """Return a commit beside the line since the entry that made anything of the item but a flip.

    So nobody can take an approval back, undo that, and hide both behind a merge. What A itself
    brought is looked at with A.
    """
    history, places = case.history, (paths.item(case.name), paths.approval(case.name))
    on_line = frozenset(history.line(case.tip, until=case.approval.entry, touching=places))
    flips = is_flip(history)
    for tip, base in ((case.before, case.approval.entry), (case.tip, case.commit.oid)):
        for oid in history.between([tip], [base], touching=places):
            changes = [delta for path in places for delta in own_changes(history, history.commit(oid), path)]
            if oid not in on_line and not all(map(flips, changes)):
                return oid
    return None


# --- 2: the flip, and nothing beside it


def _flip_alone(case: _Case) -> Found:
    more = more_than_flips(case.history, case.commit.oid)
    if more is not None:
        yield missing("merge-holds-more", f"{more[1]} in {more[0][:10]}", PUT_UP)
    else:
        yield Verified(
            "the approving commit holds flips and nothing else", "proved", {"commit": case.commit.oid}
        )


# --- 3: what was approved is what will go


def _content(case: _Case) -> Found:
    contents: dict[str, bytes] = {}
    for file in case.waited.payload:
        path = f"{paths.item_folder(case.name)}/{file.path}"
        entries = [case.history.entry(oid, path) for oid in (case.before, case.commit.oid, case.tip)]
        first = entries[0]
        if first is None or first.mode != FILE or any(one != first for one in entries):
            yield missing("payload-changed", path, PUT_UP)
            return
        data = case.history.blob(first.oid)
        if (ids.sha256(data), len(data)) != (file.sha256, file.bytes):
            yield missing("payload-changed", f"{path} has not the hash that the item names", PUT_UP)
            return
        contents[file.path] = data
    yield from _same(case, contents)


def _same(case: _Case, contents: dict[str, bytes]) -> Found:
    roles = [file.role for file in case.waited.payload if file.role != "attachment"]
    if len(roles) != len(set(roles)) or len(contents) != len(case.waited.payload):
        yield missing("approval-mismatch", "two files of the payload say the same", PUT_UP)
    elif (
        case.waited.expires_at is None
        or approval_of(case.waited, case.approval.entry, contents) != case.approval
    ):
        yield missing("approval-mismatch", remedy=PUT_UP)
    elif _lasting(case.present) != _lasting(case.waited):
        yield missing("item-changed", remedy=PUT_UP)
    else:
        yield Verified("message and payload are what was approved", "proved", {"digest": case.waited.digest})


def _lasting(item: Item) -> dict[str, object]:
    return item.model_dump(exclude=CHANGED_BY_SENDING)


# --- 4: where it goes


def _channel(case: _Case) -> Found:
    loose = {"rate", "recipients"} | ({"from_"} if case.waited.message.from_ is not None else set())
    old, new = (
        bus.channels[case.waited.channel].model_dump(exclude=loose)
        if case.waited.channel in bus.channels
        else None
        for bus in (case.standing.before, case.standing.now)
    )
    if old is None or new is None:
        yield missing("channel-changed", f"bus.yaml has no channel {case.waited.channel}", PUT_UP)
    elif old != new:
        yield missing("channel-changed", case.waited.channel, PUT_UP)
    else:
        yield Verified(
            "the channel is the one that it was approved for", "proved", {"channel": case.waited.channel}
        )


# --- 7: the time


def _waits_since(case: _Case) -> datetime:
    """Return when the entry was made; where there is none, when A was (the states tell)."""
    try:
        return case.history.commit(case.approval.entry).committer.when
    except KeyError:
        return case.commit.committer.when


def _times(case: _Case) -> Found:
    made, ends = case.commit.committer.when, case.approval.expires_at
    if made + SKEW < _waits_since(case):
        yield missing("entry-mismatch", f"it is dated {ids.time_text(made)}, before the item waited", PUT_UP)
    if made > case.now + SKEW:
        yield missing("future", ids.time_text(made), "wait, or set the clock right", unasked=True)
    if case.now >= ends:
        yield missing(
            "expired", f"at {ids.time_text(ends)}", "gitbus retry ITEM puts it up again", unasked=True
        )
    if ends > made + case.standing.before.approval.expires + SKEW:
        yield missing("expiry", f"it was made at {ids.time_text(made)}", PUT_UP)
    elif case.now < ends:
        yield Verified("it is in time", "proved", {"expires_at": ids.time_text(ends)})
