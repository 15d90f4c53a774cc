"""Looking back through history on behalf of the conductor: which approvals are none.

Example: ``Judge(store, reader).disproved(board, now)`` returns the approved items whose approval is
disproved, and the payloads that somebody changed in the approving merge.
"""

from __future__ import annotations

from datetime import datetime

from gitbus import ids, paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Content
from gitbus.history import Oid
from gitbus.hub.base import Store
from gitbus.proof.approval import prove_approval
from gitbus.proof.values import Proof
from gitbus.reading import Reader


class Judge:
    """Proves approvals, each once as long as nothing about it changed.

    Args:
        store: where the objects are.
        reader: reads the bus.
        branch: the bus's branch.
    """

    def __init__(self, store: Store, reader: Reader, branch: str = "main") -> None:
        self.store = store
        self.reader = reader
        self.branch = branch
        self._proofs: dict[tuple[str, Oid, Oid], Proof] = {}

    def proof(self, board: Board, item: str, now: datetime) -> Proof:
        """Return the proof of an item's approval as it stands on the board."""
        folder = self.store.entry(board.commit, paths.item_folder(item))
        bus = self.reader.effective(board.commit)
        key = (item, folder.oid if folder else "", bus.blob)
        known = self._proofs.get(key)
        if known is None or not known.proved:
            known = prove_approval(
                self.store,
                board.commit,
                item,
                root=self.reader.root,
                now=now,
                bus=bus,
                branch=self.branch,
                forge=self.reader.forge,
            )
            self._proofs[key] = known
        return known

    def disproved(
        self, board: Board, now: datetime
    ) -> tuple[list[tuple[str, str]], list[tuple[str, str, dict[str, Content]]]]:
        """Return (item, why) of approvals that are none, and the payloads changed along with one."""
        found: list[tuple[str, str]] = []
        altered: list[tuple[str, str, dict[str, Content]]] = []
        for name, part in sorted(board.items.items()):
            if part.state != "approved":
                continue
            proof = self.proof(board, name, now)
            if not proof.disproved:
                continue
            files = self._altered(part)
            if files:
                altered.append((name, "the approving merge", files))
            found.append((name, "; ".join(f"{one.rule}: {one.message}" for one in proof.missing)))
        return found, altered

    def _altered(self, part: ItemBoard) -> dict[str, Content]:
        """Return the payload files whose bytes are not those that the item names."""
        files: dict[str, Content] = {}
        for file in part.item.payload if part.item else ():
            entry = part.files.get(file.path)
            data = self.store.blob(entry.oid) if entry else None
            if data is not None and ids.sha256(data) != file.sha256:
                files[file.path] = data
        return files
