"""Commands by which people decide: review, approve, reject, revise, redo, withdraw, resolve, config."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.common import complete_items, pairs, read_file, the_bus
from gitbus.cli.output import note, print_json, raw, safe, say, state, table
from gitbus.errors import Misuse, Refused

if TYPE_CHECKING:
    from gitbus.bus import Bus

config_app = typer.Typer(help="Change bus.yaml as a signed decision.", no_args_is_help=True)
person_app = typer.Typer(help="The people of the bus.", no_args_is_help=True)

Item = Annotated[str, typer.Argument(help="An item's id.", autocompletion=complete_items)]
Items = Annotated[list[str], typer.Argument(help="Items' ids.", autocompletion=complete_items)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (review, approve, reject, revise, redo, withdraw, resolve, ratify):
        app.command()(command)
    app.add_typer(config_app, name="config")
    app.add_typer(person_app, name="person")


def review(
    item: Annotated[str, typer.Argument(help="An item's id.", autocompletion=complete_items)] = "",
    ok: Annotated[bool, typer.Option("--ok", help="Say yes, signed.")] = False,
    no: Annotated[bool, typer.Option("--no", help="Say no.")] = False,
    reason: Annotated[str, typer.Option("--note", help="Your words.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what waits for a human, or exactly what an item would send; say yes or no to it.

    Example: gitbus review release-1-0.mail.announce
    """
    from gitbus.cli.items import show_item, waiting_rows
    from gitbus.documents import Waiting, WaitingItem

    if ok and no:
        raise Misuse("say --ok or --no, not both", rule="usage")
    with the_bus() as bus:
        if not item:
            rows = waiting_rows(bus.board())
            if as_json:
                print_json(Waiting(items=tuple(WaitingItem(id=name, state=what) for name, what, _ in rows)))
            else:
                table(
                    ("item", "state", "what to do"),
                    ((safe(name), state(what), safe(hint)) for name, what, hint in rows),
                )
            return
        if ok or no:
            done = bus.review(item, "ok" if ok else "no", reason or None)
            say(safe(done.subject) if done else f"reviewed the pull request of {safe(item)}")
            return
        show_item(bus, item, as_json=as_json)
        bus.mark_shown([item])


def approve(
    items: Items,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again about what was not shown.")] = False,
) -> None:
    """Approve items: merge their approval branches, signed with your key.

    Example: gitbus approve release-1-0.mail.announce
    """
    from gitbus.cli.items import show_item

    decisions = [item.split("gitbus/decide/", 1)[1] for item in items if "gitbus/decide/" in item]
    items = [item for item in items if "gitbus/decide/" not in item]
    with the_bus() as bus:
        for name in decisions:
            if name == "bus":
                _show_change(bus, bus.proposed_bus_text())
            say(safe(bus.merge_decision(name).subject))
        if not items:
            return
        for item in bus.whole_batches(bus.board(), items):
            if not bus.was_shown(item):
                show_item(bus, item, as_json=False)
                _sure(f"approve {item} as it stands above?", yes=yes)
        done = bus.approve(items)
        how = "signed" if done.signed else "merged on GitHub"
        say(f"{safe(done.subject)} [dim]({done.commit[:10]}, {how})[/]")
        note("the sender takes it from here: gitbus send")


