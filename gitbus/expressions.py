"""``${…}`` in a goal: references to what other tasks gave, resolved as data and never evaluated.

Rules: a reference that stands alone keeps the value's type, inside a longer text it is inserted as
text (``null`` as nothing, anything that is no text as JSON). ``$${`` is a literal ``${``.

Example: ``resolve("Hello ${write.outputs.name}", {"write": {"outputs": {"name": "Ada"}}})`` gives
``"Hello Ada"``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_REFERENCE = re.compile(r"([A-Za-z0-9_-]+)((?:\.[A-Za-z0-9_-]+|\[(?:0|[1-9][0-9]{0,6})\])*)")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[([0-9]+)\]")


class Unresolved(ValueError):
    """A reference that is malformed, or that leads to nothing."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed ``${root.step[0]}``: the root's name, and the steps below it."""

    text: str
    root: str
    steps: tuple[str | int, ...]


def parse(inner: str) -> Reference:
    """Parse what stands between ``${`` and ``}``.

    Raises:
        Unresolved: it is no reference.
    """
    match = _REFERENCE.fullmatch(inner.strip())
    if not match:
        raise Unresolved(f"${{{inner}}} is no reference; one reads like ${{task.outputs.name[0]}}")
    steps = tuple(int(index) if index else name for name, index in _STEP.findall(match[2]))
    return Reference(inner.strip(), match[1], steps)


def references(
    value: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
    """Yield every reference in a JSON value with its place in it.

    Raises:
        Unresolved: something that begins like a reference is none.
    """
    if isinstance(value, str):
        for match in _TOKEN.finditer(value):
            if match[0] == "${":
                raise Unresolved(f"{value!r}: a ${{ without its }}; write $${{ for the characters themselves")
            if match[1] is not None:
                yield place, parse(match[1])
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from references(inner, (*place, key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from references(inner, (*place, index))


def resolve(value: Any, scope: Mapping[str, Any]) -> Any:
    """Return the value with every reference replaced.

    Args:
        value: a JSON value.
        scope: root name to value; a root that is None gives null for everything below it.

    Raises:
        Unresolved: a reference leads to nothing.
    """
    if isinstance(value, str):
        return _resolve_text(value, scope)
    if isinstance(value, Mapping):
        return {key: resolve(inner, scope) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve(inner, scope) for inner in value]
    return value


def _resolve_text(text: str, scope: Mapping[str, Any]) -> Any:
    if "${" not in text:
        return text
    whole = _TOKEN.fullmatch(text)
    if whole and whole[1] is not None:
        return _follow(parse(whole[1]), scope)

    def insert(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _as_text(_follow(parse(match[1]), scope))
        if match[0] == "${":
            raise Unresolved(f"{text!r}: a ${{ without its }}")
        return "${"

    return _TOKEN.sub(insert, text)


def _follow(reference: Reference, scope: Mapping[str, Any]) -> Any:
    if reference.root not in scope:
        raise Unresolved(f"${{{reference.text}}}: there is no {reference.root} here")
    value = scope[reference.root]
    if value is None:
        return None
    for step in reference.steps:
        value = _step(value, step, reference)
    return value


def _step(value: Any, step: str | int, reference: Reference) -> Any:
    if isinstance(value, Mapping) and str(step) in value:
        return value[str(step)]
    if isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
        return value[step]
    raise Unresolved(f"${{{reference.text}}}: there is no {step}")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
