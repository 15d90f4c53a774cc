"""What a result would send: the items of the goal's template and those that the worker proposes.

Rules: the goal's author says where things go, the channel bounds it, and nothing that came from a
worker may carry a line break into a header. The same function checks a result when it comes and
makes the items when it was taken, so that what was checked is what is made.

Example: ``proposals(graph, planned, result, files, bus)`` returns one :class:`Proposal` for a task
with an ``item:`` template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gitbus import addresses, ids
from gitbus.errors import Refused
from gitbus.expressions import Unresolved, resolve
from gitbus.graph import Graph, Planned
from gitbus.history import Entry
from gitbus.records import Bus, Channel, Message, PayloadFile, Result, Template
from gitbus.records.work import Artifact, ProposedItem

HEADERS = re.compile(
    r"(?i:x-[a-z0-9-]{1,60}|list-[a-z0-9-]{1,60}|in-reply-to|references|auto-submitted|keywords)"
)
"""Header fields that a message may set by itself; the others are gitbus's (RFC 5322, RFC 2369)."""

_TEXT = {
    "text": ("body.txt", "text/plain"),
    "html": ("body.html", "text/html"),
    "json": ("body.json", "application/json"),
}


class ProposalRefused(ValueError):
    """Something that must not become an item: the rule, the place in the result, and why."""

    def __init__(self, rule: str, place: tuple[str | int, ...], message: str) -> None:
        """Keep the rule's name and the place beside the message."""
        super().__init__(message)
        self.rule = rule
        self.place = place
        self.message = message


@dataclass(frozen=True)
class Proposal:
    """An item to be, with the files of its payload."""

    id: str
    channel: str
    message: Message
    payload: tuple[PayloadFile, ...]
    files: Mapping[str, bytes | Entry]
    confidence: float | None
    send_at: datetime | None
    together: str | None


def proposals(
    graph: Graph, planned: Planned, result: Result, files: Mapping[str, Entry], bus: Bus
) -> tuple[Proposal, ...]:
    """Return the items that a result gives rise to.

    Args:
        graph: the goal.
        planned: the task that was answered.
        result: its answer, already valid by itself.
        files: the result's artifacts by path.
        bus: the effective Bus.

    Raises:
        ProposalRefused: one of them must not be.
    """
    made = []
    if planned.node.item:
        made.append(_from_template(graph, planned, planned.node.item, result, files, bus))
    made += [_from_worker(graph, planned, index, result, files, bus) for index in range(len(result.items))]
    seen: set[str] = set()
    for proposal in made:
        if proposal.id in seen:
            raise ProposalRefused("item-twice", ("items",), f"two items would be called {proposal.id}")
        seen.add(proposal.id)
    return tuple(made)


def _from_template(
    graph: Graph, planned: Planned, template: Template, result: Result, files: Mapping[str, Entry], bus: Bus
) -> Proposal:
    scope = graph.scope(planned)
    scope[planned.group or planned.id] = scope[planned.id] = {"outputs": result.outputs}
    try:
        filled = resolve(template.model_dump(mode="json", by_alias=True), scope)
    except Unresolved as error:
        raise ProposalRefused(
            "unresolved", ("outputs",), f"the goal's item cannot be filled in: {error}"
        ) from None
    message = _message(filled, ("outputs",))
    by_path = {artifact.path: artifact for artifact in result.artifacts}
    payload: list[tuple[PayloadFile, bytes | Entry]] = [
        *(_made(role, filled[role]) for role in ("text", "html", "json") if filled[role] is not None),
        *(_attached(path, None, by_path, files, ("outputs",)) for path in filled["attachments"]),
    ]
    send_at = _time(filled["send_at"])
    return _proposal(
        graph,
        planned,
        template.name,
        template.channel,
        message,
        payload,
        result.confidence,
        send_at,
        bus,
        ("outputs",),
    )


def _from_worker(
    graph: Graph, planned: Planned, index: int, result: Result, files: Mapping[str, Entry], bus: Bus
) -> Proposal:
    place = ("items", index)
    proposed: ProposedItem = result.items[index]
    if proposed.channel not in planned.node.channels:
        raise ProposalRefused(
            "channel-not-allowed",
            (*place, "channel"),
            f"the task may not propose items for {proposed.channel}",
        )
    by_path = {artifact.path: artifact for artifact in result.artifacts}
    raw = proposed.message.model_dump(mode="json", by_alias=True)
    message = _message(raw, (*place, "message"))
    payload: list[tuple[PayloadFile, bytes | Entry]] = [
        _attached(raw[role], role, by_path, files, (*place, "message", role))
        for role in ("text", "html", "json")
        if raw[role] is not None
    ]
    payload += [
        _attached(one.path, None, by_path, files, (*place, "message", "attachments"), one.name)
        for one in proposed.message.attachments
    ]
    confidence = result.confidence if proposed.confidence is None else proposed.confidence
    return _proposal(
        graph,
        planned,
        proposed.name,
        proposed.channel,
        message,
        payload,
        confidence,
        proposed.send_at,
        bus,
        place,
    )


