"""What is said under a pull request of what became of its items. Pure.

Rules: a note says what happened first, then what a person can do about it, and ends with a hidden
marker of word, item, revision and attempt, by which it is found again. Each is one comment; many items
of one pull request share one (:func:`batch_end`), since GitHub bounds how much may be written.

Example: ``end(bus, part, merged=True, revision=1)`` of a sent item begins with its id and ``**Sent** on``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from gitbus.board import ItemBoard
from gitbus.forge.github.markdown import block, code, marker
from gitbus.proof.values import Missing
from gitbus.records import Bus, Item, Receipt
from gitbus.states import WAITING
from gitbus.views import since

AGAIN = "to be done again: "
"""How the reason of an item begins that was given back to the workers."""

MOST = 20
"""Entries of a list in a note."""


def end(bus: Bus, part: ItemBoard, *, merged: bool, revision: int) -> str | None:
    """Return the note on what became of an item; None where there is nothing to say (yet).

    Args:
        bus: the effective Bus.
        part: the item.
        merged: whether its pull request was merged.
        revision: the item's revision that the pull request put up.
    """
    item = part.item
    if item is None or part.problems:
        return None
    if item.revision > revision:
        return revised(item, revision, merged=merged)
    if item.state in WAITING:
        return taken_back(item) if merged else None
    made = _ENDS.get(item.state)
    return made(bus, part, item) if made else None


def batch_end(bus: Bus, name: str, parts: Sequence[ItemBoard]) -> str:
    """Return the one note on what became of a batch, to be written anew as it goes on."""
    counted = Counter(part.state for part in parts)
    words = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in sorted(counted.items()))
    odd = [part for part in parts if part.state in ("stuck", "failed", "expired", "rejected", "broken")]
    rows = [f"{code(part.id)}: **{part.state}**{_because(part.item)}" for part in odd]
    return _note("batch", name, (), f"**{len(parts)} items**: {words}.", _list(rows), *_help(bus, odd))


def _help(bus: Bus, parts: Sequence[ItemBoard]) -> list[str]:
    stuck = next((part for part in parts if part.state == "stuck"), None)
    failed = next((part for part in parts if part.state == "failed"), None)
    found = [resolving(bus, stuck, stuck.item)] if stuck and stuck.item else []
    return [*found, *([retrying(failed.id)] if failed else [])]


# --- one item


def _sent(_: Bus, part: ItemBoard, item: Item) -> str:
    receipt = _last_receipt(part, "sent")
    if receipt is None:
        told = max(part.resolutions.items(), default=None, key=lambda pair: pair[0])
        said = f" {code(told[1].person)} says so: {code(told[1].evidence)}" if told else ""
        return _about("sent", item, f"**Sent.**{said}")
    rows = [f"{code(one.recipient, 120)}: {code(one.answer, 200)}" for one in receipt.recipients]
    return _about(
        "sent",
        item,
        f"**Sent** on {since(receipt.finished_at)} through {code(receipt.channel.id)}, "
        f"by the sender {code(receipt.sender, 120)}, in attempt {receipt.attempt}.",
        _ids(receipt),
        _list(rows),
        f"The receipt is {code(f'outbox/{item.id}/receipt.{receipt.attempt}.yaml')}.",
    )


def _ids(receipt: Receipt) -> str:
    known = [("Message-ID", receipt.message_id), ("provider's id", receipt.provider_id)]
    return ", ".join(f"{name} {code(value)}" for name, value in known if value)


def _last_receipt(part: ItemBoard, outcome: str) -> Receipt | None:
    told = [one for one in part.receipts.values() if one.outcome == outcome]
    return max(told, key=lambda one: one.attempt, default=None)


def _stuck(bus: Bus, part: ItemBoard, item: Item) -> str:
    return _about(
        "stuck",
        item,
        f"**Nobody knows whether this was sent**{_because(item)}. Nothing is sent again by itself.",
        resolving(bus, part, item),
    )


def resolving(bus: Bus, part: ItemBoard, item: Item) -> str:
    """Return what a person can do about a stuck item."""
    lease = part.leases.get(item.attempt)
    over = f" after {since(lease.expires_at + bus.sending.quarantine)}" if lease else ""
    said, not_sent = (f"gitbus resolve {item.id} {word} --evidence …" for word in ("--sent", "--not-sent"))
    return (
        "Look at the receiver's side (the mailbox, the provider's log), then say what you saw:\n\n"
        f"- it is there: {code(said)}\n"
        f"- it surely is not{over}: {code(not_sent)}; it then waits for a merge again\n\n"
        "Who may not decide says so with `--propose`, and an approver merges it here."
    )


def _failed(_: Bus, part: ItemBoard, item: Item) -> str:
    receipt = part.receipts.get(item.attempt)
    rows = (
        [f"{code(one.recipient, 120)}: {code(one.answer, 200)}" for one in receipt.recipients]
        if receipt
        else []
    )
    return _about(
        "failed",
        item,
        f"**Not sent**: attempt {item.attempt} failed for good{_because(item)}. Nothing left.",
        _list(rows),
        retrying(item.id),
    )


def retrying(item: str) -> str:
    """Return what a person can do about a failed item."""
    return (
        f"Mend the cause and put it up again with {code(f'gitbus retry {item}')}, or change it with "
        f"{code(f'gitbus revise {item}')}; both wait for a merge."
    )


def _expired(_: Bus, part: ItemBoard, item: Item) -> str:  # noqa: ARG001 - one of a table
    return _about(
        "expired",
        item,
        "**Expired**: it waited too long and is not sent.",
        f"{code(f'gitbus retry {item.id}')} puts it up again.",
    )


def _withdrawn(_: Bus, part: ItemBoard, item: Item) -> str:  # noqa: ARG001 - one of a table
    return _about("withdrawn", item, f"**Withdrawn** for good{_because(item)}. It is not sent.")


def _rejected(_: Bus, part: ItemBoard, item: Item) -> str:  # noqa: ARG001 - one of a table
    reason = item.reason or ""
    if reason.startswith(AGAIN):
        words = block(reason.removeprefix(AGAIN))
        return _about(
            "redone",
            item,
            "**Given back to the workers** with these words:",
            words,
            "What they make of it becomes the next revision, with a pull request of its own.",
        )
    return _about(
        "rejected",
        item,
        "**Rejected.** It is not sent.",
        block(reason) if reason else "",
        f"{code(f'gitbus redo {item.id} --note …')} or {code(f'gitbus revise {item.id}')} makes a new revision.",
    )


_ENDS: Mapping[str, Callable[[Bus, ItemBoard, Item], str]] = {
    "sent": _sent,
    "stuck": _stuck,
    "failed": _failed,
    "expired": _expired,
    "withdrawn": _withdrawn,
    "rejected": _rejected,
}


def revised(item: Item, revision: int, *, merged: bool) -> str:
    """Return the note that an edit, or the workers' new result, became a newer revision."""
    merge = " This merge therefore approved nothing, and nothing was sent." if merged else ""
    return _about(
        "revised",
        item,
        f"**Revision {revision} was replaced by revision {item.revision}**, which holds what was edited "
        f"or made anew, and waits for a merge of its own.{merge}",
    )


