"""What the doctor looks at: git, identity, keys, hub, line, locks, disk, channels; and how to mend each.

Example: ``[one for one in examine(bus) if one.level == "problem"]``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gitbus import making
from gitbus.change import plain
from gitbus.errors import GitbusError
from gitbus.hub import find_clone
from gitbus.hub.direct import DirectHub
from gitbus.hub.hook import is_installed
from gitbus.hub.run import environment
from gitbus.pins import seen_tip
from gitbus.proof.bus import sending_on
from gitbus.proof.line import line_findings
from gitbus.records.bus import ExecChannel, key_body
from gitbus.transports.base import Unusable
from gitbus.transports.spawn import open_channel
from gitbus.watching import Sightings, odd

if TYPE_CHECKING:
    from gitbus.bus import Bus

OLDEST_GIT = (2, 38)
STALE = 600
"""Seconds after which a lock that nobody is known to hold counts as left behind."""


@dataclass(frozen=True, slots=True)
class Health:
    """One thing that was looked at."""

    level: Literal["ok", "warning", "problem"]
    what: str
    remedy: str = ""


def examine(bus: Bus, *, fix: bool = False, asked: bool = False) -> Iterator[Health]:
    """Yield what was looked at, in order.

    Args:
        bus: the bus.
        fix: remove locks that were left behind.
        asked: the forge is asked as well, so that nothing is said here of what only it knows.
    """
    yield _git()
    yield from _identity(bus)
    if not (asked and bus.effective().bus.approval.proof == "github"):
        yield from _hub(bus)
    yield from _line(bus)
    yield from _clock(bus)
    yield from _flag(bus)
    yield from _locks(bus, fix=fix)
    yield from _disk(bus)
    yield from _reachable_keys(bus)
    yield from _channels(bus)
    yield from _scripts(bus)


def _git() -> Health:
    done = subprocess.run(
        ["git", "--version"], capture_output=True, text=True, check=False, env=environment()
    )
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < OLDEST_GIT:
        return Health("problem", f"git {version[0]}.{version[1]} is too old", "install git 2.38 or newer")
    return Health("ok", f"git {version[0]}.{version[1]}")


def _identity(bus: Bus) -> Iterator[Health]:
    try:
        person = bus.person()
    except GitbusError as error:
        yield Health("warning", error.message, error.remedy or "")
        return
    key = making.find_key(bus.folder)
    if key is None and person.github is not None and bus.effective().bus.approval.proof == "github":
        yield Health("ok", f"you are {person.id} ({', '.join(person.roles)}), by your account on GitHub")
    elif key is None:
        yield Health(
            "warning", f"you are {person.id}, and git has no signing key here", "set user.signingkey"
        )
    elif key_body(key) not in map(key_body, person.keys):
        yield Health(
            "problem",
            f"your signing key is not among {person.id}'s in bus.yaml",
            "gitbus config set people.N.keys=…",
        )
    else:
        yield Health("ok", f"you are {person.id} ({', '.join(person.roles)}), and your key is known")


def _hub(bus: Bus) -> Iterator[Health]:
    """Say whether the hub lets pass what the protocol needs, and forbids what it must."""
    if not isinstance(bus.hub, DirectHub):
        yield Health(
            "warning",
            f"whether the hub forbids force pushes to {bus.branch} cannot be seen from here",
            "gitbus doctor --github asks GitHub"
            if bus.effective().bus.approval.proof == "github"
            else "protect the branch there; gitbus/* has to stay open for forced updates (presence)",
        )
        return
    git = bus.hub.git
    if git.run("rev-parse", "--verify", "--quiet", "refs/heads/gitbus").code == 0:
        yield Health(
            "problem",
            "a branch called gitbus is in the way of gitbus/workers/… and the others",
            f"git -C {git.git_dir} branch -m gitbus another-name",
        )
    if git.run("config", "--bool", "receive.denyNonFastForwards").out.strip() == b"true":
        yield Health(
            "problem",
            "the hub denies forced updates, so that no worker can say that it is here",
            f"git -C {git.git_dir} config receive.denyNonFastForwards false (the hub's hook keeps {bus.branch})",
        )
    if is_installed(git.git_dir):
        yield Health("ok", f"the hub's hook keeps {bus.branch} from being put back")
    else:
        yield Health(
            "warning",
            f"nothing at the hub keeps {bus.branch} from being put back by a force push",
            f"let the hub have the hook of a new one: gitbus init ELSEWHERE, then copy its hooks/update to {git.git_dir}",
        )


def _clock(bus: Bus) -> Iterator[Health]:
    refs, now = bus.refs(), bus.now()
    sightings = Sightings(bus.hub, bus.state)
    sightings.look(refs, bus.board(), now)
    found = list(odd(refs, bus.hub, sightings, now))
    for where, what, remedy in found:
        yield Health("warning", f"{where}: {what}", remedy)
    if not found:
        yield Health("ok", "no clock is seen to be off")


def _line(bus: Bus) -> Iterator[Health]:
    tip = bus.refs()[bus.hub.main]
    findings = line_findings(bus.hub.store, tip, bus.root, bus.effective(), seen=seen_tip(bus.state))
    for one in findings:
        yield Health("problem", one.message, one.remedy)
    if not findings:
        yield Health("ok", f"the line holds from the root {bus.root[:10]} to {tip[:10]}")


def _flag(bus: Bus) -> Iterator[Health]:
    for problem in bus.bus_problems():
        yield Health(
            "problem",
            f"{problem['path']}:{problem['line']}: {problem['message']}",
            "gitbus ratify, or ratify --discard",
        )
    off = sending_on(bus.effective(), bus.hub.store)
    yield Health("ok", f"sending is off: {off.message}" if off else "sending is on")


def _locks(bus: Bus, *, fix: bool) -> Iterator[Health]:
    folders: set[Path] = {bus.hub.store.git.git_dir.resolve(), find_clone(bus.folder).git_dir.resolve()}  # type: ignore[attr-defined]
    found = [
        path
        for folder in sorted(folders)
        for path in (*folder.glob("*.lock"), *(folder / "refs").rglob("*.lock"))
        if path.is_file()
    ]
    for path in found:
        held = _is_open(path)
        if held or (held is None and time.time() - path.stat().st_mtime < STALE):
            yield Health("warning", f"{path} is locked", "wait for the git that runs there")
        elif fix:
            path.unlink(missing_ok=True)
            yield Health("ok", f"removed {path}, which no process had open")
        else:
            yield Health("problem", f"{path} was left behind", "gitbus doctor --fix removes it")
    if not found:
        yield Health("ok", "no lock was left behind")


def _is_open(path: Path) -> bool | None:
    """Say whether a process has a file open; None where that cannot be known."""
    processes = Path("/proc")
    if not processes.is_dir() or os.geteuid() != 0:
        return None
    for handle in processes.glob("[0-9]*/fd/*"):
        try:
            if handle.readlink() == path:
                return True
        except OSError:
            continue
    return False


def _disk(bus: Bus) -> Iterator[Health]:
    free = shutil.disk_usage(bus.state).free
    if free < 100 << 20:
        yield Health("problem", f"only {free >> 20} MiB are free", "free some space")


def _reachable_keys(bus: Bus) -> Iterator[Health]:
    """Warn where a worker that runs as this user could approve as well."""
    level: Literal["warning", "problem"] = "problem" if bus.effective().bus.sending.enabled else "warning"
    workers = [one for one in bus.board().workers.values() if one.run is not None]
    key = making.find_key(bus.folder)
    approvers = {key_body(one) for person in bus.effective().bus.with_role("approver") for one in person.keys}
    if workers and key is not None and key_body(key) in approvers and not key.startswith("sk-"):
        yield Health(
            level,
            "approver-reachable-by-worker: workers of this user can read the key that approves",
            "run them with --user or --sandbox, use a key that needs a touch (sk-ssh-ed25519), or approve elsewhere",
        )


def _channels(bus: Bus) -> Iterator[Health]:
    enabled = bus.effective().bus.sending.enabled
    for name, channel in sorted(bus.effective().bus.channels.items()):
        transport = open_channel(name, channel.model_dump(mode="json", by_alias=True), os.environ)
        try:
            identity = transport.check()
            yield Health("ok", f"channel {name}: {channel.transport} {identity.host or ''}".rstrip())
        except Unusable as error:
            yield Health(
                "problem" if enabled else "warning", f"channel {name}: {error.message}", error.remedy or ""
            )
        finally:
            transport.close()


def _scripts(bus: Bus) -> Iterator[Health]:
    """Warn of pinned programs that are scripts: what their interpreter loads beside them is not pinned."""
    for name, channel in sorted(bus.effective().bus.channels.items()):
        if not isinstance(channel, ExecChannel):
            continue
        program = shutil.which(channel.command[0])
        interpreter = _interpreter(Path(program)) if program else None
        if interpreter is not None:
            yield Health(
                "warning",
                f"channel {name}: {program} is a script; its `sha256` holds the file, not what {interpreter}"
                " loads beside it",
                "let it import the standard library alone (#!/usr/bin/python3 -I), keep the interpreter and its"
                " libraries where only the administrator writes, or pin one self-contained program",
            )


def _interpreter(program: Path) -> str | None:
    """Return what runs a script, as its first line says; None where it is no script."""
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    return plain(first[2:].decode("utf-8", "replace")) if first.startswith(b"#!") else None
