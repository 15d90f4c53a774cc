"""Messages: a reader that knows nothing of gitbus reads back what was meant."""

from __future__ import annotations

import email
import email.policy
import re
from dataclasses import replace
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitbus.addresses import _BLANK
from gitbus.errors import Refused
from gitbus.transports.base import Outgoing, Part
from gitbus.transports.message import build

FROM = "Acme News <news@acme.example>"
TEXT = Part("text", None, "text/plain", b"hello\n")

visible = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="".join(_BLANK))
)
words = st.lists(visible.filter(bool), max_size=12).map(" ".join).filter(lambda text: "=?" not in text)
bodies = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=400)
file_names = (
    st.from_regex(r"[\wäöüé\u0431\u6f22 .,;'()&%=+-]{1,40}", fullmatch=True)
    .map(str.strip)
    .filter(lambda name: name and name.isprintable() and not {"<", ">"} & set(name))
)


def item(parts: tuple[Part, ...] = (TEXT,), **message: Any) -> Outgoing:
    return Outgoing(
        "g.t.i",
        1,
        "sha256:" + "ab" * 32,
        "2026-11-30T20:05:00Z",
        {"from": FROM, "to": ["list@partners.example"], **message},
        parts,
    )


def read(data: bytes) -> EmailMessage:
    return email.message_from_bytes(data, policy=email.policy.default)  # type: ignore[return-value]


def unfold(data: bytes, name: str) -> str:
    """Return a header with the oldest decoder of the standard library, which is another code."""
    return str(
        make_header(decode_header(re.sub(r"\r?\n(?=[ \t])", "", email.message_from_bytes(data)[name])))
    )


def people(data: bytes, name: str) -> list[tuple[str, str]]:
    """Return a header's addresses: split while they are still encoded, decoded one by one (RFC 2047)."""
    rows = email.message_from_bytes(data).get_all(name, [])
    found = getaddresses([re.sub(r"\r?\n(?=[ \t])", "", row) for row in rows])
    return [(str(make_header(decode_header(display))), spec) for display, spec in found]


def check_form(data: bytes) -> None:
    assert re.search(rb"(?<!\r)\n|\r(?!\n)", data) is None
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert data.isascii()


@settings(max_examples=30, deadline=None)
@given(subject=words, display=words, count=st.integers(1, 25))
def test_head(subject: str, display: str, count: int) -> None:
    quoted = '"' + display.replace("\\", "\\\\").replace('"', '\\"') + '"'
    to = [f"{quoted} <u{number}@b{number}.example>" for number in range(count)]
    letter = build(
        item(subject=subject, to=to, cc=["cc@x.example"], bcc=["bcc@x.example"], reply_to="r@x.example")
    )
    check_form(letter.data)
    assert unfold(letter.data, "Subject") == subject
    assert [spec for _, spec in people(letter.data, "To")] == [f"u{n}@b{n}.example" for n in range(count)]
    assert {name for name, _ in people(letter.data, "To")} == {display}
    assert letter.recipients == (
        *(f"u{n}@b{n}.example" for n in range(count)),
        "cc@x.example",
        "bcc@x.example",
    )
    assert b"bcc@x.example" not in letter.data
    parsed = read(letter.data)
    assert parsed["Reply-To"] == "r@x.example"
    assert [one.addr_spec for one in parsed["To"].addresses] == [f"u{n}@b{n}.example" for n in range(count)]
    assert not any(one.defects for one in (parsed["To"], parsed["Subject"], parsed["From"]))


@settings(max_examples=30, deadline=None)
@given(text=bodies, page=bodies, blob=st.binary(max_size=300), name=file_names)
def test_body(text: str, page: str, blob: bytes, name: str) -> None:
    parts = (
        Part("text", None, "text/plain", text.encode()),
        Part("html", None, "text/html", page.encode()),
        Part("attachment", name, "application/pdf", blob),
    )
    letter = build(item(parts))
    check_form(letter.data)
    parsed = read(letter.data)

    def body(kind: str) -> str:
        part = parsed.get_body((kind,))
        assert part is not None
        return str(part.get_payload(decode=True).decode().replace("\r\n", "\n"))  # type: ignore[union-attr]

    assert body("plain").removesuffix("\n") == text.removesuffix("\n")
    assert body("html").removesuffix("\n") == page.removesuffix("\n")
    (attached,) = parsed.iter_attachments()
    assert attached.get_content() == blob
    assert attached.get_content_disposition() == "attachment"
    assert attached.get_filename() == name
    assert parsed.get_content_type() == "multipart/mixed"


@settings(max_examples=15, deadline=None)
@given(text=bodies, subject=words)
def test_the_same_item_is_the_same_bytes(text: str, subject: str) -> None:
    one = item(
        (Part("text", None, "text/plain", text.encode()), Part("html", None, "text/html", b"x")),
        subject=subject,
    )
    assert build(one) == build(replace(one, revision=2))
    assert build(one).data != build(replace(one, digest="sha256:cd")).data


def test_date_and_id() -> None:
    letter = build(item())
    parsed = email.message_from_bytes(letter.data)
    assert parsedate_to_datetime(parsed["Date"]).isoformat() == "2026-11-30T20:05:00+00:00"
    assert parsed["Message-ID"] == letter.message_id
    assert re.fullmatch(r"<[0-9a-f]{32}@acme\.example>", letter.message_id)
    assert letter.sender == "news@acme.example"


