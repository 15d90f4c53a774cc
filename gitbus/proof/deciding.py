"""Whether a commit of the line is a decision on a thing, and whose: the signature, and what it names.

Rules: a signature on a merge proves only what its message names, by trailers or by git's own
subject; one signed commit with one parent decides on what it changes, or on what its trailers name
where that is more than one thing. So nobody decides by accident on what he merely merged.

Example: ``decided_by(history, commit, standing, Decision.approving(item, "main"), None).people``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gitbus.history import Commit, History
from gitbus.proof.forge import Forge
from gitbus.proof.messages import ITEM, merged, short_branch, trailers
from gitbus.proof.reads import changed
from gitbus.proof.standing import AGAIN, Standing, Word, own_work, signed
from gitbus.proof.values import Missing, missing
from gitbus.records import Item


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided on: an item, under which branches' names, and the bus's branch."""

    item: str
    purpose: Literal["approve", "decide"]
    refs: frozenset[str]  # below gitbus/approve/ or gitbus/decide/
    branch: str

    @classmethod
    def approving(cls, item: Item, branch: str) -> Decision:
        """Return the decision that approves an item: its own branch, or that of its batch."""
        refs = {item.id} | ({item.together} if item.together else set())
        return cls(item.id, "approve", frozenset(refs), short_branch(branch))

    @classmethod
    def resolving(cls, item: str, branch: str) -> Decision:
        """Return the decision that resolves a stuck item."""
        return cls(item, "decide", frozenset({item}), short_branch(branch))


def decided_by(
    history: History, commit: Commit, standing: Standing, about: Decision, forge: Forge | None
) -> Word:
    """Return whose word a commit of the line is, on what ``about`` says.

    Args:
        history: the repository.
        commit: a commit of the line.
        standing: the Buses under both of which an approver has to have role and key.
        about: what has to be named.
        forge: what a forge knows of merges; asked where no signature counts.
    """
    word = signed(history, commit.oid, standing, ("approver",))
    lacking = [*word.missing]
    if word.people:
        lacking += _why_not_this(history, commit, about)
    if not lacking:
        return word
    if forge is not None and standing.now.approval.proof == "github":
        refs = tuple(f"{about.purpose}/{ref}" for ref in sorted(about.refs))
        return forge.word(history, commit.oid, standing, refs)
    return Word((), () if lacking else word.verified, tuple(lacking))


def _why_not_this(history: History, commit: Commit, about: Decision) -> Iterator[Missing]:
    named = trailers(commit.message, ITEM)
    wrong = own_work(commit, named=about.item in named)
    if wrong is not None:
        yield wrong
    if about.item in named:
        return
    if len(commit.parents) < 2:
        if _items_changed(history, commit) != {about.item} or named:
            yield missing("not-named", about.item, AGAIN)
        return
    found = merged(commit.subject)
    if found.into is not None and found.into.strip("'") != about.branch:
        yield missing("wrong-branch", found.into, AGAIN)
    elif not about.refs & (found.approve if about.purpose == "approve" else found.decide):
        yield missing("not-named", about.item, AGAIN)


def _items_changed(history: History, commit: Commit) -> set[str]:
    return {delta.path.split("/")[1] for delta in changed(history, commit.oid, "outbox")}
