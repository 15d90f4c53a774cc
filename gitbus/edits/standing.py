"""What stands still: the paths that somebody changed against the rules and nobody put right since.

Rules: a path stands still from the commit that changed it on; it is right again once it holds what it
held before, or once a move that the tables allow changed it. To put back what was there is no edit.

Example::

    still = Still()
    for look in looks:
        still = still.after(look, unproved_edits(still.fresh(look)))
    still.subjects()["a.mail.item"].message
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gitbus.edits.looking import Edit, Look, subject_of
from gitbus.history import Entry, Oid


@dataclass(frozen=True, slots=True)
class Wrong:
    """A path that was changed against the rules: the first commit that did, and what it held before."""

    commit: Oid
    subject: str
    message: str
    good: Entry | None


@dataclass(frozen=True)
class Still:
    """What stands still after a commit of the line."""

    wrong: Mapping[str, Wrong] = field(default_factory=dict)

    def fresh(self, look: Look) -> Look:
        """Return a commit without the changes that only put back what was there."""
        if not any(path in self.wrong for path in look.touched):
            return look
        left = [
            one for one in look.deltas if one.path not in self.wrong or one.new != self.wrong[one.path].good
        ]
        return replace(look, deltas=left)

    def after(self, look: Look, found: Iterable[Edit]) -> Still:
        """Return what stands still once a commit was looked at.

        Args:
            look: the commit, with everything that it changed.
            found: what it changed against the rules; an edit's subject may be a path.
        """
        edits = {one.subject: one for one in found}
        wrong = {path: one for path, one in self.wrong.items() if path not in look.touched}
        for path, delta in look.touched.items():
            odd = edits.get(subject_of(path)) or edits.get(path)
            known = self.wrong.get(path)
            if odd is None or (known is not None and delta.new == known.good):
                continue
            wrong[path] = known or Wrong(look.commit.oid, odd.subject, odd.message, delta.old)
        return Still(wrong)

    def subjects(self) -> Mapping[str, Wrong]:
        """Return what stands still by its subject, each with the first wrong that was done to it."""
        found: dict[str, Wrong] = {}
        for one in self.wrong.values():
            found.setdefault(one.subject, one)
        return found
