r"""The canonical form: one text for one value, which every YAML library reads back as that value.

Rules: block style, two spaces, keys in the order given, UTF-8, LF, no anchors, no tags. A string is
plain only where neither YAML 1.1 nor YAML 1.2 could take it for anything else. A text of several
lines is a literal block where all of it can be seen, and otherwise quoted line by line, so that a
diff shows what cannot be seen as an escape.

Example: ``emit({"answer": "no", "n": 1e-7})`` is ``answer: "no"\nn: 1.0e-07\n``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from gitbus.codec.scalars import MAX_DEPTH, MAX_DIGITS, MAX_INT, forbidden, shown
from gitbus.errors import Invalid

_PLAIN = re.compile(
    r"(?!\.?e[-+]?[0-9]+\Z)(?:[\w/$(]|~/|\.{1,2}/|\.(?!inf|nan)[a-z]|[^\x00-\xa0])"
    r"[^:#]*(?:(?::(?! |\Z)|(?<! )#)[^:#]*)*(?<! )",
    re.IGNORECASE,
)
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_NUMBERISH = re.compile(r"[0-9][0-9a-foxtz_.,:+ -]*|[0-9]{4}-[0-9].*", re.IGNORECASE)
_AMOUNT = re.compile(r"(?:0|[1-9][0-9]*)(?:[smhd]|B|[KMG]iB)")
_SPECIAL = re.compile(r'["\\]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_LONG_KEY = 1000
"""The longest key written before its colon; readers look ahead for 1,024 characters at the most."""


def emit(data: Mapping[str, Any]) -> str:
    """Return the canonical text of a mapping of JSON values.

    Raises:
        Invalid: it holds what cannot be written: a number that is not finite or too long, a control
            character, a lone surrogate, a key that is no text, or more than 64 levels.
    """
    if not data:
        return "{}\n"
    lines: list[str] = []
    _mapping(lines, data, "", 1)
    lines.append("")
    return "\n".join(lines)


def _mapping(lines: list[str], data: Mapping[str, Any], pad: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    for key, value in data.items():
        head = pad + (_short_key(key) if type(key) is str and len(key) < _SHORT else _key(key, pad))
        kind = type(value)
        if kind is str and "\n" not in value:
            lines.append(f"{head} {_short_token(value) if len(value) < _SHORT else text_token(value)}")
        elif value is None:
            lines.append(head + " null")
        elif kind in _NUMBERS:
            lines.append(f"{head} {scalar(value)}")
        elif kind in _EMPTY and not value and depth < MAX_DEPTH:
            lines.append(head + _EMPTY[kind])
        else:
            _entry(lines, head, value, pad, depth)


def _sequence(lines: list[str], data: Iterable[Any], pad: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    for value in data:
        if value and isinstance(value, (dict, list, tuple, Mapping)):
            first, inner = len(lines), pad + "  "
            if isinstance(value, Mapping):
                _mapping(lines, value, inner, depth + 1)
            else:
                _sequence(lines, value, inner, depth + 1)
            lines[first] = f"{pad}- {lines[first][len(inner) :]}"
        else:
            _entry(lines, pad + "-", value, pad, depth)


def _entry(lines: list[str], head: str, value: Any, pad: str, depth: int) -> None:
    """Add ``head`` and the value behind or below it."""
    if isinstance(value, str) and "\n" in value:
        _text(lines, head, value, pad + "  ")
    elif isinstance(value, (dict, Mapping)):
        lines.append(head if value else head + " {}")
        _mapping(lines, value, pad + "  ", depth + 1)
    elif isinstance(value, (list, tuple)):
        lines.append(head if value else head + " []")
        _sequence(lines, value, pad + "  ", depth + 1)
    else:
        lines.append(f"{head} {scalar(value)}")


def _too_deep() -> Invalid:
    return Invalid(f"nesting is deeper than {MAX_DEPTH}", rule="too-deep", remedy="make it flatter")


def _key(key: Any, pad: str) -> str:
    if not isinstance(key, str):
        raise Invalid(f"the key {shown(str(key))} is no text", rule="key-not-text", remedy="quote it")
    token = text_token(key)
    return f"? {token}\n{pad}:" if len(token) > _LONG_KEY else token + ":"


def scalar(value: Any) -> str:
    """Return the canonical text of a scalar, on one line.

    Raises:
        Invalid: it cannot be written.
    """
    if isinstance(value, str):
        return text_token(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return _real(value)
    raise Invalid(f"{type(value).__name__} is no JSON value", rule="not-json")


def _whole(value: int) -> str:
    if not -MAX_INT < value < MAX_INT:
        raise Invalid(f"a whole number has more than {MAX_DIGITS} digits", rule="number-too-long")
    return str(int(value))


def _real(value: float) -> str:
    """Write a number that YAML 1.1 too takes for one: it wants a point, and a sign in the exponent."""
    mantissa, mark, exponent = repr(float(value)).partition("e")
    if not mantissa[-1].isdecimal():
        raise Invalid(f"{mantissa} is no finite number", rule="non-finite")
    return mantissa + ("" if "." in mantissa else ".0") + mark + exponent


def text_token(text: str) -> str:
    """Return a string on one line, quoted if it has to be.

    Raises:
        Invalid: it holds a control character or half of a surrogate pair.
    """
    return text if is_plain(text) else quoted(text)


_short_token = lru_cache(maxsize=8192)(text_token)
_SHORT = 40
"""Texts shorter than this come again and again: keys, words, names, times."""

_NUMBERS = frozenset((int, bool, float))
_EMPTY: dict[type, str] = {dict: " {}", list: " []", tuple: " []"}


@lru_cache(maxsize=4096)
def _short_key(key: str) -> str:
    return text_token(key) + ":"


def is_plain(text: str) -> bool:
    """Say whether every reader of YAML takes this for a string without quotes (in block style)."""
    if not text.isprintable() or not _PLAIN.fullmatch(text):
        return False
    if len(text) <= 5 and text.lower() in _WORDS:
        return False
    return not "0" <= text[0] <= "9" or not _NUMBERISH.fullmatch(text) or bool(_AMOUNT.fullmatch(text))


def quoted(text: str) -> str:
    """Return a string in double quotes, on one line, with an escape for all that cannot be seen.

    Raises:
        Invalid: it holds a control character or half of a surrogate pair.
    """
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    if text.isprintable():
        return text.replace("\\", "\\\\").replace('"', '\\"') if _SPECIAL.search(text) else text
    return "".join([_escape(char) for char in text])


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or (0x7F <= code < 0xA0 and code != 0x85) or 0xD800 <= code < 0xE000:
        bad = forbidden(char)
        raise Invalid(bad.message, rule=bad.rule, remedy=bad.remedy)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _text(lines: list[str], head: str, text: str, pad: str) -> None:
    """Add a string of several lines."""
    if not _is_clear(text):
        lines.append(f"{head} {_continued(text, pad)}")
        return
    body = text.rstrip("\n")
    ending = len(text) - len(body)
    indented = "2" if body.lstrip("\n")[0] == " " else ""
    lines.append(f"{head} |{indented}{('-', '', '+')[min(ending, 2)]}")
    lines += [pad + line if line else "" for line in body.split("\n")]
    lines += [""] * (ending - 1)


def _is_clear(text: str) -> bool:
    """Say whether a literal block shows all of a text: nothing unseen, no space where a line ends."""
    if text[-1] == " " or " \n" in text or not text.strip("\n"):
        return False
    return text.replace("\n", "").isprintable()


def _continued(text: str, pad: str) -> str:
    r"""Return a string in double quotes, each line on its own: ``\n`` ends it, ``\`` continues it."""
    chunks = [_escaped(line) + "\\n" for line in text.split("\n")]
    last = chunks.pop()[:-2]
    if last:
        chunks.append(last)
    guarded = ["\\" + chunk if chunk[0] == " " else chunk for chunk in chunks[1:]]
    return '"' + f"\\\n{pad}".join([chunks[0], *guarded]) + '"'
