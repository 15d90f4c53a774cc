"""Approval branches on any git host: made from the board, merged by a human, cleared away.

Example: ``Approvals(hub, writer).put_up(board, tip, refs, now)`` returns the ref moves that leave
exactly one branch below ``gitbus/approve/`` for everything that waits for a human.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gitbus import codec, ids, paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, Content, Thread
from gitbus.errors import Invalid
from gitbus.flow.approve import branches, flip, flip_change
from gitbus.history import FILE, Delta, Oid
from gitbus.hub.base import Draft, Hub, RefMove
from gitbus.records import Approval
from gitbus.states import WAITING
from gitbus.writing import CONDUCTOR, Writer

Edit = tuple[str, str, dict[str, Content]]
"""(item, who, payload path below the item's folder → bytes): a payload that a person edited."""


class Approvals:
    """The approval branches of one bus, as its conductor keeps them."""

    def __init__(self, hub: Hub, writer: Writer) -> None:
        self.hub = hub
        self.writer = writer
        self._entries: dict[tuple[str, str], Oid] = {}  # (item, its state, revision …) → entry
        self._flips: dict[tuple[str, ...], Oid] = {}

    # --- entries

    def learn(self, changes: Sequence[Change], commits: Sequence[Oid]) -> None:
        """Remember which commits made items wait."""
        for change, commit in zip(changes, commits, strict=True):
            for path, content in change.writes.items():
                if path.startswith("outbox/") and path.endswith("/item.yaml") and content is not None:
                    item = path.split("/")[1]
                    self._entries[item, repr(content)] = commit

    def forget(self, commits: Sequence[Oid]) -> None:
        """Forget commits that were never taken."""
        gone = set(commits)
        self._entries = {key: oid for key, oid in self._entries.items() if oid not in gone}
        self._flips = {key: oid for key, oid in self._flips.items() if not gone & set(key)}

    def entry(self, part: ItemBoard, tip: Oid) -> Oid:
        """Return the commit after which an item waits."""
        key = (part.id, repr(part.item))
        if key not in self._entries:
            self._entries[key] = self.hub.store.line(tip, touching=[paths.item(part.id)])[0]
        return self._entries[key]

    # --- branches

    def put_up(
        self, board: Board, tip: Oid, refs: Mapping[str, Oid], now: datetime
    ) -> tuple[Oid, list[RefMove]]:
        """Return the tip (with an empty commit where one is needed) and the moves of approval branches."""
        moves: list[RefMove] = []
        put: list[str] = []
        wanted = branches(board)
        for name, items in wanted.items():
            ref = paths.APPROVE + name
            made = self._flip(board, tip, items)
            old = refs.get(ref)
            if old == made or (old is not None and self._is_brought_up_to_date(old, made)):
                continue
            moves.append(RefMove(ref, old, made, replace=True))
            put += items
        for ref, old in refs.items():
            name = ref.removeprefix(paths.APPROVE)
            if ref.startswith(paths.APPROVE) and name not in wanted and not _is_on_its_way(board, name):
                moves.append(RefMove(ref, old, None))
            elif ref.startswith(paths.DECIDE) and self.hub.store.is_ancestor(old, board.commit):
                moves.append(RefMove(ref, old, None))  # decided: it was merged
        if put and any(self.entry(board.items[item], tip) == tip for item in put):
            tip = self.writer.commits(tip, [_put_up(put)], now)[0]
        return tip, moves

    def _flip(self, board: Board, tip: Oid, items: tuple[str, ...]) -> Oid:
        store = self.hub.store
        entries = {item: self.entry(board.items[item], tip) for item in items}
        key = tuple(part for item in items for part in (item, entries[item]))
        if key not in self._flips:
            parent = self._latest(tuple(dict.fromkeys(entries.values())))
            files = {
                item: flip(board.items[item], entries[item], self._contents(board.items[item]))
                for item in items
            }
            change = flip_change(files)
            base = store.commit(parent)
            tree = self.writer.tree(base.tree, change)
            self._flips[key] = store.write_commit(
                Draft(tree, (parent,), change.message(), CONDUCTOR, base.committer.when)
            )
        return self._flips[key]

    def _latest(self, entries: tuple[Oid, ...]) -> Oid:
        latest = entries[0]
        for entry in entries[1:]:
            if self.hub.store.is_ancestor(latest, entry):
                latest = entry
        return latest

    def _contents(self, part: ItemBoard) -> dict[str, bytes]:
        if part.item is None:
            return {}
        return {
            file.path: self.hub.store.blob(part.files[file.path].oid)
            for file in part.item.payload
            if file.role != "attachment"
        }

    def _is_brought_up_to_date(self, branch: Oid, made: Oid) -> bool:
        """Say whether somebody merged the bus's branch into an approval branch, and nothing else."""
        commit = self.hub.store.commit(branch)
        if len(commit.parents) != 2 or not self.hub.store.is_ancestor(made, branch):
            return False
        return self.hub.store.remerge(*commit.parents) == commit.tree

    # --- edits

    def edits(self, board: Board, refs: Mapping[str, Oid]) -> list[Edit]:
        """Return the payloads that people edited on approval branches, before or after an approval."""
        found = []
        wanted = branches(board)
        for ref, tip in refs.items():
            name = ref.removeprefix(paths.APPROVE)
            if name == ref or not board.commit:
                continue
            if name in wanted and self._flip(board, board.commit, wanted[name]) == tip:
                continue
            found += self._edits(board, tip)
        return found

    def _edits(self, board: Board, tip: Oid) -> list[Edit]:
        """Return what the commits on a branch changed; nothing where they touch more than payloads."""
        store = self.hub.store
        edited: dict[str, tuple[str, dict[str, Content]]] = {}
        for oid in store.between([tip], [board.commit]):
            commit = store.commit(oid)
            if len(commit.parents) != 1:
                continue
            deltas = store.diff(store.commit(commit.parents[0]).tree, commit.tree)
            if any(delta.path.endswith("/approval.yaml") for delta in deltas):
                continue
            for delta in deltas:
                item, inner = self._payload_file(board, delta)
                if item is None or delta.new is None:
                    return []
                files = edited.get(item, ("", {}))[1]
                files[inner] = store.blob(delta.new.oid)
                edited[item] = (f"{commit.author.name} <{commit.author.email}>", files)
        return [
            (item, who, files)
            for item, (who, files) in sorted(edited.items())
            if self._is_about(board.items[item], tip) and self._differs(board.items[item], files)
        ]

    def _payload_file(self, board: Board, delta: Delta) -> tuple[str | None, str]:
        """Return the item whose payload a changed file is, and its path there; None where it is none."""
        match delta.path.split("/", 2):
            case ["outbox", item, inner] if (part := board.items.get(item)) and part.item:
                payload = {file.path for file in part.item.payload}
            case _:
                return None, ""
        if inner not in payload or delta.new is None or delta.new.mode != FILE:
            return None, ""
        small = self.hub.store.size(delta.new.oid) <= board.bus.limits.artifact
        return (item, inner) if small else (None, "")

    def _is_about(self, part: ItemBoard, tip: Oid) -> bool:
        """Say whether a branch puts up the item's present revision, which can still be revised."""
        if part.item is None or part.problems or part.item.state not in (*WAITING, "approved"):
            return False
        path = paths.approval(part.id)
        entry = self.hub.store.entry(tip, path)
        if entry is None:
            return False
        try:
            shown = codec.read(self.hub.store.blob(entry.oid), Approval, path=path)
        except Invalid:
            return False
        return (shown.revision, shown.digest) == (part.item.revision, part.item.digest)

    def _differs(self, part: ItemBoard, files: Mapping[str, Content]) -> bool:
        known = {file.path: file.sha256 for file in part.item.payload} if part.item else {}
        return any(
            isinstance(data, bytes) and ids.sha256(data) != known[path] for path, data in files.items()
        )


def _is_on_its_way(board: Board, name: str) -> bool:
    """Say whether what a branch puts up is about to wait again, as a new revision: then it is replaced."""
    return any(
        part.state in ("persisted", "scored")
        for part in board.items.values()
        if part.item is not None and name in (part.id, part.item.together)
    )


def _put_up(items: Sequence[str]) -> Change:
    subject = items[0] if len(items) == 1 else f"{len(items)} items"
    return Change(
        "put up",
        subject,
        about=tuple(Thread(item=item) for item in items),
        body=tuple(items) if len(items) > 1 else (),
    )
