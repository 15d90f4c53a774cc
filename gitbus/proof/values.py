"""What a proof says: what was verified, what is missing, and how strongly each of it stands.

Rules: an approval counts only when nothing is missing. What is missing is either *disproved* (it
is no approval, and time will not make it one) or *unasked* (it could not be looked at, or only the
clock speaks against it); only the first takes anything back.

Example: ``Proof("a.mail.item", None, (), (), (missing("unsigned"),)).proved`` is False.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gitbus.history import Oid

RULES: Mapping[str, str] = {
    # an approval, and the item that it is for
    "no-approval": "there is no approval, or its record cannot be read",
    "not-approved": "the item is not approved",
    "entry-mismatch": "the approval is for another time at which the item waited",
    "state-jump": "the item's states since it began to wait are not those of an approval",
    "merge-holds-more": "the approving commit, or one that it brought, changes more than the flip",
    "approval-mismatch": "what was approved is not what the item and its payload say",
    "payload-changed": "the payload is not the one that was approved",
    "item-changed": "the item was changed after it was approved",
    "channel-changed": "the channel goes elsewhere than when it was approved",
    "expired": "the time for which it was approved is over",
    "expiry": "it was approved for longer than the bus allows",
    "future": "the commit is dated in the future",
    # whose word a decision is
    "unsigned": "the deciding commit is not signed",
    "bad-signature": "the deciding commit's signature does not fit it, or its key is no longer good",
    "unknown-key": "the deciding commit is signed by a key that the bus does not know",
    "wrong-role": "who signed or merged has not the role that it needs",
    "removed-since": "who signed or merged has lost the role, the key or the account since",
    "added-since": "who signed or merged did not have the role, the key or the account yet",
    "not-named": "the deciding merge does not name what it decides on",
    "wrong-branch": "the deciding merge was made into another branch",
    "rewritten": "the deciding commit was rebased or picked: who wrote it and who signed it differ",
    "squashed": "the deciding commit squashes others: its signature covers what others wrote",
    # a pull request
    "no-pull": "no merged pull request of this repository made the deciding commit",
    "several-pulls": "more than one pull request is said to have made the deciding commit",
    "fork": "the pull request came from another repository",
    "indirect-merge": "the forge did not make the deciding commit: a push merged the pull request, or a rebase",
    "automatic-merge": "the pull request was merged by itself: nobody looked at that moment",
    "merged-by-app": "who merged the pull request is no person",
    "unknown-account": "who merged the pull request is nobody in the bus",
    # people
    "quorum": "not enough approvers stand behind it",
    "review-quorum": "not enough reviews for an item that came in under the threshold",
    "standing-no": "somebody says no to this revision",
    # other decisions
    "no-decision": "there is no such decision, or its record cannot be read",
    "wrong-person": "the record names another person than the one who signed it",
    "holds-more": "the deciding commit, or one that it brought, changes more than the decision",
    "not-stuck": "the item was not stuck when it was resolved",
    "quarantine": "it was resolved before the lease's expiry and the quarantine had passed",
    # what could not be looked at
    "unasked": "it could not be looked at",
    "shallow": "the history is not all here",
    "diverged": "the forge and git tell of different histories of the bus's branch",
    # the flag
    "sending-off": "sending is off",
    "sending-stopped": "somebody stopped sending, and no approver lifted that",
    "bus-unreadable": "bus.yaml cannot be read",
    # the line
    "not-on-line": "the root, or a tip that was seen before, is not on the branch's first-parent line",
    "hidden-history": "something on the branch was put aside or brought back",
    # leases and receipts
    "foreign-lease": "a lease that no sending key signed",
    "foreign-receipt": "a receipt that no sending key signed",
    "receipt-opens-nothing": "a receipt that opens no seal of its lease",
    "lease-changed": "a lease says something else than when it was made",
    "lease-unreadable": "a lease or receipt cannot be read",
}
"""Every rule's stable name and what a refusal by it means."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One thing that was verified: ``proved`` by signature or content, or ``recorded`` by a forge."""

    what: str
    assurance: Literal["proved", "recorded"] = "proved"
    evidence: Any = None


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is missing, by which rule, and what would help."""

    rule: str
    message: str
    remedy: str = ""
    kind: Literal["disproved", "unasked"] = "disproved"


def missing(rule: str, detail: str = "", remedy: str = "", *, unasked: bool = False) -> Missing:
    """Return what is missing, in the rule's words and the detail's.

    Raises:
        KeyError: there is no such rule.
    """
    message = RULES[rule] + (f": {detail}" if detail else "")
    return Missing(rule, message, remedy, "unasked" if unasked else "disproved")


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of one decision: the commit that brought it, the people, what stands and what lacks."""

    subject: str
    commit: Oid | None
    people: tuple[str, ...]
    verified: tuple[Verified, ...]
    missing: tuple[Missing, ...]

    @property
    def proved(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing and self.commit is not None

    @property
    def disproved(self) -> bool:
        """Whether it is no decision, whatever else could still be looked at."""
        return any(one.kind == "disproved" for one in self.missing)

    @property
    def unasked(self) -> bool:
        """Whether all that is missing could not be looked at, or is a matter of time."""
        return bool(self.missing) and not self.disproved


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in the history: by which rule, about what, and in which commit."""

    rule: str
    subject: str
    commit: Oid
    message: str
    remedy: str = ""


def finding(rule: str, subject: str, commit: Oid, detail: str = "", remedy: str = "") -> Finding:
    """Return a finding in the rule's words and the detail's.

    Raises:
        KeyError: there is no such rule.
    """
    return Finding(rule, subject, commit, RULES[rule] + (f": {detail}" if detail else ""), remedy)
