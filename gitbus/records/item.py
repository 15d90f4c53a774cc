"""The records of what leaves the house: Item, Review, Approval, Lease, Resolution and Receipt.

Example: a Lease shows the two seals; the Receipt that says ``sent`` reveals the nonce whose hash
is ``seals.sent``, so nobody but the lease's holder can have said it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gitbus import ids
from gitbus.records.base import (
    Count,
    Digest,
    Flag,
    Id,
    ItemId,
    Json,
    Nonce,
    Oid,
    Part,
    Positive,
    Record,
    Sha256,
    Text,
    Time,
    Unit,
    rule,
    words,
)

ItemState = Literal[
    "persisted",
    "scored",
    "in_review",
    "awaiting_approval",
    "approved",
    "sending",
    "sent",
    "failed",
    "stuck",
    "rejected",
    "withdrawn",
    "expired",
]


class Message(Part):
    """To whom, from whom and under which headers; the payload's files hold what it says."""

    from_: Text | None = Field(default=None, alias="from")
    to: tuple[Text, ...] = ()
    cc: tuple[Text, ...] = ()
    bcc: tuple[Text, ...] = ()
    reply_to: Text | None = None
    subject: Text | None = None
    headers: dict[Text, Text] = Field(default_factory=dict)


class PayloadFile(Part):
    """One file of the payload, beside ``item.yaml``; ``name`` is what the receiver sees."""

    role: Literal["text", "html", "json", "attachment"]
    path: Text
    name: Text | None = None
    media_type: Text
    sha256: Sha256
    bytes: Count


class Source(Part):
    """Where an item came from."""

    goal: Id
    task: Id
    attempt: Positive
    worker: Id
    commit: Oid  # the worker's commit that carried the result


class Score(Part):
    """One opinion on an item."""

    by: Text
    value: Unit
    note: Text | None = None


class Item(Record):
    """One outbound thing on its way."""

    kind: Literal["Item"] = "Item"
    id: ItemId
    state: ItemState
    revision: Positive = 1
    digest: Digest
    attempt: Positive = 1
    expires_at: Time | None = None
    not_before: Time | None = None
    reason: Text | None = None
    channel: Id
    message: Message
    payload: tuple[PayloadFile, ...] = ()
    source: Source
    confidence: Unit | None = None
    scores: tuple[Score, ...] = ()
    send_at: Time | None = None
    together: Text | None = None

    @model_validator(mode="after")
    def _digest_fits(self) -> Item:
        expected = digest(self.channel, self.message, self.payload, self.send_at)
        if self.digest != expected:
            raise rule("digest-mismatch", f"the digest is {self.digest}, the record's content has {expected}")
        return self


def digest(channel: str, message: Message, payload: tuple[PayloadFile, ...], send_at: datetime | None) -> str:
    """Return the digest over everything that decides what the receiver gets and when."""
    return ids.digest_of(
        {
            "channel": channel,
            "message": message.model_dump(mode="json", by_alias=True),
            "send_at": ids.time_text(send_at) if send_at else None,
            "payload": [one.model_dump(mode="json", exclude={"bytes"}) for one in payload],
        }
    )


class Review(Record):
    """A reviewer's last verdict on one revision."""

    kind: Literal["Review"] = "Review"
    item: ItemId
    revision: Positive
    digest: Digest
    person: Id
    verdict: Annotated[Literal["ok", "no"], words("ok", "no")]
    note: Text | None = None
    at: Time


class ApprovedFile(Part):
    """An attachment, as an approver reads of it."""

    name: Text
    bytes: Count
    sha256: Sha256


class LongText(Part):
    """A text too long to be shown in the approval: where it stands, and its hash."""

    path: Text
    sha256: Sha256
    bytes: Count


class Approval(Record):
    """What is approved, to be read as it stands; who approved is in the merge that brought it."""

    kind: Literal["Approval"] = "Approval"
    item: ItemId
    entry: Oid  # the commit after which the item waits
    revision: Positive
    digest: Digest
    expires_at: Time
    send_at: Time | None = None
    channel: Id
    message: Message
    text: Text | LongText | None = None
    html: Text | LongText | None = None
    json_: Text | LongText | None = Field(default=None, alias="json")
    attachments: tuple[ApprovedFile, ...] = ()


class Seals(Part):
    """The hashes of the two nonces, one for each word that only the holder can say."""

    sent: Digest
    not_sent: Digest


class Lease(Record):
    """The sender's claim on one attempt."""

    kind: Literal["Lease"] = "Lease"
    item: ItemId
    revision: Positive
    attempt: Positive
    digest: Digest
    approval: Oid
    bus: Oid  # the blob of the effective bus.yaml
    holder: Text
    seals: Seals
    leased_at: Time
    expires_at: Time


class Resolution(Record):
    """A human's word on a stuck item."""

    kind: Literal["Resolution"] = "Resolution"
    item: ItemId
    attempt: Positive
    verdict: Annotated[Literal["sent", "not_sent"], words("sent", "not_sent")]
    evidence: Text
    person: Id
    at: Time


Outcome = Literal["sent", "not_sent", "unknown"]


class ProofLine(Part):
    """One thing that was verified, and how strongly: anybody can check it, or a forge said so."""

    what: Text
    assurance: Literal["proved", "recorded"]
    evidence: Json = None


class ReceiptApproval(Part):
    """On whose word it was sent."""

    commit: Oid
    people: tuple[Id, ...]
    proof: Literal["signature", "github"]
    verified: tuple[ProofLine, ...] = ()


class ReceiptChannel(Part):
    """Over what it was sent."""

    id: Id
    transport: Text
    host: Text | None = None
    tls: Text | None = None
    certificate_subject: Text | None = None
    certificate_sha256: Sha256 | None = None
    identity: Text | None = None


class Delivery(Part):
    """A recipient and the server's answer."""

    recipient: Text
    answer: Text


class Receipt(Record):
    """The proof of what became of one attempt."""

    kind: Literal["Receipt"] = "Receipt"
    item: ItemId
    revision: Positive
    attempt: Positive
    digest: Digest
    outcome: Outcome
    nonce: Nonce | None = None
    passing: Flag = False  # with not_sent: the reason passes by itself
    reason: Text | None = None
    lease: Oid
    sender: Text
    approval: ReceiptApproval
    channel: ReceiptChannel
    recipients: tuple[Delivery, ...] = ()
    message_id: Text | None = None
    provider_id: Text | None = None
    leased_at: Time
    finished_at: Time

    @model_validator(mode="after")
    def _nonce_fits(self) -> Receipt:
        if (self.nonce is None) != (self.outcome == "unknown"):
            raise rule("receipt-nonce", "a receipt shows its nonce exactly when it says sent or not_sent")
        return self
