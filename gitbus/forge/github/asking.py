"""Asking GitHub whose word a merge is: facts from the REST API, weighed by the proof.

Rules: every fact is asked of the API by id and number, never taken from a text that somebody wrote.
What cannot be asked (the API is away, behind, or shows nothing) is *unasked*: it proves nothing and
disproves nothing. Facts that cannot change any more are asked once.

Example: ``Asking(client, "main").word(history, commit, standing, {"approve/a.mail.item"}).people``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from gitbus.errors import GitbusError, Unreachable
from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.history import Commit, History, Oid
from gitbus.pins import write_file
from gitbus.proof.merged import Account, PullFacts, ReviewFact, facts_in, weigh
from gitbus.proof.standing import AGAIN, Standing, Word
from gitbus.proof.values import Missing, missing

MOST_PULLS = 10
"""How many pull requests of one commit are looked at; an honest one has one."""

_VERDICTS = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes_requested", "DISMISSED": "dismissed"}
_AUTOMATIC = {
    "auto_merge_enabled": "auto-merge",
    "auto_squash_enabled": "auto-merge",
    "auto_rebase_enabled": "auto-merge",
    "added_to_merge_queue": "merge queue",
}
_UNDONE = {"auto_merge_disabled": "auto-merge", "removed_from_merge_queue": "merge queue"}


class Remembered:
    """Facts of merges that once were found to decide on the Bus, kept in a clone's own state.

    What decided once has decided, so that nobody need be asked again for every look at the bus.

    Args:
        path: the file; None keeps them for this process only.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._known: dict[Oid, object] = {}
        if path is not None:
            with contextlib.suppress(OSError, ValueError):
                self._known = dict(json.loads(path.read_text("utf-8")))

    def get(self, commit: Oid) -> PullFacts | None:
        """Return what is remembered of a commit."""
        return facts_in(self._known.get(commit))

    def put(self, commit: Oid, facts: PullFacts) -> None:
        """Remember what decided."""
        self._known[commit] = facts.model_dump(mode="json")
        if self.path is not None:
            write_file(self.path, json.dumps(self._known).encode())


