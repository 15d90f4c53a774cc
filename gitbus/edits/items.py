"""Edits of an item's own record: which fields a move may change, and what has to come with it.

Rules: the state goes as the table of moves says; a move changes the fields of that move and no other;
the attempt rises only where an attempt is over; what would be sent changes with a new revision alone,
and that is what a result proposes, or the same message with another text.

Example: a commit that changes a recipient in ``item.yaml`` and leaves the revision as it was yields
``Edit("unproved-edit", "a.mail.item", "message was changed while it stayed scored")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gitbus import paths
from gitbus.edits.looking import Edit, Look, edit
from gitbus.history import Delta
from gitbus.proposals import Proposal, ProposalRefused, proposals
from gitbus.records import Approval, Item, Receipt
from gitbus.states import ITEM, NONE, WAITING

_WAITS = frozenset({"attempt", "expires_at", "not_before", "reason"})
_TOLD = frozenset({"attempt", "not_before", "reason"})
_ENDS = frozenset({"reason"})

CHANGES: Mapping[str, frozenset[str]] = {
    "scored": frozenset({"scores", "confidence"}),
    "in_review": _WAITS,
    "awaiting_approval": _WAITS,
    "approved": _TOLD,
    "sending": _ENDS,
    "sent": _TOLD,
    "failed": _TOLD,
    "stuck": _TOLD,
    "rejected": _ENDS,
    "withdrawn": _ENDS,
    "expired": _ENDS,
}
"""The fields that a move to a state may change beside the state itself; ``persisted`` makes a new revision."""

_LEGAL = frozenset((source, target) for source, target, _ in ITEM)
_AS_SHOWN = ("id", "channel", "message", "send_at", "together", "source")
"""What an edited text leaves as it was."""


def record(look: Look, delta: Delta, name: str) -> Iterator[Edit]:
    """Yield what is wrong with a change of an item's record."""
    new = look.new(delta.path, Item)
    if delta.new is None:
        yield Edit("item-removed", name, "an item is archived, never removed")
        return
    if new is None:
        return  # it cannot be read, which is a finding of its own
    if new.id != name:
        yield edit(name, f"its record says that it is {new.id}")
        return
    old = look.old_item(name)
    if old is None:
        yield from _born(look, delta, new)
    elif old != new:
        yield from _changed(look, old, new)


def _born(look: Look, delta: Delta, new: Item) -> Iterator[Edit]:
    if delta.old is not None:
        return  # what was there before could not be read, so nobody can say what changed
    if new.state != "persisted":
        yield Edit("illegal-move", new.id, f"{NONE} → {new.state} by {look.verb or 'nobody'}")
        return
    if (new.revision, new.attempt) != (1, 1):
        yield edit(new.id, f"it begins with revision {new.revision}, attempt {new.attempt}")
    if (why := _not_proposed(look, new)) is not None:
        yield edit(new.id, why)


def _changed(look: Look, old: Item, new: Item) -> Iterator[Edit]:
    if old.state != new.state and (old.state, new.state) not in _LEGAL:
        yield Edit("illegal-move", new.id, f"{old.state} → {new.state} by {look.verb or 'nobody'}")
        return
    if new.state == "persisted" and old.state != "persisted":
        yield from _revised(look, old, new)
        return
    if new.state == old.state == "persisted" and new.revision != old.revision:
        yield from _revised(look, old, new)
        return
    odd = sorted(_differing(old, new) - {"state"} - _allowed(look, old, new))
    if odd:
        yield edit(new.id, f"{', '.join(odd)} changed while it went from {old.state} to {new.state}")
        return
    yield from _attempt(look, old, new)
    yield from _lacking(look, old, new)


def _differing(old: Item, new: Item) -> set[str]:
    return {name for name in Item.model_fields if getattr(old, name) != getattr(new, name)}


def _allowed(look: Look, old: Item, new: Item) -> frozenset[str]:
    """Return the fields that may change beside the state."""
    if old.state in WAITING and new.state == "approved":
        return frozenset()
    if old.state == new.state:
        return _TOLD if new.state in ("sent", "stuck") and _is_told(look, new.id) else frozenset()
    return CHANGES[new.state]


def _is_told(look: Look, name: str) -> bool:
    """Say whether a receipt of the item came along."""
    folder = f"{paths.item_folder(name)}/receipt."
    return any(path.startswith(folder) and look.adds(path) for path in look.touched)


# --- the attempt


def _attempt(look: Look, old: Item, new: Item) -> Iterator[Edit]:
    rose = new.attempt - old.attempt
    match old.state, new.state:
        case _, ("stuck" | "sent") if _is_told(look, new.id):
            return
        case "sending", "approved":
            fits = rose == 1
        case "stuck", "awaiting_approval":
            fits = rose > 0
        case _, ("in_review" | "awaiting_approval"):
            fits = rose == _is_spent(look, old)
        case _:
            fits = rose == 0
    if not fits:
        yield edit(
            new.id, f"attempt {old.attempt} became {new.attempt} on the way from {old.state} to {new.state}"
        )


def _is_spent(look: Look, item: Item) -> bool:
    """Say whether an item's present attempt was leased, so that it is over."""
    return look.after(paths.lease(item.id, item.attempt)) is not None


