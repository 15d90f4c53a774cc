"""A worker's answers: judged by the conductor's own code, then committed on the worker's branch.

A mistake costs a failed answer that says why, and not a refused branch.

Example: ``Answers(hub, root, "laptop", now).commit(base, [(task, answer)])`` returns the commit to be pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from gitbus import codec, paths
from gitbus.board import Board
from gitbus.change import plain
from gitbus.flow.absorb import absorb
from gitbus.history import Entry, Oid
from gitbus.hub.base import Author, Draft, Hub
from gitbus.incoming import Inbox, Tip
from gitbus.reading import Reader
from gitbus.records import Refusal, Result, Task
from gitbus.records.work import Failure
from gitbus.runner.base import Answer
from gitbus.watching import Tips


class Answers:
    """The answers of one worker.

    Args:
        hub: the shared repository.
        root: the commit that began the bus.
        worker: the worker's name.
        now: what time it is.
    """

    def __init__(self, hub: Hub, root: Oid, worker: str, now: Callable[[], datetime]) -> None:
        self.hub = hub
        self.worker = worker
        self.now = now
        self.whole = Reader(hub.store, root)  # for what can only be judged with a whole goal
        self.tips = Tips(hub)
        self._bytes: dict[int, tuple[Result, bytes]] = {}

    def base(self, tip: Oid | None, main: Oid, board: Board) -> tuple[Oid, bool]:
        """Return what the next commit stands on, and whether the branch starts anew there."""
        if tip is None:
            return main, False
        refused = board.branch_refusals.get(self.worker)
        if refused is not None and refused.tip == tip:
            return main, True
        return (main, False) if self.hub.store.is_ancestor(tip, main) else (tip, False)

    def mended(self, refs: Mapping[str, Oid], board: Board, base: Oid, task: Task, answer: Answer) -> Answer:
        """Return an answer as it is pushed: a failure that says why, where the conductor would refuse it."""
        result = answer.result
        if len(self._written(result)) > board.bus.limits.record:
            return failed(task, self.worker, "too-large: the result is larger than limits.record")
        if not (answer.files or result.items or result.tasks or result.evidence):
            return answer
        if result.items or result.tasks or result.evidence:
            board = self.whole.opened(self.whole.board(refs[self.hub.main]), [task.goal])
        refusal = self.refused(board, base, [(task, answer)])
        return failed(task, self.worker, f"{refusal.rule}: {refusal.message}") if refusal else answer

    def refused(self, board: Board, base: Oid, answers: list[tuple[Task, Answer]]) -> Refusal | None:
        """Return what the conductor would refuse of these answers."""
        commit = self.commit(base, answers)
        judged = self.tips.commit(commit, self.worker, board)
        tip = Tip(self.worker, commit, (replace(judged, signed=True),))
        for change in absorb(board, Inbox((tip,)), self.now()):
            for content in change.writes.values():
                if isinstance(content, Refusal):
                    return content
        return None

    def _written(self, result: Result) -> bytes:
        """Return a result's canonical bytes, made once for as long as the result waits."""
        known = self._bytes.get(id(result))
        if known is None or known[0] is not result:
            known = self._bytes[id(result)] = (result, codec.write(result))
        return known[1]

    def commit(self, base: Oid, answers: list[tuple[Task, Answer]]) -> Oid:
        """Write one commit with these answers on top of ``base``, and return its id."""
        store = self.hub.store
        tree = store.commit(base).tree
        changes: dict[str, bytes | Entry | None] = {}
        lines = []
        for task, answer in answers:
            folder = paths.artifacts(task.goal, task.id)
            for delta in store.diff(None, tree, folder):
                changes[delta.path] = None
            changes.update({f"{folder}/{path}": data for path, data in answer.files.items()})
            changes[paths.result(task.goal, task.id)] = self._written(answer.result)
            lines.append(f"{task.goal}/{task.id}#{task.attempt}: {answer.result.status}")
        subject = lines[0] if len(lines) == 1 else f"{len(lines)} tasks"
        body = "" if len(lines) == 1 else "\n" + "\n".join(lines) + "\n"
        tree = store.write_tree(tree, changes)
        return store.write_commit(
            Draft(tree, (base,), f"answer {subject}\n{body}", author(self.worker), self.now())
        )

    def forget(self) -> None:
        """Forget what was written of answers that are on the hub now."""
        self._bytes = {}


def author(worker: str) -> Author:
    """Return who a worker's commits say made them."""
    return Author(f"gitbus worker {worker}", f"{worker}@bus")


def failed(task: Task, worker: str, message: str) -> Answer:
    """Return the answer that a task failed, and why."""
    result = Result(
        goal=task.goal,
        task=task.id,
        attempt=task.attempt,
        worker=worker,
        status="failed",
        error=Failure(message=plain(message, 500)),
    )
    return Answer(result, {})
