"""The command that makes a bus: init."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.output import note, safe, say
from gitbus.errors import Misuse, NoBus, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitbus.forge.github.setup.rendering import Setting
    from gitbus.history import Oid
    from gitbus.making import Approver, Made


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


@dataclass(frozen=True)
class _Wanted:
    """What was asked for."""

    folder: Path
    name: str
    hub: str
    branch: str
    app: bool


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the new clone goes.")],
    hub: Annotated[
        str, typer.Option("--hub", metavar="URL", help="An empty repository, or a new path.")
    ] = "",
    name: Annotated[str, typer.Option("--name", help="The bus's name; the folder's unless given.")] = "",
    branch: Annotated[str, typer.Option("--branch", help="The bus's branch.")] = "",
    person: Annotated[str, typer.Option("--as", metavar="ID", help="Your id on the bus.")] = "",
    make: Annotated[bool, typer.Option("--make-key", help="Make a signing key where you have none.")] = False,
    github: Annotated[
        bool,
        typer.Option("--github", help="Approve by pull requests and run in Actions; again: renew the files."),
    ] = False,
    approver: Annotated[
        str, typer.Option("--approver", metavar="LOGIN:ID", help="With --github: your account there.")
    ] = "",
    app: Annotated[bool, typer.Option("--app", help="With --github: act as a GitHub App.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="With --github: make rulesets, environments and labels there.")
    ] = False,
) -> None:
    """Make a new bus with you as its approver: a hub, a clone, bus.yaml.

    Example: gitbus init acme --make-key
    """
    if (approver or app or apply) and not github:
        raise Misuse("--approver, --app and --apply go with --github", rule="usage")
    wanted = _Wanted(directory, name or directory.resolve().name, hub, branch, app)
    if github and _is_bus(directory):
        setting: Setting | None = _renew(directory, app=app)
    else:
        setting = _make(wanted, person, approver, make=make, github=github)
    if setting is not None:
        _finish(directory, setting, apply=apply)


# --- a new bus


def _make(wanted: _Wanted, person: str, account: str, *, make: bool, github: bool) -> Setting | None:
    from gitbus import making

    who, made_key, real_name = _approver(wanted, person, account, make=make, github=github)
    setting = _setting(wanted, who) if github else None
    made = _made(wanted, who, setting)
    if made_key is not None:
        making.use_key(made.clone, made_key, real_name or who.id, who.email)
    elif who.key is None:
        making.use_identity(made.clone, real_name or who.id, who.email)
    say(f"[green]made[/] the bus {safe(wanted.name)}")
    say(f"  clone  {safe(made.clone)}")
    say(f"  hub    {safe(made.hub)}")
    say(f"  root   {made.root}  [dim](pin it where you send from CI: GITBUS_ROOT)[/]")
    key = f"key {safe(who.key.split()[0])}" if who.key else "no key"
    say(f"  you    {who.id}, approver, {key}" + (f", GitHub {safe(who.github[0])}" if who.github else ""))
    note(f"next: cd {made.clone} && gitbus status")
    return replace(setting, root=made.root) if setting else None


def _approver(
    wanted: _Wanted, person: str, account: str, *, make: bool, github: bool
) -> tuple[Approver, Path | None, str]:
    """Return who approves, the key that was made for him, and his name."""
    from gitbus import making

    real_name, email = making.user_identity(wanted.folder)
    there = _account(account) if github else None
    if not email and there is None:
        raise Refused(
            "git does not know who you are",
            rule="no-identity",
            remedy="git config --global user.name 'Your Name' && git config --global user.email you@example.org",
        )
    made_key = None
    key = making.find_key(wanted.folder)
    if key is None and make:
        made_key, key = _make_key(wanted.name, email)
    if key is None and there is None:
        raise Refused(
            "you have no signing key, and a bus needs somebody who can approve",
            rule="no-key",
            remedy="say --make-key, or set git's user.signingkey (and gpg.format ssh for an SSH key)",
        )
    email = email or "{1}+{0}@users.noreply.github.com".format(*(there or ()))
    first = real_name.split()[0] if real_name else there[0] if there else email
    return making.Approver(person or _id_of(first), email, key, there), made_key, real_name


def _account(text: str) -> tuple[str, int]:
    from gitbus.forge.github.setup.beginning import account

    if not text:
        raise Refused(
            "a bus on GitHub needs somebody who can approve there",
            rule="no-approver",
            remedy="--approver LOGIN:ID; the id is in https://api.github.com/users/LOGIN",
        )
    return account(text)


def _make_key(name: str, email: str) -> tuple[Path, str]:
    from gitbus import making

    path = Path.home() / ".config" / "gitbus" / f"{_id_of(name)}_ed25519"
    public = path.with_name(path.name + ".pub")
    return path, public.read_text("utf-8").strip() if public.exists() else making.make_key(path, email)


def _made(wanted: _Wanted, who: Approver, setting: Setting | None) -> Made:
    from gitbus import making

    policy: dict[str, object] = {"approval": {"proof": "github"}} if setting else {}

    def more(root: Oid) -> Mapping[str, bytes]:
        from gitbus.forge.github.setup.beginning import files

        return files(replace(setting, root=root)) if setting else {}

    if wanted.branch and (wanted.folder / ".git").exists():
        return making.beside_project(
            wanted.folder, name=wanted.name, approver=who, branch=wanted.branch, policy=policy, more=more
        )
    return making.make_bus(
        wanted.folder,
        name=wanted.name,
        approver=who,
        hub=wanted.hub or None,
        branch=wanted.branch or "main",
        policy=policy,
        more=more,
    )


def _setting(wanted: _Wanted, who: Approver) -> Setting:
    """Return what the new bus's files depend on, but for its root."""
    from gitbus import making
    from gitbus.codec import load
    from gitbus.forge.github.setup.beginning import files, setting_of
    from gitbus.records import Bus

    text = making.first_files(wanted.name, who, {}, {})["bus.yaml"]
    bus = Bus.model_validate(load(text, path="bus.yaml").data)
    branch = wanted.branch or "main"
    default = _default_branch(wanted.folder) if (wanted.folder / ".git").exists() else None
    setting = setting_of(bus, {}, branch=branch, root="0" * 40, app=wanted.app, default=default)
    files(setting)  # refused before anything is made
    return setting


