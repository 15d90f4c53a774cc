"""Commands on goals and tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gitbus.cli.common import complete_goals, pairs, read_file, split_task, the_bus
from gitbus.cli.output import note, one_line, print_json, raw, safe, say, state, table
from gitbus.errors import Misuse, Refused

goal_app = typer.Typer(help="Add, list and cancel goals.", no_args_is_help=True)
task_app = typer.Typer(help="Work by hand: take a task, answer it.", no_args_is_help=True)

Goal = Annotated[str, typer.Argument(help="A goal's id.", autocompletion=complete_goals)]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(goal_app, name="goal")
    app.add_typer(task_app, name="task")
    app.command()(resume)
    app.command()(retry)


@goal_app.command("add")
def goal_add(
    file: Annotated[str, typer.Argument(help="The goal's YAML file; - for stdin.")],
    inputs: Annotated[
        list[str], typer.Option("-i", "--input", metavar="NAME=VALUE", help="Set an input.")
    ] = [],  # noqa: B006
) -> None:
    """Add a goal.

    Example: gitbus goal add goal.yaml -i version=1.0
    """
    text = sys.stdin.buffer.read() if file == "-" else read_file(Path(file))
    with the_bus() as bus:
        done = bus.add_goal(text, pairs(inputs), name=file)
        say(f"{safe(done.subject)} [dim]({done.commit[:10]})[/]")
        note("the conductor takes it from here: gitbus conduct, or gitbus up")


@goal_app.command("list")
def goal_list(as_json: Json = False) -> None:
    """List the goals and how far they are.

    Example: gitbus goal list --json
    """
    from gitbus.documents import Goals, ListedGoal

    with the_bus() as bus:
        found = [
            ListedGoal(id=one.id, state=one.state, title=one.goal.title if one.goal else None)
            for _, one in sorted(bus.board().goals.items())
        ]
    if as_json:
        print_json(Goals(goals=tuple(found)))
        return
    table(
        ("goal", "state", "title"),
        ((safe(one.id), state(one.state), one_line(one.title or "")) for one in found),
    )


@goal_app.command("cancel")
def goal_cancel(
    goal: Goal, reason: Annotated[str, typer.Option(help="Why.")] = "not wanted any more"
) -> None:
    """Cancel a goal: what is not done is not done any more.

    Example: gitbus goal cancel release-1-0 --reason 'postponed'
    """
    with the_bus() as bus:
        say(safe(bus.cancel_goal(goal, reason).subject))


def resume(goal: Goal) -> None:
    """Open again what was skipped because nobody could do it.

    Example: gitbus resume release-1-0
    """
    with the_bus() as bus:
        say(safe(bus.resume(goal).subject))


def retry(
    what: Annotated[list[str], typer.Argument(help="GOAL/TASK, or items.")] = [],  # noqa: B006
    failed: Annotated[bool, typer.Option("--failed", help="Every failed item.")] = False,
) -> None:
    """Give a dead task a new budget, or put failed and expired items up again.

    Example: gitbus retry release-1-0/mail
    """
    with the_bus() as bus:
        names = list(what)
        if failed:
            names += [name for name, part in sorted(bus.board().items.items()) if part.state == "failed"]
        if not names and not failed:
            raise Misuse("name a GOAL/TASK or an item, or say --failed", rule="usage")
        for name in names:
            done = bus.retry_task(*split_task(name)) if "/" in name else bus.retry_item(name)
            say(safe(done.subject))


@task_app.command("show")
def task_show(task: Annotated[str, typer.Argument(help="GOAL/TASK")], as_json: Json = False) -> None:
    """Show a task as it stands.

    Example: gitbus task show release-1-0/write
    """
    from gitbus import codec

    goal, name = split_task(task)
    with the_bus() as bus:
        part = bus.whole_board().goals.get(goal)
        found = part.tasks.get(name) if part else None
        if found is None:
            raise Refused(f"there is no task {task}", rule="no-such-task", remedy="gitbus status lists them")
        if as_json:
            print_json(found)
        else:
            raw(safe_text(codec.write(found).decode("utf-8")))


def safe_text(text: str) -> str:
    """Return text for a terminal, without anything that is a command to it."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


@task_app.command("next")
def task_next(
    worker: Annotated[str, typer.Option("--worker", help="Your name as a worker.")], as_json: Json = False
) -> None:
    """Show the next task that is assigned to a worker.

    Example: gitbus task next --worker ada --json
    """
    from gitbus.documents import Next

    with the_bus() as bus:
        found = [
            task
            for goal in bus.board().goals.values()
            for task in goal.tasks.values()
            if task.state == "assigned" and task.worker == worker
        ]
        if as_json:
            print_json(Next(task=found[0] if found else None))
        elif found:
            say(f"{found[0].goal}/{found[0].id}#{found[0].attempt}  {found[0].capability}")


@task_app.command("result")
def task_result(
    task: Annotated[str, typer.Argument(help="GOAL/TASK")],
    file: Annotated[str, typer.Argument(help="A Result as YAML or JSON; - for stdin.")],
) -> None:
    """Answer a task by hand.

    Example: gitbus task result release-1-0/write result.yaml
    """
    from gitbus.manual import answer_by_hand

    goal, name = split_task(task)
    text = sys.stdin.buffer.read() if file == "-" else read_file(Path(file))
    with the_bus() as bus:
        say(safe(answer_by_hand(bus, goal, name, text, file)))
