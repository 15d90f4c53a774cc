"""The API of the GitHub that a bus lives on, for what sets it up and examines it.

Example: ``with_client = client_of(bus)``; close it after.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitbus.errors import Refused, Unreachable
from gitbus.forge.github.client import Client
from gitbus.forge.github.place import TOKENS, Place, place_of, token_of

if TYPE_CHECKING:
    from gitbus.bus import Bus


def client_of(bus: Bus, environment: Mapping[str, str] | None = None) -> Client:
    """Return calls to the GitHub that a bus lives on, with the token that this process was given.

    Raises:
        Refused: the bus is on no GitHub (rule ``not-on-github``).
        Unreachable: there is no token (rule ``no-token``).
    """
    from gitbus.hub.opening import hub_url

    return client_at(hub_url(bus.folder), os.environ if environment is None else environment)


def client_at(url: str | None, environment: Mapping[str, str]) -> Client:
    """Return calls to the GitHub that a URL names.

    Raises:
        Refused: it names none (rule ``not-on-github``).
        Unreachable: there is no token (rule ``no-token``).
    """
    place = place_at(url, environment)
    token = token_of(place, environment)
    if token is None:
        raise Unreachable(
            f"there is no token for {place.full_name}",
            rule="no-token",
            remedy=f"set {TOKENS[0]}, or log in with: gh auth login",
        )
    return Client(place, token, pace=not environment.get("GITBUS_NO_PACE"))


def place_at(url: str | None, environment: Mapping[str, str]) -> Place:
    """Return which repository on which GitHub a URL names.

    Raises:
        Refused: it names none (rule ``not-on-github``).
    """
    place = place_of(url, environment, certain=True) if url else None
    if place is None:
        raise Refused(
            f"{url or 'a hub without a URL'} is no repository on GitHub",
            rule="not-on-github",
            remedy="name it: --hub https://github.com/OWNER/NAME",
        )
    return place
