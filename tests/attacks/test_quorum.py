"""Approvals that too few stand behind, or somebody against: each attack on a real repository."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitbus import paths
from tests.attacks.test_approval_signature import OTHER, people_of
from tests.support.busparts import ident
from tests.support.busrepo import ITEM, BusRepo

# --- too few


def test_self_approved_by_the_producer(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(workers={"laptop": {"person": "ada"}})
    bus.put_up()
    bus.merge("ada")
    assert bus.refused() == {"quorum"}


def test_two_keys_of_one_person_are_one_approver(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(approval={"quorum": 2})
    bus.set_bus("ada", people=people_of(bus, ada=["ada", "ada-phone"]))
    bus.put_up()
    bus.review("ada", key="ada-phone")
    bus.merge("ada")
    assert bus.refused() == {"quorum"}


@pytest.mark.parametrize(
    "fields",
    [{"revision": 1}, {"digest": "sha256:" + "0" * 64}, {"item": OTHER}],
)
def test_review_of_something_else(bus: BusRepo, fields: dict[str, Any]) -> None:
    bus.put_up(state="in_review", revision=2)
    bus.review("rita", **fields)
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


@pytest.mark.parametrize(
    ("who", "key"), [("rita", None), ("rita", "mallory"), ("rita", "ada"), ("oscar", "oscar")]
)
def test_review_that_is_not_the_persons_own(bus: BusRepo, who: str, key: str | None) -> None:
    bus.put_up(state="in_review")
    bus.review(who, key=key)
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


def test_review_of_the_merger_where_four_eyes_are_asked_for(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(review={"four_eyes": True})
    bus.put_up(state="in_review")
    bus.review("ada")
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


def test_review_carried_by_a_rebase(bus: BusRepo) -> None:
    bus.put_up(state="in_review")
    bus.review("rita", key=None)
    review = bus.store.entry(bus.tip, paths.review(ITEM, "rita"))
    bus.point("main", bus.store.commit(bus.tip).parents[0])
    bus.commit(
        {paths.review(ITEM, "rita"): review},
        "review",
        by="rita",
        key="rita",
        author=ident("conductor", bus.now),
    )
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


@pytest.mark.parametrize("how", ["merge", "more"])
def test_review_that_is_not_alone(bus: BusRepo, how: str) -> None:
    bus.put_up(state="in_review")
    bus.review("rita")
    review = bus.store.entry(bus.tip, paths.review(ITEM, "rita"))
    bus.point("main", bus.store.commit(bus.tip).parents[0])
    changes = {paths.review(ITEM, "rita"): review}
    if how == "merge":
        bus.commit(changes, "review", by="rita", key="rita", parents=[bus.tip, bus.detached({})])
    else:
        bus.commit({**changes, "goals/a.md": "x\n"}, "review", by="rita", key="rita")
    bus.merge("ada")
    assert bus.refused() == {"review-quorum"}


@pytest.mark.parametrize("after", ["stands", "deleted", "overwritten", "garbled"])
def test_standing_no(bus: BusRepo, after: str) -> None:
    bus.put_up()
    path = paths.review(ITEM, "oscar" if after == "stands" else "rita")
    bus.review("oscar" if after == "stands" else "rita", verdict="no", key=None)
    if after == "deleted":
        bus.commit({path: None})
    if after == "overwritten":
        bus.review("rita", key=None)
    if after == "garbled":
        bus.commit({path: "no\n"})
    bus.merge("ada")
    assert bus.refused() == {"standing-no"}
