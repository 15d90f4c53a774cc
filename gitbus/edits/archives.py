"""Edits of the archive: what settled is moved there whole, and only a receipt that comes late is added.

Rules: a goal and an item are moved as the trees they were, once nobody is waited for. What stands in
the archive stays as it is; a receipt comes with the lease that it opens where that had gone, and it
makes its item ``sent`` where it says so.

Example: a commit that changes an archived ``body.txt`` gives
``Edit("unproved-edit", "a.mail.item", "archive/2026/12/outbox/a.mail.item/body.txt was changed …")``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import paths
from gitbus.edits.looking import Edit, Look, edit, subject_of
from gitbus.history import FILE, Delta
from gitbus.records import Item, Receipt, Report
from gitbus.states import ITEM_SETTLED

_LATE = {"state", "reason", "not_before"}


def moves(look: Look) -> Iterator[Edit]:
    """Yield what was archived and is not settled."""
    for source in look.moved:
        match source.split("/"):
            case ["outbox", name]:
                item = look.old_item(name)
                if item is None or item.state not in ITEM_SETTLED:
                    yield edit(name, f"it was archived while it was {item.state if item else 'broken'}")
            case ["goals", name]:
                if look.old(paths.report(name), Report) is None:
                    yield edit(name, "it was archived before it settled")
            case _:
                pass


def archived(look: Look, delta: Delta) -> Iterator[Edit]:
    """Yield what is wrong with a change in the archive that is no move."""
    subject = subject_of(delta.path)
    match delta.path.split("/"):
        case ["archive", _, _, "outbox", name, leaf] if _late(look, delta, name, leaf):
            return
        case ["archive", _, _, "goals" | "outbox", _, *_] if delta.old is None:
            yield edit(subject, f"{delta.path} was put into the archive, and nothing was moved there")
        case _ if delta.old is None:
            yield edit(subject, f"{delta.path} is no place in the archive")
        case _:
            how = "removed from" if delta.new is None else "changed in"
            yield edit(subject, f"{delta.path} was {how} the archive")


def _late(look: Look, delta: Delta, name: str, leaf: str) -> bool:
    """Say whether a change in an archived item's folder is that of a receipt that came late."""
    folder = delta.path.removesuffix(f"/{leaf}")
    kind, _, number = leaf.removesuffix(".yaml").partition(".")
    if delta.new is None or delta.new.mode != FILE:
        return False
    if kind in ("receipt", "lease"):
        receipt = look.new(f"{folder}/receipt.{number}.yaml", Receipt)
        says = receipt is not None and (receipt.item, str(receipt.attempt)) == (name, number)
        return delta.old is None and look.adds(f"{folder}/receipt.{number}.yaml") and says
    return leaf == "item.yaml" and _became_sent(look, delta, folder)


def _became_sent(look: Look, delta: Delta, folder: str) -> bool:
    old = look.memo.read(delta.old, delta.path, Item)
    new = look.memo.read(delta.new, delta.path, Item)
    said = any(
        look.adds(path) and receipt is not None and receipt.outcome == "sent"
        for path in look.touched
        if path.startswith(f"{folder}/receipt.")
        for receipt in [look.new(path, Receipt)]
    )
    if old is None or new is None or new.state != "sent" or not said:
        return False
    return old.model_dump(exclude=_LATE) == new.model_dump(exclude=_LATE)
