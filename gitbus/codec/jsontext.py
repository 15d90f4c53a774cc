"""JSON, as YAML allows it: read by the standard library, with the strictness of everything else.

Example: ``data('{"a": [1]}') == {"a": [1]}``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NoReturn

from gitbus.codec.scalars import MAX_DEPTH, MAX_DIGITS, clean

_TOKEN = re.compile(
    r'[ \t\r\n,:]*(?:([\[{])|([\]}])|("[^"\\]*(?:\\.[^"\\]*)*")|([^\s,:\[\]{}"]+))', re.DOTALL
)
_WORDS = {"NaN": ".nan", "Infinity": ".inf", "-Infinity": "-.inf"}
"""What is no JSON, but what some writers of JSON write all the same."""


class Mark(NamedTuple):
    """One step through a document, from YAML or from JSON."""

    what: Literal["map", "list", "end", "scalar"]
    start: int
    end: int
    style: str = ""
    text: str = ""


def begins(text: str) -> bool:
    """Say whether a text begins as a record in JSON does."""
    return text.lstrip(" \t\r\n").startswith("{")


def is_json(text: str) -> bool:
    """Say whether a text is JSON, if only as some write it, with ``NaN`` or a key that stands there twice."""
    if not begins(text):
        return False
    try:
        json.loads(text, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return False
    return True


def marks(text: str) -> Iterator[Mark]:
    """Return the steps through a text that is known to be JSON, which YAML with its tabs is not."""
    for match in _TOKEN.finditer(text):
        opening, closing, string, word = match.groups()
        start, end = match.span(match.lastindex or 0)
        if opening:
            yield Mark("map" if opening == "{" else "list", start, end, "{")
        elif closing:
            yield Mark("end", start, end)
        elif string:
            yield Mark("scalar", start, end, '"', json.loads(string))
        else:
            yield Mark("scalar", start, end, "", _WORDS.get(word, word))


def data(text: str) -> dict[str, Any] | None:
    """Return what a text says that is JSON without a fault; None where another reader has to tell."""
    if not begins(text):
        return None
    try:
        found = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_int=_whole, parse_float=_real
        )
        _check(found, 1)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError("too long")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _check(value: Any, depth: int) -> None:
    """Raise ValueError where something is nested too deep, or a text is none that a record may hold."""
    if isinstance(value, str):
        if not value.isprintable() and clean(value) != value:
            raise ValueError("not clean")
    elif isinstance(value, (dict, list)):
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        for key in value if isinstance(value, dict) else ():
            _check(key, depth)
        for inner in value.values() if isinstance(value, dict) else value:
            _check(inner, depth + 1)
