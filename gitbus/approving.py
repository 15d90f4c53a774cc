"""A person's word on items from a terminal: the signed merge, or the same on the forge that shows them.

Rules: with ``proof: github`` and a token, the pull request is merged at the head that was seen, and a
review is GitHub's; everywhere else the user's own signing key speaks. Who may not review his own
pull request on GitHub signs his Review.

Example: ``approve(bus, ["a.mail.item"]).subject`` is ``approve a.mail.item``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from gitbus import codec, paths
from gitbus.board import Board
from gitbus.change import Change, Thread
from gitbus.errors import HubMoved, Refused, Unreachable
from gitbus.flow import people
from gitbus.forge.base import Acting
from gitbus.history import Oid
from gitbus.hub import Draft, RefMove
from gitbus.states import WAITING
from gitbus.version import refuse_old

if TYPE_CHECKING:
    from gitbus.bus.core import OpenBus

TRIES = 30


def approve(bus: OpenBus, items: Sequence[str]) -> tuple[Oid, str, bool]:
    """Approve items: merge their pull requests, or their branches with the user's key.

    Returns:
        The (last) merge, what was approved, and whether the user's key signed it.

    Raises:
        Refused: one of them does not wait, its branch is not up, or the forge does not merge it.
        HubMoved: others were faster too often.
    """
    acting = acting_on(bus)
    if acting is None:
        made, subject = _signed(bus, items)
        return made, subject, True
    refs = bus.refs()
    board = bus.board()
    refuse_old(board.bus)
    names = whole_batches(board, items)
    flips = {approval_ref(board, name): flip(bus, board, refs, name) for name in names}
    merges = [acting.merge(ref, commit) for ref, commit in flips.items()]
    return merges[-1], f"approve {names[0] if len(names) == 1 else f'{len(names)} items'}", False


def review(bus: OpenBus, item: str, verdict: Literal["ok", "no"], note: str | None) -> tuple[Oid, str] | None:
    """Say yes or no to an item's present revision: signed, or as a review on the forge.

    Returns:
        The signed commit and what it says; None where the forge took the review.
    """
    acting = acting_on(bus)
    if acting is not None:
        board, refs = bus.board(), bus.refs()
        if acting.review(approval_ref(board, item), flip(bus, board, refs, item), verdict, note):
            return None
    who = bus.person().id
    done = bus.commit(lambda board: people.review(board, item, who, verdict, note, bus.now()), sign=True)
    return done.commit, done.subject


def acting_on(bus: OpenBus) -> Acting | None:
    """Return what a person does on the forge; None where his own key speaks."""
    if bus.effective().bus.approval.proof != "github":
        return None
    try:
        return bus.forge.acting
    except Unreachable:
        return None


def approval_ref(board: Board, item: str) -> str:
    """Return the full name of the branch that puts an item up."""
    _, record = people.part_of(board, item)
    return paths.APPROVE + (record.together or item)


def _signed(bus: OpenBus, items: Sequence[str]) -> tuple[Oid, str]:
    for attempt in range(TRIES):
        refs = bus.refs()
        tip = refs[bus.hub.main]
        board = bus.reader.board(tip)
        refuse_old(board.bus)
        draft = _merge(bus, board, refs, tip, items)
        made = bus.hub.store.write_commit(draft)
        if bus.hub.move([RefMove(bus.hub.main, tip, made)]).moved(bus.hub.main):
            return made, draft.message.split("\n", 1)[0]
        time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
    raise HubMoved("the bus's branch moved each time", rule="hub-moved", remedy="try again")


def _merge(bus: OpenBus, board: Board, refs: Mapping[str, Oid], tip: Oid, items: Sequence[str]) -> Draft:
    """Return the merge of some items' flips into the branch."""
    store = bus.hub.store
    sides: list[Oid] = []
    tree = store.commit(tip).tree
    names = whole_batches(board, items)
    for item in names:
        side = flip(bus, board, refs, item)
        if side not in sides:
            sides.append(side)
        files = {path: store.entry(side, path) for path in (paths.item(item), paths.approval(item))}
        tree = store.write_tree(tree, files)
    subject = names[0] if len(names) == 1 else f"{len(names)} items"
    change = Change(
        "approve",
        subject,
        about=tuple(Thread(item=item) for item in names),
        body=names if len(names) > 1 else (),
    )
    return Draft(tree, (tip, *sides), change.message(), None, bus.now(), sign=True)


def whole_batches(board: Board, items: Sequence[str]) -> tuple[str, ...]:
    """Return the items, with everything that goes up together with one of them."""
    found: dict[str, None] = {}
    for item in items:
        _, record = people.part_of(board, item)
        if record.together is None:
            found[item] = None
            continue
        found.update(
            dict.fromkeys(
                name
                for name, part in sorted(board.items.items())
                if part.item and part.item.together == record.together and part.item.state in WAITING
            )
        )
        found.setdefault(item, None)
    return tuple(found)


def flip(bus: OpenBus, board: Board, refs: Mapping[str, Oid], item: str) -> Oid:
    """Return the flip that an approver of an item merges.

    Raises:
        Refused: the item does not wait, its branch is not up, or is not its flip.
    """
    _, record = people.part_of(board, item)
    if record.state not in WAITING:
        raise Refused(f"{item} is {record.state}; it does not wait for an approval", rule="wrong-state")
    tip = refs.get(approval_ref(board, item))
    if tip is None:
        raise Refused(
            f"{item} waits, but its approval branch is not up",
            rule="not-put-up",
            remedy="run gitbus conduct",
        )
    store = bus.hub.store
    wanted = record.model_copy(update={"state": "approved"})
    entry = store.entry(tip, paths.item(item))
    payload = [f"{paths.item_folder(item)}/{file.path}" for file in record.payload]
    edited = any(store.entry(tip, path) != store.entry(board.commit, path) for path in payload)
    if edited or entry is None or store.blob(entry.oid) != codec.write(wanted):
        raise Refused(
            f"the approval branch of {item} holds something else than the item as it is",
            rule="stale-branch",
            remedy="run gitbus conduct, then look at the item again",
        )
    return tip
