"""One item as a section of a page: what would arrive, and why somebody thinks that it should.

Rules: everything that a record holds is shown through :mod:`gitbus.forge.github.markdown`; what is cut
is said outside the block that was cut, with a link to the whole. How much is shown is a
:class:`Detail`, so that a page of one item and a page of five hundred are made by the same lines.

Example: ``section(shown, page, DETAILS[0])`` begins with a block of ``Channel:``, ``From:`` and ``To:``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gitbus import ids, paths
from gitbus.board import Board
from gitbus.forge.github.markdown import WIDTH, address, block, code, cut, is_cut, link, one_line, quoted_path
from gitbus.forge.github.place import Place
from gitbus.history import Oid
from gitbus.records import Bus, Item, PayloadFile, Review
from gitbus.records.work import Claim, Evidence
from gitbus.states import WAITING
from gitbus.views import since


@dataclass(frozen=True)
class Page:
    """A pull request, as far as its text links to it: the repository, its head, and its branch."""

    place: Place
    head: Oid
    branch: str = ""

    def file(self, path: str, shown: str = "") -> str:
        """Return a link to a file at the head."""
        return link(shown or path, self.place.file(self.head, quoted_path(path)))

    def edit(self, path: str, shown: str) -> str:
        """Return a link to the editor of a file on the branch."""
        web = f"{self.place.web}/{self.place.full_name}"
        return link(shown, f"{web}/edit/{quoted_path(self.branch)}/{quoted_path(path)}")

    def commit(self, commit: Oid) -> str:
        """Return a link to a commit."""
        return link(commit[:10], self.place.commit(commit))


@dataclass(frozen=True)
class Shown:
    """An item, the bytes of its text, HTML and JSON by path, and what its task's result says for it."""

    item: Item
    bus: Bus
    contents: Mapping[str, bytes] = field(default_factory=dict)
    reviews: Mapping[str, Review] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    artifacts: Collection[str] = ()

    @property
    def recipients(self) -> int:
        """How many different addresses it goes to."""
        message = self.item.message
        return len(set(message.to + message.cc + message.bcc))


@dataclass(frozen=True)
class Detail:
    """How much a section shows at the most: characters of each text and of the head, entries of each list."""

    text: int
    head: int
    entries: int


DETAILS = (
    Detail(40_000, 20_000, 100),
    Detail(12_000, 12_000, 50),
    Detail(4_000, 4_000, 20),
    Detail(1_000, 2_000, 8),
    Detail(300, 1_000, 4),
)
"""From a page of one item to a page of many."""


def shown(board: Board, name: str, contents: Mapping[str, bytes]) -> Shown:
    """Return what is shown of an item on the board.

    Raises:
        ValueError: the board has no such item that can be read.
    """
    part = board.items.get(name)
    if part is None or part.item is None:
        raise ValueError(f"{name} is not on the board")
    goal = board.goals.get(part.item.source.goal)
    task = part.item.source.task
    result = goal.results.get(task) if goal else None
    return Shown(
        part.item,
        board.bus,
        contents,
        part.reviews,
        result.claims if result else (),
        result.evidence if result else (),
        goal.artifacts.get(task, {}) if goal else (),
    )


def section(one: Shown, page: Page, detail: Detail) -> str:
    """Return an item's section: the message, its files, and what speaks for it."""
    return "\n\n".join([*_message(one, page, detail), *_origin(one, page, detail)])


def short(one: Shown) -> str:
    """Return an item in one line of a list."""
    item = one.item
    whom = f" to {code(item.message.to[0], 60)}" if item.message.to else ""
    more = f" and {one.recipients - 1} more" if one.recipients > 1 else ""
    about = f": {code(item.message.subject, 80)}" if item.message.subject else ""
    low = f", **confidence {item.confidence:g}**" if item.state == "in_review" and item.confidence else ""
    return f"- {code(item.id)}{whom}{more}{about}{low}"


# --- the message


def _message(one: Shown, page: Page, detail: Detail) -> Iterator[str]:
    head = "\n".join(_head(one, detail))
    yield block(head, most=detail.head)
    if is_cut(head, detail.head):
        yield f"**Cut here**: the whole of it is in {page.file(paths.approval(one.item.id), 'approval.yaml')}."
    for file in one.item.payload:
        if file.role != "attachment":
            yield from _content(one, file, page, detail)
    attached = [file for file in one.item.payload if file.role == "attachment"]
    if attached:
        rows = [_attachment(one.item.id, file, page) for file in attached]
        yield _list(f"**{_many(len(rows), 'attachment')}**", rows, detail.entries)


def _head(one: Shown, detail: Detail) -> Iterator[str]:
    message = one.item.message
    rows: list[tuple[str, Sequence[str | None]]] = [
        ("Channel", [channel_text(one)]),
        ("From", [message.from_]),
        ("To", message.to),
        ("Cc", message.cc),
        ("Bcc", message.bcc),
        ("Reply-To", [message.reply_to]),
        ("Subject", [message.subject]),
        *((name, [value]) for name, value in list(message.headers.items())[: detail.entries]),
        ("Not before", [since(one.item.send_at) if one.item.send_at else None]),
    ]
    width = min(max(len(name) for name, values in rows if any(values)), 20) + 2
    for name, values in rows:
        label = one_line(name, 60) + ":"
        some = [value for value in values if value]
        for value in some[: detail.entries]:
            yield f"{label:<{width}}{one_line(value, 500)}"
            label = ""
        if len(some) > detail.entries:
            yield " " * width + f"… and {len(some) - detail.entries} more"


