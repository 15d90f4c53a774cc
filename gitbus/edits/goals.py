"""Edits of a goal's files: the goal, its tasks, results and artifacts, refusals and the report.

Rules: a goal stays as it was added, but that it may be cancelled; a result and its artifacts are what a
worker's own commit holds, for an attempt that was open to that worker, and make the task ``done``; what
was refused stays; a report tells of tasks as they are.

Example: a commit that overwrites ``results/write.yaml`` yields
``Edit("unproved-edit", "release/write", "no commit of a worker that came along holds this result")``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import attempts, paths
from gitbus.edits.looking import Edit, Look, edit
from gitbus.edits.tasks import task_edits
from gitbus.history import FILE, TREE, Delta, Entry, Oid
from gitbus.proof.standing import signer
from gitbus.records import Goal, Person, Refusal, Report, Result, Task
from gitbus.states import TASK_FINAL


def goal_edits(look: Look, delta: Delta, goal: str, rest: list[str]) -> Iterator[Edit]:
    """Yield what is wrong with a change in a goal's folder."""
    if delta.new is not None and delta.new.mode != FILE:
        yield edit(goal, f"{delta.path} is no plain file")
        return
    match rest:
        case ["goal.yaml"]:
            yield from _goal(look, delta, goal)
        case ["report.yaml"]:
            yield from _report(look, delta, goal)
        case _ if _goes_with_goal(look, delta, goal):
            return
        case ["tasks", leaf]:
            yield from task_edits(look, delta, goal, leaf.removesuffix(".yaml"))
        case ["results", leaf]:
            yield from _result(look, delta, goal, leaf.removesuffix(".yaml"))
        case ["artifacts", task, *inner] if inner:
            yield from _artifact(look, delta, goal, task)
        case ["refused", leaf]:
            yield from _refusal(look, delta, goal, leaf)
        case _:
            yield edit(goal, f"{delta.path} is no place in a goal")


def _goes_with_goal(look: Look, delta: Delta, goal: str) -> bool:
    """Say whether a file went away along with its goal, which is reported once."""
    gone = look.touched.get(paths.goal(goal))
    return delta.new is None and gone is not None and gone.new is None


# --- the goal


def _goal(look: Look, delta: Delta, name: str) -> Iterator[Edit]:
    old = look.memo.read(delta.old, delta.path, Goal)
    new = look.memo.read(delta.new, delta.path, Goal)
    if delta.new is None:
        yield edit(name, "a goal is archived, never removed")
    elif new is not None and new.id != name:
        yield edit(name, f"its record says that it is {new.id}")
    elif delta.old is None and (there := _archived_as(look, name)) is not None:
        yield edit(name, f"a goal of this name stands in {there}")
    elif old and new and old != new.model_copy(update={"cancelled": old.cancelled}):
        yield edit(name, "the goal was changed after it was added")


def _archived_as(look: Look, name: str) -> str | None:
    """Return where a goal of this name is archived; None where there is none."""
    archive = look.after("archive")
    for year, months in _inner(look, archive).items():
        for month, inner in _inner(look, months).items():
            if name in _inner(look, _inner(look, inner).get("goals")):
                return f"archive/{year}/{month}"
    return None


def _inner(look: Look, entry: Entry | None) -> dict[str, Entry]:
    return dict(look.history.tree(entry.oid)) if entry is not None and entry.mode == TREE else {}


def _report(look: Look, delta: Delta, goal: str) -> Iterator[Edit]:
    report = look.memo.read(delta.new, delta.path, Report)
    if report is None:
        return  # taken away it is written anew; that it cannot be read is a finding of its own
    if delta.old is not None:
        yield edit(goal, "its report was changed")
        return
    tasks = look.goal(goal).tasks
    states = {name: task.state for name, task in tasks.items()}
    odd = sorted(one.id for one in report.tasks if states.get(one.id) != one.state)
    odd += sorted(name for name, state in states.items() if state not in TASK_FINAL)
    if report.goal != goal or odd:
        yield edit(goal, f"its report tells of tasks as they are not: {', '.join(odd) or report.goal}")


# --- results


