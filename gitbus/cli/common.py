"""What several commands share: the bus, values on the command line, completion."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gitbus.errors import GitbusError, Misuse

if TYPE_CHECKING:
    from gitbus.bus import Bus


@contextmanager
def the_bus(root: str | None = None) -> Iterator[Bus]:
    """Open the bus of the folder that the command works in, and close it after."""
    from gitbus.bus import Bus
    from gitbus.cli.app import Where

    with Bus.open(Where.folder, root=root) as bus:
        yield bus


def value_of(text: str) -> Any:
    """Return what a value on the command line means: JSON where it is JSON, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def pairs(values: list[str]) -> dict[str, Any]:
    """Return ``NAME=VALUE`` arguments as a mapping.

    Raises:
        Misuse: one of them has no ``=``.
    """
    found = {}
    for one in values:
        name, separator, text = one.partition("=")
        if not separator or not name:
            raise Misuse(f"{one!r} is no NAME=VALUE", rule="usage")
        found[name] = value_of(text)
    return found


def split_task(text: str) -> tuple[str, str]:
    """Return goal and task of ``GOAL/TASK``.

    Raises:
        Misuse: it is not of that form.
    """
    goal, separator, task = text.partition("/")
    if not separator or not goal or not task:
        raise Misuse(f"{text!r} is no GOAL/TASK", rule="usage")
    return goal, task


def complete_items(incomplete: str) -> list[str]:
    """Complete an item's id."""
    return _complete(incomplete, "items")


def complete_goals(incomplete: str) -> list[str]:
    """Complete a goal's id."""
    return _complete(incomplete, "goals")


def _complete(incomplete: str, what: str) -> list[str]:
    with contextlib.suppress(GitbusError, OSError), the_bus() as bus:
        return [name for name in sorted(getattr(bus.board(), what)) if name.startswith(incomplete)]
    return []


def read_file(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        Misuse: there is none.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}", rule="usage") from None
