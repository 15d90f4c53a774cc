"""Looking at a bus on GitHub: what the doctor's checks need is asked of the API and read from the bus.

Example: ``for one in visit(bus).found: print(one.level, one.what)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gitbus.errors import GitbusError
from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.forge.github.setup.applying import app_number
from gitbus.forge.github.setup.beginning import files, setting_of
from gitbus.forge.github.setup.enforced import enforced
from gitbus.forge.github.setup.examining import Case, Found, examined
from gitbus.forge.github.setup.powers import Power, powers
from gitbus.forge.github.setup.reaching import client_of
from gitbus.forge.github.setup.rendering import WORKFLOWS, Setting, stubs
from gitbus.forge.github.setup.wanted import environments

if TYPE_CHECKING:
    from gitbus.bus import Bus


@dataclass(frozen=True, slots=True)
class Visit:
    """What was found on GitHub, what could not be seen, and what a thief of each kind of token could do."""

    found: tuple[Found, ...]
    powers: tuple[Power, ...]


def visit(bus: Bus) -> Visit:
    """Look at a bus on GitHub.

    Raises:
        Refused: the bus is on no GitHub.
        Unreachable: there is no token, or GitHub did not answer.
    """
    client = client_of(bus)
    try:
        case = _case(bus, client)
        return Visit(tuple(examined(case)), tuple(powers(case.facts, case.bus, case.app)))
    finally:
        client.close()


def _case(bus: Bus, client: Client) -> Case:
    store, tip = bus.hub.store, bus.refs()[bus.hub.main]
    default = client.get(client.place.path)["default_branch"]
    app = store.entry(tip, f"{WORKFLOWS}gitbus-conduct.yml") is not None
    effective, board = bus.effective().bus, bus.board()
    setting = setting_of(effective, board.workers, branch=bus.branch, root=bus.root, app=app, default=default)
    entries = {path: store.entry(tip, path) for path in files(setting)}
    return Case(
        bus=effective,
        setting=setting,
        facts=enforced(client, bus.branch, [one.name for one in environments(setting)], effective.people),
        app=app_number(client) if app else None,
        files={path: store.blob(entry.oid) for path, entry in entries.items() if entry is not None},
        stubs=_stubs(client, setting),
        owners=_owners(client, bus.branch),
    )


def _stubs(client: Client, setting: Setting) -> frozenset[str] | None:
    """Return which of the wanted stubs the default branch has."""
    found = set()
    for name in stubs(setting):
        try:
            client.get(f"{client.place.path}/contents/{WORKFLOWS}{name}", ref=setting.default or "")
        except ForgeRefused as error:
            if error.rule != "not-found":
                return None
        else:
            found.add(name)
    return frozenset(found)


def _owners(client: Client, branch: str) -> tuple[str, ...]:
    try:
        told = client.get(f"{client.place.path}/codeowners/errors", ref=branch)
    except GitbusError:
        return ()
    return tuple(f"line {one['line']}: {one['kind']}" for one in told["errors"])
