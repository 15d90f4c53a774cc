"""Absorb: take in what workers committed, as far as it passes every rule.

A worker's branch is judged commit by commit. A forbidden path, kind of entry or size ends it there:
the clean commits before are merged, the rest is refused by its tip. A result that does not pass
costs its attempt and is kept as a Refusal. One that is late changes nothing and is recorded.

Example: a result of an attempt that was given up as lost, but comes before the next one, is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gitbus import attempts, codec, graph, ids, paths, schema
from gitbus.board import Board, GoalBoard
from gitbus.change import Change, Content, Kept, Thread, plain
from gitbus.errors import Invalid
from gitbus.goalcheck import check_plan
from gitbus.history import FILE, Oid
from gitbus.incoming import Answer, FoundFile, Inbox, Tip, Touched, WorkerCommit
from gitbus.proposals import ProposalRefused, proposals
from gitbus.records import Refusal, Result, Task

RETRY_AFTER = timedelta(minutes=1)
"""How long an answer ``retry`` waits that does not say how long."""


def absorb(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    """Return the one commit that takes in every worker's new commits, or none."""
    batch = _Batch(board, now)
    for tip in inbox.tips:
        refused = board.branch_refusals.get(tip.worker)
        if refused is None or refused.tip != tip.tip:
            _take(batch, tip)
    return batch.changes()


@dataclass
class _Batch:
    """What one absorbing commit will hold, while it is being put together."""

    board: Board
    now: datetime
    writes: dict[str, Content] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    about: list[Thread] = field(default_factory=list)
    parents: list[Oid] = field(default_factory=list)
    sources: dict[tuple[str, str], Oid] = field(default_factory=dict)
    tasks: dict[tuple[str, str], Task] = field(default_factory=dict)
    results: dict[str, dict[str, Result]] = field(default_factory=dict)
    graphs: dict[str, graph.Graph] = field(default_factory=dict)

    def task(self, goal: str, task: str) -> Task | None:
        part = self.board.goals.get(goal)
        return self.tasks.get((goal, task)) or (part.tasks.get(task) if part else None)

    def set_task(self, task: Task) -> None:
        self.tasks[task.goal, task.id] = task
        self.writes[paths.task(task.goal, task.id)] = task

    def graph(self, goal: str) -> graph.Graph | None:
        """Return a goal's graph as this batch leaves it; built once, as long as it keeps its shape."""
        part = self.board.goals.get(goal)
        if part is None or part.goal is None:
            return None
        if goal not in self.graphs:
            mine = {name: task for (of, name), task in self.tasks.items() if of == goal}
            results = {**part.results, **self.results.get(goal, {})}
            self.graphs[goal] = graph.of(self.board, part, {**part.tasks, **mine}, results)
        return self.graphs[goal]

    def took(self, result: Result) -> None:
        """Take a result into what later answers of this batch are judged by."""
        self.results.setdefault(result.goal, {})[result.task] = result
        known = self.graphs.get(result.goal)
        if known is not None:
            if graph.grows(known.goal):
                del self.graphs[result.goal]
            else:
                self.graphs[result.goal] = known.after(result)

    def note(self, line: str, thread: Thread) -> None:
        self.lines.append(line)
        self.about.append(thread)

    def changes(self) -> list[Change]:
        if not self.parents and not self.writes:
            return []
        subject = self.lines[0] if len(self.lines) == 1 else f"{len(self.lines)} answers"
        body = tuple(self.lines) if len(self.lines) > 1 else ()
        return [
            Change(
                "absorb",
                subject if self.lines else "nothing new",
                self.writes,
                tuple(self.about),
                body,
                tuple(dict.fromkeys(self.parents)),
                sources=self.sources,
            )
        ]


def _take(batch: _Batch, tip: Tip) -> None:
    """Judge one worker's new commits, in order."""
    clean: Oid | None = None
    for index, commit in enumerate(tip.commits):
        broken = next(_broken(batch, tip.worker, commit), None)
        if broken:
            _refuse_branch(batch, tip, index, *broken)
            break
        clean = commit.oid
        for answer in commit.answers:
            _answer(batch, tip.worker, commit.oid, answer)
    if clean is not None:
        batch.parents.append(clean)


