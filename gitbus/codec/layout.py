"""How a value is laid out where a human's file takes it in: on a line, in brackets, or in lines of its own.

Example: ``in_line({"a": ["no", "b, c"]}) == '{a: ["no", "b, c"]}'``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gitbus.codec.emitting import emit, quoted, scalar
from gitbus.codec.nodes import Node

_FLOW_PLAIN = re.compile(r"[^,\[\]{}:\"'?#]*")


def in_json(value: Any) -> str:
    """Return a value on one line as JSON, with an escape for all that cannot be seen."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def in_line(value: Any, instead: Node | None = None) -> str:
    """Return a value on one line, for within brackets or without.

    Args:
        value: the value.
        instead: what it replaces; a string takes over its quotes.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_line(key)}: {in_line(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(in_line(one) for one in value) + "]"
    token = in_quotes_of(value, instead) or scalar(value)
    if isinstance(value, str) and token[0] not in "\"'" and not _FLOW_PLAIN.fullmatch(token):
        return quoted(value)
    return token


def in_quotes_of(value: Any, node: Node | None) -> str | None:
    """Return a string in the quotes of what it replaces; None where those are not fit for it."""
    if not isinstance(value, str) or node is None or node.style not in ('"', "'"):
        return None
    if node.style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return quoted(value)


def block_lines(value: Any) -> list[str]:
    """Return a list or mapping that is not empty as lines in block style."""
    if isinstance(value, dict):
        return emit(value).split("\n")[:-1]
    return [line[2:] for line in emit({"x": value}).split("\n")[1:-1]]


def padded(lines: list[str], column: int) -> list[str]:
    """Return lines that are moved to the right; empty ones stay empty."""
    return [" " * column + line if line else "" for line in lines]


def last_part(node: Node) -> Node:
    """Return the part of a node that its text ends with."""
    while not node.flow and (node.pairs or node.items):
        node = _later(*node.pairs[-1]) if node.pairs else node.items[-1]
    return node


def _later(key: Node, value: Node) -> Node:
    return value if value.end > key.end else key


def is_empty(node: Node) -> bool:
    """Say whether a node has nothing in it."""
    return not node.pairs and not node.items


def is_filled(value: Any) -> bool:
    """Say whether a value is a list or mapping that has something in it."""
    return isinstance(value, (dict, list, tuple)) and bool(value)
