"""What a person does on GitHub from a terminal: merge at the head that was seen, review, close.

Rules: a call is sent once. A merge names the head's commit, so that GitHub refuses it when somebody
pushed since; whether it happened is read back when no answer came.

Example: ``Acting(pulls).merge("refs/heads/gitbus/approve/a.mail.item", flip)`` returns the merge.
"""

from __future__ import annotations

from typing import Literal

from gitbus import paths
from gitbus.errors import Refused, Unreachable
from gitbus.forge.github.client import ForgeRefused
from gitbus.forge.github.pulls import Pull, Pulls
from gitbus.history import Oid

_EVENT = {"ok": "APPROVE", "no": "REQUEST_CHANGES"}


class Acting:
    """The pull requests of one bus, with the rights of the person whose token it is.

    Args:
        pulls: where they are asked and changed.
    """

    def __init__(self, pulls: Pulls) -> None:
        self.pulls = pulls
        self.client = pulls.client
        self.repo = pulls.repo

    def merge(self, ref: str, commit: Oid) -> Oid:
        """Merge the open pull request of a branch, if its head is still this commit.

        Returns:
            The merge commit.

        Raises:
            Refused: there is no such pull request, or GitHub does not merge it (rules
                ``no-pull-request``, ``head-moved``, ``not-mergeable`` …).
            Unreachable: no answer, and nothing says that it happened.
        """
        pull = self._pull(ref, commit)
        path = f"{self.repo}/pulls/{pull.number}/merge"
        try:
            answer = self.client.send("PUT", path, {"sha": commit, "merge_method": "merge"})
            return str(answer["sha"])
        except ForgeRefused as error:
            raise _not_merged(pull, error) from error
        except Unreachable:
            now = self.pulls.get(pull.number)
            if now is not None and now.merged and now.commit == commit and now.merge:
                return now.merge
            raise

    def review(self, ref: str, commit: Oid, verdict: Literal["ok", "no"], note: str | None) -> bool:
        """Review a pull request at this commit; False where GitHub lets its author not do that.

        Raises:
            Refused: there is no such pull request, or GitHub refuses the review.
        """
        pull = self._pull(ref, commit)
        wanted = {"commit_id": commit, "event": _EVENT[verdict], "body": note or ""}
        if verdict == "no" and not note:
            wanted["body"] = "no"
        try:
            self.client.send("POST", f"{self.repo}/pulls/{pull.number}/reviews", wanted)
        except ForgeRefused as error:
            if error.status == 422 and "your own pull request" in error.message.lower():
                return False
            raise
        return True

    def close(self, ref: str, commit: Oid, reason: str) -> None:
        """Close a pull request without merging it, the reason as its last comment.

        Raises:
            Refused: there is no such pull request, or GitHub refuses it.
        """
        pull = self._pull(ref, commit)
        self.client.send("POST", f"{self.repo}/issues/{pull.number}/comments", {"body": reason})
        self.client.send("PATCH", f"{self.repo}/pulls/{pull.number}", {"state": "closed"})

    def _pull(self, ref: str, commit: Oid) -> Pull:
        found = [pull for pull in self.pulls.of(ref) if pull.open]
        if not found:
            raise Refused(
                f"there is no open pull request of {ref.removeprefix(paths.HEADS)}",
                rule="no-pull-request",
                remedy="the conductor opens it: gitbus conduct",
            )
        if found[0].commit != commit:
            raise Refused(
                f"pull request #{found[0].number} holds something else than what was shown here",
                rule="head-moved",
                remedy="look at the item again: gitbus review ITEM",
            )
        return found[0]


def _not_merged(pull: Pull, error: ForgeRefused) -> Refused:
    """Return what a refused merge means."""
    if error.status == 409:
        return Refused(
            f"pull request #{pull.number} was changed since you looked at it",
            rule="head-moved",
            remedy="look at the item again: gitbus review ITEM",
        )
    if error.status == 405:
        return Refused(
            f"GitHub does not merge #{pull.number}: {error.message}",
            rule="not-mergeable",
            remedy="see what the rules of the branch want, or merge it signed by hand",
        )
    return error
