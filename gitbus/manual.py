r"""Answering a task by hand: a person, or an agent without a loop, is a worker for one result.

Example: ``answer_by_hand(bus, "release", "write", b"status: ok\\noutputs: {n: 1}\\n", "result.yaml")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitbus import codec
from gitbus.errors import Invalid, Refused
from gitbus.records import Result
from gitbus.runner.base import Answer, Job
from gitbus.worker import Offer

if TYPE_CHECKING:
    from gitbus.bus import Bus


def answer_by_hand(bus: Bus, goal: str, task: str, text: bytes, name: str) -> str:
    """Commit a Result on the branch of the worker that the task is assigned to; return what was done.

    ``apiVersion``, ``kind``, ``goal``, ``task``, ``attempt`` and ``worker`` may be left out.

    Raises:
        Refused: the task is not assigned.
        Invalid: the text is no Result, or not this task's.
    """
    part = bus.board().goals.get(goal)
    found = part.tasks.get(task) if part else None
    if found is None or found.state != "assigned" or found.worker is None:
        state = found.state if found else "unknown"
        raise Refused(f"{goal}/{task} is {state}, not assigned to anybody", rule="wrong-state")
    head = {
        "apiVersion": "gitbus/v1",
        "kind": "Result",
        "goal": goal,
        "task": task,
        "attempt": found.attempt,
        "worker": found.worker,
        "status": "ok",
    }
    given = codec.load(text, path=name).data
    result = codec.read(codec.emit({**head, **given}).encode("utf-8"), Result, path=name)
    if (result.goal, result.task, result.attempt, result.worker) != (goal, task, found.attempt, found.worker):
        raise Invalid("the result names another goal, task, attempt or worker", rule="wrong-task", path=name)
    answer = Answer(result)
    worker = bus.worker(Offer(found.worker, (found.capability,), 1, once=True), lambda _job, _event: answer)
    try:
        worker.answer(Job(found, found.worker), answer)
    finally:
        worker.let_go()
    return f"answer {goal}/{task}#{found.attempt}: {result.status}"
