"""What happens while something is being sent: the flag goes off, the lease runs out, a word comes late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from gitbus import ids, paths
from gitbus.bus import Bus
from gitbus.change import Change
from gitbus.errors import Refused
from gitbus.sender import Sender, Sent
from gitbus.transports.base import Answer, Identity, Outgoing
from tests.journeys.driving import (
    REFUSED,
    SENT,
    UNKNOWN,
    another_clone,
    approved_item,
    nothing_to_object,
    on,
    outcomes,
    send,
    state,
)
from tests.support.world import ITEM, MAIL_GOAL, World, make_world, waiting_item

pytestmark = pytest.mark.long


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@dataclass
class Slow:
    """A transport that lets something happen before it answers, or before it is asked."""

    answer: Answer
    during: Callable[[], None] = lambda: None
    before: Callable[[], None] = lambda: None

    def check(self) -> Identity:
        self.before()
        return Identity("news", transport="maildir")

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        self.during()
        return self.answer

    def close(self) -> None:
        pass


def send_slowly(bus: Bus, transport: Slow) -> list[Sent]:
    with Sender(bus.hub, bus.root, bus.state, {}, bus.now, opener=lambda *_: transport) as sender:
        return sender.round()


def stranded(world: World, bus: Bus) -> Callable[[], None]:
    def happens() -> None:
        world.clock.forward(minutes=5)
        with world.open() as other:
            other.conduct()
            assert state(other) == "stuck"

    return happens


@pytest.mark.parametrize(
    ("answer", "there"),
    [(SENT, "sent"), (REFUSED, "stuck"), (UNKNOWN, "stuck")],
    ids=["sent", "not", "unknown"],
)
def test_a_word_that_comes_after_the_lease(world: World, answer: Answer, there: str) -> None:
    with approved_item(world) as bus:
        send_slowly(bus, Slow(answer, during=stranded(world, bus)))
        bus.conduct()
        assert state(bus) == there
        assert send(bus) == []
        nothing_to_object(bus)
        if answer is REFUSED:  # its own word closes the lease, so that nobody has to wait
            bus.resolve(ITEM, "not_sent", "the server refused it")
            bus.conduct()
            bus.approve([ITEM])
            assert outcomes(send(bus, SENT)) == ["sent"]
            nothing_to_object(bus)


def test_sent_comes_after_a_human_was_wrong(world: World) -> None:
    """A `not_sent` by a human, a new approval, and then the first sender's `sent`: nothing goes out again."""

    def happens() -> None:
        world.clock.forward(minutes=5)
        with world.open() as other:
            other.conduct()
            world.clock.forward(hours=1)
            other.resolve(ITEM, "not_sent", "I did not see it")
            other.conduct()
            other.approve([ITEM])
            assert state(other) == "approved"

    with approved_item(world) as bus:
        send_slowly(bus, Slow(SENT, during=happens))
        part = bus.board().items[ITEM]
        assert part.state == "sent"
        bus.conduct()
        assert send(bus) == []
        assert list(bus.board().items[ITEM].receipts) == [1]


def test_the_flag_goes_off_before_the_lease(world: World) -> None:
    with approved_item(world) as bus:
        [done] = send_slowly(bus, Slow(SENT, before=lambda: bus.set_config("sending.enabled", False)))
        assert (done.outcome, "sending-off" in (done.reason or "")) == ("refused", True)
        assert (state(bus), bus.board().items[ITEM].leases) == ("approved", {})


@pytest.mark.parametrize("act", ["reject", "withdraw", "redo", "revise"])
def test_taken_back_before_the_lease(world: World, act: str) -> None:
    with approved_item(world) as bus:

        def happens() -> None:
            {
                "reject": lambda: bus.reject(ITEM, "no"),
                "withdraw": lambda: bus.withdraw(ITEM),
                "redo": lambda: bus.redo(ITEM, "again"),
                "revise": lambda: bus.revise(ITEM, {"body.txt": b"new\n"}),
            }[act]()

        [done] = send_slowly(bus, Slow(SENT, before=happens))
        assert done.outcome == "refused"
        assert bus.board().items[ITEM].leases == {}
        bus.conduct()
        assert send(bus) == []
        nothing_to_object(bus)


