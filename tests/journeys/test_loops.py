"""The actors as processes: loops that work together and end cleanly when they are told to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitbus import codec, paths
from gitbus.bus import Bus
from gitbus.change import Change
from gitbus.records import Presence, Worker
from tests.support.world import ITEM, MAIL_GOAL, World, make_world

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = """
import json, os, sys
task = json.load(sys.stdin)
outputs = {"title": "Release 1.0"} if task["id"] == "write" else {"text": "Hello.\\n"}
json.dump({"confidence": 0.9, "outputs": outputs}, open(os.environ["GITBUS_RESULT"], "w"))
"""


@contextmanager
def running(world: World, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "gitbus", *arguments],
        cwd=world.clone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(bus: Bus, state: str, seconds: float = 60) -> None:
    """Wait for the item to get to a state; the bound is only there so that a fault ends the test."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        part = bus.board().items.get(ITEM)
        if part is not None and part.state == state:
            return
        bus.hub.wait(0.5, bus.refs())
    raise AssertionError(f"the item never was {state}")


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said


def worker_script(tmp_path: Path) -> list[str]:
    script = tmp_path / "worker.py"
    script.write_text(COMPOSE, "utf-8")
    return [sys.executable, str(script)]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_conductor_worker_and_sender_in_loops(tmp_path: Path, number: int) -> None:
    world = make_world(tmp_path)
    world.clock.now = datetime.now(UTC)
    command = worker_script(tmp_path)
    caps = ("--capability", "write", "--capability", "compose")
    with (
        Bus.open(world.clone) as bus,
        running(world, "work", "--name", "laptop", *caps, "--watch", "--", *command) as worker,
    ):
        bus.set_config("conductor.absent_grace", "30s")
        bus.set_config("sending.enabled", True)
        bus.add_goal(MAIL_GOAL)
        with running(world, "conduct", "--watch") as conductor, running(world, "send", "--watch") as sender:
            until(bus, "awaiting_approval")
            while paths.APPROVE + ITEM not in bus.refs():  # the branch goes up right after the item waits
                bus.hub.wait(0.5, bus.refs())
            bus.approve([ITEM])
            until(bus, "sent")
            assert ended(sender, number) == (0, "")
            assert ended(conductor, number) == (0, "")
        assert ended(worker, number) == (0, "")
        oid = bus.refs()[paths.PRESENCE + "laptop"]
        entry = bus.hub.store.entry(oid, "presence.yaml")
        assert entry is not None
        assert codec.read(bus.hub.store.blob(entry.oid), Presence).gone
    assert len(world.messages()) == 1


def test_up_runs_what_this_machine_should(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"conductor": {"absent_grace": "30s"}})
    command = worker_script(tmp_path)
    declared = Worker(
        id="here",
        capabilities=("write", "compose"),
        capacity=2,
        run=tuple(command),
        host=socket.gethostname(),
    )
    elsewhere = Worker(id="there", capabilities=("draw",), run="./draw", host="another-machine")
    with Bus.open(world.clone) as bus:
        bus.commit(
            lambda board: Change(
                "declare", "workers", {paths.worker("here"): declared, paths.worker("there"): elsewhere}
            )
        )
        bus.add_goal(MAIL_GOAL)
        done = world.gitbus("up", "--until-idle", PYTHONPATH=str(ROOT))
        assert "1 workers, no sender" in done.stdout + done.stderr
        assert bus.board().items[ITEM].state == "awaiting_approval"


def test_run_one_goal(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    script = " ".join(worker_script(tmp_path))
    (world.clone / "goal.yaml").write_bytes(MAIL_GOAL)
    done = world.gitbus(
        "run",
        "goal.yaml",
        "--worker",
        f"write={script}",
        "--worker",
        f"compose={script}",
        PYTHONPATH=str(ROOT),
    )
    assert done.stdout.splitlines()[-1] == "release  done"
    again = world.gitbus("run", "goal.yaml", expect=1, PYTHONPATH=str(ROOT))
    assert "[id-taken]" in again.stderr


def test_two_workers_of_one_name(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    command = worker_script(tmp_path)
    with running(
        world, "work", "--name", "twin", "--capability", "write", "--watch", "--", *command
    ) as first:
        with Bus.open(world.clone) as bus:
            end = time.monotonic() + 30
            while paths.PRESENCE + "twin" not in bus.refs() and time.monotonic() < end:
                bus.hub.wait(0.5, bus.refs())
        second = world.gitbus(
            "work", "--name", "twin", "--capability", "write", "--", *command, expect=1, PYTHONPATH=str(ROOT)
        )
        assert "[worker-running]" in second.stderr
        assert first.poll() is None
