"""What every runner is given and gives back; nothing here knows of git.

Example: a runner is any ``run(job, cancelled) -> Answer``; ``cancelled`` is set when the worker is
asked to stop, and the answer is then a ``retry``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gitbus.records import Result, Task
from gitbus.records.bus import Limits


@dataclass(frozen=True)
class Job:
    """One attempt at a task.

    ``inputs`` holds the artifacts of the needed tasks: task → path → bytes. ``seconds`` is what is
    left until the deadline; None where there is none.
    """

    task: Task
    worker: str
    inputs: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None


@dataclass(frozen=True)
class Answer:
    """What came of it: the result, and its artifacts by path."""

    result: Result
    files: Mapping[str, bytes] = field(default_factory=dict)


Runner = Callable[[Job, threading.Event], Answer]
"""Runs one task. It never raises for what the task's program does, and stops when the event is set."""
