"""Text for people and for programs: colour on a terminal, plain text in a pipe, JSON where asked.

Text that came from a worker never reaches a terminal unescaped: see :func:`safe`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gitbus.errors import GitbusError

if TYPE_CHECKING:
    from gitbus.records import Record

STATES = {
    "done": "green",
    "sent": "green",
    "approved": "cyan",
    "assigned": "cyan",
    "sending": "cyan",
    "running": "cyan",
    "ready": "blue",
    "partial": "yellow",
    "skipped": "yellow",
    "in_review": "yellow",
    "awaiting_approval": "yellow",
    "expired": "yellow",
    "dead": "red",
    "failed": "red",
    "stuck": "bold red",
    "broken": "bold red",
    "rejected": "magenta",
    "withdrawn": "magenta",
    "cancelled": "magenta",
}


class Verbosity:
    """How much is said beside the answer itself."""

    quiet = False
    verbose = False


def console() -> Console:
    """Return the console for answers."""
    return Console(highlight=False, soft_wrap=True)


def safe(text: object) -> str:
    """Return text from outside so that no terminal takes it for a command, and Rich for no markup."""
    shown = "".join(char if char.isprintable() or char in "\n\t" else "�" for char in str(text))
    return escape(shown)


def one_line(text: object) -> str:
    """Return text from outside as :func:`safe` does, on one line, so that it cannot pass for another line."""
    return safe(" ".join(str(text).split()))


def state(name: str) -> str:
    """Return a state's name in its colour."""
    colour = STATES.get(name)
    return f"[{colour}]{name}[/]" if colour else name


def say(text: str) -> None:
    """Print a line of the answer (Rich markup)."""
    console().print(text)


def note(text: str) -> None:
    """Print a remark beside the answer, to stderr."""
    if not Verbosity.quiet:
        Console(stderr=True, highlight=False, soft_wrap=True).print(text, style="dim")


def raw(text: str) -> None:
    """Print text as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def print_json(document: Record) -> None:
    """Print one JSON document."""
    text = json.dumps(document.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=2)
    raw("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, tab-separated in a pipe. Cells are Rich markup."""
    where = console()
    if not where.is_terminal:
        from rich.text import Text

        for row in rows:
            raw("\t".join(Text.from_markup(cell).plain for cell in row))
        return
    drawn = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    where.print(drawn)


def show_error(error: GitbusError) -> None:
    """Print what was refused, by which rule, and what would help, to stderr."""
    out = Console(stderr=True, highlight=False, soft_wrap=True)
    place = f"{safe(error.place)}: " if error.place else ""
    out.print(f"[red]gitbus:[/] {place}{safe(error.message)} [dim]\\[{error.rule}][/]")
    if error.remedy:
        out.print(f"  [dim]→[/] {safe(error.remedy)}")
