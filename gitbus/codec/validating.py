r"""From data to records and back: what pydantic finds becomes a message with its place.

Example: ``read(b"kind: Task\n…", Task, path="goals/a/tasks/b.yaml")``.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core.core_schema import ErrorType

from gitbus.codec.emitting import emit
from gitbus.codec.loading import LIMIT, Loaded, checked, decoded, guessed, load
from gitbus.codec.scalars import shown
from gitbus.errors import Invalid
from gitbus.records import KINDS, Record

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST = 100
"""Problems of one file that are explained; nobody reads more."""

R = TypeVar("R", bound=Record)
Loc = tuple[str | int, ...]

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "none_required": "null",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_KNOWN = frozenset(get_args(ErrorType))


def write(record: Record) -> bytes:
    """Return the canonical bytes of a record.

    Raises:
        Invalid: it holds what cannot be written (a control character in a text).
    """
    return _text(record).encode("utf-8")


def _text(record: Record) -> str:
    return emit(record.model_dump(mode="json", by_alias=True))


def read(text: bytes, model: type[R], *, path: str = "", limit: int = LIMIT) -> R:
    """Read one record of a known kind.

    Raises:
        Invalid: it is not one; the first thing wrong, with its place, and all else in ``others``.
    """
    return read_as_written(text, model, path=path, limit=limit)[0]


def read_as_written(text: bytes, model: type[R], *, path: str = "", limit: int = LIMIT) -> tuple[R, bool]:
    """Read one record of a known kind; say also whether its bytes are the ones that :func:`write` gives.

    What the fast parser and the model made of a text is believed where writing it gives that very text.

    Raises:
        Invalid: it is not one; the first thing wrong, with its place, and all else in ``others``.
    """
    whole = decoded(text, path, limit)
    guess = guessed(whole)
    if guess is not None:
        with contextlib.suppress(ValidationError, Invalid):  # what is wrong is said below
            record = model.model_validate(guess, by_alias=True, by_name=False)
            if _text(record) == whole:
                return record, True
    return _record(checked(guess, whole, path), model), False


def read_any(text: bytes, *, path: str = "", limit: int = LIMIT) -> Record:
    """Read one record of the kind that it says it is.

    Raises:
        Invalid: it is not one.
    """
    loaded = load(text, path=path, limit=limit)
    kind = loaded.data.get("kind")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        near = difflib.get_close_matches(str(kind).capitalize(), KINDS, 1)
        remedy = f"did you mean {near[0]}?" if near else "one of " + ", ".join(sorted(KINDS))
        raise _wrong_head(loaded, "kind", "wrong-kind", remedy)
    return _record(loaded, model)


def _record(loaded: Loaded, model: type[R]) -> R:
    found = problems(loaded, model)
    if isinstance(found, list):
        first, *others = found
        first.others = tuple(others)
        raise first
    return found


def problems(loaded: Loaded, model: type[R]) -> R | list[Invalid]:
    """Return the record, or what keeps the data from being one, in the file's order: the first hundred things."""
    head = (
        ("apiVersion", "gitbus/v1", "wrong-api-version"),
        ("kind", str(model.model_fields["kind"].default), "wrong-kind"),
    )
    wrong = [
        _wrong_head(loaded, name, rule, f"write `{name}: {expected}`")
        for name, expected, rule in head
        if loaded.data.get(name) != expected
    ]
    if wrong:
        return wrong
    try:
        return model.model_validate(loaded.data, by_alias=True, by_name=False)
    except ValidationError as error:
        found = [_problem(loaded, one, model) for one in error.errors(include_url=False)[:MOST]]
        return sorted(found, key=lambda one: (one.line, one.column))


def _wrong_head(loaded: Loaded, name: str, rule: str, remedy: str) -> Invalid:
    line, column = loaded.place((name,))
    found = loaded.data.get(name)
    message = f"missing `{name}`" if name not in loaded.data else f"`{name}` is {_value(found)}"
    return Invalid(message, rule=rule, path=loaded.path, line=line, column=column, remedy=remedy)


