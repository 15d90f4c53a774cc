r"""Text from a program, made harmless: bounded, and with nothing in it that does not print.

Example: ``tail(b"\x1b[31mno such file\n", 100) == "no such file\n"``.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
"""Control sequences of a terminal (ECMA-48): colours, cursor moves, titles."""


def clean(text: str) -> str:
    """Return text with terminal sequences taken out and a space for all else that does not print."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in plain)


def line(text: str, most: int = 200) -> str:
    """Return text as one harmless line of at most ``most`` characters."""
    shown = " ".join(clean(text).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def tail(data: bytes, most: int) -> str:
    """Return the end of what a program printed, at most ``most`` characters of it."""
    return clean(data.decode("utf-8", "replace"))[-most:]


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    return next((one.strip() for one in reversed(text.splitlines()) if one.strip()), "")
