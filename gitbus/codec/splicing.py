r"""Splices: the changes of a text that set or remove one value and leave every other byte alone.

Rules: what stands on a line stays on it, comments included. A list or mapping that is new in block
style is written below its key; in brackets everything is written in brackets. New lines end as the
file's lines do. A splice may be wrong where a file is laid out oddly: the caller reads the result.

Example: ``Splicer.of("a: 1 # one\n").set(("a",), 2) == "a: 2 # one\n"``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gitbus.codec import layout
from gitbus.codec.nodes import Document, Node, compose

Path = tuple[str | int, ...]

_COLON = re.compile(r"\s*:")
_COMMENTS = r"(?:(?:[ \t]*\r?\n)* {%d,}#.*(?:\n|\Z))+"
_HINT = re.compile(r"[|>][0-9]?\+")


class CannotSplice(Exception):
    """The text is laid out in a way that splices do not know."""


class _Slot(NamedTuple):
    """Where a value stands: behind a colon or a dash, or (with no ``holder``) alone in the document."""

    node: Node
    after: int
    """The character behind the colon or dash."""
    column: int
    """The column, from 0, of the key or dash; what is below it stands further right."""
    holder: Node | None
    in_flow: bool


@dataclass
class Splicer:
    """The splices of one text.

    Args:
        document: the text's tree.
        text: the text.
        in_one_line: write a new value on one line: a text of several lines, or a list with one in it,
            may otherwise take in the comment or the empty lines that follow.
    """

    document: Document
    text: str
    in_one_line: bool = False
    changes: list[tuple[int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, *, in_one_line: bool = False) -> Splicer:
        """Return the splicer of a text that is known to be readable."""
        return cls(compose(text, ""), text, in_one_line)

    def set(self, path: Path, value: Any) -> str:
        """Return the text with a value set.

        Raises:
            CannotSplice: the layout is not known here.
        """
        slot = self._slot_of_root()
        for depth, step in enumerate(path):
            inner = self._slot(slot, step)
            if inner is None:
                for missing in reversed(path[depth + 1 :]):
                    value = [value] if isinstance(missing, int) else {missing: value}
                self._add(slot, step, value)
                return self._done()
            slot = inner
        self._replace(slot, value)
        return self._done()

    def remove(self, path: Path, *, comments: bool = False) -> str:
        """Return the text without a value.

        Args:
            path: where it stands.
            comments: also without the comments below it that stand further right than it does; a
                text above would otherwise take them in.

        Raises:
            CannotSplice: the layout is not known here.
        """
        slot = self._slot_of_root()
        for step in path[:-1]:
            slot = self._slot(slot, step) or _give_up()
        spans = self._spans(slot.node)
        index = next((n for n, one in enumerate(spans) if path[-1] in (one.key, n)), None)
        if index is None:
            raise CannotSplice
        if len(spans) == 1:
            self._replace(slot, {} if slot.node.kind == "map" else [])
        elif slot.node.flow:
            self._cut_flow(spans, index)
        else:
            self._cut_block(spans, index, comments=comments)
        return self._done()

    def _done(self) -> str:
        text = self.text
        for start, end, new in sorted(self.changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    # where things stand

    def _slot_of_root(self) -> _Slot:
        root = self.document.root
        return _Slot(root, root.start, -2, None, in_flow=root.flow)

    def _slot(self, outer: _Slot, step: str | int) -> _Slot | None:
        found = outer.node.child(step)
        if found is None:
            return None
        key, node = found
        holder = outer.node
        in_flow = outer.in_flow or holder.flow
        if key is not None:
            colon = _COLON.match(self.text, key.end)
            if colon is None:
                raise CannotSplice
            return _Slot(node, colon.end(), self._column(key.start), holder, in_flow)
        if in_flow:
            return _Slot(node, node.start, 0, holder, in_flow)
        dash = self._dash(holder, holder.items.index(node))
        return _Slot(node, dash + 1, self._column(dash), holder, in_flow)

    def _dash(self, holder: Node, index: int) -> int:
        """Return where the dash of an item stands: at the list's column, first on its line."""
        if index == 0:
            return holder.start
        column, at = self._column(holder.start), self._below(holder.items[index - 1])
        while at < len(self.text):
            if self.text[at + column : at + column + 1] == "-" and not self.text[at : at + column].strip():
                return at + column
            at = self._next_line(at)
        raise CannotSplice

    def _line(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _next_line(self, index: int) -> int:
        found = self.text.find("\n", index)
        return len(self.text) if found < 0 else found + 1

    def _column(self, index: int) -> int:
        return index - self._line(index)

    def _is_first(self, index: int) -> bool:
        """Say whether only white space stands before it on its line."""
        return not self.text[self._line(index) : index].strip()

    def _end(self, node: Node) -> int:
        """Return where the last visible character of a node ends."""
        return node.start + len(self.text[node.start : node.end].rstrip())

    def _below(self, node: Node) -> int:
        """Return the beginning of the line below a node; of a text that keeps its empty lines, below those."""
        last = layout.last_part(node)
        if last.style in ("|", ">") and _HINT.match(self.text, last.start):
            return last.end
        return self._next_line(self._end(last))

    def _rest(self, index: int) -> str:
        """Return what stands behind a character on its line."""
        return self.text[index : self._next_line(index)].strip()

    # writing

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _change(self, start: int, end: int, new: str) -> None:
        self.changes.append((start, end, new))

    def _insert_lines(self, at: int, lines: list[str]) -> None:
        """Insert whole lines where a line begins, or where the text ends."""
        new = self._newline.join(lines)
        if at and self.text[at - 1] != "\n":
            self._change(at, at, self._newline + new)
        else:
            self._change(at, at, new + self._newline)

    def _inline(self, value: Any, instead: Node | None = None) -> str:
        """Return a value on one line, for within brackets; a string in the quotes that it replaces."""
        return layout.in_json(value) if self.document.root.flow else layout.in_line(value, instead)

    # setting

    def _replace(self, slot: _Slot, value: Any) -> None:
        node = slot.node
        if slot.in_flow or (node.flow and not layout.is_empty(node) and layout.is_filled(value)):
            self._put(slot, self._inline(value, node))
        elif node.kind == "scalar" or node.flow:
            self._replace_inline(slot, value)
        else:
            self._replace_block(slot, value)

    def _put(self, slot: _Slot, token: str) -> None:
        """Write a token in the place of what stands on the line."""
        if slot.node.start == slot.node.end:
            self._change(slot.after, slot.after, " " + token)
        else:
            self._change(slot.node.start, self._end(slot.node), token)

    def _replace_inline(self, slot: _Slot, value: Any) -> None:
        """Replace what stands on the line of its key or dash; the comment behind it stays."""
        node, below = slot.node, self._below(slot.node)
        first, *lines = self._behind(slot, value)
        if not first:
            self._change(slot.after, max(self._end(node), slot.after), "")
        elif not layout.is_filled(value) or slot.node.start == slot.node.end:
            token = layout.in_quotes_of(value, node) if not lines else None
            self._put(slot, token or first[1:])
        else:
            self._put(slot, first[1:])
        if lines:
            self._insert_lines(below, lines)

    def _replace_block(self, slot: _Slot, value: Any) -> None:
        """Replace a list or mapping that stands on lines of its own."""
        node = slot.node
        start, below = node.start, self._below(node)
        if not self._is_first(start):
            first, *lines = self._behind(slot, value)
            self._change(start, self._end(layout.last_part(node)), self._newline.join([first[1:], *lines]))
            return
        if slot.holder is None and not layout.is_filled(value):
            self._change(start, self._end(layout.last_part(node)), self._inline(value))
            return
        first, *lines = self._behind(slot, value, self._column(start))
        if first:
            self._change(slot.after, slot.after, first)
        ending = self._newline if lines and self.text[below - 1] == "\n" else ""
        self._change(self._line(start), below, self._newline.join(lines) + ending)

    def _behind(self, slot: _Slot, value: Any, column: int | None = None) -> list[str]:
        """Return what follows the colon or dash on its line, and the lines below.

        Args:
            slot: where the value goes.
            value: the value.
            column: where a list or mapping of that column stands now, which the new one keeps.
        """
        if slot.holder is None:
            return ["", *layout.block_lines(value)]
        if slot.holder.kind == "list":
            first, *lines = self._entry([value])
            return [first[1:], *layout.padded(lines, slot.column)]
        first, *lines = self._entry({"x": value})
        if (
            lines
            and layout.is_filled(value)
            and column is not None
            and (column > slot.column or isinstance(value, list))
        ):
            return ["", *layout.padded([line[2:] for line in lines], column)]
        return [first[2:], *layout.padded(lines, slot.column)]

    def _entry(self, whole: Any) -> list[str]:
        """Return the lines of a list or mapping of one."""
        if not self.in_one_line:
            return layout.block_lines(whole)
        if isinstance(whole, dict):
            return [f"{self._inline(key)}: {self._inline(value)}" for key, value in whole.items()]
        return [f"- {self._inline(value)}" for value in whole]

    # adding

    def _add(self, slot: _Slot, step: str | int, value: Any) -> None:
        node, whole = slot.node, [value] if isinstance(step, int) else {step: value}
        if node.kind == "scalar" and node.value is None:
            self._replace(slot, whole)
        elif node.kind == "scalar" or (node.kind == "map") != isinstance(step, str):
            raise CannotSplice
        elif node.flow:
            self._add_in_flow(slot, whole)
        else:
            self._insert_lines(self._below(node), layout.padded(self._entry(whole), self._column(node.start)))

    def _add_in_flow(self, slot: _Slot, whole: Any) -> None:
        node = slot.node
        if self.text[node.start] not in "{[":
            raise CannotSplice
        if layout.is_empty(node) and not slot.in_flow and self._is_bare(node):
            self._replace(slot, whole)
            return
        entry = self._inline(whole)[1:-1]
        if layout.is_empty(node):
            self._change(node.start + 1, node.start + 1, entry)
            return
        last = self._spans(node)[-1]
        comma = re.compile(r"\s*,").match(self.text, last.end)
        if self._is_first(last.start) and self._line(last.start) > node.start:
            self._add_on_line(last, entry, comma.end() if comma else None)
        elif comma:
            self._change(comma.end(), comma.end(), f" {entry},")
        else:
            self._change(last.end, last.end, f", {entry}")

    def _add_on_line(self, last: _Span, entry: str, comma: int | None) -> None:
        """Add an entry to brackets that have each of theirs on its own line."""
        if comma is None:
            self._change(last.end, last.end, ",")
        at = self._next_line(comma or last.end)
        pad = self.text[self._line(last.start) : last.start]
        if self._rest(last.end)[:1] in "}]" and comma is None and self._rest(last.end):
            self.changes[-1] = (last.end, last.end, f",{self._newline}{pad}{entry}")
        else:
            self._insert_lines(at, [pad + entry + ("," if comma else "")])

    def _is_bare(self, node: Node) -> bool:
        """Say whether nothing, no comment either, stands between the brackets."""
        return not self.text[node.start + 1 : node.end - 1].strip()

    # removing

    def _spans(self, node: Node) -> list[_Span]:
        """Return where each entry of a collection begins and ends."""
        if node.kind == "map":
            return [
                _Span(key.start, max(self._colon(key), self._end(layout.last_part(value))), key.value, value)
                for key, value in node.pairs
            ]
        return [
            _Span(
                item.start if node.flow else self._dash(node, index),
                self._end(layout.last_part(item)),
                None,
                item,
            )
            for index, item in enumerate(node.items)
        ]

    def _colon(self, key: Node) -> int:
        colon = _COLON.match(self.text, key.end)
        return colon.end() if colon else key.end

    def _cut_flow(self, spans: list[_Span], index: int) -> None:
        if index + 1 < len(spans):
            self._change(spans[index].start, spans[index + 1].start, "")
        else:
            self._change(spans[index - 1].end, spans[index].end, "")

    def _cut_block(self, spans: list[_Span], index: int, *, comments: bool) -> None:
        """Cut the lines of an entry; one that shares its line with a dash gives way to the next."""
        span = spans[index]
        if not self._is_first(span.start):
            self._change(span.start, spans[index + 1].start, "")
            return
        below = self._below(span.value) if span.value.start < span.value.end else self._next_line(span.end)
        if comments:
            further = re.compile(_COMMENTS % (self._column(span.start) + 1)).match(self.text, below)
            below = further.end() if further else below
        self._change(self._line(span.start), below, "")


class _Span(NamedTuple):
    """An entry of a collection."""

    start: int
    end: int
    key: str | None
    value: Node


def _give_up() -> _Slot:
    raise CannotSplice
