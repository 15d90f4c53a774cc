"""Many actors at once, each a process in a clone of its own: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitbus import making
from gitbus.auditing import audit_bus
from gitbus.bus import Bus
from tests.support.world import World, function_worker, make_world, ok, step_all

ROOT = Path(__file__).resolve().parents[2]
MANY = """
apiVersion: gitbus/v1
kind: Goal
id: many
tasks:
  list: {{capability: list}}
  mail:
    capability: compose
    needs: [list]
    foreach: {{in: "${{list.outputs.people}}", max: 500}}
    item: {{channel: news, to: ["p@partners.example"], subject: "Hello ${{each}}", text: "For ${{each}}."}}
"""


def start(clone: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gitbus", *arguments],
        cwd=clone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def clones(world: World, count: int) -> list[Path]:
    made = []
    for n in range(count):
        making.create_clone(str(world.hub), world.folder / f"clone{n}", "main")
        made.append(world.folder / f"clone{n}")
    return made


def approved(world: World, count: int) -> None:
    """Bring so many items to where they are approved and may go."""
    with Bus.open(world.clone) as bus:
        bus.add_goal(MANY.format().encode())
        worker = function_worker(
            bus,
            "laptop",
            {
                "list": lambda task: {"people": [f"person {n}" for n in range(count)]},
                "compose": lambda task: ok(task, "laptop", outputs={}),
            },
            capacity=50,
        )
        step_all(bus, [worker])
        worker.close()
        items = sorted(bus.board().items)
        assert len(items) == count
        bus.approve(items)
        bus.set_config("sending.enabled", True)


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.long)])
def test_two_conductors_and_four_senders(tmp_path: Path, count: int) -> None:
    world = make_world(tmp_path)
    approved(world, count)
    first, second, *rest = clones(world, 6)
    conductors = [start(first, "conduct", "--watch"), start(second, "conduct", "--watch")]
    senders = [start(clone, "send", "--json") for clone in rest]
    told = [sender.communicate(timeout=280) for sender in senders]
    for conductor in conductors:
        conductor.send_signal(signal.SIGTERM)
        out, err = conductor.communicate(timeout=60)
        assert conductor.returncode == 0, out + err
    sent = [one["id"] for out, _ in told for one in json.loads(out)["items"] if one["outcome"] == "sent"]
    assert len(sent) == len(set(sent)) == count, told
    with Bus.open(world.clone) as bus:
        parts = bus.board().items
        assert {part.state for part in parts.values()} == {"sent"}
        assert sum(len(part.leases) for part in parts.values()) == count
        assert sum(len(part.receipts) for part in parts.values()) == count
        audited = audit_bus(bus.hub.store, bus.refs()[bus.hub.main], bus.root, now=bus.now())
        assert (audited.findings, audited.sent) == ((), count)
    assert len(world.messages()) == count


WORKER = """
import json, os, sys, time
task = json.load(sys.stdin)
time.sleep(0.05)
print(json.dumps({"did": task["id"], "attempt": task["attempt"]}))
"""
GARBAGE = """
import json, os, random, sys
kinds = [
    b"\\xef\\xbb\\xbfstatus: ok\\n", b"\\xff\\xfe", b"a: 1\\na: 2\\n", b"a: &x 1\\nb: *x\\n", b"a: !!str 1\\n",
    b"a: 1\\n---\\nb: 2\\n", b"[" * 65 + b"]" * 65, b"a: .inf\\n", b'a: "\\\\u0007"\\n', b"<<<<<<< ours\\na: 1\\n=======\\n",
    b"unknown: 1\\n", b"kind: Goal\\n", b"x" * 2_000_000, b"status: failed\\n",
    b'{"claims": [{"text": "t", "provenance": "FACT"}]}',
]
with open(os.environ["GITBUS_RESULT"], "wb") as file:
    file.write(random.choice(kinds))
"""


def diamond() -> str:
    """Return a goal of 40 tasks: one, then 38 beside each other, then one that needs them all."""
    middle = [f"m{n}" for n in range(38)]
    lines = ["apiVersion: gitbus/v1", "kind: Goal", "id: diamond", "tasks:", "  top: {capability: do}"]
    lines += [f"  {name}: {{capability: do, needs: [top], lease: 30s}}" for name in middle]
    needs = ", ".join(f"{{task: {name}, optional: true}}" for name in middle)
    return "\n".join([*lines, f"  end: {{capability: do, needs: [{needs}]}}"]) + "\n"


@pytest.mark.long
def test_a_diamond_with_workers_that_crash_and_one_that_writes_garbage(tmp_path: Path) -> None:
    world = make_world(
        tmp_path,
        policy={"conductor": {"absent_grace": "30s", "worker_ttl": "6s", "max_attempts": 3, "max_lost": 20}},
    )
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(WORKER, "utf-8")
    bad.write_text(GARBAGE, "utf-8")

    def worker(name: str, script: Path) -> subprocess.Popen[str]:
        offer = ("work", "--name", name, "--capability", "do", "--capacity", "2", "--watch")
        return start(world.clone, *offer, "--", sys.executable, str(script))

    chance = random.Random(7)
    workers = {f"w{n}": worker(f"w{n}", good) for n in range(7)} | {"bad": worker("bad", bad)}
    conductor = start(world.clone, "conduct", "--watch")
    try:
        with Bus.open(world.clone) as bus:
            bus.add_goal(diamond().encode())
            end = time.monotonic() + 240
            while bus.board().goals["diamond"].report is None:
                assert time.monotonic() < end, "it never settled"
                name = chance.choice(["w0", "w1"])
                workers[name].kill()
                workers[name].communicate()
                bus.hub.wait(1.5, bus.refs())
                workers[name] = worker(name, good)
                bus.hub.wait(1.5, bus.refs())
    finally:
        for process in (conductor, *workers.values()):
            process.kill()
            process.communicate()
    with Bus.open(world.clone) as bus:
        part = bus.whole_board().goals["diamond"]
        assert part.report is not None
        assert len(part.report.tasks) == len(part.tasks) == 40
        assert {task.state for task in part.tasks.values()} <= {"done", "dead"}
        for task in part.tasks.values():
            spent = [past.outcome for past in task.history]
            assert spent.count("failed") + spent.count("refused") <= 3
            numbers = [past.attempt for past in task.history]
            assert sorted(set(numbers)) == sorted(numbers)
        audited = audit_bus(bus.hub.store, bus.refs()[bus.hub.main], bus.root, now=bus.now())
        assert audited.findings == ()
    dead = json.loads(world.gitbus("dead", "--json", PYTHONPATH=str(ROOT)).stdout)
    assert len(dead["tasks"]) == sum(task.state == "dead" for task in part.tasks.values())
    world.git("--git-dir", str(world.hub), "fsck", "--strict")
