"""Mail through a submission server (RFC 6409), over TLS or not at all.

Rules: the certificate and the host name are verified against the system's roots (and the channel's
``ca_file``); no step is retried; the outcome follows from the last thing that was written:

================================================================  ==================================
what happened                                                     outcome
================================================================  ==================================
a 4yz or 5yz to anything, DATA and the final dot included         not_sent, passing for a 4yz
the connection broke before the final dot was begun               not_sent, passing
a 2yz to the final dot                                            sent
anything else after the final dot was begun                       unknown
================================================================  ==================================

One refused recipient stops the mail for all (``partial_recipients: refuse``) or is left out
(``accept``); all refused is ``not_sent`` either way.

Example of a channel: ``{"transport": "smtp", "host": "smtp.acme.example", "port": 587,
"tls": "starttls", "username": "news", "password_env": "NEWS_PASSWORD", "from": ["news@acme.example"]}``.
"""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gitbus.addresses import parse
from gitbus.errors import Refused
from gitbus.transports.base import MARGIN, Answer, Identity, Opening, Outgoing, Unusable, clock, plain
from gitbus.transports.message import Letter, build
from gitbus.transports.smtp_wire import Lost, Reply, Said, Wire, linger

_PORTS = {"starttls": 587, "implicit": 465}
_QUEUED = re.compile(r"\bqueued as ([A-Za-z0-9_.-]{1,100})")


def open_transport(opening: Opening) -> Smtp:
    """Return the transport of a channel with a ``host``."""
    return Smtp(opening)