def _id_of(text: str) -> str:
    plain = re.sub(r"[^a-z0-9-]+", "-", text.split("@")[0].lower()).strip("-")[:48].strip("-")
    return plain or "me"


# --- a bus that is there


def _is_bus(folder: Path) -> bool:
    from gitbus.hub import open_hub

    if not (folder / ".git").exists():
        return False
    try:
        open_hub(folder).close()
    except NoBus:
        return False
    return True


def _renew(folder: Path, *, app: bool) -> Setting:
    """Write the files for GitHub anew into a clone's working tree, for its user to commit."""
    from gitbus.bus import Bus
    from gitbus.forge.github.setup.beginning import files, setting_of, superfluous
    from gitbus.hub import find_clone

    with Bus.open(folder) as bus:
        board, branch, root = bus.board(), bus.branch, bus.root
    top = find_clone(folder).folder
    if top is None:
        raise Refused("a bare repository has no files to renew", rule="bare", remedy="do it in a clone")
    app = app or (top / ".github/workflows/gitbus-conduct.yml").exists()
    setting = setting_of(
        board.bus, board.workers, branch=branch, root=root, app=app, default=_default_branch(folder)
    )
    wanted: dict[str, bytes | None] = {**files(setting), **dict.fromkeys(superfluous(setting))}
    changed = [path for path, data in wanted.items() if _write(top / path, data)]
    for path in changed:
        say(f"[green]{'wrote' if wanted[path] is not None else 'removed':<9}[/] {safe(path)}")
    note(
        "look at it with git diff, then commit and push it"
        if changed
        else "the files for GitHub are as they shall be"
    )
    return setting


def _write(path: Path, data: bytes | None) -> bool:
    """Make a file hold what it shall, or be gone; say whether that changed anything."""
    from gitbus.effects import effect

    if (path.read_bytes() if path.is_file() else None) == data:
        return False
    effect("file-write", str(path))
    if data is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return True


def _default_branch(folder: Path) -> str | None:
    """Return the default branch of a clone's remote, as far as the clone knows."""
    from gitbus.hub import find_clone

    ran = find_clone(folder).run("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    return ran.text.removeprefix("origin/") or None if ran.code == 0 else None


def _finish(folder: Path, setting: Setting, *, apply: bool) -> None:
    """Make what can be made on GitHub, and say what is left to do by hand."""
    import os

    from gitbus.forge.github.place import place_of
    from gitbus.forge.github.setup.guide import left
    from gitbus.hub import hub_url

    url = hub_url(folder) or ""
    if apply:
        _apply(url, setting)
    pushed = place_of(url, os.environ, certain=True) is not None
    for line in left(setting, pushed=pushed, applied=apply):
        note(f"left: {line}")


def _apply(url: str, setting: Setting) -> None:
    import os

    from gitbus.forge.github.setup.applying import apply
    from gitbus.forge.github.setup.reaching import client_at

    client = client_at(url, os.environ)
    try:
        for one in apply(client, setting):
            colour = "green" if one.done else "yellow"
            say(
                f"[{colour}]{one.word:<9}[/] {safe(one.what)}"
                + (f"  [dim]{safe(one.why)}[/]" if one.why else "")
            )
    finally:
        client.close()
