"""What a receipt is made of. Pure.

Example: ``receipt(entry).outcome``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gitbus.journal import JournalEntry
from gitbus.proof.values import Proof
from gitbus.records import Channel, Receipt
from gitbus.records.item import Delivery, ProofLine, ReceiptApproval, ReceiptChannel
from gitbus.transports.base import Answer, Identity


def over_what(identity: Identity, definition: Channel) -> dict[str, Any]:
    """Return over what something is sent, as a receipt says it."""
    channel = ReceiptChannel(
        id=identity.channel,
        transport=definition.transport,
        host=identity.host,
        tls=identity.tls_version,
        certificate_subject=identity.certificate_subject,
        certificate_sha256=identity.certificate_sha256,
        identity=identity.authenticated_as,
    )
    return channel.model_dump(mode="json")


def on_whose_word(proof: Proof) -> dict[str, Any]:
    """Return on whose approval something is sent, as a receipt says it."""
    approval = ReceiptApproval(
        commit=proof.commit or "0" * 40,
        people=proof.people,
        proof="github" if any(one.assurance == "recorded" for one in proof.verified) else "signature",
        verified=tuple(
            ProofLine(what=one.what, assurance=one.assurance, evidence=one.evidence) for one in proof.verified
        ),
    )
    return {"approval": approval.model_dump(mode="json")}


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return a transport's answer as the journal keeps it."""
    found = asdict(answer)
    found.pop("identity", None)
    return found


def receipt(entry: JournalEntry) -> Receipt:
    """Return the receipt of what the journal holds an answer to."""
    answer, context = entry.answer or {}, entry.context or {}
    outcome = answer["outcome"]
    return Receipt.model_validate(
        {
            "item": entry.item,
            "revision": entry.lease["revision"],
            "attempt": entry.attempt,
            "digest": entry.digest,
            "outcome": outcome,
            "nonce": entry.nonces.get(outcome),
            "passing": bool(answer.get("passing")) and outcome == "not_sent",
            "reason": answer.get("reason"),
            "lease": entry.lease_commit,
            "sender": entry.lease["holder"],
            "approval": context["approval"],
            "channel": context["channel"],
            "recipients": [
                Delivery(recipient=who, answer=said) for who, said in (answer.get("recipients") or {}).items()
            ],
            "message_id": answer.get("message_id"),
            "provider_id": answer.get("provider_id"),
            "leased_at": entry.lease["leased_at"],
            "finished_at": entry.finished_at,
        }
    )
