"""``bus.yaml``: who may do what, where things go, and the one flag.

Example: ``Bus(name="acme").sending.enabled`` is False; nothing leaves until a human merges True.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from gitbus import ids
from gitbus.records.base import (
    Count,
    Duration,
    Flag,
    Id,
    Part,
    Positive,
    Record,
    Sha256,
    Size,
    Text,
    Unit,
    rule,
    words,
)

Role = Annotated[Literal["approver", "reviewer", "operator"], words("approver", "reviewer", "operator")]

_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRETS = ("password", "secret", "token", "api_key", "apikey", "passwd")


def _env_name(value: Any) -> Any:
    if isinstance(value, str) and not _ENV.fullmatch(value):
        raise rule(
            "literal-secret",
            "this is no name of an environment variable",
            "a record names the variable that holds the secret, never the secret itself",
        )
    return value


EnvName = Annotated[Text, BeforeValidator(_env_name)]


def _public_key(value: Any) -> Any:
    if isinstance(value, str) and "PRIVATE KEY" in value:
        raise rule(
            "private-key", "this is a private key", "put the public key here and replace the private one"
        )
    if isinstance(value, str) and not value.startswith(
        ("ssh-", "ecdsa-", "sk-", "-----BEGIN PGP PUBLIC KEY BLOCK-----")
    ):
        raise rule(
            "bad-key", "this is no public key", "an OpenSSH public key line or an armored OpenPGP public key"
        )
    return value


PublicKey = Annotated[Text, BeforeValidator(_public_key)]


class GitHubAccount(Part):
    """A person's account on GitHub; the number is what counts, a login can be renamed."""

    login: Text
    id: Positive


class Person(Part):
    """Somebody with a role; an approver may all that an operator may."""

    id: Id
    email: Text
    roles: tuple[Role, ...] = ()
    github: GitHubAccount | None = None
    keys: tuple[PublicKey, ...] = ()


class WorkerOwner(Part):
    """Whose a worker is, and the keys its commits must be signed with (none: unsigned is fine)."""

    person: Id | None = None
    keys: tuple[PublicKey, ...] = ()


class Conducting(Part):
    """How the conductor treats attempts, absent workers and settled goals."""

    max_attempts: Positive = 3  # refused and failed ones, then dead
    max_lost: Positive = 5
    max_retries: Count = 20  # answers `retry`
    lease: Duration = timedelta(minutes=15)
    worker_ttl: Duration = timedelta(minutes=10)
    absent_grace: Duration = timedelta(minutes=1)
    reopen: Annotated[Literal["auto", "manual"], words("auto", "manual")] = "auto"
    archive_after: Duration = timedelta(days=30)


class Limits(Part):
    """Sizes in bytes past which something is refused."""

    record: Size = 1 << 20
    artifact: Size = 1 << 20
    artifacts: Size = 16 << 20  # of one result together
    raw: Size = 64 << 10  # of a refused text that is kept


class Scoring(Part):
    """What makes an item's confidence; the lowest of all scores counts."""

    threshold: Unit = 0.8
    scorers: tuple[Id, ...] = ()


class Reviewing(Part):
    """How many Reviews an item needs that came in under the threshold."""

    quorum: Positive = 1
    four_eyes: Flag = False


class Approving(Part):
    """What proves an approval, and for how long an item waits for one."""

    proof: Annotated[Literal["signature", "github"], words("signature", "github")] = "signature"
    quorum: Positive = 1
    expires: Duration = timedelta(days=7)
    allow_producer: Flag = False


class Sending(Part):
    """The one flag, and the sender's bounds."""

    enabled: Flag = False
    lease: Duration = timedelta(minutes=5)
    attempts: Positive = 4
    quarantine: Duration = timedelta(hours=1)
    hold: Duration = timedelta(0)
    batch: Positive = 20
    keys: tuple[PublicKey, ...] = ()


Waiting = Annotated[
    Literal["in_review", "awaiting_approval", "stuck", "failed", "dead", "expiring"],
    words("in_review", "awaiting_approval", "stuck", "failed", "dead", "expiring"),
]


