"""Telling people by issues what waits for them: ``notify`` with ``issue: true``.

Rules: one issue for one fact, opened while the fact holds and closed when it is no more. While it holds
the issue has the label that says so, which finds it again even where a person closed it already: then
nobody is told twice. Nothing is tried again by itself; what is shown is compared with what shall be.

Example: ``Noticing(client).keep(board, now)`` says whether anything was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gitbus.board import Board
from gitbus.forge.github.client import Client, ForgeRefused, Limited
from gitbus.forge.github.issues import Issue, issue
from gitbus.forge.github.markdown import marked
from gitbus.forge.github.pulls import OPEN_LABEL
from gitbus.notifying import waiting

STEPS = 20
"""How many issues are opened or closed in one go."""


@dataclass(frozen=True, slots=True)
class _Told:
    """An issue that tells of a fact which held when it was last looked at."""

    number: int
    key: str
    open: bool
    labels: frozenset[str]


class Noticing:
    """The issues of one bus.

    Args:
        client: calls of a token that may write issues.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.path = f"{client.place.path}/issues"
        self._made: set[str] = set()  # keys told by this process, that a late list may not show yet

    def keep(self, board: Board, now: datetime) -> bool:
        """Open and close the next few issues; say whether any was.

        Raises:
            ForgeRefused: the token may not, or the repository has no issues.
            Unreachable: GitHub did not answer.
        """
        wanted = wanted_issues(board, now)
        if wanted is None:
            return False
        told = self._told()
        first: dict[str, int] = {}
        for one in told:
            first.setdefault(one.key, one.number)
        steps = 0
        for one in told:
            if steps < STEPS and (first[one.key] != one.number or _is_over(board, one.key, wanted)):
                self._close(one)
                steps += 1
        for key, made in wanted.items():
            if steps < STEPS and key not in first and key not in self._made:
                self._open(made)
                steps += 1
        self._made &= set(wanted)
        return steps > 0

    def _told(self) -> list[_Told]:
        """Return the issues of facts that held, the oldest first."""
        listed = self.client.pages(self.path, state="all", labels=OPEN_LABEL, sort="created", direction="asc")
        found = [_told(one) for one in listed if not one.get("pull_request")]
        return [one for one in found if one is not None]

    def _open(self, made: Issue) -> None:
        labels = sorted(made.labels | {OPEN_LABEL})
        self._made.add(made.key)
        try:
            self.client.send("POST", self.path, {"title": made.title, "body": made.body, "labels": labels})
        except (ForgeRefused, Limited):  # it surely was not made
            self._made.discard(made.key)
            raise

    def _close(self, one: _Told) -> None:
        """Close an issue for good: without the label it is not looked at again."""
        body: dict[str, Any] = {"labels": sorted(one.labels - {OPEN_LABEL})}
        if one.open:
            body |= {"state": "closed", "state_reason": "completed"}
        self.client.send("PATCH", f"{self.path}/{one.number}", body)


def wanted_issues(board: Board, now: datetime) -> Mapping[str, Issue] | None:
    """Return the issues that shall be open, by their keys; None where nobody wants any."""
    kinds = {what for rule in board.bus.notify if rule.issue for what in rule.on}
    if not kinds:
        return None
    found = [issue(board, what, subject) for what, subject, _ in waiting(board, now) if what in kinds]
    return {one.key: one for one in found if one is not None}


def _is_over(board: Board, key: str, wanted: Mapping[str, Issue]) -> bool:
    """Say whether what an issue tells of is no more; a goal that is not loaded tells nothing."""
    if key in wanted:
        return False
    what, subject = key.split()[:2]
    part = board.goals.get(subject.partition("/")[0]) if what == "dead" else None
    return part is None or part.open or bool(part.tasks)


def _told(one: Mapping[str, Any]) -> _Told | None:
    key = marked((one.get("body") or "").replace("\r\n", "\n"))
    if key is None:
        return None
    return _Told(
        one["number"], key, one["state"] == "open", frozenset(label["name"] for label in one["labels"])
    )
