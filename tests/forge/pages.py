"""What the tests of texts for GitHub work on: a board with a goal, a page, and HTML read back.

Example: ``read_page("`a` [b](https://x.example)").links == [("https://x.example", "b")]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import cmarkgfm
from cmarkgfm.cmark import Options

from gitbus import ids
from gitbus.board import Board, GoalBoard, ItemBoard
from gitbus.forge.github.place import Place
from gitbus.forge.github.showing import Page
from gitbus.records import Bus, Goal, Item, Message, PayloadFile, Result, Task
from gitbus.records.item import Score, Source, digest

NOW = datetime(2026, 11, 30, 20, 5, tzinfo=UTC)
HEAD = "1f" * 20
PLACE = Place("acme", "bus", "https://api.github.com", "https://github.com")
ITEM = "release-1-0.mail.announce"


def page(item: str = ITEM) -> Page:
    """Return the page of an item's pull request."""
    return Page(PLACE, HEAD, f"gitbus/approve/{item}")


# --- a board

TASKS: Mapping[str, dict[str, Any]] = {
    "gather": {"capability": "git-log"},
    "write": {"capability": "release-notes", "needs": ["gather"]},
    "image": {"capability": "draw", "needs": ["write"]},
    "mail": {"capability": "compose-email", "needs": ["write", {"task": "image", "optional": True}]},
    "end": {"capability": "tweet", "needs": ["mail"]},
}


def make_bus(**policy: Any) -> Bus:
    """Return a Bus that believes GitHub."""
    given: dict[str, Any] = {
        "name": "acme",
        "people": [
            {"id": "ada", "email": "ada@acme.example", "roles": ["approver", "reviewer"]},
            {"id": "rita", "email": "rita@acme.example", "roles": ["reviewer"]},
        ],
        "approval": {"proof": "github"},
        "channels": {
            "news": {
                "transport": "smtp",
                "host": "smtp.acme.example",
                "username": "news@acme.example",
                "from": ["Acme News <news@acme.example>"],
            }
        },
    }
    return Bus.model_validate({**given, **policy})


def make_file(role: str, path: str, data: bytes, **more: Any) -> PayloadFile:
    """Return a payload's file."""
    given = {"media_type": "text/plain", "sha256": ids.sha256(data), "bytes": len(data), **more}
    return PayloadFile(role=role, path=path, **given)  # type: ignore[arg-type]


def make_item(name: str = ITEM, text: str = "Hello\n", **fields: Any) -> Item:
    """Return an item that waits for an approval."""
    message = Message.model_validate(
        {"from": "Acme News <news@acme.example>", "to": ["list@partners.example"], "subject": "Release 1.0"}
    )
    parts = name.split(".")
    given: dict[str, Any] = {
        "id": name,
        "state": "awaiting_approval",
        "channel": "news",
        "message": message,
        "payload": (make_file("text", "body.txt", text.encode()),),
        "source": Source(goal=parts[0], task=parts[1], attempt=1, worker="laptop", commit="2a" * 20),
        "send_at": None,
        "confidence": 0.92,
        "scores": (Score(by="producer", value=0.92),),
        "expires_at": datetime(2026, 12, 7, 20, 5, tzinfo=UTC),
    }
    given |= fields
    fit = digest(given["channel"], given["message"], given["payload"], given["send_at"])
    return Item(**{"digest": fit, **given})


def make_result(goal: str = "release-1-0", task: str = "mail", **fields: Any) -> Result:
    """Return the answer of a worker that is well."""
    given = {"goal": goal, "task": task, "attempt": 1, "worker": "laptop", "status": "ok"}
    return Result.model_validate({**given, **fields})


def make_goal(
    name: str = "release-1-0",
    tasks: Mapping[str, dict[str, Any]] = TASKS,
    states: Mapping[str, str] | None = None,
    results: Mapping[str, Result] | None = None,
) -> GoalBoard:
    """Return a goal whose tasks are done as far as the mail, or as ``states`` says."""
    goal = Goal.model_validate({"id": name, "tasks": tasks})
    stand = (
        {"gather": "done", "write": "done", "image": "skipped", "mail": "done"} if states is None else states
    )
    made = {
        task: Task.model_validate(
            {
                "goal": name,
                "id": task,
                "state": state,
                "ready_at": NOW,
                "capability": "x",
                "reason": "worker_absent" if state == "skipped" else None,
            }
        )
        for task, state in stand.items()
    }
    return GoalBoard(name, goal, made, dict(results or {}))


def make_board(*items: Item, bus: Bus | None = None, goals: tuple[GoalBoard, ...] = ()) -> Board:
    """Return a board of these items."""
    return Board(
        bus or make_bus(),
        HEAD,
        {one.id: one for one in goals},
        {one.id: ItemBoard(one.id, one) for one in items},
    )


# --- what GitHub makes of it

OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_HARDBREAKS
"""Raw HTML comes through, so that a test sees it; line breaks are kept as in comments on GitHub."""

REFERENCES = (
    re.compile(r"(?:^|(?<=[^\w/`]))@[a-z0-9]", re.IGNORECASE),
    re.compile(r"#[0-9]"),
    re.compile(r"\bgh-[0-9]", re.IGNORECASE),
    re.compile(r"(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])", re.IGNORECASE),
    re.compile(r"https?://|www\.\S", re.IGNORECASE),
)
"""What GitHub looks for in a page's text outside code and links (its own filters, not cmark's)."""


def to_html(text: str) -> str:
    """Return what GitHub's own Markdown parser makes of a text."""
    return cmarkgfm.github_flavored_markdown_to_html(text, OPTIONS)


@dataclass
class Read(HTMLParser):
    """A page as it was read back."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)  # what each code span or block shows
    prose: str = ""  # what stands outside code and links
    comments: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("br", "hr", "img", "input"):
            self.prose += "\n"
            return
        self.stack.append(tag)
        if tag == "code":
            self.codes.append("")
        if tag == "a":
            self.links.append((dict(attrs).get("href") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.stack:
            while self.stack.pop() != tag:
                pass

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if "code" in self.stack:
            self.codes[-1] += data
        elif "a" not in self.stack:
            self.prose += data
        if "a" in self.stack:
            href, shown = self.links[-1]
            self.links[-1] = (href, shown + data)

    @property
    def names(self) -> set[str]:
        """The tags that stand in the page."""
        return {tag for tag, _ in self.tags}


def read_page(text: str) -> Read:
    """Return what a reader of a text gets on GitHub."""
    read = Read()
    read.feed(to_html(text))
    read.close()
    return read


def references(text: str) -> list[str]:
    """Return what GitHub would take for a reference in a text that is no code."""
    return [match[0] for pattern in REFERENCES for match in pattern.finditer(text)]