def _value(value: Any) -> str:
    """Return a value for a message."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{shown(value)}"' if isinstance(value, str) else shown(str(value))


def _problem(loaded: Loaded, error: ErrorDetails, model: type[Record]) -> Invalid:
    loc, kind = (*error["loc"], *(error.get("ctx") or {}).get("at", ())), error["type"]
    line, column = loaded.place(loc, key=kind == "extra_forbidden")
    rule, message, remedy = _explained(error, model, _name(loaded.data, loc))
    return Invalid(message, rule=rule, path=loaded.path, line=line, column=column, remedy=remedy)


def _explained(error: ErrorDetails, model: type[Record], name: str) -> tuple[str, str, str | None]:
    """Return rule, message and remedy of one of pydantic's errors."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind not in _KNOWN:
        where = f"`{name}`: " if name else ""
        return kind.replace("_", "-"), f"{where}{error['msg']}", context.get("remedy") or None
    if kind == "missing":
        return "missing-field", f"missing `{name}`", "add it"
    if kind == "union_tag_not_found":
        tag = str(context["discriminator"]).strip("'")
        return "missing-field", f"missing `{name}.{tag}`", "add it"
    if kind == "extra_forbidden":
        return "unknown-field", f"unknown field `{name}`", _nearest(model, error["loc"])
    if kind in _TYPES:
        remedy = "put quotes around it" if _TYPES[kind] == "text" and _is_scalar(error["input"]) else None
        return "wrong-type", f"`{name}` must be {_TYPES[kind]}, not {_value(error['input'])}", remedy
    return "bad-value", f"`{name}` {_bound(error)}", None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float))


def _bound(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    if kind in _BOUNDS:
        word, name = _BOUNDS[kind]
        return f"must be {word} {context[name]}"
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}, not {_value(error['input'])}"
    if kind == "union_tag_invalid":
        tag = str(context["discriminator"]).strip("'")
        return f"has a `{tag}` that must be {context['expected_tags']}, not '{shown(str(context['tag']))}'"
    if kind in ("too_short", "string_too_short"):
        return f"must have at least {context['min_length']}"
    if kind in ("too_long", "string_too_long"):
        return f"must have at most {context['max_length']}"
    return f"is not right: {shown(error['msg'].removeprefix('Value error, '), 200)}"


def _name(data: Any, loc: Loc) -> str:
    """Return the name of a place: ``tasks.mail.needs[1]``, without pydantic's branches; empty for the whole."""
    name, last = "", len(loc) - 1
    for number, step in enumerate(loc):
        if isinstance(step, int) and isinstance(data, list) and step < len(data):
            name, data = f"{name}[{step}]", data[step]
        elif isinstance(data, dict) and step in data:
            name, data = _joined(name, step), data[step]
        elif isinstance(data, dict) and number == last and step != "[key]":
            name = _joined(name, step)
    return name


def _joined(name: str, step: str | int) -> str:
    return f"{name}.{shown(str(step))}" if name else shown(str(step))


def _nearest(model: type[Record], loc: Loc) -> str:
    names = [name for one in _models_at(model, loc[:-1]) for name, _ in _fields(one)]
    near = difflib.get_close_matches(str(loc[-1]), names, 1)
    return (
        f"did you mean `{near[0]}`?" if near else "remove it; `gitbus schema` lists the fields that there are"
    )


def _fields(model: type[BaseModel]) -> Iterable[tuple[str, Any]]:
    return ((field.alias or name, field.annotation) for name, field in model.model_fields.items())


def _models_at(model: type[BaseModel], loc: Loc) -> list[type[BaseModel]]:
    """Return the models that may stand at a place; of a union with a tag, the tag's own."""
    here: list[type[BaseModel]] = [model]
    for step in loc:
        tagged = [one for one in here if any(_is_tag(kind, step) for _, kind in _fields(one))]
        inner = [
            found for one in here for name, kind in _fields(one) if name == step for found in _models_in(kind)
        ]
        here = inner or tagged or here
    return here


def _is_tag(annotation: Any, step: str | int) -> bool:
    return get_origin(annotation) is Literal and get_args(annotation) == (step,)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]
