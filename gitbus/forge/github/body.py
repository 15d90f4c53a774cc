"""The pull request of an approval branch: its title, its text and its labels, made from the board. Pure.

Rules: what is approved is the diff of ``approval.yaml``; the text says so and shows the same in a
friendlier way. It is never longer than :data:`LIMIT`: one item is shown whole, many are shown shorter,
and what is left out is counted. The goal's picture is the last part, and alone no reason to write the
text anew (:func:`is_current`), since it changes while others wait.

Example: ``draft(board, ["a.mail.item"], {"a.mail.item": {"body.txt": b"Hello"}}, page, sending=False)``
has the title ``Approve a.mail.item: Release 1.0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gitbus import ids, paths
from gitbus.board import Board
from gitbus.forge.github.drawing import drawing
from gitbus.forge.github.markdown import bare, code
from gitbus.forge.github.showing import (
    DETAILS,
    Detail,
    Page,
    Shown,
    channel_text,
    earliest,
    section,
    short,
    shown,
)
from gitbus.records import Bus

LIMIT = 60_000
"""Characters of a text; GitHub takes 65,536 and may count a line break as two."""

LABELS: Mapping[str, tuple[str, str]] = {
    "gitbus": ("1d76db", "put up by gitbus: merging approves"),
    "low-confidence": ("fbca04", "needs a review before a merge counts"),
    "stuck": ("d93f0b", "nobody knows whether it was sent"),
}
"""The labels: name → colour (RGB in hex) and what it says."""

GRAPH = "### The goal"
"""The heading of the last part."""


@dataclass(frozen=True)
class Draft:
    """What a pull request shall say."""

    title: str
    body: str
    labels: frozenset[str]


def draft(
    board: Board,
    names: Sequence[str],
    contents: Mapping[str, Mapping[str, bytes]],
    page: Page,
    *,
    sending: bool,
) -> Draft:
    """Return the pull request of one item, or of a batch.

    Args:
        board: the board, the goals of these items loaded.
        names: the items, at least one.
        contents: item → path below its folder → the bytes of its text, HTML and JSON.
        page: where the text's links go.
        sending: whether anything is sent now.

    Raises:
        ValueError: an item is not on the board or cannot be read.
    """
    items = [shown(board, name, contents.get(name, {})) for name in names]
    return Draft(title(items), body(board, items, page, sending=sending), labels(items))


def labels(items: Sequence[Shown]) -> frozenset[str]:
    """Return the labels that the pull request of these items shall have."""
    states = {one.item.state for one in items}
    found = {"low-confidence": "in_review" in states, "stuck": "stuck" in states}
    return frozenset({"gitbus"} | {name for name, has in found.items() if has})


def title(items: Sequence[Shown]) -> str:
    """Return the title, which GitHub also writes into the merge commit; at most 256 characters."""
    low = _in_review(items)
    if len(items) == 1:
        item = items[0].item
        about = bare(item.message.subject or f"over {item.channel}", 80)
        return f"{'Needs review, then approval:' if low else 'Approve'} {item.id}: {about}"[:256]
    source = items[0].item.source
    head = f"Needs review ({len(low)} of {len(items)}), then approval:" if low else "Approve"
    return f"{head} {len(items)} items of {items[0].item.together or source.goal}"[:256]


def body(board: Board, items: Sequence[Shown], page: Page, *, sending: bool) -> str:
    """Return the text of a pull request, at most :data:`LIMIT` characters."""
    head = [*_first(items, board.bus), _what_counts(items, page)]
    tail = [_happens(items, page, board.bus, sending=sending), *_graph(board, items)]
    room = LIMIT - _length([*head, *tail])
    if room < _ROOM_FOR_ITEMS:
        tail = tail[:1]
        room = LIMIT - _length([*head, *tail])
    return "\n\n".join([*head, *_sections(items, page, room), *tail]) + "\n"


_ROOM_FOR_ITEMS = 30_000


def is_current(there: str | None, wanted: str) -> bool:
    """Say whether a text on GitHub says what is wanted, but for the goal's picture."""
    return _without_graph(there or "") == _without_graph(wanted)


