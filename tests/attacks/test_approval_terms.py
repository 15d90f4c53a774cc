"""Approvals for another channel or another time: each attack on a real repository, each refused by its rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gitbus import codec, paths
from tests.attacks.test_approval_content import merged
from tests.support.busrepo import ITEM, BusRepo

# --- 4: elsewhere


@pytest.mark.parametrize("field", [{"host": "evil.example"}, {"port": 25}, {"username": "eve"}, {"tls": "implicit"},
                                   {"partial_recipients": "accept"}])  # fmt: skip
def test_channel_changed_after_the_approval(bus: BusRepo, field: dict[str, Any]) -> None:
    bus.put_up()
    bus.merge("ada")
    news = {**bus.bus.channels["news"].model_dump(mode="json", by_alias=True), **field}
    bus.set_bus("ada", channels={"news": news})
    assert bus.refused() == {"channel-changed"}


def test_rate_and_allow_lists_may_change(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    news = bus.bus.channels["news"].model_dump(mode="json", by_alias=True)
    bus.set_bus(
        "ada",
        channels={"news": {**news, "rate": "1/m", "recipients": ["*@b.example"], "from": ["x@b.example"]}},
    )
    assert bus.prove().missing == ()


def test_channel_that_is_gone(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.write_bus(bus.bus.model_copy(update={"channels": {}}))
    assert bus.refused() == {"channel-changed"}


# --- 7: the time


def test_expired(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.now = bus.item().expires_at or bus.now
    proof = bus.prove()
    assert {one.rule for one in proof.missing} == {"expired"}
    assert proof.unasked
    assert not proof.disproved


@pytest.mark.parametrize(
    ("away", "rules"), [(timedelta(hours=2), {"future"}), (timedelta(hours=-2), {"entry-mismatch", "expiry"})]
)
def test_dated_in_the_future_or_the_past(bus: BusRepo, away: timedelta, rules: set[str]) -> None:
    bus.put_up()
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    bus.commit(flip, "yes", by="ada", key="ada", when=bus.now + away)
    assert bus.refused() == rules


def test_dated_before_the_item_waited(bus: BusRepo) -> None:
    """With a short wait the date of the past breaks no bound of its own, but `hold` would run from it."""
    bus.put()
    bus.tick(hours=3)
    bus.wait(expires_at=bus.now + timedelta(minutes=30))
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    bus.commit(flip, "yes", by="ada", key="ada", when=bus.now - timedelta(hours=2))
    assert bus.refused() == {"entry-mismatch"}


def test_item_that_waits_longer_than_the_bus_allows(bus: BusRepo) -> None:
    bus.put()
    bus.wait(expires_at=bus.now + timedelta(days=30))
    bus.flip()
    bus.commit({}, "put up")
    bus.merge("ada")
    assert bus.refused() == {"expiry"}


def test_approval_that_cannot_be_read(bus: BusRepo) -> None:
    bus.put_up()
    merged(bus, {paths.approval(ITEM): codec.write(bus.item())})
    assert bus.refused() == {"no-approval"}
