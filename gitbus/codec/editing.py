r"""Changing a human's YAML file and nothing else in it: comments, quotes and layout stay, byte for byte.

An edit is a splice at the marks of the parsed file. Its result is read again and must say exactly
what was meant; where a splice cannot, ruamel.yaml's round trip does it, and where that cannot
either the edit is refused.

Example: ``edit("sending: {enabled: false} # the flag\n", ("sending", "enabled"), True)``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gitbus.codec.emitting import emit, scalar
from gitbus.codec.loading import load
from gitbus.errors import Invalid, Refused

Path = tuple[str | int, ...]


def edit(text: str, path: Path, value: Any) -> str:
    """Return the file with the value at ``path`` set; parents that are missing are made.

    A number one past the end of a list appends to it.

    Raises:
        Invalid: the file cannot be read.
        Refused: the change cannot be made by a program (rule ``cannot-edit``).
    """
    data = load(text.encode("utf-8")).data
    wanted = _with(data, path, value)
    if wanted == data and _at(data, path) == (True, value):
        return text
    return _first(wanted, lambda: _set(text, path, value), lambda: _round_trip(text, path, value))


def remove(text: str, path: Path) -> str:
    """Return the file without what stands at ``path``.

    Raises:
        Invalid: the file cannot be read.
        Refused: nothing stands there, or it cannot be removed by a program (rule ``cannot-edit``).
    """
    data = load(text.encode("utf-8")).data
    if not _at(data, path)[0]:
        raise Refused(f"there is no {_shown(path)}", rule="cannot-edit")
    wanted = _without(data, path)
    return _first(wanted, lambda: _cut(text, path), lambda: _round_trip(text, path, None, delete=True))


def _first(wanted: Any, *ways: Callable[[], str]) -> str:
    """Return the first result that reads as what is wanted."""
    for way in ways:
        try:
            result = way()
            if _same(load(result.encode("utf-8")).data, wanted):
                return result
        except (Invalid, YAMLError, _CannotSplice, ValueError, KeyError, IndexError, TypeError):
            continue
    raise Refused(
        "this file is laid out in a way that only a person can change",
        rule="cannot-edit",
        remedy="edit it by hand; `gitbus check` says whether it is right",
    )


def _same(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


class _CannotSplice(Exception):
    pass


# --- plain data


def _at(data: Any, path: Path) -> tuple[bool, Any]:
    for step in path:
        known = range(len(data)) if isinstance(data, list) else data if isinstance(data, dict) else ()
        if step not in known:
            return False, None
        data = data[step]
    return True, data


def _with(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(data or [])
        if step == len(items):
            items.append(None)
        items[step] = _with(items[step], rest, value)
        return items
    fields = dict(data or {})
    fields[step] = _with(fields.get(step), rest, value)
    return fields


def _without(data: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if rest:
        return _with(data, (step,), _without(data[step], rest))
    if isinstance(data, list):
        return [one for index, one in enumerate(data) if index != step]
    return {key: one for key, one in data.items() if key != step}


# --- splicing


def _compose(text: str) -> Node:
    node: Node | None = YAML(pure=True).compose(text)
    if node is None:
        raise _CannotSplice
    return node


def _is_flow(node: Node) -> bool:
    return bool(getattr(node, "flow_style", False))


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    return None


def _last(node: Node) -> int:
    """Return where the text of a node ends, without what only follows it."""
    if isinstance(node, (MappingNode, SequenceNode)) and not node.flow_style and node.value:
        tail = node.value[-1]
        key, value = tail if isinstance(tail, tuple) else (None, tail)
        end = _last(value)
        return max(end, _last(key)) if key is not None else end
    return int(node.end_mark.index)


def _end(text: str, node: Node) -> int:
    start, end = int(node.start_mark.index), _last(node)
    return start + len(text[start:end].rstrip())


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    found = text.find("\n", index)
    return len(text) if found < 0 else found


def _break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _block(value: Any, indent: int, text: str) -> str:
    """Return a value as block lines, each at ``indent``."""
    lines = (
        emit({"x": value}).rstrip("\n").split("\n")[1:] if isinstance(value, (dict, list)) and value else []
    )
    if not lines:
        raise _CannotSplice
    return _break(text).join(" " * indent + line[2:] for line in lines)


def _inline(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return scalar(value)


def _behind(value: Any, indent: int, text: str) -> str:
    """Return what stands behind a key or dash: the scalar on its line, or the block below it."""
    if isinstance(value, (dict, list)) and value:
        return _break(text) + _block(value, indent, text)
    return " " + _inline(value)


def _set(text: str, path: Path, value: Any) -> str:
    node = _compose(text)
    flow = _is_flow(node)
    for depth, step in enumerate(path):
        child = _child(node, step)
        if child is None:
            for missing in reversed(path[depth + 1 :]):
                value = [value] if isinstance(missing, int) else {missing: value}
            return _add(text, node, step, value, flow=flow)
        node, flow = child, flow or _is_flow(child)
    return _replace(text, node, value, flow=flow)


def _replace(text: str, node: Node, value: Any, *, flow: bool) -> str:
    start = int(node.start_mark.index)
    end = _end(text, node)
    if isinstance(node, ScalarNode) and start == end:  # a key without a value
        return text[:start].rstrip(" ") + " " + _inline(value) + text[start:]
    if isinstance(value, (dict, list)) and value and not flow and not isinstance(node, ScalarNode):
        indent = start - _line_start(text, start)
        return text[:start] + _block(value, indent, text).lstrip(" ") + text[end:]
    return text[:start] + _inline(value) + text[end:]


def _add(text: str, node: Node, step: str | int, value: Any, *, flow: bool) -> str:
    if isinstance(node, ScalarNode) or (not node.value and not flow):
        whole = [value] if isinstance(step, int) else {step: value}
        return _replace(text, node, whole, flow=True)
    if _is_flow(node) or flow:
        entry = _inline(value) if isinstance(step, int) else f"{scalar(step)}: {_inline(value)}"
        close = int(node.end_mark.index) - 1
        if not node.value:
            return text[: int(node.start_mark.index) + 1] + entry + text[close:]
        end = _end(text, _tail(node))
        return text[:end] + ", " + entry + text[end:]
    first = node.value[0]
    head = int((first[0] if isinstance(first, tuple) else node).start_mark.index)
    indent = head - _line_start(text, head)
    end = _line_end(text, _end(text, _tail(node)))
    line = text[:end].rstrip("\r")
    if isinstance(step, int):
        entry = " " * indent + "-" + _item(value, indent + 2, text)
    else:
        entry = " " * indent + f"{scalar(step)}:" + _behind(value, indent + 2, text)
    return line + _break(text) + entry + text[len(line) :]


def _item(value: Any, indent: int, text: str) -> str:
    if isinstance(value, dict) and value:
        return " " + _block(value, indent, text).lstrip(" ")
    return _behind(value, indent, text)


def _tail(node: Node) -> Node:
    last = node.value[-1]
    if not isinstance(last, tuple):
        return last  # type: ignore[no-any-return]
    key, value = last
    return value if _last(value) > _last(key) else key  # type: ignore[no-any-return]


def _cut(text: str, path: Path) -> str:
    node = _compose(text)
    for step in path[:-1]:
        child = _child(node, step)
        if child is None:
            raise _CannotSplice
        node = child
    step = path[-1]
    position = step if isinstance(step, int) else [key.value for key, _ in node.value].index(step)
    if len(node.value) == 1:
        return _replace(text, node, [] if isinstance(node, SequenceNode) else {}, flow=True)
    if _is_flow(node):
        return _cut_flow(text, node, position)
    start, end = _span(text, node, position)
    return text[: _line_start(text, start)] + text[_line_end(text, end) + 1 :]


def _span(text: str, node: Node, position: int) -> tuple[int, int]:
    entry = node.value[position]
    key, value = entry if isinstance(entry, tuple) else (entry, entry)
    return int(key.start_mark.index), max(_end(text, value), _end(text, key))


def _cut_flow(text: str, node: Node, position: int) -> str:
    if position == 0:
        return text[: _span(text, node, 0)[0]] + text[_span(text, node, 1)[0] :]
    return text[: _span(text, node, position - 1)[1]] + text[_span(text, node, position)[1] :]


# --- the round trip


def _round_trip(text: str, path: Path, value: Any, *, delete: bool = False) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    data = yaml.load(text)
    inner = data
    for step in path[:-1]:
        if isinstance(inner, dict) and inner.get(step) is None:
            inner[step] = {}
        inner = inner[step]
    if delete:
        del inner[path[-1]]
    elif isinstance(inner, list) and path[-1] == len(inner):
        inner.append(value)
    else:
        inner[path[-1]] = value
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _shown(path: Path) -> str:
    return ".".join(str(step) for step in path)
