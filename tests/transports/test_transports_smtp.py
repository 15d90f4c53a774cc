"""SMTP against a real server: certificates, identity, recipients, and the bytes that arrive."""

from __future__ import annotations

import datetime
import email
import email.policy
import hashlib
import socket
import ssl
from typing import Any

import pytest

from gitbus.transports import smtp_wire
from gitbus.transports.base import Outgoing, Part, Unusable, clock
from tests.support.smtpd import PASSWORD, USER, Authority, Mailbox, Scripted, real_server

UNIX_LINES = b"Grown up at last.\n.\n..\nFrom here on.\n"


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_identity_and_bytes(
    tls: str, authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    box = Mailbox()
    context = authority.server()
    with real_server(context, box, implicit=tls == "implicit") as port:
        channel = inside(smtp_channel(port, tls=tls))
        identity = channel.transport.check()
        answer = channel.send(outgoing)
        channel.transport.close()
        seen = ssl.get_server_certificate(("localhost", port)) if tls == "implicit" else None
    assert identity.host == "localhost"
    assert identity.tls_version in ("TLSv1.2", "TLSv1.3")
    assert identity.authenticated_as == USER
    assert identity.certificate_subject
    if seen:
        assert identity.certificate_sha256 == hashlib.sha256(ssl.PEM_cert_to_DER_cert(seen)).hexdigest()
    assert (answer.outcome, answer.provider_id) == ("sent", "Q1")
    assert answer.reason == "250 2.0.0 Ok: queued as Q1"
    assert answer.identity is None or answer.identity == identity
    letter = box.letters[0]
    assert letter.mail_from == "news@acme.example"
    assert letter.rcpt_tos == ["list@partners.example", "eve@partners.example"]
    assert box.users == [USER]
    message = email.message_from_bytes(letter.original_content, policy=email.policy.default)
    assert message["Message-ID"] == answer.message_id
    assert message["Bcc"] is None
    assert b"eve" not in letter.original_content
    assert message.get_body().get_payload(decode=True).replace(b"\r\n", b"\n") == UNIX_LINES


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
@pytest.mark.parametrize("fault", ["name", "expired", "untrusted"])
def test_a_certificate_that_is_not_good(
    fault: str, tls: str, authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    contexts = {
        "name": lambda: authority.server("smtp.other.example"),
        "expired": lambda: authority.server(not_before=past, not_after=past + datetime.timedelta(days=1)),
        "untrusted": lambda: Authority().server(),
    }
    with Scripted(contexts[fault](), implicit=tls == "implicit") as server:
        channel = inside(smtp_channel(server.port, tls=tls))
        with pytest.raises(Unusable) as caught:
            channel.transport.check()
        answer = channel.send(outgoing)
    assert caught.value.rule == "smtp-certificate"
    assert (answer.outcome, answer.passing) == ("not_sent", True)
    assert server.seen in ([], ["STARTTLS", "STARTTLS"])  # not a word of AUTH or MAIL


def test_nothing_goes_in_plain_text(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server(), features=("AUTH PLAIN",)) as server:
        channel = inside(smtp_channel(server.port))
        with pytest.raises(Unusable) as caught:
            channel.transport.check()
        assert channel.send(outgoing).outcome == "not_sent"
    assert caught.value.rule == "smtp-no-tls"
    assert server.seen == []


def test_words_before_tls_are_not_taken_for_words_after_it(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    """The STARTTLS injection: what an attacker appends in plain text must not survive the upgrade."""
    faults = {"STARTTLS": "220 go\r\n250-evil\r\n250 AUTH PLAIN"}
    with Scripted(authority.server(), faults) as server, pytest.raises(Unusable, match="STARTTLS and TLS"):
        inside(smtp_channel(server.port)).transport.check()


@pytest.mark.parametrize("tls", [None, "none", "plain"])
def test_there_is_no_third_kind_of_tls(tls: str | None, smtp_channel: Any, inside: Any) -> None:
    with pytest.raises(Unusable):
        inside({**smtp_channel(1), "tls": tls}).transport.check()


def test_a_wrong_password_tells_nothing(authority: Authority, smtp_channel: Any, inside: Any) -> None:
    with real_server(authority.server(), Mailbox()) as port:
        channel = inside(smtp_channel(port))
        channel.transport._opening.environment["NEWS_PASSWORD"] = "wr0ng-word"
        with pytest.raises(Unusable) as caught:
            channel.transport.check()
    assert (caught.value.rule, caught.value.passing) == ("smtp-auth", False)
    assert "wr0ng" not in str(caught.value)


def test_a_password_that_smtp_cannot_carry(authority: Authority, smtp_channel: Any, inside: Any) -> None:
    with Scripted(authority.server()) as server:
        channel = inside(smtp_channel(server.port))
        channel.transport._opening.environment["NEWS_PASSWORD"] = "größe"
        with pytest.raises(Unusable) as caught:
            channel.transport.check()
    assert caught.value.rule == "secret-encoding"
    assert "größe" not in repr(caught.value.__dict__) + str(caught.value.__cause__)
    assert "AUTH" not in server.seen


def test_a_server_that_refuses_a_sender(authority: Authority, smtp_channel: Any, inside: Any) -> None:
    faults = {"MAIL": "553 5.7.1 not yours"}
    with Scripted(authority.server(), faults) as server, pytest.raises(Unusable, match="not yours") as caught:
        inside(smtp_channel(server.port)).transport.check()
    assert caught.value.rule == "smtp-sender"
    assert "RCPT" not in server.seen


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"from": None}, "channel-from"),
        ({"password_env": None}, "channel-password"),
        ({"ca_file": "/nonexistent/ca.pem"}, "ca-file"),
    ],
)
def test_a_channel_that_lacks_something(
    change: dict[str, Any], rule: str, authority: Authority, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server()) as server, pytest.raises(Unusable) as caught:
        inside(smtp_channel(server.port, **change)).transport.check()
    assert caught.value.rule == rule


