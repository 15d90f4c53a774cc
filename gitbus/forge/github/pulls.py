"""The pull requests of one bus, as the API tells them: open ones, those that ended, and what was said.

Rules: a pull request is known by the name of its head branch, in this very repository, and by the
commit that the head is; never by its title or its body. Lists are asked conditionally; what is said of
one pull request is asked again only when it changed.

Example: ``Pulls(client, "main").open()`` maps the names of branches to their open pull requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gitbus import paths
from gitbus.forge.github.client import Client
from gitbus.history import Oid
from gitbus.proof.merged import Account

OPEN_LABEL = "gitbus-open"
"""On every pull request whose end was not told yet; it goes with the comment that tells it."""

LABELS: Mapping[str, tuple[str, str]] = {
    "gitbus": ("1d76db", "put up by gitbus"),
    OPEN_LABEL: ("c5def5", "gitbus has not told yet what became of it"),
    "low-confidence": ("fbca04", "needs a review before a merge counts"),
    "stuck": ("b60205", "nobody can know whether it was sent"),
}
"""The labels in use: colour and description."""

SHORT = "gitbus/"
APPROVE_SHORT = "gitbus/approve/"


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request of a branch below ``gitbus/``."""

    number: int
    head: str  # the branch, without refs/heads/
    commit: Oid
    open: bool
    merged: bool
    merge: Oid | None
    title: str
    body: str
    labels: frozenset[str]
    author: int
    updated: datetime

    @property
    def ref(self) -> str:
        """The head branch's full name."""
        return paths.HEADS + self.head


@dataclass(frozen=True, slots=True)
class Ended:
    """A closed pull request whose end was not told yet."""

    number: int
    merged: bool
    labels: frozenset[str]


def pull_of(told: Mapping[str, Any], repository: str) -> Pull | None:
    """Return a pull request as the API tells it; None where it is not of a branch of this bus."""
    head = told["head"]
    home = head.get("repo") or {}
    if not head["ref"].startswith(SHORT) or home.get("full_name", "").lower() != repository.lower():
        return None
    return Pull(
        number=told["number"],
        head=head["ref"],
        commit=head["sha"],
        open=told["state"] == "open",
        merged=bool(told.get("merged_at")),
        merge=told.get("merge_commit_sha"),
        title=told["title"],
        body=(told.get("body") or "").replace("\r\n", "\n"),
        labels=frozenset(one["name"] for one in told["labels"]),
        author=(told.get("user") or {}).get("id", 0),
        updated=datetime.fromisoformat(told["updated_at"]),
    )


def account_of(user: Mapping[str, Any] | None) -> Account | None:
    """Return an account as the API tells it; None where it is gone."""
    return Account(id=user["id"], login=user["login"], type=user["type"]) if user else None


class Pulls:
    """What the API tells of the pull requests into the bus's branch.

    Args:
        client: calls of a token that may read pull requests.
        branch: the bus's branch, by its short name.
    """

    def __init__(self, client: Client, branch: str) -> None:
        self.client = client
        self.branch = branch
        self.repo = client.place.path

    def open(self) -> dict[str, Pull]:
        """Return the open pull requests by the full names of their head branches, the newest of each."""
        listed = self.client.pages(
            f"{self.repo}/pulls", state="open", base=self.branch, sort="created", direction="asc"
        )
        found = [pull_of(one, self.client.place.full_name) for one in listed]
        return {pull.ref: pull for pull in found if pull is not None}

    def of(self, ref: str) -> list[Pull]:
        """Return all pull requests of a branch, whatever became of them, the newest first."""
        head = f"{self.client.place.owner}:{ref.removeprefix(paths.HEADS)}"
        listed = self.client.pages(
            f"{self.repo}/pulls",
            state="all",
            head=head,
            base=self.branch,
            sort="created",
            direction="desc",
            most=100,
        )
        found = [pull_of(one, self.client.place.full_name) for one in listed]
        return [pull for pull in found if pull is not None and pull.ref == ref]

    def get(self, number: int) -> Pull | None:
        """Return one pull request; None where it is not of a branch of this bus."""
        return pull_of(self.client.get(f"{self.repo}/pulls/{number}"), self.client.place.full_name)

    def untold(self) -> list[Ended]:
        """Return the closed pull requests whose end was not told yet."""
        listed = self.client.pages(f"{self.repo}/issues", state="closed", labels=OPEN_LABEL)
        return [
            Ended(
                one["number"],
                bool(one["pull_request"].get("merged_at")),
                frozenset(label["name"] for label in one["labels"]),
            )
            for one in listed
            if one.get("pull_request")
        ]

    def reviews(self, number: int) -> list[Any]:
        """Return a pull request's reviews, the oldest first."""
        return self.client.pages(f"{self.repo}/pulls/{number}/reviews")

    def comments(self, number: int) -> list[Any]:
        """Return a pull request's comments, the oldest first."""
        return self.client.pages(f"{self.repo}/issues/{number}/comments")

    def events(self, number: int) -> list[Any]:
        """Return what happened to a pull request, the oldest first."""
        return self.client.pages(f"{self.repo}/issues/{number}/events")
