r"""A YAML or JSON text as a tree of nodes, each with its place, and the refusals that need the place.

ruamel.yaml cuts the text into events; what they mean is decided here. Nesting is followed without
recursion, and the first anchor, tag or level too many ends the reading, so a hostile text costs
little more than the part before it.

Example: ``compose('a: [1]', "x.yaml").root.pairs[0][1].items[0].start == 4``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)
from ruamel.yaml.scanner import Scanner, ScannerError

from gitbus.codec import jsontext
from gitbus.codec.jsontext import Mark
from gitbus.codec.scalars import MAX_DEPTH, UNPRINTABLE, BadScalar, clean, forbidden, resolve, shown
from gitbus.errors import Invalid

TOO_MANY = "too-many-parts"
_TOO_DEEP = f"nesting is deeper than {MAX_DEPTH}"
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_COLON = re.compile(r"\s*:")
_MARKERS = re.compile(r"^(?:[<>|]{7}(?: .*)?|={7})\r?$", re.MULTILINE)
_DIRECTIVE = re.compile(r"%YAML +1\.2 *(?:#.*)?\r?$")
_OTHER_BREAKS = "\x85\u2028\u2029"
MAX_PARTS = 30_000
"""The names, values and collections that a YAML text holds at the most: ruamel.yaml takes about 0.1 ms for each."""
_TOO_MANY_PARTS = f"a text in YAML holds at most {MAX_PARTS} names and values"


@dataclass(slots=True)
class Node:
    """A part of the text: ``text[start:end]``.

    A block collection ends where its last child does. An empty value stands behind its colon.
    """

    kind: Literal["map", "list", "scalar"]
    start: int
    end: int
    style: str = ""
    """How it is written: a scalar's quote or block sign, ``{`` for a flow collection."""
    value: Any = None
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)

    @property
    def flow(self) -> bool:
        """Say whether it is a collection in brackets."""
        return self.style == "{"

    def child(self, step: str | int) -> tuple[Node | None, Node] | None:
        """Return key and value of an entry, or no key and the item of a list; None if there is none."""
        if self.kind == "map":
            return next((pair for pair in self.pairs if pair[0].value == step), None)
        if isinstance(step, int) and 0 <= step < len(self.items):
            return None, self.items[step]
        return None

    def data(self) -> Any:
        """Return the plain value."""
        if self.kind == "map":
            return {key.value: value.data() for key, value in self.pairs}
        return [item.data() for item in self.items] if self.kind == "list" else self.value


