"""Commands that act: conduct, work, send, run, up, worker."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import complete_items, pairs, read_file, the_bus
from gitbus.cli.output import note, print_json, safe, say, state
from gitbus.errors import Misuse, Refused, Unreachable

if TYPE_CHECKING:
    from gitbus import sender
    from gitbus.bus import Bus
    from gitbus.documents import SentItem
    from gitbus.records import Worker
    from gitbus.runner.command import CommandRunner
    from gitbus.worker import WorkerActor

worker_app = typer.Typer(help="The workers of the bus.", no_args_is_help=True)

Once = Annotated[bool, typer.Option("--once", help="Until there is nothing to do, then end (the default).")]
Watch = Annotated[bool, typer.Option("--watch", help="Stay, and act whenever something changes.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(conduct)
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": False})(work)
    app.command()(send)
    app.command()(run)
    app.command()(up)
    app.add_typer(worker_app, name="worker")


def _one_of(once: bool, watch: bool) -> None:
    if once and watch:
        raise Misuse("say --once or --watch, not both", rule="usage")


def conduct(once: Once = False, watch: Watch = False) -> None:
    """Conduct: absorb results, release and assign tasks, put items up, until nothing is left to decide.

    Example: gitbus conduct --watch
    """
    from gitbus.loops import Together, stopping

    _one_of(once, watch)
    with the_bus() as bus, stopping() as stop:
        Together(bus, conductor=True, tell=note).run(
            stop, lambda acted: not watch and not acted, patient=watch
        )


def work(
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD...", help="The command that does a task.")
    ] = [],  # noqa: B006
    name: Annotated[str, typer.Option("--name", help="The worker's name.")] = "",
    capability: Annotated[
        list[str], typer.Option("--capability", help="What it can do; may be repeated.")
    ] = [],  # noqa: B006
    capacity: Annotated[int, typer.Option("--capacity", min=1, max=1000, help="How many tasks at once.")] = 1,
    as_: Annotated[
        str, typer.Option("--as", help="How to talk to it: claude, codex, llm, json or text.")
    ] = "",
    env: Annotated[list[str], typer.Option("--env", help="A variable that it inherits.")] = [],  # noqa: B006
    cwd: Annotated[Path | None, typer.Option("--cwd", help="Where it runs.")] = None,
    user: Annotated[str, typer.Option("--user", help="Run it as this user.")] = "",
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Run it in a sandbox (bubblewrap).")] = False,
    once: Once = False,
    watch: Watch = False,
) -> None:
    """Be a worker around any command, or the one that workers/NAME.yaml declares.

    Example: gitbus work --name laptop --capability git-log --watch -- ./gather.py
    """
    from gitbus.loops import Together, stopping
    from gitbus.worker import Offer

    _one_of(once, watch)
    if not name or bool(capability) is not bool(command or as_):
        raise Misuse(
            "a worker needs --name, --capability and a command; or only the --name of one that is declared",
            rule="usage",
        )
    with the_bus() as bus, stopping() as stop:
        if capability:
            runner = command_runner(command, as_=as_, env=env, cwd=cwd, user=user, sandbox=sandbox)
            offer = Offer(name, tuple(capability), capacity, once=not watch)
        else:
            declared = _declaration(bus, name)
            runner = _declared_runner(declared, cwd=cwd, user=user, sandbox=sandbox)
            offer = Offer(name, declared.capabilities, declared.capacity, once=not watch)
        actors = Together(bus, conductor=False, workers=[bus.worker(offer, runner)], tell=note)
        try:
            actors.announce()
            actors.run(stop, lambda acted: not watch and not acted and not actors.busy(), patient=watch)
        finally:
            actors.close()


def _declaration(bus: Bus, name: str) -> Worker:
    """Return a worker as the bus declares it.

    Raises:
        Refused: it does not, or does not say what to run.
    """
    found = bus.board().workers.get(name)
    if found is None or (found.run is None and found.as_ is None):
        raise Refused(
            f"workers/{name}.yaml does not say what to run",
            rule="no-such-worker",
            remedy="name --capability and the command, or declare the worker with `run:`",
        )
    return found


def _declared_runner(
    one: Worker, *, cwd: Path | None = None, user: str = "", sandbox: bool = False
) -> CommandRunner:
    import shlex

    command = shlex.split(one.run) if isinstance(one.run, str) else list(one.run or ())
    return command_runner(command, as_=one.as_ or "", env=one.env, cwd=cwd, user=user, sandbox=sandbox)


def command_runner(
    command: list[str],
    *,
    as_: str = "",
    env: list[str] | tuple[str, ...] = (),
    cwd: Path | None = None,
    user: str = "",
    sandbox: bool = False,
) -> CommandRunner:
    """Return a runner for a worker's command.

    Raises:
        Misuse: there is no such adapter, or nothing to run.
        Refused: the isolation that was asked for cannot be had here.
    """
    from gitbus.runner import isolate
    from gitbus.runner.adapters import PLAIN
    from gitbus.runner.agents import ADAPTERS
    from gitbus.runner.command import CommandRunner, mislaid

    if as_ and as_ not in ADAPTERS:
        raise Misuse(f"--as {as_} is not known", rule="usage", remedy="one of " + ", ".join(ADAPTERS))
    adapter = ADAPTERS[as_] if as_ else PLAIN
    if not command and not adapter.command:
        raise Misuse("name the command behind --", rule="usage", remedy="gitbus work … -- ./do-it.py")
    if user and sandbox:
        raise Misuse("say --user or --sandbox, not both", rule="usage")
    isolation = isolate.as_user(user) if user else isolate.sandbox() if sandbox else isolate.DIRECT
    lost = mislaid(command, cwd) if command else None
    if lost:
        raise Refused(lost, rule="no-such-program")
    return CommandRunner(tuple(command), tuple(env), cwd, adapter, isolation)


def send(
    items: Annotated[list[str], typer.Argument(help="Only these items.", autocompletion=complete_items)] = [],  # noqa: B006
    once: Once = False,
    watch: Watch = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, lease and send nothing.")
    ] = False,
    root: Annotated[
        str, typer.Option("--root", metavar="COMMIT", help="The commit that began the bus.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Send what is approved: at most once, and only with the flag on.

    Example: gitbus send --dry-run
    """
    from gitbus.documents import Sent
    from gitbus.loops import SENDER_PAUSE, describe, stopping

    _one_of(once, watch)
    if os.environ.get("CI") and not root and not os.environ.get("GITBUS_ROOT"):
        raise Refused(
            "in CI the root has to be pinned from outside",
            rule="no-root",
            remedy="gitbus send --root COMMIT, or GITBUS_ROOT; gitbus init printed it",
        )
    with the_bus(root or None) as bus, bus.sender() as sender, stopping() as stop:
        sender.stopping = stop.is_set
        while True:
            try:
                done = sender.round(items, dry_run=dry_run)
            except Unreachable as error:
                if not watch:
                    raise
                done = []
                note(f"{safe(error)} (trying again)")
            if as_json:
                print_json(Sent(items=tuple(map(_sent, done))))
            else:
                for one in done:
                    say(safe(describe(one)))
            if not watch or stop.wait(SENDER_PAUSE):
                break
    outcomes = {one.outcome for one in done}
    if outcomes & {"refused", "failed", "stuck"}:
        raise typer.Exit(1)
    if "later" in outcomes:
        raise typer.Exit(3)


