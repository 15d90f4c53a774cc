"""Reviews: who said yes or no to a revision, read from the line's history and not from the last file.

Rules: a yes is a signed commit of that very person that writes that very file; a no needs no proof,
counts beside the line too, and neither deleting nor overwriting it lifts it, only the same person's
later yes does. A review that cannot be read is taken for a no: it stops, and says so.

Example: ``verdicts(history, tip, item, standing)["ada"].verdict == "ok"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gitbus import paths
from gitbus.history import Delta, History, Oid
from gitbus.proof.reads import brought_by, changed, first_parent, own_changes, read_entry
from gitbus.proof.standing import Standing, own_work, signed
from gitbus.proof.values import Missing, Proof, missing
from gitbus.records import Item, Review

ROLES = ("approver", "reviewer")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's standing word on a revision, and the commit that brought it."""

    person: str
    verdict: Literal["ok", "no"]
    commit: Oid


def verdicts(history: History, tip: Oid, item: Item, standing: Standing) -> Mapping[str, Verdict]:
    """Return the standing verdicts on an item's present revision, by person.

    Args:
        history: the repository.
        tip: the commit of the line to look from.
        item: the item.
        standing: the Buses under both of which a yes has to have its role and key; for a no any
            role in either is enough.
    """
    found: dict[str, Verdict] = {}
    for oid, delta, on_line in _written(history, tip, item.id):
        for verdict in _verdict(history, oid, delta, item, standing):
            if on_line or verdict.verdict == "no":
                found[verdict.person] = verdict
    return found


def _written(history: History, tip: Oid, item: str) -> Iterator[tuple[Oid, Delta, bool]]:
    """Yield every version of a review, in the line's order, and whether the line itself wrote it.

    What stands beside the line comes right before the merge that brought it.
    """
    folder = f"{paths.item_folder(item)}/reviews"
    line, aside = _beside(history, tip, item, folder)
    for oid in line:
        for other in aside.get(oid, ()):
            yield from ((other, one, False) for one in own_changes(history, history.commit(other), folder))
        yield from ((oid, delta, True) for delta in changed(history, oid, folder))


def _beside(
    history: History, tip: Oid, item: str, folder: str
) -> tuple[list[Oid], Mapping[Oid, Sequence[Oid]]]:
    """Return the commits of the line that say something, and what else each merge among them brought."""
    shown = list(reversed(history.line(tip, touching=[folder])))
    born = history.line(tip, touching=[paths.item_folder(item)])[-1]
    base = first_parent(history, born)
    touching = history.between([tip], [base] if base else [], touching=[folder])
    if set(touching) <= set(shown):
        return shown, {}
    line = list(reversed(history.line(tip, until=base)))
    aside: dict[Oid, list[Oid]] = {}
    for oid in touching:
        if oid not in line:
            aside.setdefault(brought_by(history, oid, line), []).append(oid)
    return [oid for oid in line if oid in aside or oid in shown], aside


def _verdict(history: History, oid: Oid, delta: Delta, item: Item, standing: Standing) -> Iterator[Verdict]:
    if delta.new is None:
        return
    person = delta.path.rsplit("/", 1)[-1].removesuffix(".yaml")
    review = read_entry(history, delta.new, delta.path, Review)
    if review is None:
        yield from (Verdict(one, "no", oid) for one in [person] if _has_role(standing, one))
    elif review.verdict == "no":
        if review.revision == item.revision:
            yield from (
                Verdict(one, "no", oid) for one in {person, review.person} if _has_role(standing, one)
            )
    elif (review.item, review.revision, review.digest) == (item.id, item.revision, item.digest) and (
        prove_review(history, oid, review, standing).proved
    ):
        yield Verdict(review.person, "ok", oid)


def _has_role(standing: Standing, person: str) -> bool:
    known = (standing.before.person(person), standing.now.person(person))
    return any(one is not None and one.roles for one in known)


def prove_review(history: History, oid: Oid, review: Review, standing: Standing) -> Proof:
    """Prove that a commit of the line is this person's own review.

    Args:
        history: the repository.
        oid: the commit.
        review: the record that it brought.
        standing: the Buses under both of which the person has to have role and key.
    """
    commit = history.commit(oid)
    word = signed(history, oid, standing, ROLES)
    lacking = list(word.missing)
    wrong = own_work(commit, named=False)
    if wrong is not None:
        lacking.append(wrong)
    if len(commit.parents) != 1:
        lacking.append(missing("holds-more", "a review is one commit with one parent"))
    lacking += _alone(history, oid, paths.review(review.item, review.person))
    if word.people and word.people[0] != review.person:
        lacking.append(missing("wrong-person", f"{word.people[0]} signed, {review.person} is named"))
    subject = f"{review.item} by {review.person}"
    return Proof(subject, oid, () if lacking else word.people, word.verified, tuple(lacking))


def _alone(history: History, oid: Oid, path: str) -> Iterator[Missing]:
    for delta in changed(history, oid):
        if delta.path != path:
            yield missing("holds-more", delta.path)
            return
