"""A bus as one clone sees it: opened, looked at, and changed by one commit at a time.

Example: ``OpenBus.open("acme").board().goals["release"].state``.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from gitbus import paths
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, plain
from gitbus.clock import utc_now
from gitbus.errors import HubMoved, Refused
from gitbus.forge.base import Forge
from gitbus.forge.opening import OnDemand, open_forge
from gitbus.history import Oid
from gitbus.hub import Hub, RefMove, hub_url, local_state, open_hub
from gitbus.pins import pin_root, pinned_root
from gitbus.proof.bus import Effective
from gitbus.reading import Reader
from gitbus.records import Person
from gitbus.version import refuse_old
from gitbus.writing import Writer

TRIES = 30


@dataclass(frozen=True, slots=True)
class Done:
    """A change that landed: its commit, its subject, and whether the user's key signed it."""

    commit: Oid
    subject: str
    signed: bool = False


class OpenBus:
    """One bus, from one clone.

    Args:
        folder: somewhere in the clone.
        hub: the shared repository.
        state: the clone's local state.
        root: the commit that began the bus.
        now: what time it is.
        environment: where a forge's token and the channels' secrets are; the process's unless given.
    """

    def __init__(
        self,
        folder: Path,
        hub: Hub,
        state: Path,
        root: Oid,
        now: Callable[[], datetime] = utc_now,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.hub = hub
        self.state = state
        self.root = root
        self.now = now
        self.environment = os.environ if environment is None else environment
        self._forge: Forge | None = None
        self.proof = OnDemand(lambda: self.forge)
        """What knows who merged, asked only where no signature tells."""
        self.reader = Reader(hub.store, root, self.proof)

    @classmethod
    def open(
        cls,
        folder: str | Path = ".",
        *,
        root: Oid | None = None,
        now: Callable[[], datetime] = utc_now,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Open the bus of the clone that a folder is in.

        Args:
            folder: somewhere in the clone.
            root: the commit that began the bus, where the caller knows it; else ``GITBUS_ROOT``,
                else what the clone has pinned, else the beginning of the branch, which is pinned.
            now: what time it is.
            environment: where a forge's token and the channels' secrets are; the process's unless given.

        Raises:
            NoBus: there is none here.
            Unreachable: its hub cannot be reached.
        """
        where = Path(folder)
        hub = open_hub(where)
        state = local_state(where)
        known = root or os.environ.get("GITBUS_ROOT") or pinned_root(state)
        if known is None:
            known = hub.store.line(hub.look()[hub.main])[-1]
            pin_root(state, known)
        return cls(where, hub, state, known, now, environment)

    def __enter__(self) -> Self:
        """Return the bus."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what child processes there are."""
        self.close()

    def close(self) -> None:
        """End what child processes and connections there are."""
        if self._forge is not None:
            self._forge.close()
        self.hub.close()

    # --- looking

    @property
    def forge(self) -> Forge:
        """The forge that the hub is on, opened when it is first needed.

        Raises:
            Unreachable: it is GitHub, and there is no token for it (rule ``no-token``).
        """
        if self._forge is None:
            tip = self.hub.look()[self.hub.main]
            bus = Reader(self.hub.store, self.root).effective(tip).bus
            url = hub_url(self.folder)
            self._forge = open_forge(url, bus, self.branch, self.hub.store, self.environment, self.state)
        return self._forge

    @property
    def branch(self) -> str:
        """The bus's branch, by its short name."""
        return self.hub.main.removeprefix(paths.HEADS)

    def refs(self) -> Mapping[str, Oid]:
        """Look at the hub and return its refs."""
        return self.hub.look()

    def board(self) -> Board:
        """Look at the hub and return the board as it is now."""
        return self.reader.board(self.hub.look()[self.hub.main])

    def item(self, item: str) -> ItemBoard | None:
        """Return an item as it stands now, in the archive too; None where there never was one."""
        board = self.board()
        there = self.reader.archived(board.commit, item) if item not in board.items else None
        return there[1] if there is not None else board.items.get(item)

    def whole_board(self) -> Board:
        """Return the board with settled goals loaded as well."""
        board = self.board()
        return self.reader.opened(board, [name for name, part in board.goals.items() if not part.open])

    def _open(self, board: Board, goal: str) -> Board:
        """Return the board with a goal loaded whole, settled or not."""
        return self.reader.opened(board, [goal])

    def effective(self) -> Effective:
        """Return the effective Bus."""
        return self.reader.effective(self.hub.look()[self.hub.main])

    def person(self) -> Person:
        """Return the person that this clone's user is, by the email address of his git.

        Raises:
            Refused: ``bus.yaml`` knows nobody of this address (rule ``not-a-person``).
        """
        email = self.hub.store.identity().email
        bus = self.effective().bus
        found = next((one for one in bus.people if one.email.lower() == email.lower()), None)
        if found is None:
            known = ", ".join(one.email for one in bus.people)
            raise Refused(
                f"bus.yaml knows nobody of your address {plain(email)}",
                rule="not-a-person",
                remedy=f"set git's user.email to one of {known}, or have yourself added: gitbus person add",
            )
        return found

    # --- changing

    def commit(
        self,
        decide: Callable[[Board], Change],
        *,
        sign: bool = False,
    ) -> Done:
        """Make one change as the user, again on each newer tip until it lands.

        Args:
            decide: returns the change on a board; raises what refuses it.
            sign: sign it with the user's key.

        Raises:
            HubMoved: others were faster too often.
        """
        writer = Writer(self.hub.store, None, self.reader.remember)
        for attempt in range(TRIES):
            tip = self.hub.look()[self.hub.main]
            board = self.reader.board(tip)
            refuse_old(board.bus)
            change = decide(board)
            made = writer.commits(tip, [change], self.now(), sign=sign)[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                return Done(made, f"{change.verb} {change.subject}")
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
        raise HubMoved("the bus's branch moved each time", rule="hub-moved", remedy="try again")
