"""Whose word a commit is: the signature, the person, and the role, then and now.

Rules: a person counts with one key and one role, and only where both hold in the Bus *before* the
decision and in the Bus *now*. A signature covers what the signer wrote: a commit whose author line is
not its committer line was rebased, picked or amended, and proves nothing; nor does a squash that
names nothing. A merge is no better: ``git rebase -r`` makes and signs anew what others merged.

Example: ``signed(history, commit, Standing(before, now), ("approver",)).people == ("ada",)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from gitbus.history import Commit, History, Oid, Signature
from gitbus.proof.messages import is_squash
from gitbus.proof.values import Missing, Verified, missing
from gitbus.records import Bus, Person

AGAIN = "decide again with `gitbus approve`, on the branch as it is now"


@dataclass(frozen=True, slots=True)
class Standing:
    """The two Buses under which a person has to count: before the decision, and now."""

    before: Bus
    now: Bus

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Return the ids of the people who have one of the roles in both."""
        now = {person.id for person in self.now.with_role(*roles)}
        return tuple(person.id for person in self.before.with_role(*roles) if person.id in now)


@dataclass(frozen=True, slots=True)
class Word:
    """Somebody's word: the people who stand behind it, what was verified and what is missing."""

    people: tuple[str, ...] = ()
    verified: tuple[Verified, ...] = ()
    missing: tuple[Missing, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Key:
    """A good signature's key and whose it is under one Bus."""

    signature: Signature
    owner: Person | None

    def counts(self, roles: Collection[str]) -> bool:
        return self.owner is not None and bool(set(roles) & set(self.owner.roles))


def signed(history: History, oid: Oid, standing: Standing, roles: Collection[str]) -> Word:
    """Return whose signed word a commit is, as far as ``roles`` let anybody have a say in it."""
    before = _key(history, oid, standing.before)
    now = before if standing.now is standing.before else _key(history, oid, standing.now)
    lacking = tuple(_why_not(before, now, roles))
    if lacking or before.owner is None:
        return Word((), (), lacking or (missing("unknown-key"),))
    evidence = {"commit": oid, "fingerprint": before.signature.fingerprint, "person": before.owner.id}
    return Word((before.owner.id,), (Verified(f"signed by {before.owner.id}", "proved", evidence),))


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed a commit, as far as some people's keys can tell."""

    person: Person | None
    signature: Signature


def signer(history: History, oid: Oid, people: Iterable[Person]) -> Signer:
    """Return which of these people signed a commit."""
    owners = {key: person for person in people for key in person.keys}
    signature = history.signature(oid, tuple(owners))
    known = signature.verdict == "good" and signature.key is not None
    return Signer(owners.get(signature.key or "") if known else None, signature)


def approver_of(history: History, oid: Oid, bus: Bus) -> str | None:
    """Return the approver under a Bus who signed a commit; None where none did."""
    people = signed(history, oid, Standing(bus, bus), ("approver",)).people
    return people[0] if people else None


def own_work(commit: Commit, *, named: bool) -> Missing | None:
    """Return why a signature on this commit is no word of the signer's own; None where it is.

    Args:
        commit: a commit.
        named: whether its trailers say what it decides on.
    """
    if commit.author.raw != commit.committer.raw:
        return missing("rewritten", f"author and committer line of {commit.oid[:10]} differ", AGAIN)
    if len(commit.parents) < 2 and not named and is_squash(commit.message):
        return missing("squashed", remedy=AGAIN)
    return None


def _key(history: History, oid: Oid, bus: Bus) -> _Key:
    found = signer(history, oid, bus.people)
    return _Key(found.signature, found.person)


def _why_not(before: _Key, now: _Key, roles: Collection[str]) -> Iterator[Missing]:
    for verdict, rule in (("none", "unsigned"), ("bad", "bad-signature")):
        if verdict in (before.signature.verdict, now.signature.verdict):
            yield missing(rule, before.signature.detail or now.signature.detail, AGAIN)
            return
    if "unasked" in (before.signature.verdict, now.signature.verdict):
        yield missing("unasked", before.signature.detail or now.signature.detail, unasked=True)
    elif before.owner is None and now.owner is None:
        yield missing("unknown-key", before.signature.fingerprint or "", AGAIN)
    elif before.counts(roles) and not _same(before, now, roles):
        yield missing("removed-since", before.owner.id if before.owner else "", AGAIN)
    elif now.counts(roles) and not before.counts(roles):
        yield missing("added-since", now.owner.id if now.owner else "", AGAIN)
    elif not before.counts(roles):
        owner = before.owner or now.owner
        yield missing("wrong-role", f"{owner.id if owner else '?'} is no {' or '.join(roles)}", AGAIN)


def _same(before: _Key, now: _Key, roles: Collection[str]) -> bool:
    return (
        now.counts(roles)
        and before.owner is not None
        and now.owner is not None
        and before.owner.id == now.owner.id
    )