def _without_graph(text: str) -> str:
    return text.replace("\r\n", "\n").rpartition(f"\n{GRAPH}\n")[0].strip() or text.strip()


def _length(parts: Sequence[str]) -> int:
    """Return how long parts are in a text, a line break counted twice and an astral character too."""
    return sum(len(part.encode("utf-16-le", "surrogatepass")) // 2 + part.count("\n") + 4 for part in parts)


def _in_review(items: Sequence[Shown]) -> list[Shown]:
    return [one for one in items if one.item.state == "in_review"]


# --- what it is about


def _first(items: Sequence[Shown], bus: Bus) -> Iterator[str]:
    """Say what has to happen before a merge counts."""
    low = _in_review(items)
    if not low:
        return
    yield f"**⚠ {_whom(len(low), len(items))} a review before a merge counts.** A merge before that is taken back."
    barred = _producers(low, bus)
    people = [code(one.id) for one in bus.with_role("reviewer") if one.id not in barred]
    who = ", ".join(people[:20]) or "nobody has the role yet"
    eyes = " The review of whoever merges does not count." if bus.review.four_eyes else ""
    yield (
        f"The confidence is under {bus.score.threshold:g}. Needed from the reviewers ({who}): "
        f"{bus.review.quorum} × *Files changed → Review changes → Approve*, or a signed "
        f"{code(f'gitbus review {low[0].item.id} --ok')}, which also counts from the one who opened this "
        f"pull request.{eyes}"
    )


def _whom(low: int, total: int) -> str:
    if total == 1:
        return "This needs"
    return f"{low} of these {total} items need{'s' if low == 1 else ''}"


def _what_counts(items: Sequence[Shown], page: Page) -> str:
    name = items[0].item.id
    if len(items) == 1:
        file = page.file(paths.approval(name), "approval.yaml")
        return f"What is approved is the diff of {file}, to be read as it stands. This page shows the same."
    return (
        f"**{len(items)} items, approved by one merge.** What is approved is the diff of each "
        f"`approval.yaml`, to be read as it stands. To leave one out, reject it: "
        f"{code(f'gitbus reject {name} --reason …')}; the others are put up anew."
    )


def _sections(items: Sequence[Shown], page: Page, room: int) -> list[str]:
    """Return the items as long as they may be: each whole, each cut, or as a list."""
    for detail in DETAILS:
        parts = (part for at, one in enumerate(items, 1) for part in _item(at, one, items, page, detail))
        made = _fitting(parts, room)
        if made is not None:
            return made
    return _listed(items, room)


def _fitting(parts: Iterable[str], room: int) -> list[str] | None:
    """Return all the parts; None as soon as they are too long."""
    made: list[str] = []
    for part in parts:
        room -= _length([part])
        if room < 0:
            return None
        made.append(part)
    return made


def _listed(items: Sequence[Shown], room: int) -> list[str]:
    """Return the items in a line each, as many as there is room for."""
    lines: list[str] = []
    room -= 200
    for one in items:
        line = short(one)
        room -= _length([line])
        if room < 0:
            break
        lines.append(line)
    more = len(items) - len(lines)
    tail = [f"… and {more} more, which only the diff shows."] if more else []
    return ["### What would be sent", "\n".join(lines), *tail]


def _item(at: int, one: Shown, items: Sequence[Shown], page: Page, detail: Detail) -> Iterator[str]:
    low = " needs a review" if one.item.state == "in_review" else ""
    yield "### What would be sent" if len(items) == 1 else f"### {at}. {code(one.item.id)}{low}"
    yield section(one, page, detail)


# --- what it does


def _happens(items: Sequence[Shown], page: Page, bus: Bus, *, sending: bool) -> str:
    many = len(items) > 1
    rows = [
        _merging(items, bus),
        f"**Close** without merging: {'all of them are' if many else 'it is'} rejected. Your last comment is the "
        "reason.",
        "**Request changes** in a review: the workers do it again, with your words"
        + (" (only those items whose ids you name, if you name some)." if many else "."),
        _editing(items, page),
        _expiring(items),
    ]
    listed = "\n".join(f"- {row}" for row in rows if row)
    return "\n\n".join(["### What happens when you", listed, _flag(sending=sending), *_quorum(items, bus)])


def _merging(items: Sequence[Shown], bus: Bus) -> str:
    if bus.approval.proof != "github":
        names = " ".join(one.item.id for one in items[:3]) + (" …" if len(items) > 3 else "")
        return (
            f"**Merge** here: nothing. This bus counts signed merges only: {code(f'gitbus approve {names}')}"
        )
    how = (
        "Use *Create a merge commit* (a squash that GitHub signs counts too); rebase, auto-merge and merge "
        "queue do not count."
    )
    return f"**Merge**: {_sends(items)}{_when(items, bus)}. {how}"


def _sends(items: Sequence[Shown]) -> str:
    number = sum(one.recipients for one in items)
    whom = f" to **{number} recipient{'' if number == 1 else 's'}**" if number else ""
    channels = list(dict.fromkeys(channel_text(one) for one in items))
    over = ", ".join(code(text, 120) for text in channels[:5]) + (" …" if len(channels) > 5 else "")
    what = "it is sent" if len(items) == 1 else f"**{len(items)} items** are sent"
    return f"{what}{whom} through {over}"


def _when(items: Sequence[Shown], bus: Bus) -> str:
    first = earliest([one.item.send_at for one in items])
    held = f", after {ids.duration_text(bus.sending.hold)} in which it can be withdrawn"
    return (f", not before {first}" if first else "") + (held if bus.sending.hold else "")


def _quorum(items: Sequence[Shown], bus: Bus) -> Iterator[str]:
    if bus.approval.quorum > 1:
        yield (
            f"**It takes {bus.approval.quorum} approvers**: the one who merges, and others who approved before."
        )
    barred = _producers(items, bus)
    if barred:
        whose = ", ".join(code(name) for name in sorted(barred)[:20])
        yield f"Behind the worker that made it stands {whose}, who therefore does not count."


def _producers(items: Sequence[Shown], bus: Bus) -> set[str]:
    """Return the people behind the workers that made these items, as far as they do not count."""
    if bus.approval.allow_producer:
        return set()
    owners = (bus.workers.get(one.item.source.worker) for one in items)
    return {owner.person for owner in owners if owner and owner.person}


def _flag(*, sending: bool) -> str:
    if sending:
        return "**Sending is on**: what is approved leaves as soon as the sender runs."
    return "**Sending is off**: what is approved waits until an approver turns `sending.enabled` on."


def _editing(items: Sequence[Shown], page: Page) -> str:
    one = items[0].item
    file = next((file.path for file in one.payload if file.role != "attachment"), None)
    if file is None or not page.branch:
        return ""
    what = page.edit(f"{paths.item_folder(one.id)}/{file}", file) if len(items) == 1 else "a payload's file"
    return f"**Edit** {what} on this branch: it becomes a new revision, which waits for a merge of its own."


def _expiring(items: Sequence[Shown]) -> str:
    when = earliest([one.item.expires_at for one in items])
    what = "it expires" if len(items) == 1 else "the first of them expires"
    return f"**Do nothing**: {what} on {when} and is not sent." if when else ""


def _graph(board: Board, items: Sequence[Shown]) -> Iterator[str]:
    by_goal: dict[str, list[str]] = {}
    for one in items:
        by_goal.setdefault(one.item.source.goal, []).append(one.item.id)
    drawn = [
        (goal, picture)
        for goal, names in list(by_goal.items())[:3]
        if (part := board.goals.get(goal)) is not None and (picture := drawing(board, part, names))
    ]
    if drawn:
        yield "\n\n".join([GRAPH, *(f"{code(goal)}\n\n{picture}" for goal, picture in drawn)])
