"""What people do with items: narrow, decide, edit.

Example: ``bus.approve(["release.mail.news"])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from gitbus import approving
from gitbus.board import Board
from gitbus.bus.core import Done, OpenBus
from gitbus.change import Change
from gitbus.errors import Refused
from gitbus.flow import people
from gitbus.flow.items import revise
from gitbus.history import Oid


class Items(OpenBus):
    """The items of a bus."""

    # --- what narrows

    def reject(self, item: str, reason: str) -> Done:
        """Reject an item before it is sent."""
        return self.commit(lambda board: people.reject(board, item, reason))

    def withdraw(self, item: str, reason: str | None = None) -> Done:
        """Take an item back for good."""
        return self.commit(lambda board: people.withdraw(board, item, reason))

    def redo(self, item: str, note: str) -> Done:
        """Give an item's task back to the workers with your words."""
        who = self.person().id
        goal = item.split(".", maxsplit=1)[0]
        return self.commit(lambda board: people.redo(self._open(board, goal), item, who, note, self.now()))

    def retry_item(self, item: str) -> Done:
        """Put a failed or expired item up again."""
        return self.commit(lambda board: people.retry_item(board, item, self.now()))

    # --- decisions

    def review(self, item: str, verdict: Literal["ok", "no"], note: str | None = None) -> Done | None:
        """Say yes or no to an item's present revision: signed, or as a review on the forge (None then)."""
        done = approving.review(self, item, verdict, note)
        return Done(*done) if done is not None else None

    def approve(self, items: Sequence[str]) -> Done:
        """Approve items: merge their branches signed with the user's key, or their pull requests.

        Raises:
            Refused: one of them does not wait, its branch is not up, or the forge does not merge it.
            HubMoved: others were faster too often.
        """
        merge, subject, signed = approving.approve(self, items)
        return Done(merge, subject, signed)

    def whole_batches(self, board: Board, items: Sequence[str]) -> tuple[str, ...]:
        """Return the items, with everything that goes up together with one of them."""
        return approving.whole_batches(board, items)

    def flip(self, board: Board, refs: Mapping[str, Oid], item: str) -> Oid:
        """Return the flip that an approver of an item merges.

        Raises:
            Refused: the item does not wait, its branch is not up, or is not its flip.
        """
        return approving.flip(self, board, refs, item)

    def resolve(self, item: str, verdict: Literal["sent", "not_sent"], evidence: str) -> Done:
        """Say what became of a stuck item, signed."""
        who = self.person().id
        return self.commit(
            lambda board: people.resolve(board, item, who, verdict, evidence, self.now()), sign=True
        )

    def revise(self, item: str, files: Mapping[str, bytes]) -> Done:
        """Put an edited payload up for review again, as a new revision."""
        who = self.hub.store.identity()

        def decide(board: Board) -> Change:
            people.check_files(board, item, files)
            changes = revise(board, [(item, f"{who.name} <{who.email}>", dict(files))])
            if not changes:
                raise Refused(
                    f"{item} is {board.items[item].state}; it cannot be revised", rule="wrong-state"
                )
            return changes[0]

        return self.commit(decide)

    def payload(self, item: str) -> dict[str, bytes]:
        """Return the bytes of an item's payload by path below its folder."""
        board = self.board()
        part, record = people.part_of(board, item)
        for problem in part.missing:
            raise Refused(f"{problem.path}: {problem.message}", rule=problem.rule, remedy=problem.remedy)
        return {file.path: self.hub.store.blob(part.files[file.path].oid) for file in record.payload}
