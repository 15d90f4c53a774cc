"""Commands that look: status, watch, graph, missing, dead, log, receipt, stuck, audit."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import complete_goals, complete_items, split_task, the_bus
from gitbus.cli.output import console, note, one_line, print_json, raw, safe, say, state, table
from gitbus.errors import Misuse, Refused

if TYPE_CHECKING:
    from gitbus.documents import LoggedCommit, Status
    from gitbus.history import Commit, Oid

Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]
MaybeGoal = Annotated[str, typer.Argument(help="A goal's id.", autocompletion=complete_goals)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (status, watch, graph, missing, dead, receipt, stuck, audit):
        app.command()(command)
    app.command("log")(log)


def status(goal: MaybeGoal = "", as_json: Json = False) -> None:
    """Say what is going on, who waits for whom, and what waits for you.

    Example: gitbus status
    """
    from gitbus.cli.showing import show_status

    with the_bus() as bus:
        document = bus.status(goal or None)
        if as_json:
            print_json(document)
        else:
            show_status(bus.effective().bus, document)


def watch(
    goal: MaybeGoal = "", every: Annotated[float, typer.Option(help="Seconds between looks.")] = 2.0
) -> None:
    """Show the status again whenever something changed, until Ctrl-C.

    Example: gitbus watch release-1-0
    """
    from gitbus.cli.showing import show_status

    with the_bus() as bus:
        last: Status | None = None
        while True:
            document = bus.status(goal or None)
            if document != last:
                if console().is_terminal:
                    console().clear()
                show_status(bus.effective().bus, document)
                last = document
            time.sleep(every)


def graph(
    goal: Annotated[str, typer.Argument(help="A goal's id.", autocompletion=complete_goals)],
    form: Annotated[str, typer.Option("--format", help="tree, mermaid, dot or svg.")] = "tree",
) -> None:
    """Draw a goal's tasks with their states.

    Example: gitbus graph release-1-0 --format mermaid
    """
    from gitbus import views

    drawings = {"mermaid": views.mermaid, "dot": views.dot, "svg": views.svg}
    if form not in (*drawings, "tree"):
        raise Misuse(f"{form!r} is no format", rule="usage", remedy="tree, mermaid, dot or svg")
    with the_bus() as bus:
        board = bus.whole_board()
        part = board.goals.get(goal)
        if part is None or part.goal is None:
            raise Refused(f"there is no goal {goal}", rule="no-such-goal", remedy="gitbus goal list")
        if form in drawings:
            raw(drawings[form](board, part))
            return
        nodes, arrows = views.edges(board, part)
        for one in nodes:
            needs = [
                source + ("?" if optional else "") for source, target, optional in arrows if target == one.id
            ]
            after = f"  [dim]after {', '.join(needs)}[/]" if needs else ""
            say(f"{one.id}  {state(one.state)}{after}")


def missing(as_json: Json = False) -> None:
    """List the capabilities that tasks were skipped for: the workers to build next.

    Example: gitbus missing
    """
    from gitbus import views
    from gitbus.documents import Missing, Wanted

    with the_bus() as bus:
        found = views.missing(bus.whole_board())
    if as_json:
        print_json(
            Missing(
                capabilities=tuple(
                    Wanted(capability=name, tasks=tuple(where)) for name, where in found.items()
                )
            )
        )
        return
    table(
        ("capability", "wanted by"), ((safe(name), safe(", ".join(where))) for name, where in found.items())
    )


def dead(
    task: Annotated[str, typer.Argument(help="GOAL/TASK")] = "",
    as_json: Json = False,
) -> None:
    """Show dead letters: each attempt, why it was refused, and what the worker wrote.

    Example: gitbus dead release-1-0/mail
    """
    from gitbus import views
    from gitbus.cli.showing import show_dead
    from gitbus.documents import Dead

    with the_bus() as bus:
        found = views.dead(bus.whole_board(), split_task(task) if task else None)
    if as_json:
        print_json(Dead(tasks=found))
        return
    for one in found:
        show_dead(one, raw=bool(task))


def stuck(as_json: Json = False) -> None:
    """List what was being sent when nobody knows what happened.

    Example: gitbus stuck
    """
    from gitbus.documents import Stuck, StuckItem

    with the_bus() as bus:
        found = [
            StuckItem(id=name, attempt=part.item.attempt, reason=part.item.reason)
            for name, part in sorted(bus.board().items.items())
            if part.state == "stuck" and part.item
        ]
    if as_json:
        print_json(Stuck(items=tuple(found)))
        return
    table(
        ("item", "attempt", "why"),
        ((safe(one.id), str(one.attempt), one_line(one.reason or "")) for one in found),
    )


def receipt(
    item: Annotated[str, typer.Argument(help="An item's id.", autocompletion=complete_items)],
    as_json: Json = False,
) -> None:
    """Show the proof of what became of an item.

    Example: gitbus receipt release-1-0.mail.announce
    """
    from gitbus import codec
    from gitbus.cli.goals import safe_text
    from gitbus.documents import Receipts

    with the_bus() as bus:
        part = bus.item(item)
        if part is None or not part.receipts:
            raise Refused(
                f"{item} has no receipt", rule="no-receipt", remedy="gitbus status says where it is"
            )
        if as_json:
            print_json(Receipts(receipts=tuple(one for _, one in sorted(part.receipts.items()))))
        else:
            for _, one in sorted(part.receipts.items()):
                raw(safe_text(codec.write(one).decode("utf-8")))


def log(
    what: Annotated[str, typer.Argument(help="A goal's or an item's id.")] = "",
    limit: Annotated[int, typer.Option("-n", help="How many at the most.")] = 200,
    as_json: Json = False,
) -> None:
    """Tell the story of the bus, a goal or an item, the newest first.

    Example: gitbus log release-1-0.mail.announce
    """
    from gitbus.documents import Log
    from gitbus.proof.messages import trailers

    with the_bus() as bus:
        store = bus.hub.store
        rows = []
        for oid in store.line(bus.refs()[bus.hub.main]):
            commit = store.commit(oid)
            about = {*trailers(commit.message, "Gitbus-Item"), *trailers(commit.message, "Gitbus-Goal")}
            about |= set(re.findall(r"\bgitbus/(?:approve|decide)/([a-z0-9.-]+)", commit.subject))
            about |= {one.split(".")[0] for one in about}
            if not what or what in about:
                rows.append((oid, commit))
            if len(rows) >= limit:
                break
        if as_json:
            print_json(Log(commits=tuple(_logged(oid, one) for oid, one in rows)))
            return
        table(
            ("when", "by", "what", ""),
            (
                (
                    f"{one.committer.when:%Y-%m-%d %H:%M:%S}",
                    safe(one.author.name),
                    safe(one.subject),
                    f"[dim]{oid[:10]}[/]",
                )
                for oid, one in rows
            ),
        )


def _logged(oid: Oid, commit: Commit) -> LoggedCommit:
    from gitbus import ids
    from gitbus.documents import LoggedCommit

    at = ids.time_text(commit.committer.when)
    return LoggedCommit(commit=oid, at=at, by=commit.author.name, subject=commit.subject)


def audit(
    since: Annotated[
        str, typer.Option("--since", metavar="COMMIT", help="Report what came after this commit.")
    ] = "",
    root: Annotated[
        str, typer.Option("--root", metavar="COMMIT", help="The commit that began the bus.")
    ] = "",
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE.zip", help="Write all of it for an auditor.")
    ] = None,
    first: Annotated[str, typer.Option("--from", metavar="DATE", help="Report from this day on.")] = "",
    last: Annotated[str, typer.Option("--to", metavar="DATE", help="Report up to this day.")] = "",
    online: Annotated[
        bool, typer.Option("--online", help="Ask GitHub again who merged, not only the receipts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Prove the history: every transition, approval, send, lease, receipt and digest.

    Example: gitbus audit --json
    """
    from gitbus.auditing import Window, export_audit

    with the_bus(root or None) as bus:
        window = Window.of(since or None, first or None, last or None)
        found = bus.audit(window, online=online)
        if export is not None:
            export_audit(bus.hub, bus.root, found, export)
            note(f"written to {export}")
        if as_json:
            print_json(found.document())
        else:
            for one in found.findings:
                say(
                    f"[red]{one.rule}[/]  {safe(one.subject)}  {safe(one.message)}  [dim]{one.commit[:10]}[/]"
                )
            for waiting in found.open:
                say(f"[yellow]open[/]  {safe(waiting.subject)}  {state(waiting.state)}")
            verdict = "[green]ok[/]" if found.ok else f"[red]{len(found.findings)} findings[/]"
            recorded = f", {found.recorded} as GitHub told" if found.recorded else ""
            say(
                f"audit {verdict}: {found.commits} commits, {found.sent} sent, "
                f"{found.proved} approvals proved{recorded}"
            )
        if not found.ok:
            raise typer.Exit(1)