def test_nobody_listens(outgoing: Outgoing, smtp_channel: Any, inside: Any) -> None:
    channel = inside(smtp_channel(1))
    with pytest.raises(Unusable, match="refused"):
        channel.transport.check()
    answer = channel.send(outgoing)
    assert (answer.outcome, answer.passing) == ("not_sent", True)


LATER, NEVER = "450 4.2.1 later", "550 5.1.1 no such user"
LIST, EVE = "list@partners.example", "eve@partners.example"


@pytest.mark.parametrize(
    ("policy", "answers", "expected", "reached"),
    [
        ("refuse", {EVE: NEVER}, ("not_sent", False), []),
        ("refuse", {EVE: LATER}, ("not_sent", True), []),
        ("refuse", {EVE: LATER, LIST: NEVER}, ("not_sent", False), []),
        ("accept", {EVE: NEVER}, ("sent", False), [LIST]),
        ("accept", {LIST: LATER}, ("sent", False), [EVE]),
        ("accept", {EVE: NEVER, LIST: NEVER}, ("not_sent", False), []),
        ("accept", {EVE: LATER, LIST: LATER}, ("not_sent", True), []),
        (None, {EVE: NEVER}, ("not_sent", False), []),
    ],
)
def test_partial_recipients(
    policy: str | None,
    answers: dict[str, str],
    expected: tuple[str, bool],
    reached: list[str],
    authority: Authority,
    outgoing: Outgoing,
    smtp_channel: Any,
    inside: Any,
) -> None:
    box = Mailbox(answers)
    with real_server(authority.server(), box) as port:
        channel = inside(smtp_channel(port, partial_recipients=policy))
        answer = channel.send(outgoing)
        assert (answer.outcome, answer.passing) == expected
        assert [one for letter in box.letters for one in letter.rcpt_tos] == reached
        assert {one: answer.recipients[one] for one in answers} == answers
        box.answers.clear()
        assert channel.send(outgoing).outcome == "sent"  # RSET left nothing behind
        assert box.letters[-1].rcpt_tos == [LIST, EVE]
        assert len(box.peers) == 1


