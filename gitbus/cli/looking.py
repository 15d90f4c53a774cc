"""Commands that look: status, watch, graph, missing, dead, log, receipt, stuck, audit."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gitbus.cli.common import complete_goals, complete_items, split_task, the_bus
from gitbus.cli.output import console, note, one_line, print_json, raw, safe, say, state, table
from gitbus.errors import Misuse, Refused

if TYPE_CHECKING:
    from gitbus.bus import Bus

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
    with the_bus() as bus:
        document = status_of(bus, goal or None)
        if as_json:
            print_json(document)
        else:
            show_status(bus, document)


def status_of(bus: Bus, goal: str | None) -> dict[str, Any]:
    """Return the Status document of a bus."""
    from gitbus import views
    from gitbus.proof.bus import sending_on
    from gitbus.watching import Sightings, odd

    refs = bus.refs()
    board = bus.whole_board()
    if goal is not None and goal not in board.goals:
        raise Refused(f"there is no goal {goal}", rule="no-such-goal", remedy="gitbus goal list")
    effective = bus.effective()
    sightings = Sightings(bus.hub)
    crew = sightings.look(refs, board, bus.now())
    document = views.status(board, crew, sending=sending_on(effective, bus.hub.store) is None, goal=goal)
    problems = document.get("problems", []) + bus.bus_problems()
    problems += [
        {"path": where, "line": 0, "message": what}
        for where, what in odd(refs, bus.hub, sightings, bus.now())
    ]
    if problems:
        document["problems"] = problems
    return document


def show_status(bus: Bus, document: dict[str, Any]) -> None:
    """Print a Status document for people."""
    from gitbus.cli.items import HINTS

    flag = "[green]on[/]" if document["sending"] else "[yellow]off[/]"
    say(f"[bold]{safe(bus.effective().bus.name)}[/]  at {document['main'][:10]}  sending {flag}")
    for problem in document.get("problems", []):
        line = f":{problem['line']}" if problem["line"] else ""
        say(f"[red]problem[/]  {one_line(problem['path'])}{line}  {one_line(problem['message'])}")
    if not document["goals"]:
        note("no goals yet: gitbus goal add goal.yaml")
    for goal in document["goals"]:
        say(f"\n[bold]{safe(goal['id'])}[/]  {state(goal['state'])}")
        table(
            ("  task", "state", "worker", "capability"),
            (
                (
                    f"  {one['id']}",
                    state(one["state"]) + (f" [dim]({one['reason']})[/]" if one["reason"] else ""),
                    one["worker"] or "",
                    one["capability"] or "",
                )
                for one in goal["tasks"]
            ),
        )
    if document["items"]:
        say("\n[bold]outbox[/]")
        table(
            ("  item", "state", "over", "what to do"),
            (
                (
                    f"  {safe(one['id'])}",
                    state(one["state"]),
                    one["channel"] or "",
                    f"[dim]{HINTS.get(one['state'], '').format(one['id'])}[/]",
                )
                for one in document["items"]
            ),
        )
    if document["workers"]:
        say("\n[bold]workers[/]")
        table(
            ("  worker", "", "can", "has"),
            (
                (
                    f"  {safe(one['id'])}",
                    "[green]healthy[/]" if one["healthy"] else "[dim]gone[/]",
                    safe(", ".join(one["capabilities"])),
                    f"{one['assigned']}/{one['capacity']}",
                )
                for one in document["workers"]
            ),
        )
    for goal, task in _dead(document):
        say(f"\n[red]dead:[/] {safe(goal)}/{task}  [dim](gitbus dead {safe(goal)}/{task})[/]")
    if document["missing"]:
        say(f"\n[yellow]nobody has:[/] {', '.join(document['missing'])}  [dim](gitbus missing)[/]")


def _dead(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (goal["id"], one["id"])
        for goal in document["goals"]
        for one in goal["tasks"]
        if one["state"] == "dead"
    ]


def watch(
    goal: MaybeGoal = "", every: Annotated[float, typer.Option(help="Seconds between looks.")] = 2.0
) -> None:
    """Show the status again whenever something changed, until Ctrl-C.

    Example: gitbus watch release-1-0
    """
    with the_bus() as bus:
        last = ""
        while True:
            document = status_of(bus, goal or None)
            now = json.dumps(document)
            if now != last:
                if console().is_terminal:
                    console().clear()
                show_status(bus, document)
                last = now
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
                source + ("?" if optional else "")
                for source, target, optional in arrows
                if target == one["id"]
            ]
            after = f"  [dim]after {', '.join(needs)}[/]" if needs else ""
            say(f"{one['id']}  {state(one['state'])}{after}")


def missing(as_json: Json = False) -> None:
    """List the capabilities that tasks were skipped for: the workers to build next.

    Example: gitbus missing
    """
    from gitbus import views

    with the_bus() as bus:
        found = views.missing(bus.whole_board())
        if as_json:
            listed = [{"capability": name, "tasks": where} for name, where in found.items()]
            print_json({"kind": "Missing", "capabilities": listed})
        else:
            table(("capability", "wanted by"), ((name, ", ".join(where)) for name, where in found.items()))


def dead(
    task: Annotated[str, typer.Argument(help="GOAL/TASK")] = "",
    as_json: Json = False,
) -> None:
    """Show dead letters: each attempt, why it was refused, and what the worker wrote.

    Example: gitbus dead release-1-0/mail
    """
    from gitbus import views

    with the_bus() as bus:
        found = views.dead(bus.whole_board(), split_task(task) if task else None)
        if as_json:
            print_json({"kind": "Dead", "tasks": found})
            return
        for one in found:
            say(f"[bold]{one['goal']}/{one['task']}[/]  {state('dead')} [dim]{one['reason']}[/]")
            for past in one["attempts"]:
                rule = f" [red]{past['rule']}[/]" if past["rule"] else ""
                say(
                    f"  #{past['attempt']} {safe(past['worker'] or '-')} {past['outcome']}{rule} {safe(past['message'] or '')}"
                )
                if task and past["raw"]:
                    for line in str(past["raw"]).splitlines():
                        say(f"    [dim]│[/] {safe(line)}")


def stuck(as_json: Json = False) -> None:
    """List what was being sent when nobody knows what happened.

    Example: gitbus stuck
    """
    with the_bus() as bus:
        found = [(name, part) for name, part in sorted(bus.board().items.items()) if part.state == "stuck"]
        if as_json:
            listed = [{"id": name, "reason": part.item.reason if part.item else None} for name, part in found]
            print_json({"kind": "Stuck", "items": listed})
        else:
            table(
                ("item", "attempt", "why"),
                (
                    (name, str(part.item.attempt), safe(part.item.reason or ""))
                    for name, part in found
                    if part.item
                ),
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

    with the_bus() as bus:
        part = bus.board().items.get(item)
        if part is None or not part.receipts:
            raise Refused(
                f"{item} has no receipt", rule="no-receipt", remedy="gitbus status says where it is"
            )
        if as_json:
            listed = [one.model_dump(mode="json") for _, one in sorted(part.receipts.items())]
            print_json({"kind": "Receipts", "receipts": listed})
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
    from gitbus.proof.messages import trailers

    with the_bus() as bus:
        store = bus.hub.store
        rows = []
        for oid in store.line(bus.refs()[bus.hub.main]):
            commit = store.commit(oid)
            about = {*trailers(commit.message, "Gitbus-Item"), *trailers(commit.message, "Gitbus-Goal")}
            about |= {one.split(".")[0] for one in about}
            if not what or what in about:
                rows.append((oid, commit))
            if len(rows) >= limit:
                break
        if as_json:
            listed = [
                {
                    "commit": oid,
                    "at": one.committer.when.isoformat(),
                    "by": one.author.name,
                    "subject": one.subject,
                }
                for oid, one in rows
            ]
            print_json({"kind": "Log", "commits": listed})
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