def _proposal(
    graph: Graph,
    planned: Planned,
    name: str,
    channel_id: str,
    message: Message,
    payload: list[tuple[PayloadFile, bytes | Entry]],
    confidence: float | None,
    send_at: datetime | None,
    bus: Bus,
    place: tuple[str | int, ...],
) -> Proposal:
    channel = bus.channels.get(channel_id)
    if channel is None:
        raise ProposalRefused("unknown-channel", place, f"bus.yaml has no channel {channel_id}")
    senders = getattr(channel, "from_", ())
    if message.from_ is None and senders:
        message = message.model_copy(update={"from_": senders[0]})
    for rule, where, why in why_not_message(message, channel):
        raise ProposalRefused(rule, (*place, "message", *where), why)
    together = f"{graph.goal.id}.{planned.group}" if planned.node.approve == "together" else None
    return Proposal(
        ids.item_id(graph.goal.id, planned.id, name),
        channel_id,
        message,
        tuple(file for file, _ in payload),
        {file.path: content for file, content in payload},
        confidence,
        send_at,
        together,
    )


def why_not_message(message: Message, channel: Channel) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    """Yield (rule, place, reason) for everything that keeps a message from going over a channel."""
    yield from _headers(message)
    for field in ("to", "cc", "bcc"):
        for index, address in enumerate(getattr(message, field)):
            yield from _address(address, (field, index), channel.recipients, "recipient-not-allowed")
    senders = getattr(channel, "from_", ())
    if message.from_ is not None:
        yield from _address(message.from_, ("from",), None, "")
        if senders and not addresses.sender_allowed(message.from_, senders):
            yield "sender-not-allowed", ("from",), f"{message.from_} is not among the channel's `from`"
    if message.reply_to is not None:
        yield from _address(message.reply_to, ("reply_to",), channel.recipients, "recipient-not-allowed")
    if channel.transport in ("smtp", "maildir"):
        if not (message.to or message.cc or message.bcc):
            yield "no-recipient", ("to",), "the message goes to nobody"
        if message.from_ is None:
            yield "no-sender", ("from",), "the message has no sender, and the channel names none in `from`"


def _address(
    text: str, place: tuple[str | int, ...], allowed: tuple[str, ...] | None, rule: str
) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    try:
        address = addresses.parse(text)
    except Refused as error:
        yield error.rule, place, error.message
        return
    if allowed is not None and not addresses.allowed(address, allowed):
        yield rule, place, f"{address.spec} is not among those that the channel allows"


def _headers(message: Message) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    for name, value in (("subject", message.subject or ""), *message.headers.items()):
        place: tuple[str | int, ...] = (name,) if name == "subject" else ("headers", name)
        if any(not char.isprintable() for char in value):
            yield (
                "control-in-header",
                place,
                f"`{name}` holds a line break or another character that does not print",
            )
        if len(value) > 998:
            yield "header-too-long", place, f"`{name}` is longer than 998 characters"
        if place[0] == "headers" and not HEADERS.fullmatch(name):
            yield "header-not-allowed", place, f"the header field {name!r} may not be set"


def _message(raw: Mapping[str, Any], place: tuple[str | int, ...]) -> Message:
    fields = {key: raw[key] for key in ("from", "to", "cc", "bcc", "reply_to", "subject", "headers")}
    for key in ("from", "reply_to", "subject"):
        if fields[key] is not None and not isinstance(fields[key], str):
            raise ProposalRefused("wrong-type", (*place, key), f"`{key}` came out as no text")
    for key in ("to", "cc", "bcc"):
        flat = [one for value in fields[key] for one in (value if isinstance(value, list) else [value])]
        if not all(isinstance(one, str) for one in flat):
            raise ProposalRefused(
                "wrong-type", (*place, key), f"`{key}` came out as something else than addresses"
            )
        fields[key] = flat
    for name, value in fields["headers"].items():
        if not isinstance(value, str):
            raise ProposalRefused("wrong-type", (*place, "headers", name), f"`{name}` came out as no text")
    return Message.model_validate(fields)


def _made(role: str, value: Any) -> tuple[PayloadFile, bytes]:
    path, media_type = _TEXT[role]
    if role == "json":
        text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    elif isinstance(value, str):
        text = value if value.endswith("\n") else value + "\n"
    else:
        raise ProposalRefused("wrong-type", ("outputs",), f"the item's `{role}` came out as no text")
    data = text.encode("utf-8")
    return PayloadFile(
        role=role, path=path, media_type=media_type, sha256=ids.sha256(data), bytes=len(data)
    ), data


def _attached(
    path: str,
    role: str | None,
    artifacts: Mapping[str, Artifact],
    files: Mapping[str, Entry],
    place: tuple[str | int, ...],
    name: str | None = None,
) -> tuple[PayloadFile, Entry]:
    artifact = artifacts.get(path)
    if artifact is None or path not in files:
        raise ProposalRefused("no-such-artifact", place, f"{path!r} is no artifact of this result")
    if role is not None:
        where, media_type, shown = _TEXT[role][0], _TEXT[role][1], None
    else:
        where, media_type, shown = f"attachments/{path}", artifact.media_type, name or path.rsplit("/", 1)[-1]
        if any(not char.isprintable() or char in '/\\"' for char in shown):
            raise ProposalRefused("bad-name", place, f"{shown!r} is no name for an attachment")
    file = PayloadFile(
        role=role or "attachment",
        path=where,
        name=shown,
        media_type=media_type,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
    )
    return file, files[path]


def _time(text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        return ids.parse_time(str(text))
    except ValueError as error:
        raise ProposalRefused("bad-time", ("outputs",), f"`send_at`: {error}") from None
