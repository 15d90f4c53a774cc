"""Which forge a bus lives on, opened when it is first needed.

Rules: the hub's URL decides, and the bus where it says ``proof: github``. Without a token nobody
is heard and nothing is shown, and what only the forge knows is unasked; everything else goes on.

Example: ``open_forge("https://github.com/acme/bus", bus, "main", os.environ)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gitbus.errors import Unreachable
from gitbus.forge.base import Forge, PlainForge
from gitbus.forge.github.place import TOKENS, Place, place_of, token_of
from gitbus.history import History, Oid
from gitbus.hub.base import Store
from gitbus.proof.forge import Forge as ProofForge
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Missing, missing
from gitbus.records import Bus


def github_place(url: str | None, bus: Bus, environment: Mapping[str, str]) -> Place | None:
    """Return which repository on GitHub a bus lives in; None where it lives elsewhere."""
    if url is None:
        return None
    return place_of(url, environment, certain=bus.approval.proof == "github")


def open_forge(
    url: str | None,
    bus: Bus,
    branch: str,
    store: Store,
    environment: Mapping[str, str],
    state: Path | None = None,
) -> Forge:
    """Return the forge that a hub is on, with the rights of the token that is there.

    Args:
        url: the hub's URL; None for a folder on this machine.
        bus: the effective Bus.
        branch: the bus's branch, by its short name.
        store: where the objects are.
        environment: where the token and the API's address may stand.
        state: the clone's local state, where what GitHub said for good is remembered.

    Raises:
        Unreachable: it is GitHub, and there is no token (rule ``no-token``).
        Refused: the token would go over the network in the clear.
    """
    place = github_place(url, bus, environment)
    if place is None:
        return PlainForge()
    token = token_of(place, environment)
    if token is None:
        raise Unreachable(
            f"{place.full_name} is on GitHub, and there is no token for it",
            rule="no-token",
            remedy=f"set {TOKENS[0]}, or log in with: gh auth login",
        )
    from gitbus.forge.github.client import Client
    from gitbus.forge.github.forge import GitHub

    return GitHub(Client(place, token, pace=not environment.get("GITBUS_NO_PACE")), branch, store, state)


class OnDemand:
    """What knows who merged, opened when it is first asked.

    Args:
        opening: opens the forge.
    """

    def __init__(self, opening: Callable[[], Forge]) -> None:
        self._opening = opening

    def word(self, history: History, commit: Oid, standing: Standing, about: Collection[str]) -> Word:
        """Return who merged the pull request that made this commit, and what speaks against it."""
        found = self._open()
        if isinstance(found, Missing):
            return Word((), (), (found,))
        return found.word(history, commit, standing, about)

    def agrees(self, history: History, tip: Oid) -> Missing | None:
        """Return why the forge and git do not tell of one and the same branch; None where they do."""
        found = self._open()
        return found if isinstance(found, Missing) else found.agrees(history, tip)

    def _open(self) -> ProofForge | Missing:
        try:
            found = self._opening().proof
        except Unreachable as error:
            return missing("unasked", error.message, error.remedy or "", unasked=True)
        return found or missing("unasked", "the hub is on no forge that gitbus knows", unasked=True)
