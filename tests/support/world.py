"""A whole bus for a test: a hub, a clone, people with keys, workers as functions, a clock that is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gitbus import making
from gitbus.bus import Bus
from gitbus.records import Result, Task
from gitbus.runner.function import FunctionRunner
from gitbus.worker import Offer, WorkerActor

START = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class World:
    """One bus and everybody who acts on it."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

    @property
    def clone(self) -> Path:
        return self.folder / "acme"

    @property
    def hub(self) -> Path:
        return self.folder / "acme.git"

    @property
    def mail(self) -> Path:
        return self.folder / "mail"

    def open(self) -> Bus:
        return Bus.open(self.clone, now=self.clock)

    def messages(self) -> list[bytes]:
        new = self.mail / "new"
        return [path.read_bytes() for path in sorted(new.iterdir())] if new.is_dir() else []

    def git(self, *arguments: str) -> str:
        stamp = self.clock().isoformat()
        done = subprocess.run(
            ["git", "-C", str(self.clone), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp},
        )
        return done.stdout.strip()

    def gitbus(self, *arguments: str, expect: int | None = 0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command line as a person would, in the clone."""
        done = subprocess.run(
            [sys.executable, "-m", "gitbus", *arguments],
            cwd=self.clone,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
        )
        assert expect is None or done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done


def make_world(
    folder: Path, policy: Mapping[str, Any] | None = None, channels: Mapping[str, Any] | None = None
) -> World:
    """Make a bus with Ada as its approver and a Maildir as its channel."""
    world = World(folder)
    key = making.make_key(folder / "keys" / "ada", "ada@acme.example")
    making.make_bus(
        world.clone,
        name="acme",
        approver=making.Approver("ada", "ada@acme.example", key),
        channels=dict(
            channels
            or {
                "news": {
                    "transport": "maildir",
                    "path": str(world.mail),
                    "from": ["Acme News <news@acme.example>"],
                }
            }
        ),
        policy={"conductor": {"absent_grace": "0s"}, **dict(policy or {})},
    )
    making.use_key(world.clone, folder / "keys" / "ada", "Ada", "ada@acme.example")
    return world


Function = Callable[[Task], Any]


def function_worker(bus: Bus, name: str, functions: Mapping[str, Function], capacity: int = 4) -> WorkerActor:
    """Return an announced worker whose capabilities are Python functions of a task."""

    def run(task: Task, inputs: Mapping[str, Mapping[str, bytes]]) -> Any:
        del inputs
        return functions[task.capability](task)

    worker = bus.worker(Offer(name, tuple(functions), capacity), FunctionRunner(run, now=bus.now))
    worker.announce()
    return worker


def step_all(bus: Bus, workers: list[WorkerActor], most: int = 200) -> None:
    """Let conductor and workers act until nothing happens any more."""
    conductor = bus.conductor()
    for _ in range(most):
        acted = conductor.tick()
        for worker in workers:
            acted = worker.step() or acted
            while worker.running and not any(one.done() for one in worker.running.values()):
                worker.rest(0.2)
        if not acted and not any(worker.busy() for worker in workers):
            return
    raise AssertionError("it never came to rest")


def ok(task: Task, worker: str, **fields: Any) -> Result:
    """Return a Result for a task."""
    return Result.model_validate(
        {
            "goal": task.goal,
            "task": task.id,
            "attempt": task.attempt,
            "worker": worker,
            "status": "ok",
            "confidence": 0.9,
            **fields,
        }
    )


MAIL_GOAL = b"""\
apiVersion: gitbus/v1
kind: Goal
id: release
tasks:
  write: {capability: write}
  mail:
    capability: compose
    needs: [write]
    item:
      name: news
      channel: news
      to: [list@partners.example]
      subject: "${write.outputs.title}"
      text: "${mail.outputs.text}"
"""
ITEM = "release.mail.news"


def waiting_item(world: World, goal: bytes = MAIL_GOAL, confidence: float = 0.9) -> Bus:
    """Bring one item to where it waits for a human, and return the bus."""
    bus = world.open()
    bus.add_goal(goal)
    worker = function_worker(
        bus,
        "laptop",
        {
            "write": lambda task: {"title": "Release 1.0"},
            "compose": lambda task: ok(
                task, "laptop", confidence=confidence, outputs={"text": "Hello,\nit is out.\n"}
            ),
        },
    )
    step_all(bus, [worker])
    worker.close()
    return bus
