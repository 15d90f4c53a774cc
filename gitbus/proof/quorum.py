"""Quorum: how many distinct people stand behind an approval, and whether anybody stands against it.

Rules: one person counts once, whatever keys he has. The person behind the worker that made the item
does not count unless the bus allows it. Every bound holds in the Bus before the approval and now.

Example: ``quorum(history, tip, item, standing, Word(("ada",))).missing == ()``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitbus.history import History, Oid
from gitbus.proof.reviews import Verdict, verdicts
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Missing, Verified, missing
from gitbus.records import Item


def quorum(history: History, tip: Oid, item: Item, standing: Standing, merged: Word) -> Word:
    """Return who stands behind an item's approval, and what is missing.

    Args:
        history: the repository.
        tip: the commit to look from.
        item: the item as it waited.
        standing: the Buses under both of which the people have to count.
        merged: whose word the approving commit is, the merger first, then who a forge says approved;
            where that is missing, no count is.
    """
    said = verdicts(history, tip, item, standing)
    barred = _producers(item, standing)
    ok = {one.person for one in said.values() if one.verdict == "ok"} | {*merged.people[1:]}
    people = ({*merged.people} | ok) & set(standing.with_role("approver"))
    checks = (
        _against(said),
        () if merged.missing else _approvers(people - barred, people & barred, standing),
        _reviewers(item, ok - barred, merged.people[:1], standing),
    )
    found = [one for check in checks for one in check]
    return Word(
        tuple(sorted(people - barred)),
        tuple(one for one in found if isinstance(one, Verified)),
        tuple(one for one in found if isinstance(one, Missing)),
    )


def _against(said: Mapping[str, Verdict]) -> Iterator[Verified | Missing]:
    for one in said.values():
        if one.verdict == "no":
            remedy = "the same person says yes (gitbus review ITEM --ok), or the item is redone"
            yield missing("standing-no", f"{one.person} in {one.commit[:10]}", remedy)


def _approvers(people: set[str], barred: set[str], standing: Standing) -> Iterator[Verified | Missing]:
    needed = max(bus.approval.quorum for bus in (standing.before, standing.now))
    if len(people) >= needed:
        yield Verified(f"approved by {', '.join(sorted(people))}", "proved", {"people": sorted(people)})
        return
    why = f"{len(people)} of {needed}"
    if barred:
        why += f"; {', '.join(sorted(barred))} stands behind the worker that made it"
    yield missing("quorum", why, "another approver reviews it with yes, or approves it")


def _reviewers(
    item: Item, ok: set[str], mergers: tuple[str, ...], standing: Standing
) -> Iterator[Verified | Missing]:
    if item.state != "in_review":
        return
    reviewers = ok & set(standing.with_role("reviewer"))
    if any(bus.review.four_eyes for bus in (standing.before, standing.now)):
        reviewers -= set(mergers)
    needed = max(bus.review.quorum for bus in (standing.before, standing.now))
    if len(reviewers) >= needed:
        yield Verified(f"reviewed by {', '.join(sorted(reviewers))}", "proved", {"people": sorted(reviewers)})
    else:
        yield missing(
            "review-quorum", f"{len(reviewers)} of {needed}", "gitbus review ITEM --ok, then approve it anew"
        )


def _producers(item: Item, standing: Standing) -> set[str]:
    """Return the people behind the worker that made the item, as far as they may not approve it."""
    owners = ((bus, bus.workers.get(item.source.worker)) for bus in (standing.before, standing.now))
    return {
        owner.person for bus, owner in owners if owner and owner.person and not bus.approval.allow_producer
    }