class Asking:
    """What GitHub knows of merges into one bus.

    Args:
        client: calls of a token that may read pull requests.
        branch: the bus's branch, by its short name.
        state: the clone's local state, where what decided on the Bus is remembered.
    """

    def __init__(self, client: Client, branch: str, state: Path | None = None) -> None:
        self.client = client
        self.branch = branch
        self.remembered = Remembered(state / "github-decisions.json" if state is not None else None)
        self._made: dict[Oid, tuple[bool, str]] = {}
        self._main: Oid | None = None

    def word(self, history: History, commit: Oid, standing: Standing, about: Collection[str]) -> Word:
        """Return who merged the pull request that made this commit, and what speaks against it."""
        made = history.commit(commit)
        known = None if about else self.remembered.get(commit)
        if known is not None:
            return weigh(known, made, standing, about, self.branch)
        try:
            found = self._lacks(history, commit) or self.facts(made)
        except (Unreachable, ForgeRefused) as error:
            found = _unasked(error)
        if isinstance(found, Missing):
            return Word((), (), (found,))
        word = weigh(found, made, standing, about, self.branch)
        if not about and word.people:
            self.remembered.put(commit, found)
        return word

    def agrees(self, history: History, tip: Oid) -> Missing | None:
        """Return why GitHub and git do not tell of one and the same branch; None where they do."""
        try:
            theirs = self.main()
            if theirs == tip or _is_ancestor(history, theirs, tip):
                return None
            return self._compared(tip, theirs)
        except (Unreachable, ForgeRefused) as error:
            return _unasked(error)

    def main(self) -> Oid:
        """Return the bus's branch as the API has it."""
        path = f"{self.client.place.path}/git/ref/heads/{self.branch}"
        self._main = str(self.client.get(path)["object"]["sha"])
        return self._main

    def _lacks(self, history: History, commit: Oid) -> Missing | None:
        """Return what is missing where the API's branch does not hold the commit (yet)."""
        if self._main is not None and _is_ancestor(history, commit, self._main):
            return None  # what it held it holds; that nobody rewrote it is seen by `agrees`
        theirs = self.main()
        if commit == theirs or _is_ancestor(history, commit, theirs):
            return None
        if _is_ancestor(history, theirs, commit):
            return _behind(f"its branch does not hold {commit[:10]} yet")
        return self._compared(commit, theirs)

    def _compared(self, old: Oid, new: Oid) -> Missing | None:
        """Return what is missing where the API does not say that ``new`` comes after ``old``."""
        try:
            answer = self.client.get(f"{self.client.place.path}/compare/{old}...{new}", per_page=1)
        except ForgeRefused as error:
            return _behind(f"it does not know {old[:10]}") if error.rule == "not-found" else _unasked(error)
        if answer["status"] in ("ahead", "identical"):
            return None
        if answer["status"] == "behind":
            return _behind(f"its branch does not hold {old[:10]} yet")
        return missing(
            "diverged", f"at {old[:10]}", "find out who rewrote the branch, and where", unasked=True
        )

    # --- facts

    def facts(self, commit: Commit) -> PullFacts | Missing:
        """Return what GitHub knows of the one pull request that made a commit, or why there is none.

        Raises:
            ForgeRefused: GitHub does not show it.
            Unreachable: it could not be asked.
        """
        repo, oid = self.client.place.path, commit.oid
        pulls = [self.client.get(f"{repo}/pulls/{number}") for number in self._numbers(oid)]
        made = [one for one in pulls if one.get("merged") and one.get("merge_commit_sha", oid) == oid]
        if not made:
            if any(one.get("merged") is None for one in pulls):
                return _behind("it does not say yet whether the pull request was merged")
            return missing("no-pull", oid[:10], AGAIN)
        if len(made) > 1:
            return missing("several-pulls", ", ".join(f"#{one['number']}" for one in made), AGAIN)
        return self._facts(made[0], oid)

    def _numbers(self, oid: Oid) -> list[int]:
        """Return the pull requests that may have made a commit.

        GitHub lists merged ones by their commit only where that is on the default branch; of a bus
        beside a project, those into its branch are looked through, the last changed ones first.
        """
        repo = self.client.place.path
        listed = self.client.pages(f"{repo}/commits/{oid}/pulls", most=MOST_PULLS)
        if not listed and self.client.get(repo)["default_branch"] != self.branch:
            closed = self.client.pages(
                f"{repo}/pulls", state="closed", base=self.branch, sort="updated", direction="desc"
            )
            listed = [one for one in closed if one.get("merge_commit_sha") == oid][:MOST_PULLS]
        return [one["number"] for one in listed]

    def _facts(self, pull: Mapping[str, Any], commit: Oid) -> PullFacts:
        repo, number = self.client.place.path, pull["number"]
        events = self.client.pages(f"{repo}/issues/{number}/events")
        reviews = self.client.pages(f"{repo}/pulls/{number}/reviews")
        made, why = self._by_forge(commit)
        head = pull["head"].get("repo")
        return PullFacts(
            repository=pull["base"]["repo"]["id"],
            number=number,
            base=pull["base"]["ref"],
            head=pull["head"]["ref"],
            head_commit=pull["head"]["sha"],
            head_repository=head["id"] if head else None,
            author=_account(pull["user"]),
            merged_at=pull["merged_at"],
            merged_by=_account(pull["merged_by"]),
            merge_commit=pull.get("merge_commit_sha", commit),
            made_by_forge=made,
            why_not_made=why,
            automatic=_automatic(pull, events),
            reviews=tuple(_reviews(reviews, events)),
        )

    def _by_forge(self, oid: Oid) -> tuple[bool, str]:
        """Say whether GitHub made a commit itself, by its own good signature; and if not, why."""
        if oid not in self._made:
            told = self.client.get(f"{self.client.place.path}/commits/{oid}")
            committer = told.get("committer") or {}
            verification = told["commit"].get("verification") or {}
            if committer.get("login") != "web-flow":
                self._made[oid] = False, "the committer is not GitHub"
            elif not verification.get("verified"):
                self._made[oid] = (
                    False,
                    f"GitHub's signature on it is {verification.get('reason', 'missing')}",
                )
            else:
                self._made[oid] = True, ""
        return self._made[oid]


def _is_ancestor(history: History, old: Oid, new: Oid) -> bool:
    """Say whether git knows both and that one comes after the other."""
    try:
        return history.is_ancestor(old, new)
    except KeyError:
        return False


def _account(user: Mapping[str, Any] | None) -> Account | None:
    return Account(id=user["id"], login=user["login"], type=user["type"]) if user else None


def _automatic(pull: Mapping[str, Any], events: list[Any]) -> Any:
    """Return what merged a pull request without a person, as far as the events or its own field tell."""
    found = "auto-merge" if pull.get("auto_merge") else None
    for event in events:
        name = event.get("event", "")
        found = _AUTOMATIC.get(name, found)
        if _UNDONE.get(name) == found and not pull.get("auto_merge"):
            found = None
    return found


def _reviews(reviews: list[Any], events: list[Any]) -> Iterator[ReviewFact]:
    gone = {
        one["dismissed_review"]["review_id"]: one for one in events if one.get("event") == "review_dismissed"
    }
    for one in reviews:
        verdict, by = _VERDICTS.get(one["state"]), _account(one["user"])
        if verdict is None or by is None or not one.get("submitted_at"):
            continue
        event = gone.get(one["id"], {})
        yield ReviewFact(
            id=one["id"],
            by=by,
            verdict=verdict,
            commit=one.get("commit_id"),
            at=one["submitted_at"],
            dismissed_by=_account(event.get("actor")),
            dismissed_verdict=event.get("dismissed_review", {}).get("state"),
        )


def _behind(why: str) -> Missing:
    return missing("unasked", f"GitHub is behind git: {why}", "try again in a moment", unasked=True)


def _unasked(error: GitbusError) -> Missing:
    return missing("unasked", error.message, error.remedy or "", unasked=True)
