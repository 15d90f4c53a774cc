r"""What a scalar means, and what no text on the bus may hold.

Rules: a plain scalar is what the core schema of YAML 1.2.2 (section 10.3.2) says, and nothing else:
``no``, ``2026-01-01`` and ``1_000`` are text. Numbers are finite. Text holds no control character
but newline and tab, and no half of a surrogate pair.

Example: ``resolve("012") == 12``, ``resolve("no") == "no"``.
"""

from __future__ import annotations

import math
import re
from typing import Any

MAX_DEPTH = 64
"""How many mappings and lists may stand inside each other."""

MAX_DIGITS = 4300
"""The decimal digits of the longest whole number; Python itself writes no longer one."""

MAX_INT: int = 10**MAX_DIGITS
"""The first whole number that is too long."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NON_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What may not stand in a file as it is (YAML 1.2.2, section 5.1)."""


class BadScalar(ValueError):
    """A scalar that no record may hold.

    Args:
        rule: the rule's name.
        message: what is wrong.
        remedy: what would help.
    """

    def __init__(self, rule: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.remedy = remedy


def resolve(text: str) -> Any:
    """Return what a plain scalar means.

    Raises:
        BadScalar: it is a number that is not finite or too long.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _FLOAT.fullmatch(text):
        return _whole(text) if _INT.fullmatch(text) else _real(text)
    if _BASED.fullmatch(text):
        return _bounded(int(text, 0))
    if _NON_FINITE.fullmatch(text):
        raise non_finite(text)
    return text


def non_finite(text: str) -> BadScalar:
    """Return the refusal of a number such as ``.inf`` or ``1e999``."""
    return BadScalar("non-finite", f"{shown(text)} is no finite number", "quote it, or leave it out")


def _whole(text: str) -> int:
    if len(text.lstrip("+-")) > MAX_DIGITS:
        raise _too_long()
    return int(text)


def _bounded(value: int) -> int:
    if value >= MAX_INT:
        raise _too_long()
    return value


def _too_long() -> BadScalar:
    return BadScalar(
        "number-too-long", f"a whole number has more than {MAX_DIGITS} digits", "quote it, so that it is text"
    )


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise non_finite(text)
    return value


def clean(text: str) -> str:
    r"""Return a string as a record may hold it: pairs of surrogates (JSON's ``\ud83d\ude00``) joined.

    Raises:
        BadScalar: it holds a control character or half of a surrogate pair.
    """
    if text.isprintable() or not (odd := _FORBIDDEN.search(text)):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if odd[0] >= "\ud800" and len(joined) < len(text) and _same_but_pairs(text, joined):
        return clean(joined)
    raise forbidden(odd[0])


def _same_but_pairs(text: str, joined: str) -> bool:
    """Say whether joining left no half behind, which decoding would have replaced."""
    return joined.encode("utf-16-le") == text.encode("utf-16-le", "surrogatepass")


def forbidden(char: str) -> BadScalar:
    """Return the refusal of a character."""
    what = "half of a surrogate pair" if _SURROGATES.match(char) else "a control character"
    return BadScalar(
        "control-character",
        f"text holds {what}, U+{ord(char):04X}",
        "remove it; what has to keep it goes into an artifact",
    )


def shown(text: str, most: int = 60) -> str:
    """Return a stranger's text for a message: one line, nothing hidden in it, not too long."""
    seen = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:most]
    )
    return seen + "…" if len(text) > most else seen
