"""The rules of one result: can it be read, is it for an attempt that this worker had, does all of it hold. Pure.

Example: ``check(batch, task, result, answer)`` raises ``No("artifact-missing", …)`` where a file is missing.
"""

from __future__ import annotations

from typing import Any

from gitbus import codec, paths, schema
from gitbus.board import GoalBoard
from gitbus.change import plain
from gitbus.errors import Invalid
from gitbus.flow.batch import Batch
from gitbus.goalcheck import check_plan
from gitbus.incoming import Answer, FoundFile
from gitbus.proposals import ProposalRefused, proposals
from gitbus.records import Result, Task


class No(Exception):
    """A rule that an answer breaks: its name, the place, and why."""

    def __init__(self, rule: str, place: str, message: str) -> None:
        """Keep the rule's name and the place beside the message."""
        super().__init__(message)
        self.rule, self.place, self.message = rule, place, message


def read(batch: Batch, answer: Answer) -> tuple[Result, bool]:
    """Return the result, and whether it stands there in the bytes that gitbus writes for it.

    Raises:
        No: it cannot be read.
    """
    if answer.data is None:
        raise No("too-large", answer.path, f"{answer.size} bytes are more than limits.record")
    try:
        return codec.read_as_written(
            answer.data, Result, path=answer.path, limit=batch.board.bus.limits.record
        )
    except Invalid as error:
        raise No(error.rule, error.place or answer.path, error.message) from None


def check_origin(result: Result, task: Task, worker: str, answer: Answer) -> None:
    """Check that a result is for its task, and for an attempt that this worker had.

    Raises:
        No: with the first rule that it breaks.
    """
    if (result.goal, result.task) != (answer.goal, answer.task):
        raise No(
            "wrong-task", _place(answer, ("task",)), f"the result says it is for {result.goal}/{result.task}"
        )
    if result.worker != worker:
        raise No("wrong-worker", _place(answer, ("worker",)), f"the result says it is by {result.worker}")
    had = (task.attempt, task.worker) == (result.attempt, worker) or any(
        (past.attempt, past.worker) == (result.attempt, worker) for past in task.history
    )
    if not had:
        why = f"attempt {result.attempt} was never this worker's"
        raise No("attempt-not-assigned", _place(answer, ("attempt",)), why)


def check(batch: Batch, task: Task, result: Result, answer: Answer) -> None:
    """Check what depends on the goal, the bus and the files that came along.

    Raises:
        No: with the first rule that it breaks.
    """
    if task.outputs is not None:
        for where, why in schema.errors(result.outputs, task.outputs):
            raise No("outputs-schema", _place(answer, ("outputs", *where)), plain(why, 300))
    _check_files(batch, result, answer)
    part = batch.board.goals[answer.goal]
    _check_evidence(part, result, answer)
    if not _makes_more(part, task, result):
        return
    whole = batch.graph(answer.goal)
    planned = whole.tasks.get(task.id) if whole else None
    if whole is None or planned is None:
        return
    if result.tasks is not None:
        for issue in check_plan(whole.goal, task.id, result.tasks, tuple(whole.tasks)):
            raise No(issue.rule, _place(answer, issue.place), plain(issue.message, 300))
    _check_texts(result, answer)
    files = {path: found.entry for path, found in answer.artifacts.items()}
    try:
        proposals(whole, planned, result, files, batch.board.bus)
    except ProposalRefused as error:
        raise No(error.rule, _place(answer, error.place), plain(error.message, 300)) from None


def _makes_more(part: GoalBoard, task: Task, result: Result) -> bool:
    """Say whether a result gives rise to items or tasks, for which the whole goal has to be looked at."""
    node = part.goal.tasks.get(task.id) if part.goal else None
    return node is None or node.item is not None or bool(result.items) or result.tasks is not None


def _check_files(batch: Batch, result: Result, answer: Answer) -> None:
    total = 0
    for index, artifact in enumerate(result.artifacts):
        where = _place(answer, ("artifacts", index))
        found: FoundFile | None = answer.artifacts.get(artifact.path)
        if found is None:
            raise No(
                "artifact-missing", where, f"{artifact.path} is not among the files that came with the result"
            )
        if (found.sha256, found.size) != (artifact.sha256, artifact.bytes):
            raise No(
                "artifact-mismatch", where, f"{artifact.path} has another hash or size than the result says"
            )
        total += found.size
    if total > batch.board.bus.limits.artifacts:
        raise No(
            "too-large", answer.path, f"the artifacts have {total} bytes together, more than limits.artifacts"
        )


def _check_texts(result: Result, answer: Answer) -> None:
    for index, item in enumerate(result.items):
        for role, path in (
            ("text", item.message.text),
            ("html", item.message.html),
            ("json", item.message.json_),
        ):
            found = answer.artifacts.get(path) if path else None
            if found and found.not_text:
                where = _place(answer, ("items", index, "message", role))
                raise No("not-text", where, f"{path} cannot be a message's text: {found.not_text}")


def _check_evidence(part: GoalBoard, result: Result, answer: Answer) -> None:
    named = [(index, one) for index, one in enumerate(result.evidence) if one.kind == "file"]
    if not named:
        return
    known = {artifact.path for artifact in result.artifacts}
    known |= {
        f"{paths.artifacts(part.id, task)}/{path}" for task, files in part.artifacts.items() for path in files
    }
    known |= {paths.result(part.id, task) for task in part.results}
    for index, evidence in named:
        if evidence.ref not in known:
            raise No(
                "evidence-missing",
                _place(answer, ("evidence", index)),
                f"the file {plain(evidence.ref)} is no artifact of this result and no file of its goal",
            )


def _place(answer: Answer, where: tuple[Any, ...]) -> str:
    line, column = codec.load(answer.data or b"", path=answer.path, limit=answer.size + 1).place(tuple(where))
    return f"{answer.path}:{line}:{column}"
