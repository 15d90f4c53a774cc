"""A decision: whose word it is, and that the word is about this very thing.

Rules: a signed merge decides only on what its message names, in trailers or in git's own subject;
a signed commit with one parent is the decision itself: on the one thing that it changes, or on
those that its trailers name.

Example: ``decided_by(history, commit, standing, Decision.approving(item, "main"), None).people``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gitbus.history import Commit, History
from gitbus.proof.forge import Forge, may_know
from gitbus.proof.messages import ITEM, VERB, merged, short_branch, trailers
from gitbus.proof.reads import changed
from gitbus.proof.standing import AGAIN, Standing, Word, own_work, signed
from gitbus.proof.values import Missing, missing
from gitbus.records import Item

APPROVERS = ("approver",)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a commit is to decide on.

    ``names`` are the branches below ``gitbus/`` whose merge names it; ``branch`` is the bus's; a
    message that says another verb than this one is about something else.
    """

    item: str
    verb: str
    names: frozenset[str]
    branch: str

    @classmethod
    def approving(cls, item: Item, branch: str) -> Decision:
        """Return the approval of an item as it waits; a batch's branch names the items that say so."""
        names = {f"approve/{item.id}"}
        if item.together is not None and item.together.count(".") == 1:
            names.add(f"approve/{item.together}")
        return cls(item.id, "approve", frozenset(names), short_branch(branch))

    @classmethod
    def resolving(cls, item: str, branch: str) -> Decision:
        """Return the resolution of a stuck item."""
        return cls(item, "resolve", frozenset({f"decide/{item}"}), short_branch(branch))


def decided_by(
    history: History, commit: Commit, standing: Standing, about: Decision, forge: Forge | None
) -> Word:
    """Return whose word a commit of the line is on something, and what is missing of it."""
    word = signed(history, commit.oid, standing, APPROVERS)
    lacking = (*word.missing, *(_not_about(history, commit, about) if word.people else ()))
    if not lacking and word.people:
        return word
    if {standing.before.approval.proof, standing.now.approval.proof} != {"github"}:
        return Word((), word.verified, lacking)
    if forge is not None:
        return forge.word(history, commit.oid, standing, about.names)
    if may_know(commit):
        return Word(
            (), (), (missing("unasked", "only the forge knows who merged", "gitbus send", unasked=True),)
        )
    return Word((), word.verified, lacking)


def _not_about(history: History, commit: Commit, about: Decision) -> Iterator[Missing]:
    named = trailers(commit.message, ITEM)
    verbs = trailers(commit.message, VERB)
    if verbs and set(verbs) != {about.verb}:
        yield missing("not-named", f"it says that it is to {verbs[0]}", AGAIN)
        return
    wrong = own_work(commit, named=about.item in named)
    if wrong is not None:
        yield wrong
    elif about.item in named:
        return
    elif len(commit.parents) == 1:
        if named or _items(history, commit) != {about.item}:
            yield missing("not-named", "it changes several items, or names others", AGAIN)
    else:
        yield from _not_merged(commit, about)


def _not_merged(commit: Commit, about: Decision) -> Iterator[Missing]:
    found = merged(commit.subject)
    names = {f"approve/{name}" for name in found.approve} | {f"decide/{name}" for name in found.decide}
    if not names & about.names:
        yield missing("not-named", f"its subject is {commit.subject[:80]!r}", AGAIN)
    elif found.into is not None and short_branch(found.into) != about.branch:
        yield missing("wrong-branch", f"{found.into}, not {about.branch}", AGAIN)


def _items(history: History, commit: Commit) -> set[str]:
    return {delta.path.split("/")[1] for delta in changed(history, commit.oid, "outbox") if "/" in delta.path}
