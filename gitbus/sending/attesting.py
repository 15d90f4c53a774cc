"""Step 7, attest: the receipts of what was sent, committed until they land; and what was left open before.

Example: ``attesting.finish()`` returns what became of the items that an earlier round began.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from gitbus import ids, paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change
from gitbus.flow import sending
from gitbus.flow.archive import late
from gitbus.hub.base import Hub, RefMove
from gitbus.journal import Journal, JournalEntry
from gitbus.reading import Reader
from gitbus.records import Lease
from gitbus.sending.receipts import answer_json, receipt
from gitbus.sending.values import Outcome, Sent, signs
from gitbus.transports.base import Answer
from gitbus.writing import Writer


class Attesting:
    """Says on the bus what became of what was leased.

    Args:
        hub: the shared repository.
        now: what time it is.
        reader: reads the bus.
        writer: writes the sender's commits.
        journal: what this clone sent or was about to send.
    """

    def __init__(
        self, hub: Hub, now: Callable[[], datetime], reader: Reader, writer: Writer, journal: Journal
    ) -> None:
        self.hub = hub
        self.now = now
        self.reader = reader
        self.writer = writer
        self.journal = journal

    def finish(self) -> list[Sent]:
        """Attest what earlier rounds left open; what has no answer is unknown, whatever it was."""
        entries = []
        for entry in self.journal.unfinished():
            if entry.stage == "about":
                answer = answer_json(Answer(outcome="unknown", reason="the sender died while it was sending"))
                entry = self.journal.answered(entry, answer, None, ids.time_text(self.now()))
            entries.append(entry)
        if entries:
            self.attest(entries)
        return [self.told(entry) for entry in entries]

    def attest(self, entries: list[JournalEntry]) -> None:
        """Commit the receipts, on newer and newer tips until they land."""
        pairs = [(Lease.model_validate(entry.lease), receipt(entry)) for entry in entries]
        attempt = 0
        while pairs:
            tip = self.hub.look()[self.hub.main]
            board = self.reader.board(tip)
            away = self._archived(board, entries)
            parts = {name: part for name, (_, part) in away.items()}
            whole = replace(board, items={**board.items, **parts})
            change: Change | None = sending.attest(whole, pairs, self.now())
            if change is None:
                break
            change = late(change, {name: folder for name, (folder, _) in away.items()})
            made = self.writer.commits(tip, [change], self.now(), sign=signs(board))[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                break
            attempt += 1
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 7)))  # noqa: S311 - jitter
        for entry in entries:
            part = self._part(entry.item)
            if part is not None and entry.attempt in part.receipts:
                self.journal.attested(entry)

    def _archived(self, board: Board, entries: Iterable[JournalEntry]) -> dict[str, tuple[str, ItemBoard]]:
        """Return what is archived of these items by now, each with its folder there."""
        gone = [entry.item for entry in entries if entry.item not in board.items]
        found = {item: self.reader.archived(board.commit, item) for item in gone}
        return {item: there for item, there in found.items() if there is not None}

    def _part(self, item: str) -> ItemBoard | None:
        """Return an item as it stands now, in the archive too."""
        tip = self.hub.look()[self.hub.main]
        here = self.reader.board(tip).items.get(item)
        there = self.reader.archived(tip, item) if here is None else None
        return there[1] if there is not None else here

    def told(self, entry: JournalEntry) -> Sent:
        """Return what became of an item, as the bus shows it now."""
        part = self._part(entry.item)
        state = part.state if part else "stuck"
        outcome: Outcome = {"sent": "sent", "failed": "failed", "approved": "later"}.get(state, "stuck")  # type: ignore[assignment]
        answer = entry.answer or {}
        return Sent(entry.item, outcome, answer.get("reason"), paths.receipt(entry.item, entry.attempt))
