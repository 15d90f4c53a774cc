"""Enough people: approvers behind an approval, reviewers behind an item of low confidence, nobody against.

Rules: who counts has to hold the role before the approval and now; the person whom the bus names for
the worker that made the item counts only where that is allowed; a standing no disproves, whoever
else says yes.

Example: ``quorum(history, tip, item, standing, ("ada",)).people == ("ada",)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gitbus.history import History, Oid
from gitbus.proof.reviews import Verdict, verdicts
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Missing, Verified, missing
from gitbus.records import Item


def quorum(history: History, tip: Oid, item: Item, standing: Standing, mergers: Sequence[str]) -> Word:
    """Return the approvers who stand behind an item, and what is missing of a quorum.

    Args:
        history: the repository.
        tip: the commit of the line to look from; every review up to it counts.
        item: the item as it waited.
        standing: the Buses under both of which people have to count.
        mergers: the people behind the approving commit itself.
    """
    said = verdicts(history, tip, item, standing)
    yes = {one.person for one in said.values() if one.verdict == "ok"}
    approvers = set(standing.with_role("approver")) & ({*mergers} | yes)
    counted = approvers - _producers(item, standing)
    needed = max(standing.before.approval.quorum, standing.now.approval.quorum)
    lacking = list(_against(said.values()))
    verified = []
    if len(counted) >= needed:
        verified.append(
            Verified(f"approved by {', '.join(sorted(counted))}", "proved", {"people": sorted(counted)})
        )
    else:
        barred = approvers - counted
        why = f"{len(counted)} of {needed}" + (
            f"; {', '.join(sorted(barred))} is behind the worker that made it" if barred else ""
        )
        lacking.append(missing("quorum", why, "another approver says so: gitbus review ITEM --ok"))
    if item.state == "in_review":
        lacking += _unreviewed(yes, mergers, standing)
        if not any(one.rule == "review-quorum" for one in lacking):
            verified.append(
                Verified(f"reviewed by {', '.join(sorted(yes))}", "proved", {"people": sorted(yes)})
            )
    return Word(tuple(sorted(counted)), tuple(verified), tuple(lacking))


def _against(said: Collection[Verdict]) -> Iterator[Missing]:
    for one in said:
        if one.verdict == "no":
            yield missing(
                "standing-no",
                f"{one.person} in {one.commit[:10]}",
                "the same person says yes, or redo the item",
            )


def _producers(item: Item, standing: Standing) -> set[str]:
    owners = ((bus, bus.workers.get(item.source.worker)) for bus in (standing.before, standing.now))
    return {
        owner.person for bus, owner in owners if owner and owner.person and not bus.approval.allow_producer
    }


def _unreviewed(yes: set[str], mergers: Sequence[str], standing: Standing) -> Iterator[Missing]:
    policies = (standing.before.review, standing.now.review)
    reviewers = set(standing.with_role("approver", "reviewer")) & yes
    if any(policy.four_eyes for policy in policies):
        reviewers -= set(mergers)
    needed = max(policy.quorum for policy in policies)
    if len(reviewers) < needed:
        yield missing("review-quorum", f"{len(reviewers)} of {needed}", "gitbus review ITEM --ok")
