"""Absorb: take in what workers committed, as far as it passes every rule.

A worker's branch is judged commit by commit. A forbidden path, kind of entry or size ends it there:
the clean commits before are merged, the rest is refused by its tip. A result that does not pass
costs its attempt and is kept as a Refusal. One that is late changes nothing and is recorded.

Example: a result of an attempt that was given up as lost, but comes before the next one, is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from gitbus import attempts, ids, paths
from gitbus.board import Board
from gitbus.change import Change, Kept, Thread, plain
from gitbus.flow.batch import Batch
from gitbus.flow.results import No, check, check_origin, read
from gitbus.history import FILE, Oid
from gitbus.incoming import Answer, Inbox, Tip, Touched, WorkerCommit
from gitbus.records import Refusal, Result, Task

RETRY_AFTER = timedelta(minutes=1)
"""How long an answer ``retry`` waits that does not say how long."""


def absorb(board: Board, inbox: Inbox, now: datetime) -> list[Change]:
    """Return the one commit that takes in every worker's new commits, or none."""
    batch = Batch(board, now)
    for tip in inbox.tips:
        refused = board.branch_refusals.get(tip.worker)
        if refused is None or refused.tip != tip.tip:
            _take(batch, tip)
    return batch.changes()


def _take(batch: Batch, tip: Tip) -> None:
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


def _broken(batch: Batch, worker: str, commit: WorkerCommit) -> Iterator[tuple[str, str, str]]:
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


def _broken_path(batch: Batch, worker: str, touched: Touched) -> Iterator[tuple[str, str, str]]:
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
    unknown = known is None and part is not None and (part.halted or paths.task(goal, task) in part.problems)
    if not unknown and (known is None or not attempts.was_assigned(known, worker)):
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


def _refuse_branch(batch: Batch, tip: Tip, index: int, rule: str, place: str, message: str) -> None:
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


def _answer(batch: Batch, worker: str, commit: Oid, answer: Answer) -> None:
    task = batch.task(answer.goal, answer.task)
    if task is None:
        return
    try:
        result, as_written = read(batch, answer)
        check_origin(result, task, worker, answer)
    except No as no:
        _refuse(batch, task, worker, commit, answer, no)
        return
    if not attempts.is_open(task, result.attempt, worker):
        _late(batch, task, result, worker)
        return
    if result.status != "ok":
        _unsuccessful(batch, task, result)
        return
    try:
        check(batch, task, result, answer)
    except No as no:
        _refuse(batch, task, worker, commit, answer, no, result.attempt)
        return
    _accept(batch, task, result, answer, commit)
    batch.writes[answer.path] = Kept(answer.entry, result) if as_written else result


# --- what becomes of an answer


def _accept(batch: Batch, task: Task, result: Result, answer: Answer, commit: Oid) -> None:
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


def _unsuccessful(batch: Batch, task: Task, result: Result) -> None:
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
    batch: Batch,
    task: Task,
    worker: str,
    commit: Oid,
    answer: Answer,
    no: No,
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


def _spend(batch: Batch, task: Task, refusal: Refusal, attempt: int) -> None:
    batch.writes[paths.refusal(task.goal, task.id, attempt)] = refusal
    _note(batch, task.goal, task.id, attempt, refusal.worker, f"refused, {refusal.rule}")
    _close(batch, task, attempt, "refused", f"{refusal.rule}: {plain(refusal.message)}", None)


def _close(
    batch: Batch,
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


def _late(batch: Batch, task: Task, result: Result, worker: str) -> None:
    _note(batch, task.goal, task.id, result.attempt, worker, "late, changes nothing")


def _note(batch: Batch, goal: str, task: str, attempt: int, worker: str, what: str) -> None:
    batch.note(
        f"{goal}/{task}#{attempt}: {what}", Thread(goal=goal, task=task, attempt=attempt, worker=worker)
    )
