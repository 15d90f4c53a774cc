r"""From data to records and back: what pydantic finds becomes a message with its place.

Example: ``read(b"kind: Task\\n…", Task, path="goals/a/tasks/b.yaml")``.
"""

from __future__ import annotations

import difflib
from typing import Any, TypeVar

from pydantic import ValidationError

from gitbus.codec.emitting import emit
from gitbus.codec.loading import Loaded, load
from gitbus.errors import Invalid
from gitbus.records import (
    KINDS,
    Approval,
    Bus,
    Goal,
    Item,
    Lease,
    Receipt,
    Record,
    Refusal,
    Report,
    Resolution,
    Result,
    Review,
    Task,
    Worker,
)

LIMIT = 1 << 20
"""The bytes that a record has at the most, unless ``bus.yaml`` says otherwise."""

R = TypeVar("R", bound=Record)

_RULES = {
    "missing": "missing-field",
    "extra_forbidden": "unknown-field",
    "union_tag_invalid": "bad-value",
    "union_tag_not_found": "missing-field",
}


def write(record: Record) -> bytes:
    """Return the canonical bytes of a record.

    Raises:
        Invalid: it holds what cannot be written (a control character in a text).
    """
    return emit(record.model_dump(mode="json", by_alias=True)).encode("utf-8")


def read(text: bytes, model: type[R], *, path: str = "", limit: int = LIMIT) -> R:
    """Read one record of a known kind.

    Raises:
        Invalid: it is not one; the first thing wrong, with its place.
    """
    loaded = load(text, path=path, limit=limit)
    found = problems(loaded, model)
    if isinstance(found, list):
        raise found[0]
    return found


def read_any(text: bytes, *, path: str = "", limit: int = LIMIT) -> Record:
    """Read one record of the kind that it says it is.

    Raises:
        Invalid: it is not one.
    """
    loaded = load(text, path=path, limit=limit)
    kind = loaded.data.get("kind")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        line, column = loaded.place(("kind",))
        raise Invalid(
            f"`kind` is {kind!r}" if kind is not None else "`kind` is missing",
            rule="wrong-kind",
            path=path,
            line=line,
            column=column,
            remedy="one of " + ", ".join(sorted(KINDS)),
        )
    found = problems(loaded, model)
    if isinstance(found, list):
        raise found[0]
    return found


def problems(loaded: Loaded, model: type[R]) -> R | list[Invalid]:
    """Return the record, or everything that keeps the data from being one, in the file's order."""
    data = loaded.data
    wrong = [
        _wrong_head(loaded, name, expected) for name, expected in _head(model) if data.get(name) != expected
    ]
    if wrong:
        return wrong
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = [_problem(loaded, dict(one), model) for one in error.errors(include_url=False)]
        return sorted(found, key=lambda one: (one.line, one.column))


def _head(model: type[Record]) -> tuple[tuple[str, str], ...]:
    return (("apiVersion", "gitbus/v1"), ("kind", str(model.model_fields["kind"].default)))


def _wrong_head(loaded: Loaded, name: str, expected: str) -> Invalid:
    line, column = loaded.place((name,))
    found = loaded.data.get(name)
    return Invalid(
        f"`{name}` is {found!r}" if found is not None else f"`{name}` is missing",
        rule="wrong-kind" if name == "kind" else "wrong-api-version",
        path=loaded.path,
        line=line,
        column=column,
        remedy=f"write `{name}: {expected}`",
    )


def _problem(loaded: Loaded, error: dict[str, Any], model: type[Record]) -> Invalid:
    loc = tuple(error["loc"])
    line, column = loaded.place(loc)
    kind = str(error["type"])
    context = error.get("ctx") or {}
    name = ".".join(str(step) for step in loc) or "the record"
    remedy = str(context.get("remedy") or "") or None
    if kind == "missing":
        message = f"`{name}` is missing"
    elif kind == "extra_forbidden":
        message = f"unknown field `{name}`"
        remedy = _nearest(str(loc[-1]), model, loc)
    else:
        message = f"`{name}`: {_lower(str(error['msg']))}"
    return Invalid(message, rule=_rule(kind), path=loaded.path, line=line, column=column, remedy=remedy)


def _rule(kind: str) -> str:
    if kind in _RULES:
        return _RULES[kind]
    if kind.endswith(("_type", "_parsing")) or kind in ("is_instance_of", "float_type"):
        return "wrong-type"
    if kind in ("literal_error", "enum", "too_short", "too_long") or kind.startswith(
        ("greater_than", "less_than", "string_", "finite_number", "value_error")
    ):
        return "bad-value"
    return kind.replace("_", "-")


def _lower(message: str) -> str:
    return message.removeprefix("Input ").removeprefix("Value error, ")


def _nearest(name: str, model: type[Record], loc: tuple[Any, ...]) -> str | None:
    names = [field.alias or key for key, field in model.model_fields.items()] if len(loc) == 1 else []
    near = difflib.get_close_matches(name, names, 1)
    return (
        f"did you mean `{near[0]}`?" if near else "remove it; `gitbus schema` lists the fields that there are"
    )


def kind_of_path(path: str) -> type[Record] | None:
    """Return which record stands at a path of the bus; None where none does (a payload, an artifact)."""
    if not path.endswith(".yaml"):
        return None
    match path.split("/"):
        case ["archive", _, _, *rest]:
            return _kind(rest)
        case parts:
            return _kind(parts)


def _kind(parts: list[str]) -> type[Record] | None:
    match parts:
        case ["bus.yaml"]:
            return Bus
        case ["workers", _]:
            return Worker
        case ["refused", _]:
            return Refusal
        case ["goals", _, name]:
            return _GOAL.get(name)
        case ["goals", _, folder, _]:
            return _IN_GOAL.get(folder)
        case ["outbox", _, "reviews", _]:
            return Review
        case ["outbox", _, name]:
            return _OUTBOX.get(name.split(".")[0])
        case _:
            return None


_GOAL: dict[str, type[Record]] = {"goal.yaml": Goal, "report.yaml": Report}
_IN_GOAL: dict[str, type[Record]] = {"tasks": Task, "results": Result, "refused": Refusal}
_OUTBOX: dict[str, type[Record]] = {
    "item": Item,
    "approval": Approval,
    "lease": Lease,
    "receipt": Receipt,
    "resolution": Resolution,
}
