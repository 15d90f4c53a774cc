r"""Changing a human's YAML file and nothing else in it: comments, quotes and layout stay, byte for byte.

An edit is a splice at the places of the parsed file. Its result is read again and must say exactly
what was meant; where a splice cannot, ruamel.yaml's round trip does it, and where that cannot
either the edit is refused.

Example: ``edit("sending: {enabled: false} # the flag\n", ("sending", "enabled"), True)``.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gitbus.codec.emitting import emit
from gitbus.codec.loading import load
from gitbus.codec.scalars import shown
from gitbus.codec.splicing import CannotSplice, Splicer
from gitbus.errors import Invalid, Refused

Path = tuple[str | int, ...]


def edit(text: str, path: Path, value: Any) -> str:
    """Return the file with the value at ``path`` set; parents that are missing are made.

    A number one past the end of a list appends to it. Where the value stands there already, the
    file is returned as it is.

    Args:
        text: the file.
        path: the names and, in lists, the numbers that lead there.
        value: a JSON value.

    Raises:
        Invalid: the file cannot be read, or the value cannot be written.
        Refused: the change cannot be made by a program (rule ``cannot-edit``).
    """
    data = _read(text)
    wanted = _with(data, path, value)
    if _same(wanted, data):
        return text
    return _first(
        wanted,
        lambda: Splicer.of(text).set(path, value),
        lambda: Splicer.of(text, in_one_line=True).set(path, value),
        lambda: _round_trip(text, path, value),
    )


def remove(text: str, path: Path) -> str:
    """Return the file without what stands at ``path``.

    Args:
        text: the file.
        path: the names and, in lists, the numbers that lead there.

    Raises:
        Invalid: the file cannot be read.
        Refused: nothing stands there, or it cannot be removed by a program (rule ``cannot-edit``).
    """
    wanted = _without(_read(text), path)
    return _first(
        wanted,
        lambda: Splicer.of(text).remove(path),
        lambda: Splicer.of(text).remove(path, comments=True),
        lambda: _round_trip(text, path),
    )


def _read(text: str) -> Any:
    return load(encoded := text.encode("utf-8", "surrogatepass"), limit=len(encoded)).data


def _first(wanted: Any, *ways: Callable[[], str]) -> str:
    """Return the first result that reads as what is wanted."""
    for way in ways:
        try:
            result = way()
            if _same(_read(result), wanted):
                return result
        except (Invalid, YAMLError, CannotSplice, ValueError, LookupError, TypeError, AttributeError):
            continue
    raise _cannot("this file is laid out in a way that only a person can change")


def _cannot(message: str) -> Refused:
    return Refused(
        message, rule="cannot-edit", remedy="edit it by hand; `gitbus check` says whether it is right"
    )


def _same(left: Any, right: Any) -> bool:
    """Say whether two values are the same in types and order too, which ``==`` does not ask for."""
    return emit(left) == emit(right)


def _with(data: Any, path: Path, value: Any) -> Any:
    """Return the data with the change applied."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, str) and (data is None or isinstance(data, dict)):
        return {**(data or {}), step: _with((data or {}).get(step), tuple(rest), value)}
    if isinstance(step, int) and (data is None or isinstance(data, list)) and 0 <= step <= len(data or []):
        items = [*(data or [])]
        items[step : step + 1] = [_with(items[step] if step < len(items) else None, tuple(rest), value)]
        return items
    raise _cannot(f"there is no place for {shown(str(step))}")


def _without(data: Any, path: Path) -> Any:
    """Return the data with what stands at the path taken out."""
    step, *rest = path
    if isinstance(data, dict) and step in data:
        inner = {step: _without(data[step], tuple(rest))} if rest else {}
        return {key: inner.get(key, value) for key, value in data.items() if key != step or inner}
    if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data):
        return [*data[:step], *([_without(data[step], tuple(rest))] if rest else []), *data[step + 1 :]]
    raise _cannot(f"there is no {shown(str(step))}")


def _round_trip(text: str, path: Path, *values: Any) -> str:
    """Set the value, or remove what stands there, as ruamel.yaml does it."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    data = yaml.load(text)
    inner = data
    for step, following in pairwise(path):
        there = step in inner if isinstance(inner, dict) else isinstance(step, int) and step < len(inner)
        if not there or inner[step] is None:
            _put(inner, step, [] if isinstance(following, int) else {})
        inner = inner[step]
    if values:
        _put(inner, path[-1], values[0])
    else:
        del inner[path[-1]]
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _put(inner: Any, step: str | int, value: Any) -> None:
    if isinstance(inner, list) and step == len(inner):
        inner.append(value)
    else:
        inner[step] = value
