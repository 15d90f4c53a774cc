"""An item as an RFC 5322 message: the bytes that go over the wire, and the envelope.

Rules: the bytes depend on nothing but the item (boundaries come from the digest, the date from the
caller), they are 7-bit unless a local part is not ASCII, no line is longer than RFC 5321 allows,
there is no bare CR or LF, and Bcc stands in the envelope only. Whatever could end a header early,
or set one that is gitbus's or the server's to set, is refused.

Example: ``build(outgoing).recipients == ("list@partners.example",)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from gitbus.addresses import Address, has_encoded_word, parse
from gitbus.errors import Refused
from gitbus.transports.base import Outgoing, Part, idempotency_key, message_id

_POLICY = SMTP.clone(cte_type="7bit")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,75}")
_MEDIA_TYPE = re.compile(r"([A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126})/([A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126})")
_BARE = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_BIDI = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_RESERVED = frozenset(
    [
        *("from", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version"),
        *("sender", "return-path", "received", "delivered-to", "dkim-signature", "authentication-results"),
    ]
)
_RESERVED_BEGINNINGS = ("content-", "resent-", "arc-")


@dataclass(frozen=True, slots=True)
class Letter:
    """A message ready to go: its bytes (CRLF, not yet dot-stuffed) and its envelope."""

    data: bytes
    sender: str
    recipients: tuple[str, ...]
    message_id: str
    utf8: bool  # only a server with SMTPUTF8 can take it


def build(outgoing: Outgoing, senders: Sequence[str] = ()) -> Letter:
    """Make the message of an item.

    Args:
        outgoing: the item.
        senders: the channel's ``from``; a message without one is from the only one there.

    Raises:
        Refused: no such message can be written; the rule says why.
    """
    sender = _sender(outgoing.message, senders)
    to, cc, bcc = (_addresses(outgoing.message, key) for key in ("to", "cc", "bcc"))
    reply_to = _addresses(outgoing.message, "reply_to")
    recipients = tuple(dict.fromkeys(one.spec for one in (*to, *cc, *bcc)))
    if not recipients:
        raise Refused("there is no recipient", rule="no-recipient", remedy="name one in `to`")
    utf8 = any(one.needs_utf8 for one in (sender, *to, *cc, *bcc, *reply_to))
    identifier = message_id(outgoing.item, outgoing.digest, sender.domain)
    lists = {"From": [sender], "To": to, "Cc": cc, "Reply-To": reply_to}
    data = _head(lists, outgoing, identifier, utf8=utf8) + _body(outgoing).as_bytes()
    _sane(data)
    return Letter(data, sender.spec, recipients, identifier, utf8)


def _sender(message: Mapping[str, Any], senders: Sequence[str]) -> Address:
    text = message.get("from") or (senders[0] if len(senders) == 1 else None)
    if not text:
        raise Refused("there is no sender", rule="no-sender", remedy="give the message a `from`")
    return parse(text)


def _addresses(message: Mapping[str, Any], key: str) -> list[Address]:
    value = message.get(key) or []
    return [parse(one) for one in ([value] if isinstance(value, str) else value)]


def _head(lists: Mapping[str, list[Address]], outgoing: Outgoing, identifier: str, *, utf8: bool) -> bytes:
    """Return the lines of the header, all but what belongs to the body.

    They are written here, as the library's folding of a long list may encode its commas.
    """
    rows = [("Date", format_datetime(datetime.fromisoformat(outgoing.date))), ("Message-ID", identifier)]
    for name, addresses in lists.items():
        if addresses:
            rows.append((name, ",\r\n ".join(_mailbox(one, utf8=utf8) for one in addresses)))
    free = {"Subject": outgoing.message.get("subject") or "", **_free(outgoing.message.get("headers") or {})}
    rows += [(name, _encoded(_one_line(name, value), utf8=utf8, name=name)) for name, value in free.items()]
    return "".join(f"{name}: {value}\r\n" for name, value in rows).encode()


def _mailbox(address: Address, *, utf8: bool) -> str:
    if not address.display:
        return address.spec
    quoted = '"' + re.sub(r'(["\\])', r"\\\1", address.display) + '"'
    plain = quoted if address.display.isascii() or utf8 else _encoded(address.display, utf8=utf8)
    return f"{plain} <{address.spec}>"


def _encoded(text: str, *, utf8: bool, name: str | None = None) -> str:
    """Return text as it is, or as encoded words (RFC 2047) where it must be ASCII and is not."""
    if text.isascii() or utf8:
        return text
    return Header(text, "utf-8", header_name=name).encode(linesep="\r\n")


def _free(headers: Mapping[str, str]) -> dict[str, str]:
    if len({name.lower() for name in headers}) < len(headers):
        raise Refused("a header stands there twice", rule="reserved-header", remedy="leave one")
    return {_free_name(name): value for name, value in headers.items()}


def _free_name(name: str) -> str:
    lower = name.lower()
    if not _NAME.fullmatch(name):
        raise Refused(
            f"this is no name of a header: {name[:80]!a}", rule="bad-header", remedy="letters, digits, -"
        )
    if lower in _RESERVED or lower.startswith(_RESERVED_BEGINNINGS):
        raise Refused(
            f"the header {name} is not free to set",
            rule="reserved-header",
            remedy="leave it out of `headers`",
        )
    return name


def _one_line(name: str, value: str) -> str:
    if _CONTROL.search(value) or _BIDI.search(value):
        raise Refused(
            f"a control character in the header {name[:80]!a}",
            rule="control-character",
            remedy="a header's value is one line of text",
        )
    if has_encoded_word(value):
        raise Refused(
            f"an encoded word in the header {name[:80]!a}",
            rule="encoded-word",
            remedy="write the text as it is to be read; it is encoded when it is sent",
        )
    return value.strip(" ")


def _body(outgoing: Outgoing) -> EmailMessage:
    message = EmailMessage(_POLICY)
    message["MIME-Version"] = "1.0"
    texts = [part for part in outgoing.parts if part.role == "text"]
    pages = [part for part in outgoing.parts if part.role == "html"]
    if not outgoing.parts or len(texts) > 1 or len(pages) > 1:
        raise Refused(
            "a mail has at most one text and one html, and not nothing",
            rule="mail-body",
            remedy="give it one text",
        )
    if texts:
        _set_text(message, texts[0], "plain")
    if pages and texts:
        _add_alternative(message, pages[0])
    elif pages:
        _set_text(message, pages[0], "html")
    for number, part in enumerate(outgoing.parts):
        if part.role in ("attachment", "json"):
            _attach(message, part, number)
    _boundaries(message, outgoing)
    return message


def _text(part: Part) -> str:
    try:
        return part.data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"the {part.role} is not UTF-8", rule="not-utf-8", remedy="write it in UTF-8") from None


def _set_text(message: EmailMessage, part: Part, subtype: str) -> None:
    text = _text(part)
    short = all(len(row) <= 78 for row in text.split("\n"))
    cte = "7bit" if text.isascii() and short and not _CONTROL.search(re.sub("[\t\r\n]", "", text)) else None
    message.set_content(text, subtype=subtype, charset="utf-8", cte=cte or _coding(text))


def _coding(text: str) -> str:
    """Return the shorter of the two encodings: quoted-printable for what is mostly ASCII."""
    return "base64" if sum(not one.isascii() for one in text) * 6 > len(text) else "quoted-printable"


def _add_alternative(message: EmailMessage, part: Part) -> None:
    text = _text(part)
    message.add_alternative(text, subtype="html", charset="utf-8", cte=_coding(text))


def _attach(message: EmailMessage, part: Part, number: int) -> None:
    match = _MEDIA_TYPE.fullmatch(part.media_type.split(";")[0].strip())
    # A reader would take these for structure, not for a file.
    kind = match.groups() if match and match[1].lower() not in ("multipart", "message") else None
    main, sub = kind or ("application", "octet-stream")
    name = part.name or ("body.json" if part.role == "json" else f"attachment-{number}")
    message.add_attachment(part.data, maintype=main, subtype=sub, filename=_file_name(name))


def _file_name(name: str) -> str:
    unseen = _CONTROL.search(name) or _BIDI.search(name) or has_encoded_word(name)
    if unseen or set("/\\") & set(name) or len(name.encode()) > 255:
        raise Refused(
            f"this is no name for an attachment: {name[:80]!a}",
            rule="attachment-name",
            remedy="1 to 255 octets, no slash, no control character",
        )
    return name


def _boundaries(message: EmailMessage, outgoing: Outgoing) -> None:
    seed = idempotency_key(outgoing.item, outgoing.digest)
    for number, part in enumerate(one for one in message.walk() if one.is_multipart()):
        part.set_boundary(f"=_{seed}_{number}")


def _sane(data: bytes) -> None:
    """Check what must hold for every message, whatever the library made of it."""
    if _BARE.search(data) or any(len(row) > 998 for row in data.split(b"\r\n")):
        raise Refused(
            "the message has a line that SMTP forbids", rule="bad-line", remedy="shorten its headers"
        )
