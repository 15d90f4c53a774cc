"""Archiving, telling people, and a bus that wants a newer gitbus."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from gitbus.auditing import audit_bus
from gitbus.errors import Invalid, Refused
from tests.support.world import ITEM, MAIL_GOAL, make_world, waiting_item


def test_what_settled_long_ago_is_archived_whole(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        bus.conduct()
        assert bus.archive(timedelta(0)) is None  # its item waits
        bus.approve([ITEM])
        bus.set_config("sending.enabled", True)
        with bus.sender({}) as sender:
            assert [one.outcome for one in sender.round()] == ["sent"]
        before = bus.hub.store.entry(bus.refs()[bus.hub.main], f"outbox/{ITEM}")
        world.clock.forward(days=31)
        bus.conduct()
        board = bus.board()
        assert (board.goals, board.items) == ({}, {})
        tip = bus.refs()[bus.hub.main]
        assert bus.hub.store.entry(tip, f"archive/2026/12/outbox/{ITEM}") == before
        assert audit_bus(bus.hub.store, tip, bus.root, now=world.clock()).findings == ()
        with pytest.raises(Invalid) as refused:
            bus.add_goal(MAIL_GOAL)
        assert refused.value.rule == "id-taken"
        with bus.sender({}) as sender:
            assert sender.round() == []
    with world.open() as again:
        assert again.board().goals == {}


def test_people_are_told_once(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    code = f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + '\\n')"
    notify = [{"on": ["awaiting_approval", "stuck"], "command": [sys.executable, "-c", code]}]
    world = make_world(tmp_path, policy={"notify": notify})
    with waiting_item(world) as bus:
        bus.conduct()
        bus.conduct()
    lines = [json.loads(line) for line in told.read_text("utf-8").splitlines()]
    assert [(one["kind"], one["on"], one["subject"]) for one in lines] == [
        ("Notice", "awaiting_approval", ITEM)
    ]


def test_an_older_gitbus_does_not_write(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"requires": ">=99.0"})
    with world.open() as bus:
        assert bus.board().goals == {}
        for act in (lambda: bus.add_goal(MAIL_GOAL), bus.conduct):
            with pytest.raises(Refused) as refused:
                act()
            assert refused.value.rule == "too-old"
        with bus.sender({}) as sender, pytest.raises(Refused) as refused:
            sender.round()
        assert refused.value.rule == "too-old"


def test_a_change_of_the_bus_is_proposed_and_merged_by_name(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with world.open() as bus:
        bus.propose_config("sending.enabled", True)
        assert not bus.effective().bus.sending.enabled
        assert bus.effective().pending == ()
        bus.merge_decision("bus")
        assert bus.effective().bus.sending.enabled
        assert "refs/heads/gitbus/decide/bus" not in bus.refs()


def test_a_plain_merge_of_a_proposal_is_pending_until_ratified(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with world.open() as bus:
        bus.propose_config("sending.enabled", True)
        world.git("fetch", "--quiet", "origin")
        world.git("merge", "--quiet", "--no-ff", "-S", "--no-edit", "origin/gitbus/decide/bus")
        world.git("push", "--quiet", "origin", "HEAD:main")
        assert not bus.effective().bus.sending.enabled
        assert len(bus.effective().pending) == 1
        bus.ratify()
        assert bus.effective().bus.sending.enabled
        assert bus.effective().pending == ()
