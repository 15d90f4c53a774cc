"""Seals: the hashes that a lease shows, and the secrets that a receipt reveals.

Rules: a lease shows two seals, one for each word that only its holder can say; a receipt reveals
the secret of its own outcome, and ``unknown`` reveals none. Without the secret nobody else can say
either word, and a word once said cannot be turned into the other.

Example: ``opened(lease, receipt) == "sent"``.
"""

from __future__ import annotations

from typing import Literal

from gitbus import ids
from gitbus.records import Lease, Receipt


def opened(lease: Lease, receipt: Receipt | None) -> Literal["sent", "not_sent"] | None:
    """Return the outcome that a receipt proves of a lease; None where it proves none."""
    if receipt is None or receipt.nonce is None:
        return None
    seal = ids.seal_of(receipt.nonce)
    if receipt.outcome == "sent" and seal == lease.seals.sent:
        return "sent"
    if receipt.outcome == "not_sent" and seal == lease.seals.not_sent:
        return "not_sent"
    return None