def taken_back(item: Item, missing: Sequence[Missing] = ()) -> str:
    """Return the note that a merge approved nothing, with what was missing.

    Args:
        item: the item, waiting again.
        missing: what the proof misses; without it the item's own reason is shown.
    """
    low = item.state == "in_review"
    head = "**Merged too early, taken back.**" if low else "**This merge was no approval, taken back.**"
    rows = [f"{code(one.rule)}: {code(one.message)}{_remedy(one)}" for one in missing]
    todo = (
        f"First a review: *Files changed → Review changes → Approve* on the new pull request, or "
        f"{code(f'gitbus review {item.id} --ok')}; then merge it."
        if low
        else "It waits in a new pull request."
    )
    why = "" if missing else f" What was missing: {code(item.reason)}." if item.reason else ""
    return _about("early", item, f"{head} Nothing was sent.{why}", _list(rows), todo)


def _remedy(one: Missing) -> str:
    return f" → {code(one.remedy)}" if one.remedy else ""


# --- words


def _because(item: Item | None) -> str:
    return f" ({code(item.reason)})" if item and item.reason else ""


def _list(rows: Sequence[str]) -> str:
    more = [f"… and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return "\n".join(f"- {row}" for row in [*rows[:MOST], *more])


def _about(word: str, item: Item, *paragraphs: str) -> str:
    first, *more = paragraphs
    return _note(word, item.id, (item.revision, item.attempt), f"{code(item.id)}: {first}", *more)


def _note(word: str, subject: str, numbers: Sequence[int], *paragraphs: str) -> str:
    return "\n\n".join([*(one for one in paragraphs if one), marker(word, subject, *numbers)]) + "\n"
