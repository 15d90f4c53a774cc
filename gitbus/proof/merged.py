"""What a forge says of the pull request that made a commit, and what follows from it.

Rules: a forge's word is facts, asked once and weighed here, so that the same facts, frozen into a
receipt, are weighed by an audit without asking again. Exactly one merged pull request of this very
repository made the commit, by the forge's own hand, on the word of a person: not an app, not a queue,
not a push that happened to hold its head. Reviews count at the head that was merged, and the latest
of each person; whoever asked for changes stands against it until he says otherwise.

Example: ``weigh(facts, commit, standing, {"approve/a.mail.item"}, "main").people == ("ada",)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from gitbus.history import Commit, Oid
from gitbus.proof.standing import AGAIN, Standing, Word
from gitbus.proof.values import Missing, Verified, missing
from gitbus.records import Bus, Person

HEADS = "gitbus/"


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Account(_Fact):
    """Who did something on the forge: the number is for life, the login is not."""

    id: int
    login: str
    type: str


class ReviewFact(_Fact):
    """One review: what it said, of which commit, and when; ``dismissed_by`` took it away."""

    id: int
    by: Account
    verdict: Literal["approved", "changes_requested", "dismissed"]
    commit: Oid | None
    at: datetime
    dismissed_by: Account | None = None
    dismissed_verdict: str | None = None


class PullFacts(_Fact):
    """A pull request as the forge told it: enough to weigh whether its merge is a person's word.

    ``made_by_forge``: the forge says that it made the commit and that its own signature on it is good.
    ``automatic``: how it was merged without a person at that moment, if it was.
    """

    repository: int
    number: int
    base: str
    head: str
    head_commit: Oid
    head_repository: int | None
    author: Account | None
    merged_at: datetime | None
    merged_by: Account | None
    merge_commit: Oid | None
    made_by_forge: bool
    why_not_made: str = ""
    automatic: Literal["auto-merge", "merge queue"] | None = None
    reviews: tuple[ReviewFact, ...] = ()


def weigh(facts: PullFacts, commit: Commit, standing: Standing, about: Collection[str], branch: str) -> Word:
    """Return whose word a merged pull request is, and what is missing of it.

    The merger comes first, then everybody who approved the head that was merged, he among them.

    Args:
        facts: what the forge says of the pull request.
        commit: the commit that it is to have made.
        standing: the Buses under which people have to count.
        about: the branches below ``gitbus/`` of which its head has to be one; any where there are none.
        branch: the bus's branch, by its short name.
    """
    lacking = (
        *_not_this(facts, commit, about, branch),
        *_not_by_a_person(facts, commit),
        *_no_approver(facts.merged_by, standing),
        *_against(facts.reviews, standing),
    )
    if lacking:
        return Word((), (), lacking)
    merger = _both(facts.merged_by, standing)
    people = (merger, *_for(facts, standing))
    said = f"pull request #{facts.number} merged by {merger}"
    evidence = facts.model_dump(mode="json")
    return Word(tuple(one for one in people if one), (Verified(said, "recorded", evidence),))


def facts_in(evidence: object) -> PullFacts | None:
    """Return the facts that a receipt froze; None where this is no such evidence."""
    try:
        return PullFacts.model_validate(evidence)
    except ValueError:
        return None


def _not_this(facts: PullFacts, commit: Commit, about: Collection[str], branch: str) -> Iterator[Missing]:
    """Yield why it is not the merge of a branch of this bus into the bus."""
    name = f"#{facts.number}"
    if facts.merged_at is None or facts.merge_commit != commit.oid:
        yield missing("no-pull", f"{name} did not make {commit.oid[:10]}", AGAIN)
    if facts.base != branch:
        yield missing("wrong-branch", f"{name} was merged into {facts.base}, not {branch}", AGAIN)
    if facts.head_repository != facts.repository:
        yield missing("fork", name, AGAIN)
    elif about and facts.head not in {HEADS + name for name in about}:
        yield missing("not-named", f"the head of {name} is {facts.head}", AGAIN)


def _not_by_a_person(facts: PullFacts, commit: Commit) -> Iterator[Missing]:
    """Yield why the commit is no merge that a person made on the forge."""
    if not facts.made_by_forge:
        yield missing("indirect-merge", f"#{facts.number}: {facts.why_not_made}".rstrip(": "), AGAIN)
    elif len(commit.parents) > 2 or (len(commit.parents) == 2 and commit.parents[1] != facts.head_commit):
        yield missing("indirect-merge", f"#{facts.number}: its head is not what was merged", AGAIN)
    if facts.automatic is not None:
        yield missing("automatic-merge", f"#{facts.number} by {facts.automatic}", AGAIN)
    if facts.merged_by is None:
        yield missing("no-pull", f"#{facts.number}: nobody is named who merged", AGAIN)
    elif facts.merged_by.type != "User":
        yield missing("merged-by-app", facts.merged_by.login, AGAIN)


def _no_approver(account: Account | None, standing: Standing) -> Iterator[Missing]:
    if account is None or account.type != "User":
        return
    before, now = _owner(account, standing.before), _owner(account, standing.now)
    counted = before is not None and "approver" in before.roles
    counts = now is not None and "approver" in now.roles
    who = account.login
    if counted and counts and before is not None and now is not None and before.id == now.id:
        return
    if counted:
        yield missing("removed-since", who, AGAIN)
    elif counts:
        yield missing("added-since", who, AGAIN)
    elif before is None and now is None:
        yield missing("unknown-account", f"{who} (id {account.id})", AGAIN)
    else:
        yield missing("wrong-role", f"{who} is no approver", AGAIN)


def _against(reviews: tuple[ReviewFact, ...], standing: Standing) -> Iterator[Missing]:
    """Yield who asked for changes and has not said otherwise since."""
    for account, review in _latest(reviews, standing).items():
        if _says_no(review, standing):
            remedy = "the same person approves it, or the item is redone"
            yield missing("standing-no", f"{review.by.login} ({account}) asks for changes", remedy)


def _says_no(review: ReviewFact, standing: Standing) -> bool:
    """Say whether a review stands against it; one that was dismissed does, unless by who may."""
    if review.verdict != "dismissed":
        return review.verdict == "changes_requested"
    by = review.dismissed_by
    lifted = by is not None and (
        by.id == review.by.id or _both(by, standing) in standing.with_role("approver")
    )
    return review.dismissed_verdict != "approved" and not lifted


def _latest(reviews: tuple[ReviewFact, ...], standing: Standing) -> Mapping[int, ReviewFact]:
    """Return the latest verdict of each account that belongs to somebody with a role, then or now."""
    found: dict[int, ReviewFact] = {}
    for review in sorted(reviews, key=lambda one: (one.at, one.id)):
        owners = (_owner(review.by, bus) for bus in (standing.before, standing.now))
        if any(owner is not None and owner.roles for owner in owners):
            found[review.by.id] = review
    return found


def _for(facts: PullFacts, standing: Standing) -> Iterator[str]:
    """Yield who approved the very head that was merged, before it was."""
    for review in _latest(facts.reviews, standing).values():
        on_time = facts.merged_at is not None and review.at <= facts.merged_at
        person = _both(review.by, standing)
        if review.verdict == "approved" and review.commit == facts.head_commit and on_time and person:
            yield person


def _both(account: Account | None, standing: Standing) -> str | None:
    """Return whose account it is in both Buses."""
    before, now = _owner(account, standing.before), _owner(account, standing.now)
    return before.id if before is not None and now is not None and before.id == now.id else None


def _owner(account: Account | None, bus: Bus) -> Person | None:
    """Return the person whose account it is, by its number; an app is nobody."""
    if account is None or account.type != "User":
        return None
    return next((one for one in bus.people if one.github and one.github.id == account.id), None)