# --- the rules of a worker's branch


def _broken(batch: _Batch, worker: str, commit: WorkerCommit) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, place, message) for what no commit of a worker may hold."""
    if len(commit.parents) != 1:
        yield (
            "not-one-line",
            commit.oid,
            "a worker's branch is one line, without merges and without a root of its own",
        )
    if not commit.signed:
        yield (
            "worker-unsigned",
            commit.oid,
            "bus.yaml names keys for this worker, and this commit has none of them",
        )
    for touched in commit.touched:
        yield from _broken_path(batch, worker, touched)
    for answer in commit.answers:
        yield from _collisions(answer)


def _broken_path(batch: _Batch, worker: str, touched: Touched) -> Iterator[tuple[str, str, str]]:
    shown = plain(touched.path)
    match touched.path.split("/"):
        case ["goals", goal, "results", name] if name.endswith(".yaml"):
            task, limit = name[: -len(".yaml")], batch.board.bus.limits.record
        case ["goals", goal, "artifacts", task, *inner] if inner and not ids.why_not_path("/".join(inner)):
            limit = batch.board.bus.limits.artifact
        case _:
            yield "forbidden-path", shown, "a worker writes its own results and artifacts, and nothing else"
            return
    known = batch.task(goal, task)
    part = batch.board.goals.get(goal)
    unreadable = known is None and part is not None and paths.task(goal, task) in part.problems
    if not unreadable and (known is None or not attempts.was_assigned(known, worker)):
        yield "forbidden-path", shown, "this task was never assigned to this worker"
    if touched.entry is not None and touched.entry.mode != FILE:
        yield "forbidden-kind", shown, "only plain files, no symlink, submodule or executable"
    elif touched.size > limit:
        yield "too-large", shown, f"{touched.size} bytes are more than the limit of {limit}"


def _collisions(answer: Answer) -> Iterator[tuple[str, str, str]]:
    seen: dict[str, str] = {}
    for path in answer.artifacts:
        other = seen.setdefault(path.lower(), path)
        if other != path:
            yield "path-collision", plain(path), f"differs from {plain(other)} in case only"


def _refuse_branch(batch: _Batch, tip: Tip, index: int, rule: str, place: str, message: str) -> None:
    """Refuse a branch from its ``index``-th new commit on, and spend what the rest answers."""
    batch.writes[paths.branch_refusal(tip.worker)] = Refusal(
        worker=tip.worker, tip=tip.tip, rule=rule, place=place, message=message, at=batch.now
    )
    batch.note(f"{tip.worker}'s branch: refused, {rule}", Thread(worker=tip.worker))
    spent: set[tuple[str, str]] = set()
    for commit in tip.commits[index:]:
        for touched in commit.touched:
            match touched.path.split("/"):
                case ["goals", goal, "results", name]:
                    spent.add((goal, name.removesuffix(".yaml")))
                case ["goals", goal, "artifacts", name, *_]:
                    spent.add((goal, name))
                case _:
                    pass
    for goal, name in sorted(spent):
        task = batch.task(goal, name)
        if task is not None and attempts.is_present(task, tip.worker):
            refusal = Refusal(
                goal=goal,
                task=name,
                attempt=task.attempt,
                worker=tip.worker,
                tip=tip.tip,
                rule=rule,
                place=place,
                message=message,
                at=batch.now,
            )
            _spend(batch, task, refusal, task.attempt)


# --- the rules of a result


class _No(Exception):
    def __init__(self, rule: str, place: str, message: str) -> None:
        super().__init__(message)
        self.rule, self.place, self.message = rule, place, message


def _answer(batch: _Batch, worker: str, commit: Oid, answer: Answer) -> None:
    task = batch.task(answer.goal, answer.task)
    if task is None:
        return
    try:
        result, as_written = _read(batch, answer)
        _is_for(result, task, worker, answer)
    except _No as no:
        _refuse(batch, task, worker, commit, answer, no)
        return
    if not attempts.is_open(task, result.attempt, worker):
        _late(batch, task, result, worker)
        return
    if result.status != "ok":
        _unsuccessful(batch, task, result)
        return
    try:
        _check(batch, task, result, answer)
    except _No as no:
        _refuse(batch, task, worker, commit, answer, no, result.attempt)
        return
    _accept(batch, task, result, answer, commit)
    batch.writes[answer.path] = Kept(answer.entry, result) if as_written else result


def _read(batch: _Batch, answer: Answer) -> tuple[Result, bool]:
    """Return the result, and whether it stands there in the bytes that gitbus writes for it."""
    if answer.data is None:
        raise _No("too-large", answer.path, f"{answer.size} bytes are more than limits.record")
    try:
        return codec.read_as_written(
            answer.data, Result, path=answer.path, limit=batch.board.bus.limits.record
        )
    except Invalid as error:
        raise _No(error.rule, error.place or answer.path, error.message) from None


def _is_for(result: Result, task: Task, worker: str, answer: Answer) -> None:
    if (result.goal, result.task) != (answer.goal, answer.task):
        raise _No(
            "wrong-task", _place(answer, ("task",)), f"the result says it is for {result.goal}/{result.task}"
        )
    if result.worker != worker:
        raise _No("wrong-worker", _place(answer, ("worker",)), f"the result says it is by {result.worker}")
    had = (task.attempt, task.worker) == (result.attempt, worker) or any(
        (past.attempt, past.worker) == (result.attempt, worker) for past in task.history
    )
    if not had:
        why = f"attempt {result.attempt} was never this worker's"
        raise _No("attempt-not-assigned", _place(answer, ("attempt",)), why)


def _check(batch: _Batch, task: Task, result: Result, answer: Answer) -> None:
    """Check what depends on the goal, the bus and the files that came along.

    Raises:
        _No: with the first rule that it breaks.
    """
    if task.outputs is not None:
        for where, why in schema.errors(result.outputs, task.outputs):
            raise _No("outputs-schema", _place(answer, ("outputs", *where)), plain(why, 300))
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
            raise _No(issue.rule, _place(answer, issue.place), plain(issue.message, 300))
    _check_texts(result, answer)
    files = {path: found.entry for path, found in answer.artifacts.items()}
    try:
        proposals(whole, planned, result, files, batch.board.bus)
    except ProposalRefused as error:
        raise _No(error.rule, _place(answer, error.place), plain(error.message, 300)) from None


def _makes_more(part: GoalBoard, task: Task, result: Result) -> bool:
    """Say whether a result gives rise to items or tasks, for which the whole goal has to be looked at."""
    node = part.goal.tasks.get(task.id) if part.goal else None
    return node is None or node.item is not None or bool(result.items) or result.tasks is not None


def _check_files(batch: _Batch, result: Result, answer: Answer) -> None:
    total = 0
    for index, artifact in enumerate(result.artifacts):
        where = _place(answer, ("artifacts", index))
        found: FoundFile | None = answer.artifacts.get(artifact.path)
        if found is None:
            raise _No(
                "artifact-missing", where, f"{artifact.path} is not among the files that came with the result"
            )
        if (found.sha256, found.size) != (artifact.sha256, artifact.bytes):
            raise _No(
                "artifact-mismatch", where, f"{artifact.path} has another hash or size than the result says"
            )
        total += found.size
    if total > batch.board.bus.limits.artifacts:
        raise _No(
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
                raise _No("not-text", where, f"{path} cannot be a message's text: {found.not_text}")


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
            raise _No(
                "evidence-missing",
                _place(answer, ("evidence", index)),
                f"the file {plain(evidence.ref)} is no artifact of this result and no file of its goal",
            )


def _place(answer: Answer, where: tuple[Any, ...]) -> str:
    line, column = codec.load(answer.data or b"", path=answer.path, limit=answer.size + 1).place(tuple(where))
    return f"{answer.path}:{line}:{column}"


# --- what becomes of it


def _accept(batch: _Batch, task: Task, result: Result, answer: Answer, commit: Oid) -> None:
    history = tuple(past for past in task.history if past.attempt != result.attempt)
    if task.state == "assigned" and task.attempt != result.attempt:
        overtaken = attempts.end(
            task, "lost", f"attempt {result.attempt} came first", batch.now, None, batch.board.bus.conductor
        )
        history = tuple(past for past in overtaken.history if past.attempt != result.attempt)
    batch.set_task(
        task.model_copy(
            update={
                "state": "done",
                "reason": None,
                "attempt": result.attempt,
                "worker": result.worker,
                "deadline": None,
                "not_before": None,
                "history": history,
            }
        )
    )
    folder = paths.artifacts(task.goal, task.id)
    for old in batch.board.goals[task.goal].artifacts.get(task.id, {}):
        batch.writes[f"{folder}/{old}"] = None
    for artifact in result.artifacts:
        batch.writes[f"{folder}/{artifact.path}"] = answer.artifacts[artifact.path].entry
    batch.took(result)
    batch.sources[task.goal, task.id] = commit
    shown = "ok" if result.confidence is None else f"ok, {result.confidence:g}"
    _note(batch, task.goal, task.id, result.attempt, result.worker, shown)


def _unsuccessful(batch: _Batch, task: Task, result: Result) -> None:
    outcome: attempts.Outcome = "failed" if result.status == "failed" else "retry"
    said = plain(result.error.message, 300) if result.error else None
    _note(
        batch,
        task.goal,
        task.id,
        result.attempt,
        result.worker,
        outcome + (f", {plain(said)}" if said else ""),
    )
    after = result.after or RETRY_AFTER if outcome == "retry" else None
    _close(batch, task, result.attempt, outcome, said, after)


def _refuse(
    batch: _Batch,
    task: Task,
    worker: str,
    commit: Oid,
    answer: Answer,
    no: _No,
    attempt: int | None = None,
) -> None:
    """Refuse an answer; it costs the attempt that it is for, or the worker's open one where it does not say."""
    tried = attempt or _open_attempt(task, worker)
    if tried is None:
        _note(batch, task.goal, task.id, task.attempt, worker, f"late and refused, {no.rule}")
        return
    limit = batch.board.bus.limits.raw
    raw = (answer.data or b"")[:limit].decode("utf-8", "replace")
    refusal = Refusal(
        goal=task.goal,
        task=task.id,
        attempt=tried,
        worker=worker,
        tip=commit,
        rule=no.rule,
        place=plain(no.place, 300),
        message=plain(no.message, 1000),
        raw="".join(char if char.isprintable() or char in "\n\t" else "�" for char in raw),
        truncated=answer.size > limit,
        at=batch.now,
    )
    _spend(batch, task, refusal, tried)


