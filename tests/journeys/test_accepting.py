"""A history that does not hold, and an approver who accepts it after he looked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitbus.bus import Bus
from gitbus.errors import Refused
from gitbus.hub import Author, Draft
from tests.journeys.driving import SENT, approved_item, outcomes, send, state
from tests.support.world import ITEM, World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def foxtrot(world: World, bus: Bus, old: str) -> None:
    """Put what came after an old tip beside the line: a merge whose first parent and tree are that tip's."""
    tip, store = bus.refs()[bus.hub.main], bus.hub.store
    tree = store.commit(old).tree
    made = store.write_commit(Draft(tree, (old, tip), "Merge\n", Author("m", "m@x"), bus.now()))
    store.flush()  # type: ignore[attr-defined]
    command = [
        "git",
        "-C",
        str(world.hub),
        "update-ref",
        bus.hub.main,
        made,
        tip,
    ]  # gitbus's own way refuses it
    subprocess.run(command, check=True, capture_output=True)


def test_what_was_put_aside_is_accepted_by_name_and_nothing_stays_approved(world: World) -> None:
    with approved_item(world) as bus:
        approved = bus.refs()[bus.hub.main]
        bus.withdraw(ITEM, "not now")
        withdrawn = bus.refs()[bus.hub.main]
        foxtrot(world, bus, approved)
        assert state(bus) == "approved"
        with pytest.raises(Refused) as refused:
            send(bus)
        assert refused.value.rule == "hidden-history"
        done = bus.accept_history()
        commit = bus.hub.store.commit(done.commit)
        assert commit.parents[1:] == (withdrawn,)
        assert state(bus) != "approved"
        bus.conduct()
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        with pytest.raises(Refused) as nothing:
            bus.accept_history()
        assert nothing.value.rule == "nothing-to-accept"


def test_accepting_asks_for_each_commit_of_the_line_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with approved_item(world) as bus:
        approved = bus.refs()[bus.hub.main]
        bus.withdraw(ITEM, "not now")
        foxtrot(world, bus, approved)
        from gitbus import accepting

        looks = []
        real = accepting.line_findings
        monkeypatch.setattr(accepting, "line_findings", lambda *a, **k: looks.append(a) or real(*a, **k))
        bus.accept_history()
        assert len(looks) == 1
