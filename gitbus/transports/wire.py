"""The lines that sender, child and ``exec`` programs speak: one JSON object a line.

A request, as the child and an ``exec`` program read it from stdin::

    {"verb": "send", "name": "slack", "channel": {…}, "deadline": 8123.5, "seconds": 300.0,
     "outgoing": {"item": …, "revision": 1, "digest": …, "date": …, "idempotency_key": …,
                  "message": {…}, "parts": [{"role": "text", "name": null, "media_type": …, "data": base64}]}}

``deadline`` is on CLOCK_BOOTTIME (CLOCK_MONOTONIC where there is none), ``seconds`` is what is left
of it. The verbs and the one key of what answers them:

=========  ==================================================================================
describe   ``{"description": {"protocol": 1, …}}``
check      ``{"identity": {…}}``, or ``{"unusable": {"message": …, "rule": …, "remedy": …, "passing": true}}``
send       ``{"answer": {"outcome": "sent" | "not_sent" | "unknown", "passing": false, "reason": …,
           "recipients": {address: text}, "message_id": …, "provider_id": …}}``; before it the child
           says ``{"began": true}`` when the first byte goes out that cannot be taken back
close      ``{"closed": true}`` (the child only: a program is started for one verb)
=========  ==================================================================================

Reading is strict: an unknown key, a wrong type or a ``passing`` beside anything but ``not_sent``
makes it no answer at all, and what is no answer is ``unknown``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from gitbus.transports.base import OUTCOMES, ROLES, Answer, Channel, Identity, Outgoing, Part, Unusable, clock

PROTOCOL = 1
_SHORTEST_SECRET = 4  # of less than that every text is full
Json = dict[str, Any]


class Garbage(ValueError):
    """What came over the pipe is not what the protocol allows there."""


def line(value: Mapping[str, Any]) -> bytes:
    """Return a value as one line."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def parse(data: bytes) -> Json:
    """Read one JSON object.

    Raises:
        Garbage: it is none, a key stands there twice, or a text could not be written as UTF-8.
    """
    try:
        value = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise Garbage("this is no line of JSON") from None
    if b"\\u" in data and not _is_unicode(value):
        raise Garbage("a text holds half a surrogate pair")
    if not isinstance(value, dict):
        raise Garbage("this is no JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> Json:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Garbage("a key stands there twice")
    return value


def _is_unicode(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def only(value: Json, key: str) -> object:
    """Return what stands under a key that has to stand alone.

    Raises:
        Garbage: it does not.
    """
    if set(value) != {key}:
        raise Garbage(f"expected an object with the key {key} alone")
    return value[key]


def request(
    verb: str, name: str, channel: Channel, deadline: float, outgoing: Outgoing | None = None
) -> Json:
    """Return a request."""
    value: Json = {
        "verb": verb,
        "name": name,
        "channel": dict(channel),
        "deadline": deadline,
        "seconds": round(max(deadline - clock(), 0.0), 3),
    }
    if outgoing is not None:
        value["outgoing"] = outgoing_json(outgoing)
    return value


def outgoing_json(outgoing: Outgoing) -> Json:
    """Return an item as JSON, its bytes in base64."""
    return {
        "item": outgoing.item,
        "revision": outgoing.revision,
        "digest": outgoing.digest,
        "date": outgoing.date,
        "idempotency_key": outgoing.idempotency_key,
        "message": dict(outgoing.message),
        "parts": [
            {
                "role": part.role,
                "name": part.name,
                "media_type": part.media_type,
                "data": base64.b64encode(part.data).decode("ascii"),
            }
            for part in outgoing.parts
        ],
    }


def read_outgoing(value: object) -> Outgoing:
    """Read what :func:`outgoing_json` wrote.

    Raises:
        Garbage: it is not that.
    """
    fields = _object(value, "item", "revision", "digest", "date", "idempotency_key", "message", "parts")
    outgoing = Outgoing(
        item=_text(fields, "item"),
        revision=_typed(fields, "revision", int),
        digest=_text(fields, "digest"),
        date=_text(fields, "date"),
        message=_typed(fields, "message", dict),
        parts=tuple(_read_part(one) for one in _typed(fields, "parts", list)),
    )
    if fields.get("idempotency_key") != outgoing.idempotency_key:
        raise Garbage("the idempotency key is not the one of item and digest")
    return outgoing


def _read_part(value: object) -> Part:
    fields = _object(value, "role", "name", "media_type", "data")
    role = next((one for one in ROLES if one == fields.get("role")), None)
    if role is None:
        raise Garbage("a part has no known role")
    try:
        data = base64.b64decode(_text(fields, "data"), validate=True)
    except binascii.Error:
        raise Garbage("a part's data is no base64") from None
    return Part(role, _maybe(fields, "name"), _text(fields, "media_type"), data)


def answer_json(answer: Answer) -> Json:
    """Return an answer as JSON."""
    value = asdict(answer)
    value["recipients"] = dict(answer.recipients)
    return {"answer": value}


def read_answer(value: object) -> Answer:
    """Read an answer, strictly.

    Raises:
        Garbage: it is not one.
    """
    fields = _object(
        value, "outcome", "passing", "reason", "recipients", "message_id", "provider_id", "identity"
    )
    outcome = next((one for one in OUTCOMES if one == fields.get("outcome")), None)
    if outcome is None:
        raise Garbage("an answer has no known outcome")
    passing = fields.get("passing", False)
    if not isinstance(passing, bool) or (passing and outcome != "not_sent"):
        raise Garbage("`passing` is for not_sent alone")
    recipients = fields.get("recipients") or {}
    if not isinstance(recipients, dict) or not all(isinstance(one, str) for one in recipients.values()):
        raise Garbage("recipients map an address to a text")
    identity = fields.get("identity")
    return Answer(
        outcome=outcome,
        passing=passing,
        reason=_maybe(fields, "reason"),
        recipients=recipients,
        message_id=_maybe(fields, "message_id"),
        provider_id=_maybe(fields, "provider_id"),
        identity=None if identity is None else read_identity(identity),
    )


def identity_json(identity: Identity) -> Json:
    """Return an identity as JSON."""
    return {"identity": asdict(identity)}


def read_identity(value: object, **defaults: str) -> Identity:
    """Read an identity; ``defaults`` win over what it says.

    Raises:
        Garbage: it is not one.
    """
    names = tuple(Identity.__dataclass_fields__)
    fields = {**_object(value, *names), **defaults}
    optional = {name: _maybe(fields, name) for name in names if name != "channel"}
    return Identity(channel=_text(fields, "channel"), **optional)


def unusable_json(error: Unusable) -> Json:
    """Return why a channel cannot be used, as JSON."""
    keys = ("message", "rule", "remedy", "passing")
    return {"unusable": {key: getattr(error, key) for key in keys}}


def read_unusable(value: object) -> Unusable:
    """Read why a channel cannot be used.

    Raises:
        Garbage: it does not say.
    """
    fields = _object(value, "message", "rule", "remedy", "passing")
    passing = fields.get("passing", True)
    if not isinstance(passing, bool):
        raise Garbage("`passing` is true or false")
    return Unusable(
        _text(fields, "message"),
        rule=_maybe(fields, "rule") or "channel-unusable",
        remedy=_maybe(fields, "remedy"),
        passing=passing,
    )


def scrubber(hidden: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return a function that takes secrets out of every text of a value, in base64 too (as SASL sends them).

    Args:
        hidden: the secrets by the name of their variable, which then stands where the secret was.
    """
    shown = [(re.compile(form), f"<{name}>") for name, secret in hidden.items() for form in _forms(secret)]

    def scrub(value: Any) -> Any:
        if isinstance(value, str) and value not in OUTCOMES:
            for form, name in shown:
                value = form.sub(name, value)
            return value
        if isinstance(value, Mapping):
            return {key: scrub(one) for key, one in value.items()}
        return [scrub(one) for one in value] if isinstance(value, list | tuple) else value

    return scrub


def _forms(secret: str) -> list[str]:
    """Return what a secret looks like: itself, and base64 at each of the offsets a prefix may give it."""
    if len(secret) < _SHORTEST_SECRET:
        return []
    raw = secret.encode("utf-8", "surrogateescape")
    coded = (base64.b64encode(bytes(offset) + raw).decode("ascii") for offset in range(3))
    inner = [text[skip:-4] for skip, text in zip((0, 2, 3), coded, strict=True)]
    around = "[A-Za-z0-9+/=]*"
    return [re.escape(secret), *(around + re.escape(text) + around for text in inner if len(text) > 3)]


def _object(value: object, *keys: str) -> Json:
    if not isinstance(value, dict) or not set(value) <= set(keys):
        raise Garbage(f"expected an object with no keys but {', '.join(keys)}")
    return value


def _typed(fields: Json, key: str, kind: type) -> Any:
    value = fields.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Garbage(f"`{key}` is no {kind.__name__}")
    return value


def _text(fields: Json, key: str) -> str:
    text: str = _typed(fields, key, str)
    return text


def _maybe(fields: Json, key: str) -> str | None:
    return None if fields.get(key) is None else _text(fields, key)