def _open_attempt(task: Task, worker: str) -> int | None:
    """Return the newest attempt that this worker may still answer."""
    numbers = [past.attempt for past in task.history] + [task.attempt]
    return max((one for one in numbers if attempts.is_open(task, one, worker)), default=None)


def _spend(batch: _Batch, task: Task, refusal: Refusal, attempt: int) -> None:
    batch.writes[paths.refusal(task.goal, task.id, attempt)] = refusal
    _note(batch, task.goal, task.id, attempt, refusal.worker, f"refused, {refusal.rule}")
    _close(batch, task, attempt, "refused", f"{refusal.rule}: {plain(refusal.message)}", None)


def _close(
    batch: _Batch,
    task: Task,
    attempt: int,
    outcome: attempts.Outcome,
    reason: str | None,
    after: timedelta | None,
) -> None:
    """Close an attempt, the present one or one that was lost."""
    goal, policy = batch.board.goals[task.goal].goal, batch.board.bus.conductor
    node = goal.tasks.get(task.id) if goal else None
    if task.state == "assigned" and task.attempt == attempt:
        batch.set_task(attempts.end(task, outcome, reason, batch.now, node, policy, after))
    else:
        batch.set_task(attempts.end_lost(task, attempt, outcome, reason, node, policy))


def _late(batch: _Batch, task: Task, result: Result, worker: str) -> None:
    _note(batch, task.goal, task.id, result.attempt, worker, "late, changes nothing")


def _note(batch: _Batch, goal: str, task: str, attempt: int, worker: str, what: str) -> None:
    batch.note(
        f"{goal}/{task}#{attempt}: {what}", Thread(goal=goal, task=task, attempt=attempt, worker=worker)
    )
