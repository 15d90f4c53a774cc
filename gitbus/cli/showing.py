"""The status for people: goals with their tasks, the outbox, the workers, and what has to be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitbus.cli.items import hint
from gitbus.cli.output import note, one_line, safe, say, state, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitbus.documents import DeadTask, Status, StatusGoal, StatusItem, StatusWorker
    from gitbus.records import Bus


def show_status(bus: Bus, document: Status) -> None:
    """Print a Status document.

    Args:
        bus: the effective Bus.
        document: what to print.
    """
    flag = "[green]on[/]" if document.sending else "[yellow]off[/]"
    say(f"[bold]{safe(bus.name)}[/]  at {document.main[:10]}  sending {flag}")
    for problem in document.problems:
        line = f":{problem.line}" if problem.line else ""
        say(f"[red]problem[/]  {one_line(problem.path)}{line}  {one_line(problem.message)}")
        if problem.remedy:
            say(f"  [dim]→[/] {one_line(problem.remedy)}")
    if not document.goals:
        note("no goals yet: gitbus goal add goal.yaml")
    for goal in document.goals:
        _goal(goal)
    if document.items:
        _outbox(bus, document.items)
    if document.workers:
        say("\n[bold]workers[/]")
        worker_table(document.workers, "  ")
    dead = [f"{goal.id}/{one.id}" for goal in document.goals for one in goal.tasks if one.state == "dead"]
    for task in dead:
        say(f"\n[red]dead:[/] {safe(task)}  [dim](gitbus dead {safe(task)})[/]")
    if document.missing:
        say(f"\n[yellow]nobody has:[/] {safe(', '.join(document.missing))}  [dim](gitbus missing)[/]")


def _goal(goal: StatusGoal) -> None:
    say(f"\n[bold]{safe(goal.id)}[/]  {state(goal.state)}")
    table(
        ("  task", "state", "worker", "capability"),
        (
            (
                f"  {safe(one.id)}",
                state(one.state) + (f" [dim]({safe(one.reason)})[/]" if one.reason else ""),
                safe(one.worker or ""),
                safe(one.capability or ""),
            )
            for one in goal.tasks
        ),
    )


def _outbox(bus: Bus, items: Sequence[StatusItem]) -> None:
    say("\n[bold]outbox[/]")
    table(
        ("  item", "state", "over", "what to do"),
        (
            (
                f"  {safe(one.id)}",
                state(one.state),
                safe(one.channel or ""),
                f"[dim]{safe(hint(bus, one.id, one.state))}[/]",
            )
            for one in items
        ),
    )


def worker_table(workers: Sequence[StatusWorker], indent: str = "") -> None:
    """Print workers with what they can do and how much they have to do."""
    table(
        (f"{indent}worker", "", "can", "has"),
        (
            (
                f"{indent}{safe(one.id)}",
                "[green]healthy[/]" if one.healthy else "[dim]gone[/]",
                safe(", ".join(one.capabilities)),
                f"{one.assigned}/{one.capacity}",
            )
            for one in workers
        ),
    )


def show_dead(task: DeadTask, *, raw: bool) -> None:
    """Print a dead letter.

    Args:
        task: the task and its attempts.
        raw: also what the worker wrote.
    """
    say(f"[bold]{safe(task.goal)}/{safe(task.task)}[/]  {state('dead')} [dim]{safe(task.reason or '')}[/]")
    for past in task.attempts:
        rule = f" [red]{safe(past.rule)}[/]" if past.rule else ""
        say(
            f"  #{past.attempt} {safe(past.worker or '-')} {past.outcome}{rule} {one_line(past.message or '')}"
        )
        for line in past.raw.splitlines() if raw and past.raw else ():
            say(f"    [dim]│[/] {safe(line)}")
