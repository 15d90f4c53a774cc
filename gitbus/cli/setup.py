"""Commands that set up and check: init, doctor, check, schema, demo, archive, gc, upgrade."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import the_bus
from gitbus.cli.output import note, raw, safe, say
from gitbus.errors import Invalid, Misuse, Refused

if TYPE_CHECKING:
    from gitbus.records import Record


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (demo, init, doctor, check, schema, archive, gc, upgrade):
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


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the new clone goes.")],
    hub: Annotated[
        str, typer.Option("--hub", metavar="URL", help="An empty repository, or a new path.")
    ] = "",
    name: Annotated[str, typer.Option("--name", help="The bus's name; the folder's unless given.")] = "",
    branch: Annotated[str, typer.Option("--branch", help="The bus's branch.")] = "",
    person: Annotated[str, typer.Option("--as", metavar="ID", help="Your id on the bus.")] = "",
    make: Annotated[bool, typer.Option("--make-key", help="Make a signing key where you have none.")] = False,
) -> None:
    """Make a new bus with you as its approver: a hub, a clone, bus.yaml.

    Example: gitbus init acme --make-key
    """
    from gitbus import making

    real_name, email = making.user_identity(directory)
    if not email:
        raise Refused(
            "git does not know who you are",
            rule="no-identity",
            remedy="git config --global user.name 'Your Name' && git config --global user.email you@example.org",
        )
    key = making.find_key(directory)
    made_key: Path | None = None
    if key is None and make:
        made_key = Path.home() / ".config" / "gitbus" / f"{_id_of(name or directory.resolve().name)}_ed25519"
        public = made_key.with_name(made_key.name + ".pub")
        key = public.read_text("utf-8").strip() if public.exists() else making.make_key(made_key, email)
    if key is None:
        raise Refused(
            "you have no signing key, and a bus needs somebody who can approve",
            rule="no-key",
            remedy="say --make-key, or set git's user.signingkey (and gpg.format ssh for an SSH key)",
        )
    approver = making.Approver(person or _id_of(real_name.split()[0] if real_name else email), email, key)
    if branch and (directory / ".git").exists():
        made = making.beside_project(
            directory, name=name or directory.resolve().name, approver=approver, branch=branch
        )
    else:
        made = making.make_bus(
            directory,
            name=name or directory.resolve().name,
            approver=approver,
            hub=hub or None,
            branch=branch or "main",
        )
    if made_key is not None:
        making.use_key(made.clone, made_key, real_name or approver.id, email)
    say(f"[green]made[/] the bus {safe(name or directory.resolve().name)}")
    say(f"  clone  {safe(made.clone)}")
    say(f"  hub    {safe(made.hub)}")
    say(f"  root   {made.root}  [dim](pin it where you send from CI: GITBUS_ROOT)[/]")
    say(f"  you    {approver.id}, approver, key {safe(' '.join(key.split()[:1]))}")
    note(f"next: cd {made.clone} && gitbus status")


def _id_of(text: str) -> str:
    plain = re.sub(r"[^a-z0-9-]+", "-", text.split("@")[0].lower()).strip("-")[:48].strip("-")
    return plain or "me"


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Do what is safe.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept-history", help="Accept what was put aside, signed.")
    ] = False,
) -> None:
    """Check git, keys, hub, rights, locks and channels, and say how to mend each.

    Example: gitbus doctor
    """
    from gitbus.health import examine

    with the_bus() as bus:
        if accept:
            say(safe(bus.accept_history().subject))
            return
        worst = 0
        for one in examine(bus, fix=fix):
            colour = {"ok": "green", "warning": "yellow", "problem": "red"}[one.level]
            say(
                f"[{colour}]{one.level:<8}[/] {safe(one.what)}"
                + (f"\n         [dim]→[/] {safe(one.remedy)}" if one.remedy else "")
            )
            worst = max(worst, one.level == "problem")
        if worst:
            raise typer.Exit(1)


def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Records; all of this clone's unless named.")
    ] = [],  # noqa: B006
    form: Annotated[str, typer.Option("--format", help="text or github.")] = "text",
) -> None:
    """Check records as the conductor would read them.

    Example: gitbus check goals/release-1-0/goal.yaml
    """
    if form not in ("text", "github"):
        raise Misuse(f"{form!r} is no format", rule="usage", remedy="text or github")
    named = [path for one in files for path in (_records_in(one) if one.is_dir() else (one,))]
    problems = [problem for path in (named if files else _records_here()) for problem in _wrong(path)]
    for one in problems:
        if form == "github":
            words = _command_safe(f"{one.message} [{one.rule}]")
            raw(f"::error file={_command_safe(one.path)},line={one.line},col={one.column}::{words}")
        else:
            say(f"{safe(one.place or one.path)}: {safe(one.message)} [dim]\\[{one.rule}][/]")
            if one.remedy:
                say(f"  [dim]→[/] {safe(one.remedy)}")
    if problems:
        raise typer.Exit(1)


def _command_safe(text: str) -> str:
    return (
        text.replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
        .replace(":", "%3A")
        .replace(",", "%2C")
    )


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


def schema(
    kind: Annotated[str, typer.Argument(help="A record's kind, such as Goal.")] = "",
) -> None:
    """Print the JSON Schema of a record, or list the kinds.

    Example: gitbus schema Goal
    """
    from gitbus.records import KINDS

    if not kind:
        raw("\n".join(sorted(KINDS)))
        return
    model = KINDS.get(kind) or next(
        (one for name, one in KINDS.items() if name.lower() == kind.lower()), None
    )
    if model is None:
        raise Misuse(f"there is no kind {kind}", rule="usage", remedy=", ".join(sorted(KINDS)))
    made = model.model_json_schema(by_alias=True)
    raw(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2))


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