def test_nothing_takes_back_what_is_being_sent(world: World) -> None:
    with approved_item(world) as bus:

        def happens() -> None:
            assert state(bus) == "sending"
            for act in (
                lambda: bus.reject(ITEM, "no"),
                lambda: bus.withdraw(ITEM),
                lambda: bus.redo(ITEM, "again"),
                lambda: bus.revise(ITEM, {"body.txt": b"new\n"}),
                lambda: bus.retry_item(ITEM),
                lambda: bus.resolve(ITEM, "sent", "too early"),
            ):
                with pytest.raises(Refused) as refused:
                    act()
                assert refused.value.rule == "wrong-state"

        assert outcomes(send_slowly(bus, Slow(SENT, during=happens))) == ["sent"]
        nothing_to_object(bus)


def test_main_moves_all_the_time(world: World) -> None:
    """Other people's commits between look and lease, and between send and attest, cost nothing."""
    with approved_item(world) as bus:
        numbers = iter(range(100))

        def happens() -> None:
            for _ in range(3):
                bus.add_goal(MAIL_GOAL.replace(b"id: release", b"id: other-%d" % next(numbers)))

        assert outcomes(send_slowly(bus, Slow(SENT, during=happens, before=happens))) == ["sent"]
        nothing_to_object(bus)


def test_a_sender_in_another_clone_finds_the_lease(world: World) -> None:
    with approved_item(world) as bus:

        def happens() -> None:
            with another_clone(world, "second").open() as second:
                assert send(second) == []

        assert outcomes(send_slowly(bus, Slow(SENT, during=happens))) == ["sent"]
        assert list(bus.board().items[ITEM].leases) == [1]


# --- when it may go


def test_hold(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"sending": {"hold": "10m"}})
    with approved_item(world) as bus:
        [later] = send(bus)
        assert (later.outcome, (later.reason or "").split(":")[0]) == ("later", "hold")
        world.clock.forward(minutes=10)
        assert outcomes(send(bus, SENT)) == ["sent"]


def test_send_at(world: World) -> None:
    goal = MAIL_GOAL + b"      send_at: 2026-12-01T09:00 Europe/Berlin\n"
    with waiting_item(world, goal) as bus:
        on(bus)
        bus.approve([ITEM])
        for _ in range(2):
            [later] = send(bus)
            assert (later.outcome, (later.reason or "").split(":")[0]) == ("later", "send-at")
            world.clock.forward(hours=6)
        assert ids.time_text(world.clock()) == "2026-12-01T08:00:00Z"
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


# --- somebody broke the rules


def test_put_back_to_wait_with_an_open_lease(world: World) -> None:
    """A commit by hand that makes a stuck item wait again is undone by the conductor."""
    with approved_item(world) as bus:
        assert outcomes(send(bus, UNKNOWN)) == ["stuck"]
        item = bus.board().items[ITEM].item
        assert item is not None
        back = item.model_copy(
            update={
                "state": "awaiting_approval",
                "attempt": 2,
                "reason": None,
                "expires_at": world.clock() + timedelta(days=7),
            }
        )
        bus.commit(lambda board: Change("retry", ITEM, {paths.item(ITEM): back, paths.approval(ITEM): None}))
        bus.conduct()
        part = bus.board().items[ITEM]
        assert (part.state, "not closed" in (part.item.reason or "") if part.item else None) == (
            "stuck",
            True,
        )
        assert send(bus) == []
        nothing_to_object(bus, "resolution-unproved")


def test_made_sent_by_hand(world: World) -> None:
    with approved_item(world) as bus:
        item = bus.board().items[ITEM].item
        assert item is not None
        forged = item.model_copy(update={"state": "sent"})
        bus.commit(lambda board: Change("attest", ITEM, {paths.item(ITEM): forged}))
        bus.conduct()
        assert state(bus) == "stuck"
        nothing_to_object(bus, "sent-unproved")


@pytest.mark.parametrize("answer", [SENT, REFUSED, UNKNOWN], ids=["sent", "not", "unknown"])
def test_a_word_that_comes_when_all_is_archived(world: World, answer: Answer) -> None:
    """A human said `sent` meanwhile, and the goal went into the archive: the receipt goes there too."""

    def happens() -> None:
        world.clock.forward(minutes=5)
        with world.open() as other:
            other.conduct()
            other.resolve(ITEM, "sent", "it is in the list's archive")
            other.conduct()
            world.clock.forward(days=31)
            assert other.archive(timedelta(0)) is not None
            assert ITEM not in other.board().items

    with approved_item(world) as bus:
        [done] = send_slowly(bus, Slow(answer, during=happens))
        assert done.outcome == "sent"
        assert ITEM not in bus.board().items
        part = bus.item(ITEM)
        assert part is not None
        assert part.state == "sent"
        assert [one.outcome for one in part.receipts.values()] == [answer.outcome]
        assert send(bus) == []
        bus.conduct()
        nothing_to_object(bus)
