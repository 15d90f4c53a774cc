"""Commands that check before something lands: check, due."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import the_bus
from gitbus.cli.output import note, raw, safe, say
from gitbus.errors import Invalid, Misuse, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitbus.bus import Bus
    from gitbus.proposed import Proposal
    from gitbus.records import Record

FORMATS = ("text", "github", "markdown")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(check)
    app.command()(due)


def due() -> None:
    """Say what jobs in CI would find to do, as NAME=VALUE lines: workers that have tasks, anything to send.

    Example: gitbus due >> "$GITHUB_OUTPUT"
    """
    from gitbus.due import due as look

    with the_bus() as bus:
        raw(look(bus).lines().rstrip("\n"))


def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Records; all of this clone's unless named.")
    ] = [],  # noqa: B006
    form: Annotated[str, typer.Option("--format", help="text, github or markdown.")] = "text",
    proposed: Annotated[
        bool, typer.Option("--proposed", help="What the branches that wait to be merged would bring.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="With --proposed: as statuses of their commits on GitHub.")
    ] = False,
) -> None:
    """Check records as the conductor would read them.

    As Markdown it shows what merging this clone's HEAD would send.

    Example: gitbus check goals/release-1-0/goal.yaml
    """
    if form not in FORMATS:
        raise Misuse(f"{form!r} is no format", rule="usage", remedy=", ".join(FORMATS))
    if report and not proposed:
        raise Misuse("--report goes with --proposed", rule="usage")
    found = _proposed(report=report) if proposed else [_head()] if form == "markdown" else []
    if form == "markdown":
        from gitbus.forge.github.checks import summary

        raw(summary(found))
        problems = [problem for one in found for problem in one.problems]
    elif proposed:
        problems = [problem for one in found for problem in one.problems]
    else:
        named = [path for one in files for path in (_records_in(one) if one.is_dir() else (one,))]
        problems = [problem for path in (named if files else _records_here()) for problem in _wrong(path)]
    if form != "markdown":
        _tell(problems, form)
    if problems:
        raise typer.Exit(1)


def _tell(problems: Sequence[Invalid], form: str) -> None:
    for one in problems:
        if form == "github":
            place = f"file={_property(one.path)},line={one.line},col={one.column}"
            raw(f"::error {place}::{_data(f'{one.message} [{one.rule}]')}")
        else:
            say(f"{safe(one.place or one.path)}: {safe(one.message)} [dim]\\[{one.rule}][/]")
            if one.remedy:
                say(f"  [dim]→[/] {safe(one.remedy)}")


def _data(text: str) -> str:
    """Return a text as the message of a workflow command, on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return a text as a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _proposed(*, report: bool) -> list[Proposal]:
    """Return what the branches that wait to be merged would bring, and tell GitHub where that is wanted."""
    from gitbus.proposed import proposals

    with the_bus() as bus:
        refs = bus.refs()
        found = list(proposals(bus.hub.store, refs, refs[bus.hub.main]))
        if report:
            _report(bus, found)
    return found


def _report(bus: Bus, found: Sequence[Proposal]) -> None:
    from gitbus.forge.github.checks import report
    from gitbus.forge.github.setup.reaching import client_of

    page = None
    if run := os.environ.get("GITHUB_RUN_ID"):
        page = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/".format_map(os.environ) + run
    client = client_of(bus)
    try:
        told = report(client, found, page)
    finally:
        client.close()
    note(f"{told} statuses set")


def _head() -> Proposal:
    """Return what merging this clone's HEAD into the bus's branch would bring."""
    from gitbus.cli.app import Where
    from gitbus.hub import find_clone
    from gitbus.hub.store import GitStore
    from gitbus.proposed import proposal

    with the_bus() as bus:
        main, clone = bus.refs()[bus.hub.main], find_clone(Where.folder)
        head = clone.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").text
        store = GitStore(clone, clone)
        try:
            return proposal(store, "HEAD", head, main)
        except KeyError:
            raise Refused(
                "this clone does not hold the bus's branch as it is now",
                rule="behind",
                remedy="git fetch origin",
            ) from None
        finally:
            store.close()


def _records_here() -> list[Path]:
    from gitbus.cli.app import Where
    from gitbus.codec import kind_of_path

    folder = Where.folder
    found = [folder / "bus.yaml"]
    for name in ("goals", "workers", "outbox"):
        found += sorted((folder / name).rglob("*.yaml"))
    return [path for path in found if path.is_file() and kind_of_path(path.relative_to(folder).as_posix())]


def _records_in(folder: Path) -> list[Path]:
    """Return the records below a folder of the bus."""
    return [path for path in sorted(folder.rglob("*.yaml")) if path.is_file() and _kind_here(path)]


def _kind_here(path: Path) -> type[Record] | None:
    """Return which record stands in a file's place on the bus; None where it stands in none."""
    from gitbus.cli.app import Where
    from gitbus.codec import kind_of_path

    here = Where.folder.resolve()
    where = path.resolve()
    return kind_of_path(where.relative_to(here).as_posix()) if where.is_relative_to(here) else None


def _wrong(path: Path) -> list[Invalid]:
    from gitbus import codec
    from gitbus.records import KINDS, Goal

    try:
        loaded = codec.load(path.read_bytes(), path=str(path))
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}", rule="usage") from None
    except Invalid as error:
        return [error]
    model = _kind_here(path) or KINDS.get(str(loaded.data.get("kind")))
    if model is None:
        try:
            codec.read_any(path.read_bytes(), path=str(path))
        except Invalid as error:
            return [error]
        return []
    found = codec.problems(loaded, model)
    if isinstance(found, list):
        return found
    return _goal_issues(path, loaded, found) if isinstance(found, Goal) else []


def _goal_issues(path: Path, loaded: object, goal: object) -> list[Invalid]:
    from gitbus.codec import Loaded
    from gitbus.errors import GitbusError
    from gitbus.goalcheck import check as check_goal
    from gitbus.records import Goal

    if not isinstance(loaded, Loaded) or not isinstance(goal, Goal):
        return []
    try:
        with the_bus() as bus:
            known = bus.effective().bus
    except GitbusError:
        return []
    found = []
    for issue in check_goal(goal, known, ()):
        line, column = loaded.place(issue.place)
        found.append(
            Invalid(
                issue.message,
                rule=issue.rule,
                path=str(path),
                line=line,
                column=column,
                remedy=issue.remedy or None,
            )
        )
    return found