# --- what has to come with a move


def _lacking(look: Look, old: Item, new: Item) -> Iterator[Edit]:
    """Yield what the table's last column asks for and the commit does not bring."""
    for sources, targets, why_not in _NEEDS:
        if old.state != new.state and old.state in sources and new.state in targets:
            why = why_not(look, old, new)
            if why is not None:
                yield edit(new.id, why)


def _not_approved(look: Look, old: Item, new: Item) -> str | None:  # noqa: ARG001 - one of several
    path = paths.approval(new.id)
    if look.adds(path) and look.new(path, Approval) is not None:
        return None
    return "it became approved, and nothing says what was approved"


def _not_leased(look: Look, old: Item, new: Item) -> str | None:  # noqa: ARG001 - one of several
    if look.adds(paths.lease(new.id, new.attempt)):
        return None
    return f"it is being sent without a lease of attempt {new.attempt}"


def _not_reviewed(look: Look, old: Item, new: Item) -> str | None:  # noqa: ARG001 - one of several
    if (new.confidence or 0.0) >= look.bus.score.threshold:
        return None
    return "its confidence is under the threshold, and nobody is to review it"


def _not_attested(look: Look, old: Item, new: Item) -> str | None:
    path = paths.receipt(old.id, old.attempt)
    receipt = look.new(path, Receipt) if look.adds(path) else None
    if receipt is None or receipt.outcome != "not_sent":
        return f"it became {new.state} without a receipt that it was not sent"
    if new.state == "approved" and not receipt.passing:
        return "it is tried again, and its receipt says that this is of no use"
    return None


def _not_scored(look: Look, old: Item, new: Item) -> str | None:
    given = {one.by: one.value for one in new.scores}
    lacks = sorted({"producer", *look.bus.score.scorers} - given.keys())
    if lacks:
        return f"it was scored without {', '.join(lacks)}"
    if given["producer"] != (old.confidence or 0.0):
        return f"its producer's confidence was {old.confidence}, not {given['producer']:g}"
    if new.confidence != min(given.values()):
        return f"its confidence is {new.confidence}, and the lowest score {min(given.values()):g}"
    return None


_NEEDS: tuple[tuple[tuple[str, ...], tuple[str, ...], Callable[[Look, Item, Item], str | None]], ...] = (
    (("persisted",), ("scored",), _not_scored),
    (("scored", "failed", "expired"), ("awaiting_approval",), _not_reviewed),
    (WAITING, ("approved",), _not_approved),
    (("approved",), ("sending",), _not_leased),
    (("sending",), ("approved", "failed"), _not_attested),
)
"""What a move needs, by where it comes from and goes to."""


# --- another revision


def _revised(look: Look, old: Item, new: Item) -> Iterator[Edit]:
    if new.revision != old.revision + 1:
        yield edit(new.id, f"revision {old.revision} became {new.revision}")
        return
    if new.attempt != old.attempt + _was_spent(look, old):
        yield edit(new.id, f"attempt {old.attempt} became {new.attempt} with a new revision")
    if new.source == old.source:
        odd = [name for name in _AS_SHOWN if getattr(old, name) != getattr(new, name)]
        if odd or _shape(old) != _shape(new) or new.scores:
            yield edit(new.id, f"more than a text was changed by hand: {', '.join(odd) or 'its files'}")
    elif new.source.attempt <= old.source.attempt:
        yield edit(new.id, f"it was made anew from the older attempt {new.source.attempt} of its task")
    elif (why := _not_proposed(look, new)) is not None:
        yield edit(new.id, why)


def _was_spent(look: Look, item: Item) -> bool:
    return look.before(paths.lease(item.id, item.attempt)) is not None


def _shape(item: Item) -> list[object]:
    return [file.model_dump(exclude={"sha256", "bytes"}) for file in item.payload]


# --- what a result proposes


def _not_proposed(look: Look, item: Item) -> str | None:
    """Return why an item is not what its task's result gives rise to; None where it is."""
    source = item.source
    part = look.goal(source.goal)
    task, result = part.tasks.get(source.task), part.results.get(source.task)
    whole = look.memo.graph(part)
    if whole is None or task is None or result is None or task.state != "done":
        return f"{source.goal}/{source.task} has no result that proposes it"
    if (result.attempt, result.worker) != (source.attempt, source.worker):
        return f"attempt {source.attempt} of {source.worker} is not the result that was taken"
    planned = whole.tasks.get(source.task)
    if planned is None:
        return f"the goal has no task {source.task}"
    try:
        found = proposals(whole, planned, result, part.artifacts.get(source.task, {}), look.bus)
    except ProposalRefused as refused:
        return f"its result proposes what must not be sent ({refused.rule})"
    return _unlike(next((one for one in found if one.id == item.id), None), item)


def _unlike(proposal: Proposal | None, item: Item) -> str | None:
    if proposal is None:
        return "its result proposes no such item"
    fields = ("channel", "message", "payload", "send_at", "together", "confidence")
    odd = [name for name in fields if getattr(proposal, name) != getattr(item, name)]
    return f"{', '.join(odd)}: not what the goal and the result propose" if odd else None


__all__ = ["CHANGES", "record"]
