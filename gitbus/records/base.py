"""What every record has, and the types of its fields.

Rules: records are frozen, refuse unknown fields, never coerce one scalar type into another, and
read enum words without regard to case, ``-``, ``_`` or space. A validator that refuses raises
:func:`rule`, so that the reader can say which rule it was and what would help.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from gitbus import ids


def rule(name: str, message: str, remedy: str = "", at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """Return the error with which a validator refuses.

    Args:
        name: the rule's stable name, such as ``fact-without-evidence``.
        message: what is wrong.
        remedy: what would make it pass.
        at: where in the validated part, when a validator of the whole part refuses.
    """
    context = {"message": message, "remedy": remedy, "at": at}
    return PydanticCustomError(name.replace("-", "_"), "{message}", context)


class Part(BaseModel):
    """A mapping inside a record."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        arbitrary_types_allowed=False,
        defer_build=True,  # a command reads few of the kinds, and each costs milliseconds to build
    )


class Record(Part):
    """One YAML file on the bus."""

    apiVersion: Literal["gitbus/v1"] = "gitbus/v1"
    kind: str


def _checked(check: Callable[[str], str | None], name: str) -> Callable[[str], str]:
    def validate(text: str) -> str:
        why = check(text)
        if why:
            raise rule(name, f"{text!r}: {why}")
        return text

    return validate


def _parsed(parse: Callable[[Any], Any], name: str, kinds: tuple[type, ...]) -> Callable[[Any], Any]:
    def validate(value: Any) -> Any:
        if not isinstance(value, str):
            if isinstance(value, kinds) and not isinstance(value, bool):
                return value
            raise rule(name, f"{value!r} is not text")
        try:
            return parse(value)
        except ValueError as error:
            raise rule(name, f"{value!r}: {error}") from None

    return validate


def words(*allowed: str) -> BeforeValidator:
    """Return a validator that reads these words without regard to case, ``-``, ``_`` and space."""
    table = {_plain(word): word for word in allowed}

    def normalise(value: Any) -> Any:
        return table.get(_plain(value), value) if isinstance(value, str) else value

    return BeforeValidator(normalise)


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")


def _is_item(text: str) -> str | None:
    return None if ids.split_item(text) else "an item's id is goal.task.name"


def _matches(pattern: Any, what: str) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else f"not {what}"


_SHA = _matches(ids.SHA256, "a SHA-256 in lower-case hex")
_DIGEST = _matches(re.compile(r"sha256:[0-9a-f]{64}"), "sha256: and 64 hex digits")
_NONCE = _matches(re.compile(r"[0-9a-f]{32}"), "32 hex digits")

Text = Annotated[str, Strict()]
Int = Annotated[int, Strict()]
Count = Annotated[int, Strict(), Field(ge=0)]
Positive = Annotated[int, Strict(), Field(ge=1)]
Flag = Annotated[bool, Strict()]
Unit = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Id = Annotated[str, Strict(), AfterValidator(_checked(ids.why_not_id, "bad-id"))]
ItemId = Annotated[str, Strict(), AfterValidator(_checked(_is_item, "bad-id"))]
ArtifactPath = Annotated[str, Strict(), AfterValidator(_checked(ids.why_not_path, "bad-path"))]
Oid = Annotated[str, Strict(), AfterValidator(_checked(_matches(ids.OID, "an object id"), "bad-oid"))]
Sha256 = Annotated[str, Strict(), AfterValidator(_checked(_SHA, "bad-hash"))]
Digest = Annotated[str, Strict(), AfterValidator(_checked(_DIGEST, "bad-hash"))]
Nonce = Annotated[str, Strict(), AfterValidator(_checked(_NONCE, "bad-nonce"))]
Json = Any
"""Any JSON value; the reader has refused what JSON cannot say."""

_AS_TEXT = WithJsonSchema({"type": "string"})
Time = Annotated[
    datetime,
    BeforeValidator(_parsed(ids.parse_time, "bad-time", (datetime,))),
    PlainSerializer(ids.time_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_parsed(ids.duration, "bad-duration", (timedelta,))),
    PlainSerializer(ids.duration_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^(0|[1-9][0-9]*)[smhd]$"}),
]
Size = Annotated[
    int,
    BeforeValidator(_parsed(ids.size, "bad-size", (int,))),
    PlainSerializer(ids.size_text, return_type=str),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}),
]
