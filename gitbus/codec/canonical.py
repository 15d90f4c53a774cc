r"""A fast parser for what :mod:`gitbus.codec.emitting` writes, and for nothing else.

It may give up at any time, and it may even be wrong: the caller believes it only where writing its
result gives the same text again.

Example: ``parse("a: 1\n") == {"a": 1}``.
"""

from __future__ import annotations

import re
from typing import Any

_QUOTED_KEY = re.compile(r'("(?:[^"\\]|\\.)*"):(?: (.*))?')
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+(?:e[-+][0-9]+)?)?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", " ": " "}
_BLOCKS = {"|": "\n", "|2": "\n", "|-": "", "|2-": "", "|+": "\n", "|2+": "\n"}
_CONSTANTS = {"null": None, "true": True, "false": False}


class NotCanonical(ValueError):
    """The text is not in the canonical form, as far as this parser can see."""


def parse(text: str) -> dict[str, Any]:
    """Parse a canonical text.

    Raises:
        NotCanonical: it gives up; another reader has to look.
    """
    if text == "{}\n":
        return {}
    lines = text.split("\n")
    if lines.pop() or not lines:
        raise NotCanonical
    reader = _Lines(lines)
    try:
        data = reader.mapping(0)
    except (ValueError, IndexError, KeyError, OverflowError, RecursionError):
        raise NotCanonical from None
    if reader.at != len(lines):
        raise NotCanonical
    return data


class _Lines:
    """Lines being read; ``at`` is the next one. The last line is followed by an empty one."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def mapping(self, indent: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        lines, count, pad, number = self.lines, len(self.lines), " " * indent, self.at
        while number < count:
            line = lines[number]
            if not line.startswith(pad) or line[indent : indent + 1] in " -":
                break
            if line[indent] == '"':
                key, rest = _quoted_key(line[indent:])
            else:
                key, _, rest = line[indent:].partition(": ")
                if not rest:
                    key = key[:-1]
            if rest and rest[0].isalpha() and rest not in _CONSTANTS:
                data[key] = rest
                number += 1
                continue
            self.at = number + 1
            data[key] = self.value(rest, indent) if rest else self.below(indent + 2)
            number = self.at
        self.at = number
        return data

    def sequence(self, indent: int) -> list[Any]:
        data: list[Any] = []
        lines, count, head = self.lines, len(self.lines), " " * indent + "- "
        while self.at < count and lines[self.at].startswith(head):
            rest = lines[self.at][indent + 2 :]
            if _is_nested(rest):
                lines[self.at] = f"{' ' * (indent + 2)}{rest}"
                data.append(self.below(indent + 2))
            else:
                self.at += 1
                data.append(self.value(rest, indent))
        return data

    def below(self, indent: int) -> Any:
        return self.sequence(indent) if self.lines[self.at][indent] == "-" else self.mapping(indent)

    def value(self, rest: str, indent: int) -> Any:
        first = rest[0]
        if first == '"':
            return self.quoted(rest, indent + 2)
        if first == "|":
            return self.literal(_BLOCKS[rest], indent + 2)
        if first in "-0123456789" and (match := _NUMBER.fullmatch(rest)):
            return float(rest) if match[1] else int(rest)
        if rest == "[]":
            return []
        if rest == "{}":
            return {}
        return _CONSTANTS.get(rest, rest)

    def quoted(self, rest: str, indent: int) -> str:
        if "\\" not in rest:
            return rest[1:-1]
        pieces = [rest]
        while pieces[-1].endswith("n\\"):
            pieces[-1] = pieces[-1][:-1]
            pieces.append(self.lines[self.at][indent:])
            self.at += 1
        return _ESCAPE.sub(_unescaped, "".join(pieces)[1:-1])

    def literal(self, ending: str, indent: int) -> str:
        lines, count, pad, start = self.lines, len(self.lines), " " * indent, self.at
        at = start
        while at < count and (lines[at].startswith(pad) or not lines[at]):
            at += 1
        self.at = at
        return "\n".join([line[indent:] for line in lines[start:at]]) + ending


def _quoted_key(text: str) -> tuple[str, str]:
    match = _QUOTED_KEY.fullmatch(text)
    if not match:
        raise NotCanonical
    return _ESCAPE.sub(_unescaped, match[1][1:-1]), match[2] or ""


def _is_nested(rest: str) -> bool:
    """Say whether a mapping or a list, and no scalar, begins behind a dash."""
    if rest[:1] == '"':
        return bool(_QUOTED_KEY.fullmatch(rest))
    return rest[:2] == "- " or ": " in rest or rest[-1:] == ":"


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPES[match[3]]
