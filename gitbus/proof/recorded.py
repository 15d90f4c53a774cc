"""A forge's word as receipts froze it: weighed again by the same rules, without asking anybody.

Rules: evidence counts for the commit that it says was made, and for that alone; what nobody froze is
unasked. It is only as good as the sender that wrote the receipt, which is why an audit counts it apart.

Example: ``Recorded.of(receipts, "main").word(history, commit, standing, {"approve/a.mail.item"})``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from gitbus.history import History, Oid
from gitbus.proof.merged import PullFacts, facts_in, weigh
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Missing, missing
from gitbus.records import Receipt

ONLINE = "gitbus audit --online asks again"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What receipts say that a forge said, by the commit that it was about; several may disagree."""

    facts: Mapping[Oid, tuple[PullFacts, ...]]
    branch: str

    @classmethod
    def of(cls, receipts: Iterable[Receipt], branch: str) -> Self:
        """Return what some receipts froze.

        Args:
            receipts: the receipts.
            branch: the bus's branch, by its short name.
        """
        found: dict[Oid, tuple[PullFacts, ...]] = {}
        for receipt in receipts:
            for line in receipt.approval.verified:
                facts = facts_in(line.evidence) if line.assurance == "recorded" else None
                if facts is not None and facts.merge_commit is not None:
                    known = found.get(facts.merge_commit, ())
                    found[facts.merge_commit] = known if facts in known else (*known, facts)
        return cls(found, branch)

    def word(self, history: History, commit: Oid, standing: Standing, about: Collection[str]) -> Word:
        """Return whose word a commit was, as it was frozen; nobody's where any version of it says no."""
        made = history.commit(commit)
        words = [weigh(facts, made, standing, about, self.branch) for facts in self.facts.get(commit, ())]
        if not words:
            why = missing(
                "unasked", f"no receipt holds what the forge said of {commit[:10]}", ONLINE, unasked=True
            )
            return Word((), (), (why,))
        return next((word for word in words if word.missing), words[-1])

    def agrees(self, history: History, tip: Oid) -> Missing | None:
        """Return nothing: what was frozen says nothing of the branch as it is now."""
        del history, tip
        return None
