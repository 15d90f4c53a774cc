"""GitHub as one forge: what the conductor shows and hears there, and what the proof asks.

Rules: whatever goes wrong on GitHub stops nothing on the bus; it is a trouble that is told. While
nothing changed on the hub, GitHub is looked at every few seconds only, by conditional requests.

Example: ``GitHub(Client(place, token), "main", store).hear(board, refs)``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from gitbus.board import Board
from gitbus.errors import Refused, Unreachable
from gitbus.flow.approve import branches
from gitbus.forge.base import Said, View
from gitbus.forge.github.acting import Acting
from gitbus.forge.github.asking import Asking
from gitbus.forge.github.client import Client
from gitbus.forge.github.hearing import Hearing
from gitbus.forge.github.keeping import Keeping
from gitbus.forge.github.noticing import Noticing
from gitbus.forge.github.pulls import Pull, Pulls
from gitbus.forge.github.texts import GitHubTexts
from gitbus.history import Oid
from gitbus.hub.base import Store

PAUSE = 10.0
"""Seconds between two looks at GitHub while nothing changed on the hub."""


class GitHub:
    """One bus's repository on GitHub, with the rights of one token.

    Args:
        client: its calls.
        branch: the bus's branch, by its short name.
        store: where the objects are.
        state: the clone's local state.
        pause: seconds between two looks while nothing changed.
    """

    def __init__(
        self,
        client: Client,
        branch: str,
        store: Store,
        state: Path | None = None,
        *,
        pause: float = PAUSE,
    ) -> None:
        self.client = client
        self.store = store
        self.troubles: list[str] = []
        self.proof = Asking(client, branch, state)
        self.pulls = Pulls(client, branch)
        self.acting = Acting(self.pulls)
        self.hearing = Hearing(self.pulls)
        self.keeping = Keeping(self.pulls, GitHubTexts(client.place, store), store, self._trouble)
        self.noticing = Noticing(client)
        self._pause = pause
        self._looked: tuple[float, Mapping[str, Oid]] = (-pause, {})
        self._shown: dict[str, Pull] | None = None
        self._heard: Mapping[str, Oid] = {}

    def hear(self, board: Board, refs: Mapping[str, Oid]) -> Sequence[Said]:
        """Return what people said there and the bus does not hold yet; nothing where it cannot be asked."""
        self._shown = None
        when, seen = self._looked
        if seen == refs and time.monotonic() - when < self._pause:
            return ()
        try:
            shown = self.pulls.open()
            said = self.hearing.hear(board, refs, branches(board), shown)
        except (Unreachable, Refused) as error:
            self._trouble(str(error))
            self._looked = (time.monotonic(), dict(refs))
            return ()
        self._shown, self._heard = shown, dict(refs)
        return said

    def keep(self, view: View) -> bool:
        """Do the next few things that make what is shown what it shall be; say whether anything was done."""
        if self._shown is None:
            return False
        done = self._bearing(partial(self.keeping.keep, view, self._shown, self.hearing))
        done = self._bearing(partial(self.noticing.keep, view.board, view.now)) or done
        if not done:
            self._looked = (time.monotonic(), self._heard)
        return done

    def _bearing(self, step: Callable[[], bool]) -> bool:
        """Do something on GitHub; what it refuses is told and stops nothing."""
        try:
            return step()
        except (Unreachable, Refused) as error:
            self._trouble(str(error))
            return False

    def close(self) -> None:
        """End the connections."""
        self.client.close()

    def _trouble(self, text: str) -> None:
        if text not in self.troubles:
            self.troubles.append(text)
