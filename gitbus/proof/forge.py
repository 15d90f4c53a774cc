"""The seam to a forge: what it alone can say of a commit, as facts that the proof weighs.

A forge's word is *recorded*: it was so when it was asked. Without a forge (None, wherever one is
asked for) only signatures prove anything, and what only a forge could say is ``unasked``.

Example: ``forge.word(history, commit, standing, ("approve/a.mail.item",)).people == ("ada",)``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from gitbus.history import Commit, History, Oid
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Missing


class Forge(Protocol):
    """What a forge knows of one repository."""

    def word(self, history: History, commit: Oid, standing: Standing, about: Collection[str]) -> Word:
        """Return who merged the pull request that made this commit, and what speaks against it.

        The people are ids of ``bus.yaml``, found by the forge's own number in both Buses: the merger
        first, then who approved at the very head that was merged.

        Args:
            history: the repository.
            commit: a commit of the line.
            standing: the Buses under which they have to count.
            about: the branches below ``gitbus/`` of which the pull request's head has to be one;
                any branch where there are none.
        """
        ...

    def agrees(self, history: History, tip: Oid) -> Missing | None:
        """Return why the forge and git do not tell of one and the same branch; None where they do.

        One may be ahead of the other; neither may hold what the other's history has not.

        Args:
            history: the repository.
            tip: what git says is the bus's branch.
        """
        ...


def may_know(commit: Commit) -> bool:
    """Say whether a forge may have made this commit, so that only it can tell who merged.

    GitHub commits as ``noreply@github.com``, an own server as ``noreply@`` its host.
    """
    return commit.committer.email.startswith("noreply@") or commit.committer.name == "GitHub"