@dataclass(frozen=True)
class Source:
    """The text, and where it came from."""

    text: str
    path: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]

    def place(self, index: int) -> tuple[int, int]:
        """Return line and column, from 1, of a character."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def refusal(self, rule: str, message: str, index: int, remedy: str | None = None) -> Invalid:
        """Return the refusal of what stands at a character."""
        line, column = self.place(index)
        return Invalid(message, rule=rule, path=self.path, line=line, column=column, remedy=remedy)


@dataclass(frozen=True)
class Document:
    """The one document of a text."""

    source: Source
    root: Node

    def place(self, loc: tuple[str | int, ...]) -> tuple[int, int]:
        """Return line and column of the part at ``loc``, or of the nearest around it.

        It stands where its value begins; where that is further down, or missing, where its key does.
        Steps that lead nowhere are passed over: pydantic also counts the branches of a union.
        """
        node, key = self.root, None
        for step in loc:
            if (found := node.child(step)) is not None:
                key, node = found
        return self._spot(key, node, of_key=bool(loc) and loc[-1] == "[key]")

    def key_place(self, loc: tuple[str | int, ...]) -> tuple[int, int]:
        """Return line and column of the key at ``loc``, or of the nearest part around it."""
        node, key = self.root, None
        for step in loc:
            if (found := node.child(step)) is not None:
                key, node = found
        return self._spot(key, node, of_key=key is not None and key.value == loc[-1])

    def _spot(self, key: Node | None, node: Node, *, of_key: bool) -> tuple[int, int]:
        value = self.source.place(node.start)
        if key is None:
            return value
        place = self.source.place(key.start)
        return place if of_key or node.start == node.end or value[0] != place[0] else value


def compose(text: str, path: str) -> Document:
    """Return the tree of a text that nobody vouches for.

    Raises:
        Invalid: it is refused; see :func:`gitbus.codec.loading.load`.
    """
    source = Source(text, path)
    check_text(source)
    marks = jsontext.marks(text) if jsontext.is_json(text) else _yaml_marks(source)
    root = _Tree(source).build(marks)
    if root.kind != "map":
        message = "a record is a mapping of names to values"
        raise source.refusal("not-a-mapping", message, root.start, "begin with `apiVersion: gitbus/v1`")
    return Document(source, root)


def check_text(source: Source) -> None:
    """Check what may stand nowhere in a text.

    Raises:
        Invalid: it holds a control character, or what a merge left.
    """
    if odd := UNPRINTABLE.search(source.text):
        bad = forbidden(odd[0])
        raise source.refusal(bad.rule, bad.message, odd.start(), bad.remedy)
    if marker := _MARKERS.search(source.text):
        remedy = "decide which side is right and remove the markers"
        message = "a merge left its conflict markers here"
        raise source.refusal("conflict-markers", message, marker.start(), remedy)


class _Tree:
    """A tree being built."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.open: list[tuple[Node, dict[str, int]]] = []
        self.key: list[Node | None] = []

    def build(self, marks: Iterator[Mark]) -> Node:
        root: Node | None = None
        for mark in marks:
            if mark.what == "end":
                self._close(mark)
                continue
            node = self._node(mark)
            if root is None:
                root = node
            else:
                self._place(node)
            if mark.what != "scalar":
                self._open(node)
        if root is None or (root.kind == "scalar" and root.start == root.end):
            remedy = "begin with `apiVersion: gitbus/v1`"
            raise self.source.refusal("empty", "there is nothing in it", 0, remedy)
        return root

    def _node(self, mark: Mark) -> Node:
        if mark.what != "scalar":
            return Node(mark.what, mark.start, mark.end, mark.style)  # type: ignore[arg-type]
        try:
            value = clean(mark.text) if mark.style else resolve(mark.text)
        except BadScalar as bad:
            raise self.source.refusal(bad.rule, bad.message, mark.start, bad.remedy) from None
        return Node("scalar", mark.start, mark.end, mark.style, value)

    def _open(self, node: Node) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self.source.refusal("too-deep", _TOO_DEEP, node.start, "make it flatter")
        self.open.append((node, {}))
        self.key.append(None)

    def _close(self, mark: Mark) -> None:
        node, _ = self.open.pop()
        self.key.pop()
        if node.flow:
            node.end = mark.end
        elif node.pairs:
            node.end = max(node.pairs[-1][0].end, node.pairs[-1][1].end)
        elif node.items:
            node.end = node.items[-1].end

    def _place(self, node: Node) -> None:
        parent, keys = self.open[-1]
        if parent.kind == "list":
            parent.items.append(node)
        elif (key := self.key[-1]) is None:
            self.key[-1] = self._checked_key(node, keys)
        else:
            if node.kind == "scalar" and node.start == node.end:
                colon = _COLON.match(self.source.text, key.end)
                node.start = node.end = colon.end() if colon else key.end
            parent.pairs.append((key, node))
            self.key[-1] = None

    def _checked_key(self, node: Node, keys: dict[str, int]) -> Node:
        if not isinstance(node.value, str):
            raise self._no_text(node)
        if node.value in keys:
            line = self.source.place(keys[node.value])[0]
            message = f"the key `{shown(node.value)}` stands here twice, first in line {line}"
            raise self.source.refusal("duplicate-key", message, node.start, "remove one of them")
        keys[node.value] = node.start
        return node

    def _no_text(self, node: Node) -> Invalid:
        written = shown(self.source.text[node.start : node.end])
        if node.kind != "scalar" or not written:
            return self.source.refusal("key-not-text", "this key is no text", node.start, "write a name")
        message = f"the key {written} is no text"
        return self.source.refusal("key-not-text", message, node.start, f'write it as "{written}"')