def test_an_address_beyond_ascii_needs_a_server_that_knows_it(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any, to: Any
) -> None:
    item = to(outgoing, to=["Jörg <jörg@bücher.example>"], bcc=[])
    for utf8, expected in ((False, "not_sent"), (True, "sent")):
        box = Mailbox()
        with real_server(authority.server(), box, enable_SMTPUTF8=utf8) as port:
            answer = inside(smtp_channel(port)).send(item)
        assert (answer.outcome, answer.passing) == (expected, False)
        assert [one.rcpt_tos for one in box.letters] == ([["jörg@xn--bcher-kva.example"]] if utf8 else [])
        assert [one.smtp_utf8 for one in box.letters] == ([True] if utf8 else [])


def test_an_international_domain_goes_to_any_server(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any, to: Any
) -> None:
    box = Mailbox()
    with real_server(authority.server(), box, enable_SMTPUTF8=False) as port:
        answer = inside(smtp_channel(port)).send(to(outgoing, to=["post@bücher.example"], bcc=[]))
    assert answer.outcome == "sent"
    assert box.letters[0].rcpt_tos == ["post@xn--bcher-kva.example"]
    assert box.letters[0].original_content.isascii()


def test_an_item_that_is_no_mail(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any, to: Any
) -> None:
    with Scripted(authority.server()) as server:
        answer = inside(smtp_channel(server.port)).send(to(outgoing, subject="a\r\nBcc: x@y.example"))
    assert (answer.outcome, answer.passing) == ("not_sent", False)
    assert str(answer.reason).startswith("control-character")
    assert server.connections == 0


def test_a_machine_that_slept_writes_nothing_more(
    authority: Authority,
    outgoing: Outgoing,
    smtp_channel: Any,
    inside: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Scripted(authority.server()) as server:
        channel = inside(smtp_channel(server.port))

        def sleep() -> None:
            later = clock() + 3600
            monkeypatch.setattr(smtp_wire, "clock", lambda: later)

        channel._begin = sleep
        channel.transport._opening = type(channel.transport._opening)(
            "news", channel.transport._channel, {"NEWS_PASSWORD": PASSWORD}, sleep, lambda: clock() + 20
        )
        answer = channel.send(outgoing)
        assert (answer.outcome, answer.passing) == ("not_sent", True)
        assert "no time left" in str(answer.reason)
    assert server.seen[-1] == "DATA"
    assert not server.taken


def test_a_broken_socket_is_no_error_of_its_own() -> None:
    """The setting may be refused for it; what is written next says that it is broken."""
    with socket.socket() as sock:
        sock.close()
        for on in (True, False):
            smtp_wire.linger(sock, on=on)


def test_long_lines_and_every_byte_survive(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    text = ("x" * 5000 + "\n.\n.leading\n" + "ü" * 3000 + "\n").encode()
    parts = (
        Part("text", None, "text/plain", text),
        Part("html", None, "text/html", b"<p>" + b"y" * 3000 + b"</p>\n"),
        Part("attachment", "все байты.bin", "application/octet-stream", bytes(range(256)) * 50),
    )
    box = Mailbox()
    with real_server(authority.server(), box) as port:
        item = Outgoing(outgoing.item, 1, outgoing.digest, outgoing.date, outgoing.message, parts)
        assert inside(smtp_channel(port)).send(item).outcome == "sent"
    raw = box.letters[0].original_content
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    message = email.message_from_bytes(raw, policy=email.policy.default)
    plain, page = message.get_body(("plain",)), message.get_body(("html",))
    assert plain.get_payload(decode=True).replace(b"\r\n", b"\n") == text
    assert page.get_payload(decode=True).replace(b"\r\n", b"\n") == parts[1].data
    attached = next(message.iter_attachments())
    assert (attached.get_filename(), attached.get_content()) == ("все байты.bin", parts[2].data)