def _sure(question: str, *, yes: bool) -> None:
    """Ask, where somebody is there to answer.

    Raises:
        Refused: the answer was no, or nobody is there and nothing said so beforehand.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "this item was not shown at this clone as it is now",
            rule="not-shown",
            remedy="look at it with gitbus review ITEM first, or say --yes",
        )
    if not typer.confirm(question):
        raise Refused("not approved", rule="not-approved")


def reject(item: Item, reason: Annotated[str, typer.Option("--reason", help="Why.")]) -> None:
    """Reject an item: it is not sent, unless somebody redoes or revises it.

    Example: gitbus reject release-1-0.mail.announce --reason 'too long'
    """
    with the_bus() as bus:
        say(safe(bus.reject(item, reason).subject))


def withdraw(item: Item, reason: Annotated[str, typer.Option("--reason", help="Why.")] = "") -> None:
    """Take an item back for good, before it is sent.

    Example: gitbus withdraw release-1-0.mail.announce
    """
    with the_bus() as bus:
        say(safe(bus.withdraw(item, reason or None).subject))


def redo(item: Item, words: Annotated[str, typer.Option("--note", help="What to do differently.")]) -> None:
    """Give an item's task back to the workers with your words.

    Example: gitbus redo release-1-0.mail.announce --note 'mention the parser'
    """
    with the_bus() as bus:
        say(safe(bus.redo(item, words).subject))


def revise(
    item: Item,
    file: Annotated[
        list[str], typer.Option("--file", metavar="PATH=FILE", help="Take the new content from a file.")
    ] = [],  # noqa: B006
) -> None:
    """Edit an item's payload in $EDITOR and put it up for review again.

    Example: gitbus revise release-1-0.mail.announce --file body.txt=better.txt
    """
    with the_bus() as bus:
        old = bus.payload(item)
        new = (
            {path: read_file(Path(str(name))) for path, name in pairs(file).items()} if file else _edited(old)
        )
        unknown = sorted(set(new) - set(old))
        if unknown:
            raise Refused(
                f"{item} has no file {unknown[0]}", rule="no-such-file", remedy="it has: " + ", ".join(old)
            )
        changed = {path: data for path, data in new.items() if data != old[path]}
        if not changed:
            note("nothing was changed")
            return
        say(safe(bus.revise(item, changed).subject))


def _edited(files: dict[str, bytes]) -> dict[str, bytes]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise Refused(
            "there is no $EDITOR", rule="no-editor", remedy="set EDITOR, or name files: --file PATH=FILE"
        )
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        names = {path: Path(folder) / path.replace("/", "__") for path in files if path.startswith("body.")}
        for path, name in names.items():
            name.write_bytes(files[path])
        done = subprocess.run(
            ["sh", "-c", f'{editor} "$@"', "editor", *map(str, names.values())], check=False
        )
        if done.returncode != 0:
            raise Refused("the editor ended with an error", rule="no-editor")
        return {path: name.read_bytes() for path, name in names.items()}


def resolve(
    item: Item,
    evidence: Annotated[str, typer.Option("--evidence", help="What you looked at.")],
    sent: Annotated[bool, typer.Option("--sent", help="It did arrive.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It surely did not.")] = False,
    propose: Annotated[bool, typer.Option("--propose", help="Let an approver merge it.")] = False,
) -> None:
    """Say what became of a stuck item, signed.

    Example: gitbus resolve a.mail.item --sent --evidence 'it is in the list archive'
    """
    if sent == not_sent:
        raise Misuse("say exactly one of --sent and --not-sent", rule="usage")
    with the_bus() as bus:
        word = bus.propose_resolution if propose else bus.resolve
        say(safe(word(item, "sent" if sent else "not_sent", evidence).subject))
        if propose:
            note(f"an approver merges it: gitbus approve gitbus/decide/{item}")


@config_app.command("set")
def config_set(
    values: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...")],
    propose: Annotated[
        bool, typer.Option("--propose", help="Put it up on gitbus/decide/bus for an approver to merge.")
    ] = False,
) -> None:
    """Set values of bus.yaml; the change is shown, then signed with your key.

    Example: gitbus config set sending.enabled=true
    """
    with the_bus() as bus:
        for key, value in pairs(values).items():
            _show_change(bus, bus.edited_config(key, value))
            if propose:
                say(safe(bus.propose_config(key, value).subject))
                note("an approver merges it: gitbus approve gitbus/decide/bus")
                continue
            say(safe(bus.set_config(key, value).subject))


@config_app.command("get")
def config_get(key: Annotated[str, typer.Argument()] = "") -> None:
    """Print the effective bus.yaml, or one value of it.

    Example: gitbus config get sending.enabled
    """
    with the_bus() as bus:
        if not key:
            raw(bus.bus_text())
            return
        value: object = bus.effective().bus.model_dump(mode="json", by_alias=True)
        for step in key.split("."):
            if isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, dict) and step in value:
                value = value[step]
            else:
                raise Refused(f"there is no {key} in bus.yaml", rule="no-such-key")
        raw(value if isinstance(value, str) else json.dumps(value))


def _show_change(bus: Bus, text: str) -> None:
    import difflib

    old = bus.bus_text().splitlines(keepends=True)
    for line in difflib.unified_diff(old, text.splitlines(keepends=True), "effective", "new", n=1):
        colour = {"+": "green", "-": "red"}.get(line[0], "dim")
        say(f"[{colour}]{safe(line.rstrip())}[/]")


def ratify(
    discard: Annotated[bool, typer.Option("--discard", help="Put the effective version back.")] = False,
) -> None:
    """Decide on an edit of bus.yaml that nobody signed, or lift a stop.

    Example: gitbus ratify --discard
    """
    with the_bus() as bus:
        text = bus.bus_text() if discard else bus.tip_bus_text()
        _show_change(bus, text)
        say(safe(bus.ratify(discard=discard, shown=text).subject))


@person_app.command("list")
def person_list(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """List the people of the bus.

    Example: gitbus person list
    """
    from gitbus.documents import ListedPerson, People

    with the_bus() as bus:
        found = [
            ListedPerson(id=one.id, email=one.email, roles=one.roles, keys=len(one.keys))
            for one in bus.effective().bus.people
        ]
    if as_json:
        print_json(People(people=tuple(found)))
        return
    table(
        ("person", "email", "roles", "keys"),
        ((one.id, safe(one.email), ", ".join(one.roles), str(one.keys)) for one in found),
    )


@person_app.command("add")
def person_add(
    person: Annotated[str, typer.Argument(help="An id, such as bob.")],
    email: Annotated[str, typer.Option("--email")],
    role: Annotated[list[str], typer.Option("--role", help="approver, reviewer or operator.")],
    key: Annotated[list[Path], typer.Option("--key", help="A public key's file.")] = [],  # noqa: B006
) -> None:
    """Add a person, as a signed decision.

    Example: gitbus person add bob --email bob@acme.example --role reviewer --key bob.pub
    """
    keys = [read_file(path).decode("utf-8", "replace").strip() for path in key]
    with the_bus() as bus:
        index = len(bus.effective().bus.people)
        value = {"id": person, "email": email, "roles": role, "keys": keys}
        _show_change(bus, bus.edited_config(f"people.{index}", value))
        say(safe(bus.set_config(f"people.{index}", value, what=f"add {person}").subject))


@person_app.command("remove")
def person_remove(person: Annotated[str, typer.Argument()]) -> None:
    """Remove a person, as a signed decision.

    Example: gitbus person remove bob
    """
    with the_bus() as bus:
        say(safe(bus.remove_person(person).subject))
