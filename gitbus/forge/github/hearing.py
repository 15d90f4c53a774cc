"""Hearing what people say on pull requests: closed without a merge rejects, changes asked for redo.

Rules: only what was said of the very commit that is up now is heard, so that nothing is heard twice
and nothing old comes back. Whoever asks for changes needs a role in the bus (anybody who can read a
public repository may review there); closing needs a right on GitHub already. A pull request that
GitHub closed because its branch was deleted was not rejected by anybody: it is opened again.

Example: ``Hearing(pulls).hear(board, refs, wanted)`` returns the words that the bus does not hold yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from gitbus import paths
from gitbus.board import Board
from gitbus.change import plain
from gitbus.forge.base import Said
from gitbus.forge.github.markdown import marked
from gitbus.forge.github.pulls import Pull, Pulls, account_of
from gitbus.history import Oid
from gitbus.proof.merged import Account
from gitbus.records import Bus

LOOKS = 50
"""How many pull requests are looked into in one go; the most recently changed ones come first."""

MISSED = 20
"""How many branches without an open pull request are looked for in one go; each is then made or heard."""


AT_ONCE = timedelta(seconds=2)
"""Within this GitHub tells that a branch was deleted and its pull request closed by that."""


class Hearing:
    """What people said on the pull requests of one bus.

    Args:
        pulls: where they are asked.
    """

    def __init__(self, pulls: Pulls) -> None:
        self.pulls = pulls
        self.reopen: dict[str, Pull] = {}  # ref → what lost its branch, and is to be opened again
        self.absent: dict[str, Oid] = {}  # ref → its commit, of which there is no pull request
        self._seen: dict[int, tuple[datetime, Oid]] = {}

    def hear(
        self,
        board: Board,
        refs: Mapping[str, Oid],
        wanted: Mapping[str, tuple[str, ...]],
        shown: Mapping[str, Pull],
    ) -> list[Said]:
        """Return what was said of what is up now.

        Args:
            board: the bus.
            refs: the hub's refs.
            wanted: which items each approval branch puts up, by the name below ``gitbus/approve/``.
            shown: the open pull requests by the full names of their heads.
        """
        self.absent, self.reopen = {}, {}
        up = {paths.APPROVE + name: items for name, items in wanted.items() if paths.APPROVE + name in refs}
        missed = [ref for ref in up if ref not in shown]
        found = [said for ref in missed[:MISSED] for said in self._rejected(board, ref, refs[ref], up[ref])]
        asked = [(shown[ref], items) for ref, items in up.items() if ref in shown]
        new = [one for one in asked if one[0].commit == refs[one[0].ref] and not self._is_seen(one[0])]
        for pull, items in sorted(new, key=lambda one: one[0].updated, reverse=True)[:LOOKS]:
            found += self._asked(board, pull, items)
        return found

    def _is_seen(self, pull: Pull) -> bool:
        return self._seen.get(pull.number) == (pull.updated, pull.commit)

    # --- closed

    def _rejected(self, board: Board, ref: str, commit: Oid, items: tuple[str, ...]) -> Iterator[Said]:
        """Yield the rejection of items whose pull request somebody closed as it stands now."""
        pulls = [pull for pull in self.pulls.of(ref) if pull.commit == commit]
        if not pulls:
            self.absent[ref] = commit
            return
        pull = pulls[0]
        if pull.open or pull.merged:
            return
        closer, lost = self._closer(pull)
        if lost:
            self.reopen[ref] = pull
            return
        by = _name(board.bus, closer)
        said = self._last_words(pull.number)
        text = f"{by} closed pull request #{pull.number}" + (f": {said}" if said else "")
        for item in items:
            yield Said("reject", item, by, text)

    def _closer(self, pull: Pull) -> tuple[Account | None, bool]:
        """Return who closed a pull request, and whether it was only that its branch had gone.

        GitHub tells of both then, at one moment; who closes first and tidies up afterwards has rejected.
        """
        closer, closed, deleted = None, None, None
        for event in self.pulls.events(pull.number):
            when = datetime.fromisoformat(event["created_at"])
            if event["event"] == "closed":
                closer, closed = account_of(event.get("actor")), when
            elif event["event"] == "head_ref_deleted":
                deleted = when
            elif event["event"] == "reopened":
                closed = deleted = None
        at_once = closed is not None and deleted is not None and abs(closed - deleted) <= AT_ONCE
        return closer, at_once

    def _last_words(self, number: int) -> str:
        """Return the last comment of a person, for the reason of a rejection."""
        said = [
            one["body"]
            for one in self.pulls.comments(number)
            if (one.get("user") or {}).get("type") == "User" and marked(str(one["body"])) is None
        ]
        return str(said[-1]).strip() if said else ""

    # --- changes asked for

    def _asked(self, board: Board, pull: Pull, items: tuple[str, ...]) -> Iterator[Said]:
        standing = _standing(self.pulls.reviews(pull.number), board.bus, pull.commit)
        for account, text in standing:
            by = _name(board.bus, account)
            for item in _meant(text, items):
                yield Said("redo", item, by, text.strip() or f"changes were asked for in #{pull.number}")
        if not standing:
            self._seen[pull.number] = (pull.updated, pull.commit)


def _standing(reviews: Iterable[Mapping[str, Any]], bus: Bus, commit: Oid) -> list[tuple[Account, str]]:
    """Return who asks for changes of a commit, with the words, as far as it still stands."""
    latest: dict[int, tuple[Account, str] | None] = {}
    for review in reviews:
        account = account_of(review["user"])
        if account is None or review["state"] not in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED"):
            continue
        asks = review["state"] == "CHANGES_REQUESTED" and review.get("commit_id") == commit
        latest[account.id] = (account, review.get("body") or "") if asks and _has_role(bus, account) else None
    return [one for one in latest.values() if one is not None]


def _meant(text: str, items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the items of a batch that a text is about: those that it names, else all."""
    return tuple(item for item in items if len(items) > 1 and item in text.split()) or items


def _has_role(bus: Bus, account: Account) -> bool:
    person = next((one for one in bus.people if one.github and one.github.id == account.id), None)
    return person is not None and account.type == "User" and bool(person.roles)


def _name(bus: Bus, account: Account | None) -> str:
    """Return who an account is: the person's id where the bus knows him, the login otherwise."""
    if account is None:
        return "somebody"
    person = next((one for one in bus.people if one.github and one.github.id == account.id), None)
    return person.id if person else f"@{plain(account.login, 60)}"
