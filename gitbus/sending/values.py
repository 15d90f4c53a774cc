"""What the steps of a sender hand to each other.

Example: ``Sent("a.mail.item", "later", "rate: the channel's rate is used up")``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gitbus.board import Board, ItemBoard
from gitbus.proof.values import Proof

Outcome = Literal["sent", "later", "failed", "stuck", "refused", "would-send"]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a round did with one item."""

    item: str
    outcome: Outcome
    reason: str | None = None
    receipt: str | None = None


@dataclass(frozen=True)
class Ready:
    """An item that passed every check, on the board that it passed them."""

    part: ItemBoard
    proof: Proof


def signs(board: Board) -> bool:
    """Say whether leases and receipts have to be signed on this bus."""
    return bool(board.bus.sending.keys)
