"""The pull requests of decisions: a change of ``bus.yaml``, and somebody's word on a stuck item. Pure.

Rules: what is decided is the diff; the text says what it does, the flag first. A proposal may come from
anybody who can push a branch, so its text is data too.

Example: ``bus_draft(old, new, page).title == "Decide: change bus.yaml"``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from gitbus import paths
from gitbus.board import ItemBoard
from gitbus.forge.github.body import Draft
from gitbus.forge.github.markdown import bare, block, code, is_cut
from gitbus.forge.github.showing import Page
from gitbus.records import Bus, Resolution
from gitbus.views import since

LABELS = frozenset({"gitbus"})
LONGEST = 12_000
"""Characters of a difference that a page shows."""

MOST = 40
"""Lines of what a change does."""

HOW = (
    "**Merge** with *Create a merge commit*, as an approver, to decide so. **Close** it to leave things as "
    "they are. What counts is the diff, to be read as it stands."
)


def bus_draft(old: Bus, new: Bus, before: str, after: str, page: Page) -> Draft:
    """Return the pull request of ``gitbus/decide/bus``.

    Args:
        old: the effective Bus.
        new: the proposed one.
        before: the text of the effective ``bus.yaml``.
        after: the proposed text.
        page: where the text's links go.
    """
    changed = list(_changes(_flat(old), _flat(new)))
    shown = [f"- {line}" for line in changed[:MOST]]
    more = [f"- … and {len(changed) - MOST} more"] if len(changed) > MOST else []
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "effective", "proposed", lineterm=""
    )
    text = "\n".join(lines)
    parts = [
        *_flag(old, new),
        f"This changes who may do what, or where things go: {page.file(paths.BUS)}.",
        "\n".join([*shown, *more]) or "Nothing but its layout or comments changes.",
        "### Against the version in force",
        block(text, "diff", LONGEST),
        *(["**Cut here**: the diff of this pull request shows the whole."] if is_cut(text, LONGEST) else []),
        "### What happens",
        HOW,
    ]
    return Draft(_bus_title(old, new), "\n\n".join(parts) + "\n", LABELS)


def _bus_title(old: Bus, new: Bus) -> str:
    if old.sending.enabled != new.sending.enabled:
        return f"Decide: turn sending {'on' if new.sending.enabled else 'off'}"
    return "Decide: change bus.yaml"


def _flag(old: Bus, new: Bus) -> Iterator[str]:
    if old.sending.enabled != new.sending.enabled:
        yield (
            "**⚠ This turns sending on**: what is approved leaves from then on."
            if new.sending.enabled
            else "**This turns sending off**: nothing leaves from then on."
        )


def _flat(bus: Bus) -> dict[str, Any]:
    return dict(_walk("", bus.model_dump(mode="json", by_alias=True, exclude_none=True)))


def _walk(at: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _walk(f"{at}.{key}" if at else str(key), inner)
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for index, inner in enumerate(value):
            name = inner.get("id", index) if isinstance(inner, Mapping) else index
            yield from _walk(f"{at}.{name}", inner)
    elif value not in ({}, []):
        yield at, value


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what changes, one line a value."""
    for at in [*old, *(name for name in new if name not in old)]:
        if old.get(at) == new.get(at):
            continue
        was, becomes = (code(json.dumps(side.get(at), ensure_ascii=False), 120) for side in (old, new))
        if at not in new:
            yield f"{code(at, 120)}: gone, was {was}"
        else:
            yield f"{code(at, 120)}: {f'{was} → ' if at in old else 'new, '}{becomes}"


def item_draft(part: ItemBoard, resolution: Resolution, page: Page) -> Draft:
    """Return the pull request of ``gitbus/decide/<item>``: a person's word on a stuck item."""
    sent = resolution.verdict == "sent"
    does = (
        "It is marked as **sent** and never sent again."
        if sent
        else "It waits for approval again, as a new attempt. **If it did arrive after all, merging that one "
        "sends it a second time.**"
    )
    item = part.item
    reason = f" ({code(item.reason)})" if item and item.reason else ""
    parts = [
        f"Nobody knows whether attempt {resolution.attempt} of {code(part.id)} was sent{reason}. "
        f"{code(resolution.person)} looked on {since(resolution.at)} and says: "
        f"**{'it was sent' if sent else 'it surely was not sent'}**.",
        "What was looked at:",
        block(resolution.evidence),
        f"The word itself: {page.file(paths.resolution(part.id, resolution.attempt))}.",
        "### What happens",
        does,
        HOW,
    ]
    title = f"Decide: {part.id} {'was sent' if sent else 'was not sent'}"
    return Draft(bare(title), "\n\n".join(parts) + "\n", LABELS)
