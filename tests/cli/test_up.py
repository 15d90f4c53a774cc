"""`gitbus up` as a process: it follows what workers/*.yaml say while it runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.change import Change
from gitbus.records import Presence, Worker
from tests.support.world import World, make_world

ROOT = Path(__file__).resolve().parents[2]
HERE = socket.gethostname()
SAY = """
import pathlib, sys, time
folder, word = pathlib.Path(sys.argv[1]), sys.argv[2]
with (folder / "began").open("a") as file:
    file.write(word + "\\n")
while not (folder / "go").exists():
    time.sleep(0.02)
print(word)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "say.py").write_text(SAY, "utf-8")
    return make_world(tmp_path, policy={"conductor": {"absent_grace": "10m"}})


@contextmanager
def up(world: World, *arguments: str) -> Iterator[list[str]]:
    """Run `gitbus up` and yield what it said on stderr, which is all there once it has ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gitbus", "up", *arguments],
        cwd=world.clone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    said: list[str] = []
    try:
        yield said
        process.send_signal(signal.SIGTERM)
        said += process.communicate(timeout=60)[1].splitlines()
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def until(bus: Bus, true: Callable[[], object]) -> None:
    """Wait for something; the bound is only there so that a fault ends the test."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never came"
        bus.hub.wait(0.2, bus.refs())


def declare(bus: Bus, name: str, word: str | None, **fields: object) -> None:
    """Say on the bus what a worker runs; None takes its declaration away."""
    folder = bus.folder.parent
    run = (sys.executable, str(folder / "say.py"), str(folder), word)
    given = {"id": name, "capabilities": ["say"], "run": run, "host": HERE, **fields}
    worker = Worker.model_validate(given) if word else None
    bus.commit(lambda board: Change("declare", name, {paths.worker(name): worker}))


def goal(bus: Bus, name: str) -> None:
    text = f"apiVersion: gitbus/v1\nkind: Goal\nid: {name}\ntasks:\n  t: {{capability: say}}\n"
    bus.add_goal(text.encode())


def said(bus: Bus, name: str) -> object:
    result = bus.whole_board().goals[name].results.get("t")
    return result.outputs["text"] if result else None


def presence(bus: Bus, name: str) -> Presence | None:
    oid = bus.refs().get(paths.PRESENCE + name)
    entry = bus.hub.store.entry(oid, "presence.yaml") if oid else None
    return codec.read(bus.hub.store.blob(entry.oid), Presence) if entry else None


def gone(bus: Bus, name: str) -> bool:
    found = presence(bus, name)
    return found is not None and found.gone


def began(world: World) -> list[str]:
    path = world.folder / "began"
    return path.read_text("utf-8").split() if path.exists() else []


def test_workers_come_change_and_go(world: World) -> None:
    with world.open() as bus:
        (world.folder / "go").touch()
        declare(bus, "old", "here-before", capabilities=["other"])
        declare(bus, "far", "elsewhere", host="another-machine")
        with up(world) as told:
            until(bus, lambda: presence(bus, "old"))
            goal(bus, "a")
            declare(bus, "new", "first")
            until(bus, lambda: said(bus, "a"))
            declare(bus, "new", "second")
            goal(bus, "b")
            until(bus, lambda: said(bus, "b"))
            declare(bus, "new", None)
            until(bus, lambda: gone(bus, "new"))
            assert not gone(bus, "old")
        assert (said(bus, "a"), began(world)) == ("first", ["first", began(world)[1]])
        assert "worker new is stopped: it is not declared for this machine any more" in told
        assert told.count("worker new is started as workers/new.yaml says") == 2
        assert presence(bus, "far") is None


@pytest.mark.long
def test_a_task_that_runs_is_finished_first(world: World) -> None:
    with world.open() as bus:
        declare(bus, "laptop", "first")
        with up(world):
            goal(bus, "a")
            until(bus, lambda: began(world) == ["first"])
            declare(bus, "laptop", "second")
            goal(bus, "b")
            until(bus, lambda: len(bus.board().goals) == 2)
            (world.folder / "go").touch()
            until(bus, lambda: said(bus, "a") and said(bus, "b"))
        assert (said(bus, "a"), said(bus, "b")) == ("first", "second")
        assert [one.history for one in bus.whole_board().goals["a"].tasks.values()] == [()]


@pytest.mark.long
def test_what_cannot_be_started_is_told_and_the_others_go_on(world: World) -> None:
    with world.open() as bus:
        (world.folder / "go").touch()
        declare(bus, "good", "well")
        with up(world) as told:
            until(bus, lambda: presence(bus, "good"))
            declare(bus, "bad", "x", run="'no end", capabilities=["b"])
            declare(bus, "worse", "x", run="x", **{"as": "nobody"}, capabilities=["c"])
            goal(bus, "a")
            until(bus, lambda: said(bus, "a"))
        assert sum("worker bad is not started" in line for line in told) == 1
        assert sum("worker worse is not started" in line for line in told) == 1


def test_no_worker_is_started_beside_a_sender(world: World) -> None:
    with world.open() as bus:
        with up(world) as told:
            until(bus, lambda: (bus.state / "journal").exists() or (bus.state / "clocks.json").exists())
            declare(bus, "sneaky", "x")
            until(bus, lambda: bus.state.joinpath("clocks.json").exists())
            tip = bus.refs()[bus.hub.main]
            goal(bus, "a")
            until(bus, lambda: bus.refs()[bus.hub.main] != tip)
        assert presence(bus, "sneaky") is None
        assert "conductor, 0 workers, a sender; Ctrl-C ends them" in told
        assert sum("whatever runs as the same user" in line for line in told) <= 1
