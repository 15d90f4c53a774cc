"""What every transport is: a few values, one Protocol and one table.

Rules: an outcome is exactly one of ``sent`` (the receiver took responsibility), ``not_sent`` (it
surely did not) and ``unknown`` (anything else). A transport never tries twice and never guesses.
It runs in a child process of its own (:mod:`gitbus.transports.spawn`), which holds nothing but the
connection and that channel's secrets.

A deadline is a number of seconds on :func:`clock`, which also counts while the machine sleeps.

Example::

    channel = open_channel("news", {"transport": "maildir", "path": "~/preview"}, os.environ)
    identity = channel.check()
    answer = channel.send(outgoing, deadline=clock() + 300)
    assert answer.outcome in OUTCOMES
    channel.close()
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, Protocol, cast

from gitbus.errors import Unreachable

Outcome = Literal["sent", "not_sent", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("sent", "not_sent", "unknown")

Role = Literal["text", "html", "json", "attachment"]
ROLES: tuple[Role, ...] = ("text", "html", "json", "attachment")

Channel = Mapping[str, Any]
"""A channel's definition as it stands in ``bus.yaml``."""

MARGIN = 0.5
"""Seconds before its deadline at which a transport gives up by itself, so that it can still say so."""

SCRATCH = "gitbus-channel-"
"""How a child's own temporary folder is called."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on macOS the latter counts sleep too


def clock() -> float:
    """Return the seconds of the clock that deadlines are on; all processes of a machine share it."""
    return time.clock_gettime(_CLOCK)


class Unusable(Unreachable):
    """A channel cannot be used now; nothing was sent.

    Args:
        message: what is wrong.
        rule: the rule's stable name.
        remedy: what would make it usable.
        passing: whether it may be well by itself later.
    """

    def __init__(self, message: str, *, rule: str, remedy: str | None = None, passing: bool = True) -> None:
        """Keep the parts."""
        super().__init__(message, rule=rule, remedy=remedy)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the payload; ``name`` is what the receiver sees of an attachment."""

    role: Role
    name: str | None
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One item as a transport gets it: all that the receiver will get, and nothing of the attempt.

    ``message`` has the keys of an item's ``message``: from, to, cc, bcc, reply_to, subject, headers.
    ``date`` is RFC 3339; the caller's clock, not the transport's.
    """

    item: str
    revision: int
    digest: str
    date: str
    message: Mapping[str, Any]
    parts: tuple[Part, ...] = ()

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at the same content."""
        return idempotency_key(self.item, self.digest)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the channel turned out to talk to, and as whom."""

    channel: str
    transport: str | None = None
    host: str | None = None
    tls_version: str | None = None
    certificate_subject: str | None = None
    certificate_sha256: str | None = None
    authenticated_as: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one transmission.

    ``passing`` only means something with ``not_sent``: it may be tried again. ``recipients`` holds
    each recipient's answer; ``identity`` stands there when the connection had to be made anew.
    """

    outcome: Outcome
    reason: str | None = None
    passing: bool = False
    recipients: Mapping[str, str] = field(default_factory=dict)
    message_id: str | None = None
    provider_id: str | None = None
    identity: Identity | None = None


class Transport(Protocol):
    """What the sender sees of a channel."""

    def check(self) -> Identity:
        """Connect, verify the other side, authenticate, and check the identity.

        Raises:
            Unusable: any of it failed; nothing was sent.
        """

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        """Transmit once; at the deadline the transmission is dead whatever happens."""

    def close(self) -> None:
        """Let go of the connection and the secrets."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a transport is made from, inside the child.

    ``began`` is called right before the first byte that cannot be taken back; ``until`` returns when
    the present request has to be given up.
    """

    name: str
    channel: Channel
    environment: Mapping[str, str]
    began: Callable[[], None]
    until: Callable[[], float]


Factory = Callable[[Opening], Transport]

TRANSPORTS: Mapping[str, str] = {
    "exec": "gitbus.transports.exec",
    "maildir": "gitbus.transports.maildir",
    "smtp": "gitbus.transports.smtp",
}
"""By name: the module whose ``open_transport`` makes one. Imported only when it is used."""


def factory(transport: str) -> Factory:
    """Return what makes a transport of this name.

    Raises:
        Unusable: there is none.
    """
    module = TRANSPORTS.get(transport)
    if module is None:
        known = ", ".join(sorted(TRANSPORTS))
        raise Unusable(f"there is no transport {transport!r}", rule="no-transport", remedy=f"one of {known}")
    return cast("Factory", import_module(module).open_transport)


def secrets(name: str, channel: Channel, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a channel names (``password_env`` and the like, and ``env``), by variable.

    Raises:
        Unusable: a variable is not set or empty; the error has its name.
    """
    single = [str(value) for key, value in channel.items() if key.endswith("_env") and value]
    found = {variable: environment.get(variable, "") for variable in (*single, *(channel.get("env") or ()))}
    for variable, value in found.items():
        if not value:
            raise Unusable(
                f"the variable {variable}, which channel {name} needs, is not set",
                rule="missing-secret",
                remedy=f"set {variable} in the sender's environment",
            )
    return found


def idempotency_key(item: str, digest: str) -> str:
    """Return 32 hex digits made of item and digest, so that a receiver can tell a second delivery."""
    return hashlib.sha256(f"gitbus\0{item}\0{digest}".encode()).hexdigest()[:32]


def message_id(item: str, digest: str, domain: str) -> str:
    """Return the Message-ID (RFC 5322, 3.6.4) of this content, the same for every attempt."""
    return f"<{idempotency_key(item, digest)}@{domain}>"


def plain(text: object, limit: int = 500) -> str:
    """Return a stranger's text on one line: nothing unprintable, no runs of space, at most ``limit`` long."""
    words = "".join(one if one.isprintable() else " " for one in str(text)).split()
    short = " ".join(words)
    return short if len(short) <= limit else short[: limit - 1] + "…"