def _sent(one: sender.Sent) -> SentItem:
    from gitbus.documents import SentItem

    return SentItem(id=one.item, outcome=one.outcome, reason=one.reason, receipt=one.receipt)


def run(
    file: Annotated[str, typer.Argument(help="The goal's YAML file.")],
    worker: Annotated[
        list[str], typer.Option("--worker", metavar="CAP=CMD", help="A worker for this run.")
    ] = [],  # noqa: B006
    inputs: Annotated[list[str], typer.Option("-i", "--input", metavar="NAME=VALUE")] = [],  # noqa: B006
    env: Annotated[list[str], typer.Option("--env", help="A variable that the workers inherit.")] = [],  # noqa: B006
) -> None:
    """Add a goal, conduct it and work on it in this process, until it settles.

    Example: gitbus run goal.yaml --worker git-log=./gather.py --worker write=./write.py
    """
    from gitbus.loops import Together, stopping

    with the_bus() as bus, stopping() as stop:
        done = bus.add_goal(read_file(Path(file)), pairs(inputs), name=file)
        goal = done.subject.split()[1].rstrip(":")
        actors = Together(bus, conductor=True, workers=[_for_run(bus, one, env) for one in worker], tell=note)
        last: dict[str, str] = {}

        def finished(acted: bool) -> bool:
            del acted
            part = bus.whole_board().goals[goal]
            for task in part.tasks.values():
                if last.get(task.id) != task.state:
                    last[task.id] = task.state
                    say(
                        f"  {task.id}  {state(task.state)}" + (f" [dim]{task.worker or task.reason or ''}[/]")
                    )
            return part.report is not None

        try:
            actors.announce()
            actors.run(stop, finished)
        finally:
            actors.close()
        part = bus.whole_board().goals[goal]
        say(f"[bold]{goal}[/]  {state(part.state)}")
        if part.report and part.report.missing:
            note(f"nobody has: {', '.join(part.report.missing)}")
        if part.state != "done":
            raise typer.Exit(1)