class Notify(Part):
    """Whom to tell of what waits for a human: a command that gets JSON on its stdin, or an issue."""

    on: tuple[Waiting, ...]
    command: tuple[Text, ...] = ()
    issue: Flag = False


class _Channel(Part):
    recipients: tuple[Text, ...] | None = None  # allow-list: an address, or *@domain
    rate: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_secrets(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else ():
            if str(name).lower() in _SECRETS:
                raise rule(
                    "literal-secret",
                    f"`{name}` would hold a secret",
                    f"write `{name}_env: NAME` and put the secret into the environment variable NAME",
                )
        return value

    @model_validator(mode="after")
    def _rate_parses(self) -> _Channel:
        if self.rate is not None:
            try:
                ids.rate(self.rate)
            except ValueError as error:
                raise rule("bad-rate", f"{self.rate!r}: {error}") from None
        return self


class SmtpChannel(_Channel):
    """Mail through a submission server, always over TLS (RFC 6409, RFC 8314)."""

    transport: Literal["smtp"]
    host: Text
    port: Annotated[Positive, Field(le=65535)] | None = None  # 587, or 465 for implicit TLS
    tls: Annotated[Literal["starttls", "implicit"], words("starttls", "implicit")] = "starttls"
    username: Text | None = None
    password_env: EnvName | None = None
    ca_file: Text | None = None  # further roots, beside the system's
    from_: tuple[Text, ...] = Field(default=(), alias="from")
    partial_recipients: Annotated[Literal["refuse", "accept"], words("refuse", "accept")] = "refuse"


class WebhookChannel(_Channel):
    """An HTTP POST (Standard Webhooks)."""

    transport: Literal["webhook"]
    url: Text | None = None
    url_env: EnvName | None = None
    secret_env: EnvName | None = None

    @model_validator(mode="after")
    def _one_url(self) -> WebhookChannel:
        if (self.url is None) == (self.url_env is None):
            raise rule("channel-url", "exactly one of `url` and `url_env` is needed")
        if self.url and "@" in urlsplit(self.url).netloc:
            raise rule("literal-secret", "the URL holds credentials", "use `url_env`")
        return self


class MaildirChannel(_Channel):
    """A Maildir on the sender's machine; needs nothing but a path."""

    transport: Literal["maildir"]
    path: Text
    from_: tuple[Text, ...] = Field(default=(), alias="from")


class ExecChannel(_Channel):
    """Any program, pinned by the SHA-256 of its file."""

    transport: Literal["exec"]
    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    sha256: Sha256
    env: tuple[EnvName, ...] = ()  # secrets that the program is given
    from_: tuple[Text, ...] = Field(default=(), alias="from")


Channel = Annotated[
    SmtpChannel | WebhookChannel | MaildirChannel | ExecChannel, Field(discriminator="transport")
]


class Bus(Record):
    """What this bus is: people, channels, policy."""

    kind: Literal["Bus"] = "Bus"
    requires: Text | None = None  # the oldest gitbus that may write here, such as ">=1.3"
    name: Text
    people: tuple[Person, ...] = ()
    workers: dict[Id, WorkerOwner] = Field(default_factory=dict)
    conductor: Conducting = Conducting()
    limits: Limits = Limits()
    score: Scoring = Scoring()
    review: Reviewing = Reviewing()
    approval: Approving = Approving()
    sending: Sending = Sending()
    notify: tuple[Notify, ...] = ()
    channels: dict[Id, Channel] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _people_once(self) -> Bus:
        _once("person", [person.id for person in self.people])
        _once("key", [key_body(key) for person in self.people for key in person.keys])
        _once("GitHub account", [str(person.github.id) for person in self.people if person.github])
        return self

    def person(self, person: str) -> Person | None:
        """Return the person with this id."""
        return next((one for one in self.people if one.id == person), None)

    def with_role(self, *roles: str) -> tuple[Person, ...]:
        """Return the people who have one of the roles."""
        return tuple(one for one in self.people if set(roles) & set(one.roles))


def key_body(key: str) -> str:
    """Return a public key without its comment, by which two spellings of one key are the same."""
    return key.strip() if key.startswith("-----") else " ".join(key.split()[:2])


def _once(what: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise rule("twice", f"the same {what} stands here twice: {value[:80]}", f"leave one {what}")