def test_free_headers() -> None:
    letter = build(item(headers={"List-Unsubscribe": "<https://acme.example/u>", "X-Größe"[:4]: "ü" * 200}))
    assert email.message_from_bytes(letter.data)["List-Unsubscribe"] == "<https://acme.example/u>"
    assert unfold(letter.data, "X-Gr") == "ü" * 200


@pytest.mark.parametrize(
    "value",
    ["a\r\nBcc: eve@x.example", "a\nb", "a\rb", "a\0b", "a\x1b[31m", "a\u202eb", "a\u2028b", "a\x85b"],
)
def test_nothing_ends_a_header_early(value: str) -> None:
    for message in ({"subject": value}, {"headers": {"X-A": value}}):
        with pytest.raises(Refused) as caught:
            build(item(**message))
        assert caught.value.rule == "control-character"


@pytest.mark.parametrize("value", ["=?utf-8?q?paid?=", "x =?UTF-8?B?cGFpZA==?= y"])
def test_what_is_approved_is_what_is_shown(value: str) -> None:
    for message in ({"subject": value}, {"headers": {"X-A": value}}):
        with pytest.raises(Refused) as caught:
            build(item(**message))
        assert caught.value.rule == "encoded-word"
    with pytest.raises(Refused):
        build(item((Part("attachment", value, "text/plain", b""),)))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(
            (name, "reserved-header")
            for name in ("Bcc", "bcc", "FROM", "Sender", "Content-Type", "Resent-To")
        ),
        *(
            (name, "reserved-header")
            for name in ("DKIM-Signature", "Received", "Return-Path", "MIME-Version")
        ),
        *((name, "bad-header") for name in ("", "X A", "X:", "X\r\nBcc", "Bcc:", "X-ü", "-X")),
    ],
)
def test_headers_that_are_not_free(name: str, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        build(item(headers={name: "eve@x.example"}))
    assert caught.value.rule == rule


def test_a_header_twice() -> None:
    with pytest.raises(Refused) as caught:
        build(item(headers={"X-A": "1", "x-a": "2"}))
    assert caught.value.rule == "reserved-header"


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "a\nb", "invoice\u202efdp.exe", "x" * 256, "\ud800"], ids=ascii
)
def test_names_of_attachments(name: str) -> None:
    with pytest.raises(Refused) as caught:
        build(item((Part("attachment", name, "text/plain", b""),)))
    assert caught.value.rule == "attachment-name"


@pytest.mark.parametrize(
    "media_type", ["multipart/mixed", "message/rfc822", "nonsense", "text/plain\r\nX: y", "", "Multipart/X"]
)
def test_an_attachment_is_a_file_whatever_it_calls_itself(media_type: str) -> None:
    letter = build(item((TEXT, Part("attachment", "x", media_type, b"\r\n--x\r\n\r\nhi"))))
    check_form(letter.data)
    (attached,) = read(letter.data).iter_attachments()
    assert attached.get_content_type() in ("application/octet-stream", "text/plain")
    assert attached.get_payload(decode=True) == b"\r\n--x\r\n\r\nhi"


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ((), "mail-body"),
        ((TEXT, TEXT), "mail-body"),
        ((Part("text", None, "text/plain", b"\xff"),), "not-utf-8"),
    ],
)
def test_bodies_that_are_none(parts: tuple[Part, ...], rule: str) -> None:
    with pytest.raises(Refused) as caught:
        build(item(parts))
    assert caught.value.rule == rule


def test_json_goes_as_a_file() -> None:
    (attached,) = read(
        build(item((TEXT, Part("json", None, "application/json", b'{"a": 1}')))).data
    ).iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == ("body.json", b'{"a": 1}')


def test_only_html_and_only_a_file() -> None:
    assert (
        read(build(item((Part("html", None, "text/html", b"<p>"),))).data).get_content_type() == "text/html"
    )
    alone = read(build(item((Part("attachment", "a.bin", "x/y", b"\0"),))).data)
    assert [one.get_filename() for one in alone.iter_attachments()] == ["a.bin"]


def test_the_sender_of_the_channel_stands_in() -> None:
    assert build(item(**{"from": None}), ["a@acme.example"]).sender == "a@acme.example"
    for senders in ([], ["a@acme.example", "b@acme.example"]):
        with pytest.raises(Refused) as caught:
            build(item(**{"from": None}), senders)
        assert caught.value.rule == "no-sender"


def test_a_recipient_named_twice_gets_it_once() -> None:
    letter = build(item(to=["a@x.example", "A <a@X.example>"], cc=["a@x.example"]))
    assert letter.recipients == ("a@x.example",)


@pytest.mark.parametrize("key", ["from", "to", "cc", "bcc", "reply_to"])
def test_every_address_is_looked_at(key: str) -> None:
    bad = "ada@асme.example"
    with pytest.raises(Refused) as caught:
        build(item(**{key: bad if key in ("from", "reply_to") else [bad]}))
    assert caught.value.rule == "confusable-address"


def test_a_local_part_beyond_ascii() -> None:
    letter = build(item(to=["Jörg <jörg@bücher.example>"], subject="Grüße"))
    assert letter.utf8
    assert letter.recipients == ("jörg@xn--bcher-kva.example",)
    head = letter.data.partition(b"\r\n\r\n")[0].decode()
    assert 'To: "Jörg" <jörg@xn--bcher-kva.example>' in head.split("\r\n")
    assert "Subject: Grüße" in head.split("\r\n")
    assert re.search(rb"(?<!\r)\n|\r(?!\n)", letter.data) is None
