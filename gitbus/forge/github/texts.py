"""What gitbus writes on GitHub, made from the board and the objects that it names.

Rules: a draft is made anew only when what it shows changed, since every open pull request is compared
in every tick.

Example: ``GitHubTexts(place, store).pull(view, "a.mail.item", ("a.mail.item",), commit).title``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from gitbus import codec, paths
from gitbus.board import Board, ItemBoard
from gitbus.errors import Invalid
from gitbus.forge.base import View
from gitbus.forge.github import notes
from gitbus.forge.github.body import Draft, draft
from gitbus.forge.github.deciding import bus_draft, item_draft
from gitbus.forge.github.markdown import bare
from gitbus.forge.github.place import Place
from gitbus.forge.github.pulls import APPROVE_SHORT, OPEN_LABEL, Pull
from gitbus.forge.github.showing import Page
from gitbus.history import Oid
from gitbus.hub.base import Store
from gitbus.records import Approval, Bus, Resolution

LABELS = frozenset({"gitbus"})

FEW = 3
"""Up to how many items of one pull request each get a comment of their own."""


@dataclass(frozen=True, slots=True)
class _Made:
    commit: Oid
    bus: Bus
    parts: tuple[ItemBoard, ...]
    draft: Draft


class GitHubTexts:
    """The texts of one bus.

    Args:
        place: the repository, for links.
        store: where the payloads are.
    """

    def __init__(self, place: Place, store: Store) -> None:
        self.place = place
        self.store = store
        self._made: dict[str, _Made] = {}

    def pull(self, view: View, name: str, items: tuple[str, ...], commit: Oid) -> Draft:
        """Return what the pull request of an approval branch shall say."""
        board = view.board
        parts = tuple(board.items[item] for item in items)
        known = self._made.get(name)
        if known is None or not _is_same(known, commit, board, parts):
            contents = {part.id: self._contents(part) for part in parts}
            page = Page(self.place, commit, APPROVE_SHORT + name)
            made = draft(board, items, contents, page, sending=board.bus.sending.enabled)
            labels = made.labels | {OPEN_LABEL}
            known = self._made[name] = _Made(commit, board.bus, parts, Draft(made.title, made.body, labels))
        return known.draft

    def decision(self, view: View, ref: str) -> Draft:
        """Return what the pull request of a branch below ``gitbus/decide/`` shall say."""
        commit, name = view.refs[ref], ref.removeprefix(paths.DECIDE)
        page = Page(self.place, commit, ref.removeprefix(paths.HEADS))
        with contextlib.suppress(Invalid, KeyError):
            if name == "bus":
                before, after = self.store.blob(view.bus), self._text(commit, paths.BUS)
                new = codec.read(after, Bus, path=paths.BUS)
                return bus_draft(view.board.bus, new, before.decode("utf-8", "replace"), after.decode(), page)
            part = view.board.items[name]
            path = paths.resolution(name, part.item.attempt if part.item else 1)
            found = codec.read(self._text(commit, path), Resolution, path=path)
            return item_draft(part, found, page)
        return Draft(
            bare(f"Decide: {name}"), "What this branch decides cannot be read; look at its diff.\n", LABELS
        )

    def _text(self, commit: Oid, path: str) -> bytes:
        entry = self.store.entry(commit, path)
        return self.store.blob(entry.oid) if entry is not None else b""

    def ends(self, view: View, parts: Sequence[ItemBoard], pull: Pull) -> list[str]:
        """Return the comments that say what became of the items of a closed pull request.

        Many items share one comment, which is written anew as they go on.
        """
        if len(parts) > FEW:
            return [notes.batch_end(view.board.bus, pull.ref.removeprefix(paths.APPROVE), parts)]
        made = (
            notes.end(view.board.bus, part, merged=pull.merged, revision=self._revision(part, pull.commit))
            for part in parts
        )
        return [text for text in made if text is not None]

    def _revision(self, part: ItemBoard, commit: Oid) -> int:
        """Return the revision that a commit of an approval branch puts up."""
        path = paths.approval(part.id)
        entry = self.store.entry(commit, path)
        if entry is not None:
            with contextlib.suppress(Invalid):
                return codec.read(self.store.blob(entry.oid), Approval, path=path).revision
        return part.item.revision if part.item else 1

    def _contents(self, part: ItemBoard) -> dict[str, bytes]:
        """Return the bytes of an item's text, HTML and JSON."""
        return {
            file.path: self.store.blob(part.files[file.path].oid)
            for file in (part.item.payload if part.item else ())
            if file.role != "attachment" and file.path in part.files
        }


def _is_same(known: _Made, commit: Oid, board: Board, parts: tuple[ItemBoard, ...]) -> bool:
    same = len(known.parts) == len(parts) and all(
        one is other for one, other in zip(known.parts, parts, strict=True)
    )
    return same and known.commit == commit and known.bus is board.bus
