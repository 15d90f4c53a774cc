"""Jobs for the tests of the runner, and a clock that stands still."""

from __future__ import annotations

import shlex
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gitbus.records import Task
from gitbus.records.bus import Limits
from gitbus.runner.base import Answer, Job
from gitbus.runner.command import CommandRunner

NOW = datetime(2026, 11, 30, 20, 5, tzinfo=UTC)


def now() -> datetime:
    return NOW


def job(
    *,
    inputs: dict[str, dict[str, bytes]] | None = None,
    limits: dict[str, Any] | None = None,
    seconds: float = 30,
    given: dict[str, Any] | None = None,
    **task: Any,
) -> Job:
    """Return a job; ``inputs`` are artifacts of other tasks, ``given`` is the task's own inputs."""
    fields: dict[str, Any] = {
        "goal": "release",
        "id": "write",
        "state": "assigned",
        "ready_at": NOW,
        "capability": "notes",
        "attempt": 2,
        "worker": "laptop",
        "inputs": given or {},
        **task,
    }
    return Job(Task(**fields), "laptop", inputs or {}, Limits(**(limits or {})), seconds)


def ask(runner: CommandRunner, given: Job | None = None, cancelled: threading.Event | None = None) -> Answer:
    return runner(given or job(), cancelled or threading.Event())


def sh(script: str, **options: Any) -> CommandRunner:
    return CommandRunner(("sh", "-c", script), now=now, **options)


def python(script: str, **options: Any) -> CommandRunner:
    return CommandRunner((sys.executable, "-c", script), now=now, **options)


def alive(pid: int) -> bool:
    """Say whether a process runs; one that ended and was not collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def quote(path: Path) -> str:
    return shlex.quote(str(path))