def _yaml_marks(source: Source) -> Iterator[Mark]:
    """Return the steps through a YAML text, refusing on the way what is not read."""
    _check_directives(source)
    text, restore = _without_other_breaks(source.text)
    reader = YAML(typ="safe", pure=True)
    reader.Scanner = _Scanner
    documents = parts = at = 0
    try:
        for event in reader.parse(text):
            at = event.start_mark.index
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    message = "a second document begins here"
                    raise source.refusal("many-documents", message, at, "one file holds one record")
            elif isinstance(event, NodeEvent):
                _check_node(source, event)
                parts += 1
                if parts > MAX_PARTS:
                    raise source.refusal(
                        TOO_MANY, _TOO_MANY_PARTS, at, "write it as JSON, which is read quickly"
                    )
                yield _started(event, restore)
            elif isinstance(event, CollectionEndEvent):
                yield Mark("end", at, event.end_mark.index)
    except MarkedYAMLError as error:
        raise _syntax(source, error) from None
    except (YAMLError, ValueError, OverflowError, LookupError, AttributeError, TypeError, AssertionError):
        raise source.refusal(
            "syntax", "the value behind this is no YAML", at, "look at its escapes"
        ) from None


class _Scanner(Scanner):
    """A scanner that does not look ahead over brackets without end, which takes it quadratic time."""

    def fetch_flow_collection_start(self, *args: Any, **named: Any) -> None:
        if self.flow_level > MAX_DEPTH:
            raise ScannerError(None, None, _TOO_DEEP, self.reader.get_mark())
        super().fetch_flow_collection_start(*args, **named)


def _started(event: Any, restore: dict[int, str]) -> Mark:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, ScalarEvent):
        return Mark("scalar", start, end, event.style or "", str(event.value).translate(restore))
    kind: Literal["map", "list"] = "map" if isinstance(event, MappingStartEvent) else "list"
    return Mark(kind, start, end, "{" if event.flow_style else "")


def _check_node(source: Source, event: Any) -> None:
    index = event.start_mark.index
    if isinstance(event, AliasEvent) or event.anchor is not None:
        remedy = "write the value out in each place; quote text that begins with & or *"
        raise source.refusal("alias", "anchors and aliases are not read", index, remedy)
    if event.ctag is not None:
        remedy = "write the plain value; quote text that begins with !"
        raise source.refusal("tag", "tags are not read", index, remedy)


def _check_directives(source: Source) -> None:
    """Refuse any directive but ``%YAML 1.2``; they stand before everything but comments."""
    index = 0
    for line in source.text.split("\n"):
        if line.startswith("%") and not _DIRECTIVE.match(line):
            raise source.refusal("directive", "this directive is not read", index, "remove the line")
        if not line.startswith(("#", "%")) and line.strip():
            return
        index += len(line) + 1


def _without_other_breaks(text: str) -> tuple[str, dict[int, str]]:
    """Return the text with stand-ins for what only YAML 1.1, and ruamel.yaml, takes for a line's end.

    The second value translates back. Stand-ins are private characters that the text does not hold.
    """
    found = [char for char in _OTHER_BREAKS if char in text]
    if not found:
        return text, {}
    free = (char for char in map(chr, range(0xE000, 0xF8FF)) if char not in text)
    stand_ins = dict(zip(found, free, strict=False))
    for old, new in stand_ins.items():
        text = text.replace(old, new)
    return text, {ord(new): old for old, new in stand_ins.items()}


_HELP = (
    ("'\\t' that cannot start", "a tab stands where only spaces may", "indent with spaces"),
    ("mapping values are not allowed", "a second `: ` stands in this line", "quote text that holds `: `"),
    (
        "could not find expected ':'",
        "this line is no `name: value`",
        "add the colon, or quote or indent the text",
    ),
    ("that cannot start any token", "text must not begin like this without quotes", "quote it"),
    ("unexpected end of stream", "a quote is never closed", "close it"),
)


def _syntax(source: Source, error: MarkedYAMLError) -> Invalid:
    problem = str(error.problem or error.context or "")
    mark = error.problem_mark or error.context_mark
    index = min(mark.index, len(source.text)) if mark else 0
    if problem == _TOO_DEEP:
        return source.refusal("too-deep", problem, index, "make it flatter")
    for part, message, remedy in _HELP:
        if part in problem:
            return source.refusal("syntax", message, index, remedy)
    message = f"this is no YAML: {shown(problem, 200)}"
    return source.refusal("syntax", message, index, "look at the indentation, quotes and brackets here")
