"""A runner around a Python function, for the Python API.

Example: ``FunctionRunner(lambda task, inputs: {"n": task.inputs["n"] + 1})``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gitbus.clock import utc_now
from gitbus.records import Result, Task
from gitbus.runner.answers import Span, answer, failed, from_text
from gitbus.runner.base import Answer, Job

Given = Mapping[str, Any] | str | Result | Answer
Function = Callable[[Task, Mapping[str, Mapping[str, bytes]]], Given]
"""Is given the task and its inputs (needed task → artifact path → bytes)."""


@dataclass(frozen=True)
class FunctionRunner:
    """Calls ``function(task, inputs)``.

    A mapping becomes ``outputs``, text ``outputs.text``; a Result stands for itself, and an Answer
    brings files along. The function cannot be stopped: it runs to its end.
    """

    function: Function
    now: Callable[[], datetime] = utc_now

    def __call__(self, job: Job, cancelled: threading.Event) -> Answer:  # noqa: ARG002 - a Runner's signature
        """Run one task; what the function raises fails the attempt."""
        started = self.now()
        try:
            fields, files = _taken(self.function(job.task, job.inputs))
        except Exception as error:  # noqa: BLE001 - a worker's own code may raise anything
            return failed(job, Span(started, self.now()), f"{type(error).__name__}: {error}")
        return answer(job, Span(started, self.now()), fields, files)


def _taken(given: Given) -> tuple[Mapping[str, Any], Mapping[str, bytes]]:
    if isinstance(given, Answer):
        return _taken(given.result)[0], given.files
    if isinstance(given, Result):
        return given.model_dump(mode="json", by_alias=True), {}
    return (from_text(given) if isinstance(given, str) else {"outputs": dict(given)}), {}
