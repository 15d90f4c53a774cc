"""Every row of an item's way: who may bring it from where to where, and what that leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus.errors import Refused
from gitbus.sender import Sender
from gitbus.transports.base import Identity
from tests.journeys.driving import (
    BUSY,
    REFUSED,
    SENT,
    UNKNOWN,
    approved_item,
    nothing_to_object,
    on,
    outcomes,
    send,
    state,
)
from tests.support.world import ITEM, World, make_world, waiting_item


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


# --- in review


def test_in_review_a_review_and_an_approval(world: World) -> None:
    with waiting_item(world, confidence=0.5) as bus:
        assert state(bus) == "in_review"
        bus.review(ITEM, "ok", "read it twice")
        bus.approve([ITEM])
        on(bus)
        assert outcomes(send(bus, SENT)) == ["sent"]
        assert state(bus) == "sent"
        nothing_to_object(bus)


def test_in_review_an_approval_without_a_review(world: World) -> None:
    with waiting_item(world, confidence=0.5) as bus:
        on(bus)
        bus.approve([ITEM])
        [refused] = send(bus)
        assert (refused.outcome, (refused.reason or "").split(":")[0]) == ("refused", "review-quorum")
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, part.approval) == ("in_review", None)
        bus.review(ITEM, "ok")
        assert outcomes(send(bus)) == []
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]


def test_a_standing_no(world: World) -> None:
    with waiting_item(world) as bus:
        on(bus)
        bus.review(ITEM, "no", "wrong list")
        bus.approve([ITEM])
        [refused] = send(bus)
        assert refused.outcome == "refused"
        bus.conduct()
        assert state(bus) == "awaiting_approval"
        bus.review(ITEM, "ok")
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]


# --- what narrows


@pytest.mark.long
@pytest.mark.parametrize("approved", [False, True])
@pytest.mark.parametrize(
    ("act", "there"),
    [
        (lambda bus: bus.reject(ITEM, "not now"), "rejected"),
        (lambda bus: bus.withdraw(ITEM, "never"), "withdrawn"),
    ],
    ids=["reject", "withdraw"],
)
def test_taken_back_before_it_is_sent(world: World, act, there: str, approved: bool) -> None:
    with waiting_item(world) as bus:
        on(bus)
        if approved:
            bus.approve([ITEM])
        act(bus)
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, part.approval) == (there, None)
        assert send(bus) == []
        assert not [ref for ref in bus.refs() if ref.startswith("refs/heads/gitbus/approve/")]
        with pytest.raises(Refused) as refused:
            bus.approve([ITEM])
        assert refused.value.rule == "wrong-state"
        nothing_to_object(bus)


@pytest.mark.parametrize("approved", [False, True])
def test_expired_and_put_up_again(world: World, approved: bool) -> None:
    with waiting_item(world) as bus:
        on(bus)
        if approved:
            bus.approve([ITEM])
        world.clock.forward(days=7)
        assert [one.outcome for one in send(bus)] == (["refused"] if approved else [])
        bus.conduct()
        assert (state(bus), bus.board().items[ITEM].approval) == ("expired", None)
        bus.retry_item(ITEM)
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, part.item.attempt if part.item else 0) == ("awaiting_approval", 1)
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


# --- what the sender says


def test_what_passes_is_tried_again_under_one_approval(world: World) -> None:
    with approved_item(world) as bus:
        for attempt, minutes in enumerate((1, 5, 25), start=1):
            assert outcomes(send(bus, BUSY)) == ["later"]
            item = bus.board().items[ITEM].item
            assert item is not None
            assert (item.state, item.attempt) == ("approved", attempt + 1)
            assert item.not_before is not None
            assert (item.not_before - world.clock()).total_seconds() == minutes * 60
            assert outcomes(send(bus)) == ["later"]
            world.clock.forward(minutes=minutes)
        assert outcomes(send(bus, BUSY)) == ["failed"]
        nothing_to_object(bus)
        bus.retry_item(ITEM)
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, part.item.attempt if part.item else 0) == ("awaiting_approval", 5)
        assert send(bus) == []
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        assert sorted(bus.board().items[ITEM].receipts) == [1, 2, 3, 4, 5]
        nothing_to_object(bus)


def test_a_second_attempt_sends(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, BUSY)) == ["later"]
        world.clock.forward(minutes=1)
        assert outcomes(send(bus, SENT)) == ["sent"]
        assert send(bus) == []
        nothing_to_object(bus)


def test_failed_for_good_and_put_up_again(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, REFUSED)) == ["failed"]
        bus.conduct()
        assert state(bus) == "failed"
        assert send(bus) == []
        bus.retry_item(ITEM)
        bus.conduct()
        assert (state(bus), bus.board().items[ITEM].approval) == ("awaiting_approval", None)
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


# --- stuck


def test_stuck_and_resolved_as_sent(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, UNKNOWN)) == ["stuck"]
        bus.conduct()
        assert state(bus) == "stuck"
        bus.resolve(ITEM, "sent", "the list's archive has it")
        bus.conduct()
        assert state(bus) == "sent"
        assert send(bus) == []
        nothing_to_object(bus)


def test_stuck_and_resolved_as_not_sent(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, UNKNOWN)) == ["stuck"]
        for forward in ({"minutes": 0}, {"minutes": 5}, {"minutes": 59, "seconds": 59}):
            world.clock.forward(**forward)
            with pytest.raises(Refused) as refused:
                bus.resolve(ITEM, "not_sent", "not in the archive")
            assert refused.value.rule == "quarantine"
        world.clock.forward(seconds=1)
        bus.resolve(ITEM, "not_sent", "not in the archive")
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, part.item.attempt if part.item else 0) == ("awaiting_approval", 2)
        assert send(bus) == []
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_stranded_when_the_lease_expires(world: World) -> None:
    with approved_item(world) as bus:
        with (
            Sender(bus.hub, bus.root, bus.state, {}, bus.now, opener=lambda *_: Dying()) as sender,
            pytest.raises(KeyboardInterrupt),
        ):
            sender.round()
        assert state(bus) == "sending"
        bus.conduct()
        assert state(bus) == "sending"
        world.clock.forward(minutes=5)
        bus.conduct()
        assert state(bus) == "stuck"
        assert outcomes(send(bus)) == ["stuck"]  # the journal's last word: nobody knows
        bus.conduct()
        assert state(bus) == "stuck"
        world.clock.forward(hours=1)
        bus.resolve(ITEM, "not_sent", "not there")
        bus.conduct()
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


class Dying:
    """A transport in whose call the process goes away."""

    def check(self):
        return Identity("news", transport="maildir")

    def send(self, outgoing, deadline):
        raise KeyboardInterrupt

    def close(self) -> None:
        pass