class Smtp:
    """One connection for a whole batch; made again only while nothing of a message was written."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._channel = opening.channel
        self._wire: Wire | None = None
        self._identity: Identity | None = None

    def check(self) -> Identity:
        """Connect if there is no living connection, and ask the server about every sender.

        Raises:
            Unusable: any step failed, or the server refuses a sender to this user.
        """
        wire = self._ready(self._opening.until())
        try:
            self._probe(wire)
        except (Lost, Said) as error:
            self._drop()
            raise _unusable(error) from None
        assert self._identity is not None  # noqa: S101 - _ready has set it
        return self._identity

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        """Transmit once."""
        try:
            letter = build(outgoing, self._channel.get("from") or ())
        except Refused as error:
            return Answer("not_sent", reason=f"{error.rule}: {error.message}")
        before = self._identity
        try:
            wire = self._ready(deadline - MARGIN)
        except Unusable as error:
            return Answer("not_sent", reason=error.message, passing=error.passing)
        answer = self._transmit(wire, letter)
        identity = self._identity if self._identity != before else None
        return replace(answer, message_id=letter.message_id, identity=identity)

    def close(self) -> None:
        """Take leave of the server, if it still listens."""
        wire, self._wire = self._wire, None
        if wire is None or wire.sock is None:
            return
        wire.until = clock() + 1.0
        linger(wire.sock, on=False)
        with suppress(Lost, Said):
            wire.command("QUIT", "QUIT")
        wire.close()

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _ready(self, until: float) -> Wire:
        """Return a connection that has just answered, the old one if it still lives."""
        if self._wire is not None and self._wire.sock is not None:
            self._wire.until = until
            with suppress(Lost, Said):
                self._wire.command("RSET", "RSET")
                return self._wire
        self._drop()
        try:
            self._wire = _connect(self._opening, until)
        except ssl.SSLCertVerificationError as error:
            raise _untrusted(str(self._channel["host"]), error) from None
        except (Lost, Said) as error:
            raise _unusable(error) from None
        self._identity = _identity(self._opening, self._wire)
        return self._wire

    def _probe(self, wire: Wire) -> None:
        senders = self._channel.get("from") or ()
        if not senders:
            raise Unusable(
                "the channel names no sender", rule="channel-from", remedy="list who it may send as in `from`"
            )
        for sender in senders:
            address = parse(sender)
            options = _options(wire, utf8=address.needs_utf8)
            wire.command("MAIL", f"MAIL FROM:<{address.spec}>{options}")
            wire.command("RSET", "RSET")

    def _transmit(self, wire: Wire, letter: Letter) -> Answer:
        answers: dict[str, str] = {}
        wire.dotted = False
        linger(wire.open_socket, on=True)
        try:
            return self._steps(wire, letter, answers)
        except Said as error:
            if error.reply.code // 100 not in (4, 5) or wire.dotted:
                return self._broken(wire, str(error), answers)
            return Answer("not_sent", reason=str(error), passing=error.reply.passing, recipients=answers)
        except Lost as error:
            return self._broken(wire, str(error), answers)

    def _broken(self, wire: Wire, reason: str, answers: dict[str, str]) -> Answer:
        self._drop()
        if wire.dotted:
            return Answer("unknown", reason=reason, recipients=answers)
        return Answer("not_sent", reason=reason, passing=True, recipients=answers)

    def _steps(self, wire: Wire, letter: Letter, answers: dict[str, str]) -> Answer:
        if letter.utf8 and not wire.has_extn("smtputf8"):
            return Answer("not_sent", reason="the server has no SMTPUTF8, which one of the addresses needs")
        options = _options(wire, utf8=letter.utf8, size=len(letter.data))
        wire.command("MAIL", f"MAIL FROM:<{letter.sender}>{options}")
        refused = self._recipients(wire, letter, answers)
        accept = self._channel.get("partial_recipients") == "accept"
        if refused and not (accept and len(refused) < len(letter.recipients)):
            return self._nobody(wire, refused, answers)
        wire.command("DATA", "DATA", wanted=lambda code: code == 354)
        wire.write_text(letter.data)
        reply = wire.finish(self._opening.began)
        return self._after_dot(reply, answers)

    def _after_dot(self, reply: Reply, answers: dict[str, str]) -> Answer:
        kind = reply.code // 100
        if kind == 3:
            self._drop()
            return Answer("unknown", reason=f"final dot: {reply}", recipients=answers)
        if kind != 2:
            return Answer("not_sent", reason=f"final dot: {reply}", passing=reply.passing, recipients=answers)
        queued = _QUEUED.search(reply.text)
        return Answer(
            "sent", reason=str(reply), recipients=answers, provider_id=queued[1] if queued else None
        )

    def _recipients(self, wire: Wire, letter: Letter, answers: dict[str, str]) -> list[Reply]:
        """Name every recipient and return the answers of those that were refused."""
        refused = []
        for recipient in letter.recipients:
            try:
                reply = wire.command("RCPT", f"RCPT TO:<{recipient}>")
            except Said as error:
                reply = error.reply
                if reply.code // 100 not in (4, 5) or reply.code == 421:
                    raise
                refused.append(reply)
            answers[recipient] = str(reply)
        return refused

    def _nobody(self, wire: Wire, refused: list[Reply], answers: dict[str, str]) -> Answer:
        try:
            wire.command("RSET", "RSET")
        except (Lost, Said):
            self._drop()
        return Answer(
            "not_sent",
            reason="RCPT: " + "; ".join(map(str, refused[:3])),
            passing=all(reply.passing for reply in refused),
            recipients=answers,
        )


def _options(wire: Wire, *, utf8: bool, size: int | None = None) -> str:
    wire.command_encoding = "utf-8" if utf8 else "ascii"
    options = " SMTPUTF8 BODY=8BITMIME" if utf8 else ""
    return options + (f" SIZE={size}" if size is not None and wire.has_extn("size") else "")


def _connect(opening: Opening, until: float) -> Wire:
    """Return a connection that is encrypted, verified and authenticated."""
    channel = opening.channel
    tls = channel.get("tls", "starttls")
    if tls not in _PORTS:
        raise Unusable(f"there is no tls {tls!r}", rule="channel-tls", remedy="`starttls` or `implicit`")
    port = int(channel.get("port") or _PORTS[tls])
    wire = Wire(
        str(channel["host"]), port, until, _context(channel.get("ca_file")), implicit=tls == "implicit"
    )
    try:
        wire.hello()
        if tls == "starttls":
            wire.upgrade()
            wire.hello()
        _login(wire, opening)
    except BaseException:
        wire.close()
        raise
    return wire


def _context(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(Path(ca_file).expanduser())
        except OSError as error:  # ssl.SSLError is one
            raise Unusable(
                f"{ca_file} holds no certificates: {plain(error.strerror or error)}",
                rule="ca-file",
                remedy="a PEM file of the roots to trust beside the system's",
            ) from None
    return context


def _login(wire: Wire, opening: Opening) -> None:
    user, variable = opening.channel.get("username"), opening.channel.get("password_env")
    if not user:
        return
    if not variable:
        raise Unusable(
            "the channel has a user and no password",
            rule="channel-password",
            remedy="give it a `password_env`",
        )
    wire.step = "AUTH"
    try:
        code, text = wire.login(user, opening.environment[variable])
    except smtplib.SMTPAuthenticationError as error:
        raise Said(Reply(error.smtp_code, plain(_bytes(error.smtp_error).decode())), "AUTH") from None
    except smtplib.SMTPException:
        raise Said(
            Reply(504, "the server offers no way to authenticate that is known here"), "AUTH"
        ) from None
    except UnicodeError:  # it holds the secret
        raise Unusable(
            f"user or password ({variable}) have letters that SMTP AUTH cannot carry",
            rule="secret-encoding",
            remedy="use ASCII",
            passing=False,
        ) from None
    except ValueError:
        raise wire.lost("the challenge is no base64") from None
    if code != 235:
        raise Said(Reply(code, plain(text.decode())), "AUTH")


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _identity(opening: Opening, wire: Wire) -> Identity:
    sock = wire.sock
    assert isinstance(sock, ssl.SSLSocket)  # noqa: S101 - there is no plain connection here
    certificate = sock.getpeercert(binary_form=True) or b""
    return Identity(
        channel=opening.name,
        transport="smtp",
        host=str(opening.channel["host"]),
        tls_version=sock.version(),
        certificate_subject=_subject(sock),
        certificate_sha256=hashlib.sha256(certificate).hexdigest(),
        authenticated_as=opening.channel.get("username"),
    )


def _subject(sock: ssl.SSLSocket) -> str:
    """Return the certificate's subject, or its names where the subject is empty."""
    found: dict[str, Any] = dict(sock.getpeercert() or {})
    pairs = [pair for group in found.get("subject", ()) for pair in group]
    pairs = pairs or list(found.get("subjectAltName", ()))
    return plain(", ".join(f"{key}={value}" for key, value in pairs))


def _unusable(error: Lost | Said) -> Unusable:
    if isinstance(error, Lost):
        return Unusable(f"SMTP {error}", rule="smtp-connection", remedy="see that the server can be reached")
    rule, remedy = {
        "STARTTLS": ("smtp-no-tls", "nothing is ever sent in plain text: turn TLS on at the server"),
        "AUTH": ("smtp-auth", "put the right password into the variable of `password_env`"),
        "MAIL": ("smtp-sender", "let this user send as every address in the channel's `from`"),
    }.get(error.step, ("smtp-refused", None))
    return Unusable(f"SMTP {error}", rule=rule, remedy=remedy, passing=error.reply.code // 100 != 5)


def _untrusted(host: str, error: ssl.SSLCertVerificationError) -> Unusable:
    return Unusable(
        f"the certificate of {host} is not to be trusted: {plain(error.verify_message)}",
        rule="smtp-certificate",
        remedy="use the name in the certificate as `host`, or add its root with `ca_file`",
    )
