"""Commands that keep a bus going: demo, doctor, schema, archive, gc, upgrade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import the_bus
from gitbus.cli.output import note, print_json, raw, safe, say
from gitbus.errors import Misuse, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitbus.forge.github.setup.examining import Found
    from gitbus.forge.github.setup.powers import Power
    from gitbus.health import Health


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (demo, doctor, schema, archive, gc, upgrade):
        app.command()(command)


def demo(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the demo's bus goes.")] = Path(
        "gitbus-demo"
    ),
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter at every stage.")] = False,
) -> None:
    """Play the whole story on this machine: a goal, three workers, an approval, one message, the proof.

    Example: gitbus demo
    """
    from gitbus.cli.demo import play

    play(directory, step=step)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Do what is safe.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept-history", help="Accept what was put aside, signed.")
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Also what GitHub enforces, and what thieves of tokens could do.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Check git, keys, hub, rights, locks and channels, and say how to mend each.

    Example: gitbus doctor
    """
    from gitbus.documents import Doctor, Looked, Thief
    from gitbus.health import examine

    with the_bus() as bus:
        if accept:
            say(safe(bus.accept_history().subject))
            return
        found: list[Health | Found] = []
        powers: Sequence[Power] = ()
        for one in examine(bus, fix=fix, asked=github):
            found.append(one)
            _show_health(one, quiet=as_json)
        if github:
            from gitbus.forge.github.setup.visiting import visit

            there = visit(bus)
            powers = there.powers
            for told in there.found:
                found.append(told)
                _show_health(told, quiet=as_json)
    ok = all(one.level != "problem" for one in found)
    if as_json:
        looked = (Looked(level=one.level, what=one.what, remedy=one.remedy or None) for one in found)
        thieves = (Thief(token=one.token, could=one.can, could_not=one.cannot) for one in powers)
        print_json(Doctor(ok=ok, looked=tuple(looked), thieves=tuple(thieves) if github else None))
    else:
        _show_powers(powers)
    if not ok:
        raise typer.Exit(1)


def _show_health(one: Health | Found, *, quiet: bool) -> None:
    if quiet:
        return
    colour = {"ok": "green", "warning": "yellow", "problem": "red"}[one.level]
    remedy = f"\n         [dim]→[/] {safe(one.remedy)}" if one.remedy else ""
    say(f"[{colour}]{one.level:<8}[/] {safe(one.what)}{remedy}")


def _show_powers(powers: Sequence[Power]) -> None:
    """Show what thieves could do, token by token."""
    if powers:
        say("\n[bold]In wrong hands[/]")
    for power in powers:
        say(f"  [bold]{safe(power.token)}[/]")
        for word, colour, deeds in (("could", "yellow", power.can), ("could not", "green", power.cannot)):
            for deed in deeds:
                say(f"    [{colour}]{word:<9}[/]  {safe(deed)}")


def schema(
    kind: Annotated[str, typer.Argument(help="A record's or a document's kind, such as Goal.")] = "",
) -> None:
    """Print the JSON Schema of a record, or of what --json prints; or list the kinds.

    Example: gitbus schema Goal
    """
    from gitbus.documents import DOCUMENTS, json_schema
    from gitbus.records import KINDS

    if not kind:
        raw("\n".join(sorted({*KINDS, *DOCUMENTS})))
        return
    made = json_schema(kind)
    if made is None:
        known = ", ".join(sorted({*KINDS, *DOCUMENTS}))
        raise Misuse(f"there is no kind {kind}", rule="usage", remedy=f"one of {known}")
    raw(json.dumps(made, indent=2))


def archive(
    older: Annotated[str, typer.Option("--older-than", metavar="30d", help="How long ago it settled.")] = "",
) -> None:
    """Move goals that settled long ago, with their items, into the archive.

    Example: gitbus archive --older-than 7d
    """
    from gitbus import ids

    try:
        age = ids.duration(older) if older else None
    except ValueError as error:
        raise Misuse(str(error), rule="usage") from None
    with the_bus() as bus:
        done = bus.archive(age)
        if done is None:
            note("nothing settled that long ago")
        else:
            say(safe(done.subject))


def upgrade() -> None:
    """Rewrite records of older versions as this one writes them.

    Example: gitbus upgrade
    """
    with the_bus() as bus:
        old = bus.old_records()
        if old:
            raise Refused(
                f"{old[0]} is of a version that this gitbus does not know", rule="wrong-api-version"
            )
        say("every record is of the newest version, gitbus/v1")


def gc() -> None:
    """Repack the hub, where it is on this machine.

    Example: gitbus gc
    """
    from gitbus.hub.maintaining import maintain

    with the_bus() as bus:
        done = maintain(bus.hub, packs=1, loose=0)
        say("repacked" if done else "there is nothing to repack")
