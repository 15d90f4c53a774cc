"""Graphs in Mermaid's language. Pure.

Rules: a node is called by its number, for an id may be a word of the language (``end``, ``default``) or
look like an arrow of it (``a--b``); what a label says can neither end it nor be taken for markup.

Example: ``box("n0", "done", "write", "done")`` is ``n0["write<br/>done"]:::done``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

STYLES = {
    "done": "fill:#d3f9d8,stroke:#2b8a3e",
    "assigned": "fill:#d0ebff,stroke:#1864ab",
    "ready": "fill:#e7f5ff,stroke:#1864ab",
    "skipped": "fill:#fff3bf,stroke:#e67700",
    "dead": "fill:#ffe3e3,stroke:#c92a2a",
    "cancelled": "fill:#f3d9fa,stroke:#862e9c",
    "unreleased": "fill:#f1f3f5,stroke:#868e96",
}
"""A task's state → how its box looks."""

_MARKUP = re.compile(r"[^\w\s.,:;/()×-]")


def numbered(names: Iterable[str]) -> dict[str, str]:
    """Return the node that stands for each name."""
    return {name: f"n{at}" for at, name in enumerate(names)}


def label(*lines: str) -> str:
    """Return what a node says, between quotes."""
    return f'"{"<br/>".join(map(_escaped, lines))}"'


def box(node: str, style: str, *lines: str) -> str:
    """Return a node that is a box with these lines."""
    return f"{node}[{label(*lines)}]:::{style}"


def rounded(node: str, style: str, *lines: str) -> str:
    """Return a node with round ends."""
    return f"{node}([{label(*lines)}]):::{style}"


def arrow(source: str, target: str, *, optional: bool = False) -> str:
    """Return an arrow between two nodes, dashed where it is optional."""
    return f"{source} {'-.->' if optional else '-->'} {target}"


def graph(statements: Iterable[str], styles: Mapping[str, str]) -> list[str]:
    """Return a whole graph's lines, from left to right, with how each style of its nodes looks."""
    looks = (f"classDef {name} {look}" for name, look in styles.items())
    return ["graph LR", *(f"  {one}" for one in (*statements, *looks))]


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: f"#{ord(found[0])};", text)
