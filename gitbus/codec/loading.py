"""Suspicious reading: any YAML 1.2 or JSON that a stranger may write, and nothing beyond it.

Scalars resolve by the core schema of YAML 1.2 (section 10.3) alone, whatever the library would
make of them; what a record has no use for (anchors, tags, several documents …) is refused with its
place.

What gitbus wrote itself is read by a small fast parser, whose result is believed only if writing
it again gives the very same text; so nothing about that parser has to be trusted.

Example: ``load(b"a: no", path="x.yaml").data == {"a": "no"}``.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from gitbus.codec.canonical import NotCanonical, parse
from gitbus.codec.emitting import emit
from gitbus.codec.scalars import MAX_DEPTH
from gitbus.errors import Invalid

Loc = tuple[str | int, ...]
_MARKERS = re.compile(rb"^(<<<<<<< |=======\r?$|>>>>>>> |\|\|\|\|\|\|\| )", re.MULTILINE)

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NON_FINITE = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")
_MAX_DIGITS = 400  # an integer of more is an attack, not a number


class Loaded:
    """What was read: plain data, and where each part of it stands.

    Args:
        data: the mapping that was read.
        text: the bytes.
        path: the file, for errors.
        places: places of the parts, where they are known already.
    """

    def __init__(
        self, data: Any, text: bytes, path: str, places: dict[Loc, tuple[int, int]] | None = None
    ) -> None:
        self.data = data
        self.path = path
        self._text = text
        self._places = places

    def place(self, loc: tuple[str | int, ...]) -> tuple[int, int]:
        """Return line and column, from 1, of the part at ``loc`` or of the nearest around it."""
        if self._places is None:
            self._places = _Building(self.path).build(self._text)[1]
        here: Loc = ()
        for step in loc:
            if (*here, step) in self._places:
                here = (*here, step)
        return self._places.get(here, (1, 1))


def load(text: bytes, *, path: str = "", limit: int = 1 << 20) -> Loaded:
    """Read one YAML or JSON document from bytes that nobody vouches for.

    Args:
        text: the bytes.
        path: the file they come from, for the error.
        limit: how many bytes at the most.

    Raises:
        Invalid: with the rule, the place and what to do.
    """
    decoded = _decoded(text, path, limit)
    try:
        data = parse(decoded)
        if emit(data) == decoded:
            return Loaded(data, text, path)
    except (NotCanonical, Invalid, RecursionError):
        pass
    if (marker := _MARKERS.search(text)) is not None:
        line = text.count(b"\n", 0, marker.start()) + 1
        raise Invalid(
            "a merge left its conflict markers here",
            rule="conflict-markers",
            path=path,
            line=line,
            column=1,
            remedy="decide which side is right and remove the markers",
        )
    if decoded.lstrip().startswith("{"):
        found = _json(decoded)
        if found is not None:
            return Loaded(found, text, path)
    data, places = _Building(path).build(text)
    return Loaded(data, text, path, places)


def _decoded(text: bytes, path: str, limit: int) -> str:
    if len(text) > limit:
        raise Invalid(
            f"{len(text)} bytes are more than the limit of {limit}",
            rule="too-large",
            path=path,
            remedy="put long content into an artifact",
        )
    if text.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise Invalid(
            "the file begins with a byte-order mark",
            rule="byte-order-mark",
            path=path,
            line=1,
            column=1,
            remedy="save it as UTF-8 without one",
        )
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        raise Invalid(
            f"byte {error.start} is not UTF-8",
            rule="not-utf8",
            path=path,
            line=line,
            column=column,
            remedy="save the file as UTF-8",
        ) from None


class _Odd(ValueError):
    """JSON that the careful reader has to look at, to say what is wrong and where."""


def _json(text: str) -> dict[str, Any] | None:
    """Return what the text says if it is flawless JSON; None where the careful reader must look."""
    try:
        data = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_float=_json_float,
            parse_int=_json_int,
        )
        _check_json(data, 1)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and data else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise _Odd
    return data


def _constant(name: str) -> float:
    raise _Odd(name)


def _json_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Odd
    return value


def _json_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _Odd
    return int(text)


def _check_json(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH + 1:
        raise _Odd
    if isinstance(value, dict):
        for key, inner in value.items():
            if _control(key):
                raise _Odd
            _check_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_json(inner, depth + 1)
    elif isinstance(value, str) and _control(value):
        raise _Odd


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


def _control(text: str) -> str | None:
    match = _CONTROL.search(text)
    return match[0] if match else None


class _Building:
    """A document being put together from the parser's events, with the place of each part."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.places: dict[Loc, tuple[int, int]] = {}
        self.stack: list[tuple[Any, Loc]] = []
        self.keys: list[str | None] = []
        self.root: Any = None
        self.documents = 0

    def build(self, text: bytes) -> tuple[Any, dict[Loc, tuple[int, int]]]:
        """Return data and places.

        Raises:
            Invalid: see :func:`load`.
        """
        decoded = text.decode("utf-8")
        self._directives(decoded)
        try:
            for event in YAML(typ="safe", pure=True).parse(decoded):
                self._event(event)
        except ReaderError as error:
            raise self._control_at(decoded, error) from None
        except MarkedYAMLError as error:
            raise self._syntax(error) from None
        except YAMLError as error:
            raise Invalid(
                str(error).split("\n")[0], rule="syntax", path=self.path, line=1, column=1
            ) from None
        if self.documents == 0 or self.root is None:
            raise Invalid(
                "there is nothing in it",
                rule="empty",
                path=self.path,
                line=1,
                column=1,
                remedy="a record is a mapping",
            )
        if not isinstance(self.root, dict):
            raise Invalid(
                "a record is a mapping of names to values",
                rule="not-a-mapping",
                path=self.path,
                line=1,
                column=1,
            )
        return self.root, self.places

    def _directives(self, text: str) -> None:
        for number, line in enumerate(text.split("\n", 20)[:20], 1):
            if line.startswith("%") and line.split()[:2] != ["%YAML", "1.2"]:
                raise Invalid(
                    "YAML directives are not read",
                    rule="directive",
                    path=self.path,
                    line=number,
                    column=1,
                    remedy="remove the line",
                )
            if line and not line.startswith(("#", "%")):
                return

    def _control_at(self, text: str, error: ReaderError) -> Invalid:
        position = int(error.position or 0)
        odd = _CONTROL.search(text)
        position = odd.start() if odd else position
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        return Invalid(
            "a control character stands here",
            rule="control-character",
            path=self.path,
            line=line,
            column=column,
            remedy="remove it, or write it as an artifact",
        )

    def _syntax(self, error: MarkedYAMLError) -> Invalid:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(str(part) for part in (error.context, error.problem) if part)
        return Invalid(problem or "this is no YAML", rule="syntax", path=self.path, line=line, column=column)

    def _refuse(self, event: Any, rule: str, message: str, remedy: str = "") -> Invalid:
        mark = event.start_mark
        return Invalid(
            message, rule=rule, path=self.path, line=mark.line + 1, column=mark.column + 1, remedy=remedy
        )

    def _event(self, event: Any) -> None:
        if isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._refuse(
                    event, "many-documents", "more than one document", "one file holds one record"
                )
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise self._refuse(
                event, "alias", "anchors and aliases are not read", "write the value out in each place"
            )
        if isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent)):
            if self._tagged(event):
                raise self._refuse(event, "tag", "tags are not read", "write the plain value")
            self._value(event)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            self.stack.pop()
            self.keys.pop()

    @staticmethod
    def _tagged(event: Any) -> bool:
        tag = getattr(event, "ctag", None) or getattr(event, "tag", None)
        return tag is not None and str(tag) not in ("", "None")

    def _value(self, event: Any) -> None:
        if self.stack and isinstance(self.stack[-1][0], dict) and self.keys[-1] is None:
            self._key(event)
            return
        value = self._made(event)
        loc: Loc = ()
        if self.stack:
            parent, above = self.stack[-1]
            if isinstance(parent, dict):
                key = self.keys[-1] or ""
                loc = (*above, key)
                parent[key] = value
                self.keys[-1] = None
            else:
                loc = (*above, len(parent))
                parent.append(value)
                self._mark(loc, event)
        else:
            self.root = value
            self._mark(loc, event)
        if isinstance(value, (dict, list)):
            if len(self.stack) >= MAX_DEPTH:
                raise self._refuse(
                    event, "too-deep", f"nesting is deeper than {MAX_DEPTH}", "make it flatter"
                )
            self.stack.append((value, loc))
            self.keys.append(None)

    def _key(self, event: Any) -> None:
        if not isinstance(event, ScalarEvent):
            raise self._refuse(event, "key-not-text", "a key is text", "quote it")
        key = self._made(event)
        if not isinstance(key, str):
            raise self._refuse(
                event, "key-not-text", f"the key {event.value} is no text", f'write it as "{event.value}"'
            )
        parent, above = self.stack[-1]
        if key in parent:
            first = self.places.get((*above, key), (1, 1))
            raise self._refuse(
                event,
                "duplicate-key",
                f"the key {key!r} stands here twice, first in line {first[0]}",
                "remove one of them",
            )
        self.keys[-1] = key
        parent[key] = None
        self._mark((*above, key), event)

    def _mark(self, loc: Loc, event: Any) -> None:
        self.places[loc] = (event.start_mark.line + 1, event.start_mark.column + 1)

    def _made(self, event: Any) -> Any:
        if isinstance(event, MappingStartEvent):
            return {}
        if isinstance(event, SequenceStartEvent):
            return []
        text = str(event.value)
        if (odd := _control(text)) is not None:
            raise self._refuse(
                event, "control-character", f"text holds the control character U+{ord(odd):04X}", "remove it"
            )
        return text if event.style else self._plain(text, event)

    def _plain(self, text: str, event: Any) -> Any:
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text.lower() == "true"
        if _INT.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                raise self._refuse(event, "number-too-long", "a number has too many digits", "quote it")
            return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        if _FLOAT.fullmatch(text):
            value = float(text)
            if math.isfinite(value):
                return value
            raise self._refuse(event, "non-finite", f"{text} is too large", "quote it")
        if _NON_FINITE.fullmatch(text):
            raise self._refuse(
                event, "non-finite", f"{text} is no finite number", "quote it, or leave it out"
            )
        return text
