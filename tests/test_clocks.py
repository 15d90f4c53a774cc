"""Clocks that are off are shown, and those that are right never are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.cli import run
from gitbus.clocks import Clocks, in_words
from gitbus.health import examine
from gitbus.runner.function import FunctionRunner
from gitbus.watching import SET_CLOCK
from gitbus.worker import Offer, WorkerActor
from tests.support.world import START, Clock, World, make_world

MINUTE = timedelta(minutes=1)
PATH = "gitbus/presence/laptop"


@contextmanager
def announcing(world: World, clock: Clock) -> Iterator[WorkerActor]:
    """Let a worker whose machine has a clock of its own give its first sign of life."""
    with world.open() as bus:
        runner = FunctionRunner(lambda task, inputs: {}, now=clock)
        worker = WorkerActor(bus.hub, bus.root, bus.state, Offer("laptop", ("a",)), runner, clock)
        worker.announce()
        try:
            yield worker
        finally:
            worker.let_go()


def told(world: World) -> list[str]:
    with world.open() as bus:
        return [one.message for one in bus.status().problems if one.path == PATH]


def test_a_clock_that_is_ahead(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with announcing(world, Clock(START + 5 * MINUTE)):
        assert told(world) == ["the clock of worker laptop is 5 minutes ahead of the one here"]
        world.clock.forward(minutes=8)
        assert told(world) == ["the clock of worker laptop is 5 minutes ahead of the one here"]


def test_a_clock_that_is_behind_as_the_conductor_saw(tmp_path: Path) -> None:
    """The conductor looked a moment before; `status`, another process, is told by what it kept."""
    world = make_world(tmp_path)
    with world.open() as bus:
        bus.conductor().tick()
        with announcing(world, Clock(START - 14 * MINUTE)):
            bus.conductor().tick()
        world.clock.forward(minutes=1)
        [message] = told(world)
        assert message.startswith("the clock of worker laptop is 14 minutes behind the one here")
        assert bus.status().workers[0].healthy
        assert [one.level for one in examine(bus) if one.what.startswith(PATH)] == ["warning"]


def test_text_and_json_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(tmp_path)
    with announcing(world, Clock(START + timedelta(days=30_000))):  # commands take the machine's clock
        run(["-C", str(world.clone), "status"])
        assert "the clock of worker laptop is" in capsys.readouterr().out
        run(["-C", str(world.clone), "status", "--json"])
        found = json.loads(capsys.readouterr().out)["problems"]
    assert [one["remedy"] for one in found if one["path"] == PATH] == [SET_CLOCK]


@pytest.mark.parametrize("seconds", [-59, 0, 59])
def test_a_clock_that_is_right(tmp_path: Path, seconds: int) -> None:
    world = make_world(tmp_path)
    assert told(world) == []
    clock = Clock(START + timedelta(seconds=seconds))
    with announcing(world, clock) as worker:
        assert told(world) == []
        for _ in range(3):
            world.clock.forward(minutes=4)
            clock.forward(minutes=4)
            worker.step()
            assert told(world) == []


def test_an_old_sign_of_life_alone_says_nothing_of_its_clock(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with announcing(world, world.clock):
        world.clock.forward(hours=9)
        assert told(world) == []


@given(
    st.lists(st.tuples(st.integers(0, 900), st.booleans()), min_size=1, max_size=12),
    st.integers(-7200, 7200),
)
def test_no_more_is_said_than_is_true(steps: list[tuple[int, bool]], skew: int) -> None:
    """Whenever it was looked, and whenever the worker made its signs, the bound is never beyond the truth."""
    clocks, now, sign = Clocks(), START, ("0" * 40, START + timedelta(seconds=skew))
    for number, (wait, announces) in enumerate(steps):
        now += timedelta(seconds=wait)
        if announces:
            sign = (f"{number:040x}", now + timedelta(seconds=skew))
        else:
            clocks.look({"w": sign}, now)
            off = clocks.off("w", sign[0]).total_seconds()
            assert abs(off) <= abs(skew)
            assert off * skew >= 0


def test_what_was_kept_and_cannot_be_read_is_forgotten(tmp_path: Path) -> None:
    for text in ("", "[]", '{"seen": 3}', '{"seen": {"a": 1}, "at": "x"}', '{"seen": {}, "at": 5}'):
        (tmp_path / "clocks.json").write_text(text, "utf-8")
        clocks = Clocks(tmp_path)
        clocks.look({"w": ("0" * 40, START)}, START)
        assert clocks.off("w", "0" * 40) == timedelta(0)
        assert Clocks(tmp_path).off("w", "0" * 40) == timedelta(0)


@pytest.mark.parametrize(
    ("off", "words"),
    [
        (timedelta(seconds=61), "61 seconds ahead of"),
        (-2 * MINUTE, "2 minutes behind"),
        (timedelta(hours=3, minutes=30), "3 hours ahead of"),
        (timedelta(days=-9), "9 days behind"),
    ],
)
def test_in_words(off: timedelta, words: str) -> None:
    assert in_words(off) == words
