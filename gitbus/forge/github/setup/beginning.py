"""From a bus to the files that it holds for GitHub.

Example: ``files(setting_of(bus, {}, branch="main", root=root, app=False))[".github/workflows/gitbus.yml"]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gitbus import __version__
from gitbus.errors import Misuse
from gitbus.forge.github.setup.guide import guide
from gitbus.forge.github.setup.rendering import WORKFLOWS, Setting, rendered
from gitbus.history import Oid
from gitbus.records import Bus, Worker

_ACCOUNT = re.compile(r"(?P<login>[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})):(?P<id>[1-9][0-9]{0,17})")
_VARIABLES = ("password_env", "url_env", "secret_env")

ALL = ("gitbus.yml", "gitbus-conduct.yml", "gitbus-work.yml", "gitbus-send.yml", "gitbus-check.yml")
"""Every workflow that gitbus ever writes."""


def account(text: str) -> tuple[str, int]:
    """Return login and number of ``LOGIN:ID``.

    Raises:
        Misuse: it is not of that form.
    """
    found = _ACCOUNT.fullmatch(text)
    if found is None:
        raise Misuse(
            f"{text!r} is no LOGIN:ID",
            rule="usage",
            remedy="the id is in https://api.github.com/users/LOGIN (a login can be renamed, the id stays)",
        )
    return found["login"], int(found["id"])


def setting_of(
    bus: Bus,
    workers: Mapping[str, Worker],
    *,
    branch: str,
    root: Oid,
    app: bool,
    default: str | None = None,
) -> Setting:
    """Return what the files of a bus depend on.

    Args:
        bus: the bus.
        workers: the declared workers.
        branch: the bus's branch.
        root: the commit that began it.
        app: whether conductor and sender act as a GitHub App.
        default: the repository's default branch, where that is another.
    """
    return Setting(
        branch=branch,
        root=root,
        version=__version__,
        name=bus.name,
        app=app,
        secrets=tuple(dict.fromkeys(_secrets(bus))),
        workers={name: one.env for name, one in sorted(workers.items()) if one.ci},
        owners=tuple(one.github.login for one in bus.with_role("approver") if one.github),
        default=default if default != branch else None,
    )


def files(setting: Setting) -> dict[str, bytes]:
    """Return all that a bus holds for GitHub, by path.

    Raises:
        Refused: a branch or a variable has a name that a workflow cannot hold.
    """
    return rendered(setting) | {"SETUP.md": guide(setting)}


def superfluous(setting: Setting) -> tuple[str, ...]:
    """Return the workflows of the other way to run, which must not stand beside these."""
    mine = rendered(setting)
    return tuple(WORKFLOWS + name for name in ALL if WORKFLOWS + name not in mine)


def _secrets(bus: Bus) -> Iterator[str]:
    for _, channel in sorted(bus.channels.items()):
        yield from (name for field in _VARIABLES if (name := getattr(channel, field, None)))
        yield from getattr(channel, "env", ())