def _for_run(bus: Bus, text: str, env: list[str]) -> WorkerActor:
    import shlex

    from gitbus.worker import Offer

    capability, separator, command = text.partition("=")
    if not separator or not command:
        raise Misuse(f"{text!r} is no CAP=CMD", rule="usage")
    runner = command_runner(shlex.split(command), env=env)
    return bus.worker(Offer(f"run-{capability}"[:48].rstrip("-"), (capability,), os.cpu_count() or 1), runner)


def up(
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when there is nothing left to do.")
    ] = False,
    same_user: Annotated[
        bool, typer.Option("--same-user", help="Let the sender run beside workers of your own user.")
    ] = False,
) -> None:
    """Run everything this machine should: conductor, its declared workers, the sender where its secrets are.

    Example: gitbus up
    """
    from gitbus.loops import Together, stopping
    from gitbus.roster import Roster

    with the_bus() as bus, stopping() as stop:
        sends = same_user or not _declared_here(bus)
        apart = sends and not same_user
        roster = Roster(socket.gethostname(), lambda name, one: _declared(bus, name, one, apart), note)
        roster.begin(bus.board())
        sender = bus.sender() if sends else None
        if not sends:
            note("no sender beside workers of the same user; run gitbus send elsewhere, or say --same-user")
        count = len(roster.actors())
        note(f"conductor, {count} workers, {'a' if sender else 'no'} sender; Ctrl-C ends them")
        actors = Together(bus, conductor=True, sender=sender, roster=roster, tell=note)
        try:
            actors.announce()
            actors.run(
                stop, lambda acted: until_idle and not acted and not actors.busy(), patient=not until_idle
            )
        finally:
            actors.close()


def _declared_here(bus: Bus) -> bool:
    here = socket.gethostname()
    return any(one.host == here and one.run is not None for one in bus.board().workers.values())


def _declared(bus: Bus, name: str, one: Worker, apart: bool) -> WorkerActor:
    """Return a declared worker's actor.

    Args:
        bus: the bus.
        name: its name.
        one: its declaration.
        apart: whether a sender runs here that no worker may run beside.

    Raises:
        Refused: it cannot run here.
    """
    from gitbus.worker import Offer

    if apart:
        raise Refused(
            "a sender runs here, and whatever runs as the same user can read its secrets",
            rule="beside-sender",
            remedy="start gitbus up again, without the sender or with --same-user",
        )
    try:
        runner = _declared_runner(one)
    except ValueError as error:
        raise Refused(f"its `run` is no command: {error}", rule="no-such-program") from None
    return bus.worker(Offer(name, one.capabilities, one.capacity), runner)


@worker_app.command("list")
def worker_list(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """List the workers that are known, and whether they are healthy.

    Example: gitbus worker list
    """
    from gitbus.cli.showing import worker_table
    from gitbus.documents import Workers

    with the_bus() as bus:
        found = bus.status().workers
    if as_json:
        print_json(Workers(workers=found))
    else:
        worker_table(found)


@worker_app.command("retire")
def worker_retire(name: Annotated[str, typer.Argument(help="The worker's name.")]) -> None:
    """Forget a worker: its presence and its branch go, what it did stays.

    Example: gitbus worker retire laptop
    """
    from gitbus import paths
    from gitbus.hub import RefMove

    with the_bus() as bus:
        refs = bus.refs()
        moves = [
            RefMove(ref, refs[ref], None)
            for ref in (paths.PRESENCE + name, paths.WORKERS + name)
            if ref in refs
        ]
        if not moves:
            raise Refused(f"there is no worker {name}", rule="no-such-worker", remedy="gitbus worker list")
        bus.hub.move(moves)
        say(f"retired {safe(name)}")
