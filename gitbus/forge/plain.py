"""Approval branches on any git host: made from the board, merged by a human, cleared away.

Example: ``Approvals(hub, writer).put_up(board, tip, refs, now)`` returns the ref moves that leave
exactly one branch below ``gitbus/approve/`` for everything that waits for a human.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gitbus import paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, Content, Thread
from gitbus.flow.approve import branches, flip, flip_change
from gitbus.forge.typed import Typed, Typist
from gitbus.history import Oid
from gitbus.hub.base import Draft, Hub, RefMove
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
        self.typist = Typist(hub.store)

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
            if old is not None and self._has_typed(board, refs, ref, moves):
                continue
            moves.append(RefMove(ref, old, made, replace=True))
            put += items
        for ref, old in refs.items():
            name = ref.removeprefix(paths.APPROVE)
            if ref.startswith(paths.APPROVE) and name not in wanted and not _is_on_its_way(board, name):
                if not self._has_typed(board, refs, ref, moves):
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
        return self.typist.is_merge_by_git(commit)

    # --- edits

    def edits(self, board: Board, refs: Mapping[str, Oid]) -> list[Edit]:
        """Return the payloads that people edited on approval branches, before or after an approval."""
        found = []
        for ref, tip in refs.items():
            if not ref.startswith(paths.APPROVE) or not board.commit:
                continue
            typed = self.typist.typed(tip, board.commit)
            for item, changed in self._small(board, typed).items():
                files: dict[str, Content] = {
                    path: self.hub.store.blob(blob) for path, blob in changed.items()
                }
                found.append((item, typed.authors[item], files))
        return found

    def _small(self, board: Board, typed: Typed) -> Mapping[str, Mapping[str, Oid]]:
        """Return what can be taken in, unless a file in it is too large for the bus."""
        changes, limit = typed.changes(board), board.bus.limits.artifact
        sizes = (self.hub.store.size(blob) for changed in changes.values() for blob in changed.values())
        return changes if all(size <= limit for size in sizes) else {}

    def _has_typed(self, board: Board, refs: Mapping[str, Oid], ref: str, moves: list[RefMove]) -> bool:
        """Say whether a branch may not go yet, for it alone holds what somebody typed; let that be kept.

        It has to stand elsewhere on the hub before: a push may move this ref, and none of the others.
        """
        old = refs[ref]
        typed = self.typist.typed(old, refs[self.hub.main])
        kept = paths.kept(ref.removeprefix(paths.APPROVE), old)
        if not (typed.files or typed.more) or kept in refs:
            return False
        if not typed.is_on(board):
            moves.append(RefMove(kept, None, old))
        return True


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