def channel_text(one: Shown) -> str:
    """Return a channel's name, its transport, and where that leads."""
    channel = one.bus.channels.get(one.item.channel)
    if channel is None:
        return f"{one.item.channel} (bus.yaml has no such channel)"
    names = ("host", "url", "url_env", "path", "command")
    where = next((found for name in names if (found := getattr(channel, name, None))), "")
    leads = " ".join(where) if isinstance(where, tuple) else str(where)
    return f"{one.item.channel} ({channel.transport}, {leads})"


def _content(one: Shown, file: PayloadFile, page: Page, detail: Detail) -> Iterator[str]:
    data = one.contents.get(file.path)
    where = page.file(f"{paths.item_folder(one.item.id)}/{file.path}", file.path)
    size = f"{file.bytes:,} bytes"
    if file.role == "html":
        yield f"**HTML**: {where}, {size}; it is not drawn here, read its source."
        return
    if data is None or ids.why_not_text(data):
        yield f"**{_ROLES[file.role]}**: {where}, {size}."
        return
    text = data.decode("utf-8")
    wrapped = " (long lines are wrapped here)" if max(map(len, text.split("\n"))) > WIDTH else ""
    yield f"**{_ROLES[file.role]}** ({where}, {size}), as it will arrive{wrapped}:"
    yield block(text, most=detail.text)
    if is_cut(text, detail.text):
        yield f"**Cut here**: the whole of it is in {where}."


_ROLES = {"text": "Text", "json": "JSON"}


def _attachment(item: str, file: PayloadFile, page: Page) -> str:
    where = page.file(f"{paths.item_folder(item)}/{file.path}", cut(file.path, 120))
    name = code(file.name or file.path, 120)
    return f"{name} ({code(file.media_type, 80)}, {file.bytes:,} bytes): {where}, sha256 {code(file.sha256)}"


# --- where it comes from


def _origin(one: Shown, page: Page, detail: Detail) -> Iterator[str]:
    rows = [*_confidence(one), *_source(one.item, page), *_reviews(one)]
    yield _list("**Where it comes from**", rows, detail.entries + 3)
    where = {evidence.id: evidence for evidence in one.evidence}
    claims = [_claim(one, claim, where, page, detail) for claim in one.claims[: detail.entries + 1]]
    if claims:
        hidden = len(one.claims) - len(claims)
        yield _list("**It claims**", claims, detail.entries, hidden)


def _confidence(one: Shown) -> Iterator[str]:
    item = one.item
    if item.confidence is None:
        return
    threshold = one.bus.score.threshold
    under = f", under the threshold of {threshold:g}" if item.confidence < threshold else ""
    given = [
        f"{code(score.by, 60)} {score.value:g}" + (f" ({code(score.note, 200)})" if score.note else "")
        for score in item.scores[:20]
    ]
    yield f"confidence **{item.confidence:g}**{under}" + (f": {', '.join(given)}" if given else "")


def _source(item: Item, page: Page) -> Iterator[str]:
    source = item.source
    yield (
        f"made by the worker {code(source.worker)} in attempt {source.attempt} of the task "
        f"{code(f'{source.goal}/{source.task}')} ({page.commit(source.commit)})"
    )
    yield f"revision {item.revision}, attempt {item.attempt}, digest {code(item.digest)}"
    if item.reason and item.state in WAITING:
        yield f"it waits again, because: {code(item.reason)}"


def _reviews(one: Shown) -> Iterator[str]:
    for who, review in sorted(one.reviews.items()):
        present = (review.revision, review.digest) == (one.item.revision, one.item.digest)
        note = f": {code(review.note)}" if review.note else ""
        yield f"{code(who)} said **{review.verdict}**{'' if present else ' to an older revision'}{note}"


def _claim(one: Shown, claim: Claim, where: Mapping[str, Evidence], page: Page, detail: Detail) -> str:
    rests = [_evidence(one, where[name], page) for name in claim.evidence[: detail.entries] if name in where]
    return f"**{claim.provenance}** {code(claim.text, 500)}" + (f" ← {', '.join(rests)}" if rests else "")


def _evidence(one: Shown, evidence: Evidence, page: Page) -> str:
    note = f" ({code(evidence.note, 200)})" if evidence.note else ""
    return f"{evidence.kind} {_reference(one, evidence, page)}{note}"


def _reference(one: Shown, evidence: Evidence, page: Page) -> str:
    ref, source = evidence.ref, one.item.source
    if evidence.kind == "url":
        return address(ref, page.place.web)
    if evidence.kind == "commit" and re.fullmatch(r"[0-9a-f]{7,40}", ref):
        return page.commit(ref)
    if evidence.kind == "file" and ref in one.artifacts:
        return page.file(f"{paths.artifacts(source.goal, source.task)}/{ref}", ref)
    if evidence.kind == "file" and ref.startswith("goals/") and ids.why_not_path(ref) is None:
        return page.file(ref)
    return code(ref)


# --- words


def _list(head: str, rows: Sequence[str], most: int, hidden: int = 0) -> str:
    left = len(rows) - most + hidden
    lines = [f"- {row}" for row in rows[:most]] + ([f"- … and {left} more"] if left > 0 else [])
    return "\n".join([head, "", *lines])


def _many(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def earliest(times: Collection[datetime | None]) -> str | None:
    """Return the first of some times for people; None where there is none."""
    known = [when for when in times if when is not None]
    return since(min(known)) if known else None