def _result(look: Look, delta: Delta, goal: str, name: str) -> Iterator[Edit]:
    subject = f"{goal}/{name}"
    task = look.new(paths.task(goal, name), Task)
    if delta.new is None:
        if task is None or task.state != "ready":
            yield edit(subject, "its result was taken away, and it is not done again")
        return
    result = look.memo.read(delta.new, delta.path, Result)
    if result is None:
        return
    if (result.goal, result.task) != (goal, name):
        yield edit(subject, f"its result says that it is for {result.goal}/{result.task}")
        return
    if task is None or (task.state, task.attempt, task.worker) != ("done", result.attempt, result.worker):
        yield edit(subject, "a result came, and the task is not done by it")
    yield from _taken(look, delta, subject, result)


def _taken(look: Look, delta: Delta, subject: str, result: Result) -> Iterator[Edit]:
    """Yield why a result could not be taken: the attempt was closed, or no worker's commit holds it."""
    old = look.old(paths.task(result.goal, result.task), Task)
    if old is not None and not attempts.is_open(old, result.attempt, result.worker):
        yield edit(subject, f"attempt {result.attempt} of {result.worker} was not open to be answered")
    if not any(result == one for one in _brought(look, delta.path)):
        yield edit(subject, "no commit of a worker that came along holds this result")
        return
    declared = look.bus.workers.get(result.worker)
    keys = declared.keys if declared is not None else ()
    for oid in _sides(look, delta.path) if keys else ():
        if look.history.signature(oid, keys).verdict != "good":
            yield edit(subject, f"{oid[:10]} is not signed by a key of {result.worker}")


def _brought(look: Look, path: str) -> Iterator[Result | None]:
    """Yield a file as the workers' commits that were merged have it."""
    for oid in _holders(look, path):
        yield look.memo.read(look.history.entry(oid, path), path, Result)


def _holders(look: Look, path: str) -> Iterator[Oid]:
    """Yield the commits that a merge brought and that may have touched a path, the tips first."""
    yield from look.commit.parents[1:]
    yield from _sides(look, path)


def _sides(look: Look, path: str) -> list[Oid]:
    """Return the commits that a merge brought and that touch a path."""
    sides = look.commit.parents[1:]
    if not sides:
        return []
    return list(look.history.between(sides, look.commit.parents[:1], touching=[path]))


def _artifact(look: Look, delta: Delta, goal: str, task: str) -> Iterator[Edit]:
    came = look.touched.get(paths.result(goal, task))
    if came is None or came.new is None:
        yield edit(f"{goal}/{task}", f"{delta.path} was changed without a result")
    elif delta.new is not None and not _is_brought(look, delta):
        yield edit(f"{goal}/{task}", f"no commit of a worker that came along holds {delta.path}")


def _is_brought(look: Look, delta: Delta) -> bool:
    return any(look.history.entry(oid, delta.path) == delta.new for oid in _holders(look, delta.path))


def _refusal(look: Look, delta: Delta, goal: str, leaf: str) -> Iterator[Edit]:
    task, _, attempt = leaf.removesuffix(".yaml").rpartition(".")
    if delta.old is not None:
        how = "taken away" if delta.new is None else "changed"
        yield edit(f"{goal}/{task}", f"the refusal {leaf} was {how}")
        return
    refusal = look.memo.read(delta.new, delta.path, Refusal)
    if refusal is not None and (refusal.goal, refusal.task, str(refusal.attempt)) != (goal, task, attempt):
        yield edit(f"{goal}/{task}", f"the refusal {leaf} is about {refusal.goal}/{refusal.task}")


# --- declared workers


def worker_edits(look: Look, delta: Delta) -> Iterator[Edit]:
    """Yield that a declared worker was changed by nobody who says that he may."""
    if delta.new is not None and delta.new.mode != FILE:
        yield edit(delta.path, "it is no plain file")
        return
    people = [one for one in look.bus.people if {"approver", "operator"} & set(one.roles)]
    makers = _sides(look, delta.path) or [look.commit.oid]
    if not all(_is_by(look, oid, people) for oid in makers):
        yield edit(delta.path, "only an operator says who works here, and none says that he did")


def _is_by(look: Look, oid: Oid, people: list[Person]) -> bool:
    """Say whether a commit is one of these people's, by signature or by what it says itself."""
    author = look.history.commit(oid).author.email.lower()
    return author in _addresses(people) or signer(look.history, oid, people).person is not None


def _addresses(people: list[Person]) -> set[str]:
    """Return whom a commit may name: their addresses, and those that GitHub gives them."""
    hidden = "users.noreply.github.com"
    known = {one.email.lower() for one in people}
    for account in (one.github for one in people if one.github is not None):
        known |= {f"{account.id}+{account.login}@{hidden}".lower(), f"{account.login}@{hidden}".lower()}
    return known
