"""The engine of :mod:`gitbus.schema`: the library's validator with its work counted.

Rules: each keyword spends a step before it looks, a pattern what it may cost, and what is spent is
never exceeded; where the library is slow for a stranger's value (``uniqueItems``), ours is linear.

Example: ``check({"$ref": "https://example.com"})`` says that the reference leads to nothing.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from gitbus import patterns
from gitbus import schema as bounds

Keyword = Callable[..., Iterable[ValidationError] | None]

_left: ContextVar[int] = ContextVar("left", default=bounds.MAX_STEPS)


class _ExhaustedError(Exception):
    """The check would take more than :data:`gitbus.schema.MAX_STEPS`."""


def check(schema: Any) -> str | None:
    """See :func:`gitbus.schema.check`."""
    try:
        return _check(json.dumps(schema, allow_nan=False))
    except RecursionError:
        return "it is nested too deeply"
    except (TypeError, ValueError) as error:
        return f"it holds what JSON cannot say: {_cut(str(error))}"


def errors(instance: Any, schema: Mapping[str, Any]) -> list[tuple[bounds.Place, str]]:
    """See :func:`gitbus.schema.errors`."""
    if problem := check(schema):
        return [((), f"the schema cannot be used: {problem}")]
    return _errors(schema, instance)


@functools.lru_cache(maxsize=256)
def _check(text: str) -> str | None:
    schema = json.loads(text)
    if not isinstance(schema, dict):
        return "a schema is a mapping"
    if str(schema.get("$schema", bounds.DIALECT)).rstrip("#") != bounds.DIALECT:
        return f"$schema names another dialect than {bounds.DIALECT}; leave it out"
    for place, message in _errors(Draft202012Validator.META_SCHEMA, schema):
        return f"{'.'.join(map(str, place))}: {message}" if place else message
    return next(_inside(schema), None)


def _inside(schema: dict[str, Any]) -> Iterator[str]:
    """Yield what the metaschema does not see: references that lead nowhere, patterns that never end."""
    root = DRAFT202012.create_resource(schema)
    used: set[str] = set()
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    while waiting:
        part, resolver = waiting.pop()
        if isinstance(part.contents, dict):
            used |= part.contents.keys()
            yield from _references(part.contents, resolver)
            yield from _patterns(part.contents)
        waiting += [(sub, resolver.in_subresource(sub)) for sub in part.subresources()]
    if {"unevaluatedProperties", "patternProperties"} <= used:
        yield "unevaluatedProperties and patternProperties do not go together here"


def _references(part: dict[str, Any], resolver: Any) -> Iterator[str]:
    for keyword in ("$ref", "$dynamicRef"):
        try:
            resolver.lookup(part.get(keyword, "#"))
        except (Unresolvable, ValueError, TypeError, AttributeError):
            yield f"{keyword} {_cut(str(part[keyword]))} leads to nothing in this schema"


def _patterns(part: dict[str, Any]) -> Iterator[str]:
    own = [part["pattern"]] if "pattern" in part else []
    for pattern in [*own, *part.get("patternProperties", ())]:
        if why := patterns.why_not(pattern):
            yield _cut(why)


def _errors(schema: Any, instance: Any) -> list[tuple[bounds.Place, str]]:
    token = _left.set(bounds.MAX_STEPS)
    try:
        found = _Validator(schema, registry=REGISTRY).iter_errors(instance)
        return [
            (tuple(error.absolute_path), _cut(error.message)) for error in islice(found, bounds.MAX_ERRORS)
        ]
    except _ExhaustedError:
        return [((), f"checking it takes more than {bounds.MAX_STEPS:,} steps")]
    except RecursionError:
        return [((), "the schema leads in a circle, or the value is nested too deeply")]
    finally:
        _left.reset(token)


def _spend(steps: int) -> None:
    left = _left.get() - steps
    if left < 0:
        raise _ExhaustedError
    _left.set(left)


def _counted(keyword: Keyword) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        _spend(1 + (len(value) if isinstance(value, list) else 0))
        return keyword(validator, value, instance, schema)

    return counted


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
    if isinstance(instance, str):
        _spend(patterns.cost(pattern, len(instance)) // 50)
    return _KEYWORDS["pattern"](validator, pattern, instance, schema)


def _names(keyword: str) -> Keyword:
    """Return a keyword that tries ``patternProperties`` on names, with the cost of it counted."""

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        if isinstance(instance, dict):
            for pattern in schema.get("patternProperties", ()):
                _spend(sum(patterns.cost(pattern, len(name)) for name in instance) // 50)
        return _KEYWORDS[keyword](validator, value, instance, schema)

    return counted


def _unique(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Say ``uniqueItems`` in linear time; the library compares each with each."""
    if value and isinstance(instance, list):
        texts = [json.dumps(_plain(item), sort_keys=True) for item in instance]
        if len(set(texts)) < len(texts):
            yield ValidationError("the list has an item twice")


def _plain(value: Any) -> Any:
    """Return the value with 1.0 as 1, which JSON Schema takes for the same."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _cut(text: str) -> str:
    return text if len(text) <= bounds.MAX_MESSAGE else text[: bounds.MAX_MESSAGE - 1] + "…"


_KEYWORDS: Mapping[str, Keyword] = Draft202012Validator.VALIDATORS
_OWN: dict[str, Keyword] = {
    **_KEYWORDS,
    "pattern": _pattern,
    "patternProperties": _names("patternProperties"),
    "additionalProperties": _names("additionalProperties"),
    "uniqueItems": _unique,
}
_extended: Callable[..., Any] = extend
_Validator = _extended(Draft202012Validator, {name: _counted(keyword) for name, keyword in _OWN.items()})
