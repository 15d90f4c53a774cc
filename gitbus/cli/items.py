"""An item as a person sees it before deciding: exactly what would leave the house, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitbus.cli.output import console, one_line, print_json, safe, say, state
from gitbus.flow.people import part_of
from gitbus.views import since

if TYPE_CHECKING:
    from gitbus.board import Board
    from gitbus.bus import Bus
    from gitbus.records import Bus as BusRecord
    from gitbus.records import Item, Result

HINTS = {
    "in_review": "gitbus review {0} --ok, then gitbus approve {0}",
    "awaiting_approval": "gitbus review {0}, then gitbus approve {0}",
    "stuck": "gitbus resolve {0} --sent or --not-sent, with what you saw",
    "failed": "gitbus retry {0}, or gitbus revise {0}",
}


ON_GITHUB = {
    "in_review": "review its pull request, then merge it",
    "awaiting_approval": "merge its pull request, or gitbus review {0}, then gitbus approve {0}",
}


def hint(bus: BusRecord, item: str, state: str) -> str:
    """Return what a person can do about an item; nothing where nobody is waited for."""
    known = HINTS | ON_GITHUB if bus.approval.proof == "github" else HINTS
    return known.get(state, "").format(item)


def waiting_rows(board: Board) -> Iterator[tuple[str, str, str]]:
    """Yield (item, state, what to do) for everything that waits for a human."""
    for name, part in sorted(board.items.items()):
        if part.state in HINTS:
            yield name, part.state, hint(board.bus, name, part.state)
        elif part.state == "broken":
            yield name, "broken", "gitbus status names file and line"


def show_item(bus: Bus, item: str, *, as_json: bool) -> None:
    """Print what an item would send, with its score, claims, evidence and digest."""
    from gitbus.documents import Preview

    board = bus.whole_board()
    part, record = part_of(board, item)
    payload = bus.payload(item)
    goal = board.goals.get(record.source.goal)
    result = goal.results.get(record.source.task) if goal else None
    if as_json:
        texts = {
            path: data.decode("utf-8", "replace")
            for path, data in payload.items()
            if path.startswith("body.")
        }
        print_json(
            Preview(
                item=record,
                payload=texts,
                reviews={who: one.verdict for who, one in part.reviews.items()},
                claims=result.claims if result else (),
                evidence=result.evidence if result else (),
            )
        )
        return
    _head(record)
    for file in record.payload:
        if file.role == "attachment":
            say(
                f"  attachment  {safe(file.name or file.path)}  {file.bytes} bytes  [dim]sha256:{file.sha256[:16]}…[/]"
            )
    for path in ("body.txt", "body.html", "body.json"):
        if path in payload:
            _body(path, payload[path])
    if result:
        _claims(result)
    for who, one in sorted(part.reviews.items()):
        current = "" if one.revision == record.revision else " [dim](of an older revision)[/]"
        say(f"  review by {safe(who)}: {one.verdict}{current} {one_line(one.note or '')}")
    say(f"[dim]digest {record.digest}[/]")


def _head(item: Item) -> None:
    say(f"[bold]{item.id}[/]  {state(item.state)}  revision {item.revision}  over [bold]{item.channel}[/]")
    if item.reason:
        say(f"  reason: {one_line(item.reason)}")
    message = item.message
    rows = [("From", message.from_), ("To", ", ".join(message.to)), ("Cc", ", ".join(message.cc))]
    rows += [("Bcc", ", ".join(message.bcc)), ("Reply-To", message.reply_to), ("Subject", message.subject)]
    rows += list(message.headers.items())
    for name, value in rows:
        if value:
            say(f"  [bold]{one_line(name)}:[/] {one_line(value)}")
    if item.send_at:
        say(f"  not before {since(item.send_at)}")
    scores = ", ".join(
        f"{safe(one.by)} {one.value:g}" + (f", {one_line(one.note)}" if one.note else "")
        for one in item.scores
    )
    if item.confidence is not None:
        say(f"  confidence {item.confidence:g} ({scores}), by {safe(item.source.worker)}")
    if item.expires_at and item.state in ("in_review", "awaiting_approval", "approved"):
        say(f"  waits until {since(item.expires_at)}")


def _body(path: str, data: bytes) -> None:
    from rich.panel import Panel

    text = data.decode("utf-8", "replace")
    out = console()
    if out.is_terminal:
        out.print(Panel(safe(text.rstrip("\n")), title=path, title_align="left", border_style="dim"))
    else:
        say(f"--- {path}")
        say(safe(text.rstrip("\n")))
        say("---")


def _claims(result: Result) -> None:
    where = {one.id: f"{one.kind} {one.ref}" for one in result.evidence}
    for claim in result.claims:
        rests = ", ".join(where.get(one, one) for one in claim.evidence)
        say(
            f"  {claim.provenance:<10} {one_line(claim.text)}"
            + (f"  [dim]← {one_line(rests)}[/]" if rests else "")
        )
