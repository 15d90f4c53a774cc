"""The sender: takes what is approved, proves it once more, sends it at most once, and says so.

A round begins with the journal: what was begun is finished before anything new is looked at. Then,
channel by channel: look, identity, lease, journal, send, journal, attest. The steps and what is
left when any of them is the last stand in ``docs/sending.md``.

Example::

    with Sender(hub, root, state, os.environ) as sender:
        for sent in sender.round():
            print(sent.item, sent.outcome)
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gitbus.board import Board
from gitbus.clock import utc_now
from gitbus.errors import HubMoved
from gitbus.flow.items import strand_broken
from gitbus.flow.sending import Nonces, lease, lease_of, room
from gitbus.history import Oid
from gitbus.hub.base import Hub, RefMove
from gitbus.journal import Journal, JournalEntry
from gitbus.proof.bus import Effective
from gitbus.proof.forge import Forge
from gitbus.reading import Reader
from gitbus.records import Channel, Lease
from gitbus.sending.attesting import Attesting
from gitbus.sending.looking import Looking
from gitbus.sending.transmitting import Transmitting
from gitbus.sending.values import Outcome, Ready, Sent, signs
from gitbus.transports.base import Identity, Transport, Unusable
from gitbus.transports.spawn import open_channel
from gitbus.writing import SENDER, Writer

__all__ = ["Outcome", "Sender", "Sent"]

TRIES = 30
Opener = Callable[[str, Mapping[str, Any], Mapping[str, str]], Transport]


class Sender:
    """The one sender of a clone.

    Args:
        hub: the shared repository.
        root: the commit that began the bus, as it is pinned.
        state: the clone's local state.
        environment: where the channels' secrets are.
        now: what time it is.
        opener: makes a channel's transport.
        holder: who sends, as leases and receipts say it.
        forge: what knows who merged, where there is a forge.
    """

    def __init__(
        self,
        hub: Hub,
        root: Oid,
        state: Path,
        environment: Mapping[str, str],
        now: Callable[[], datetime] = utc_now,
        opener: Opener = open_channel,
        holder: str | None = None,
        forge: Forge | None = None,
    ) -> None:
        self.hub = hub
        self.root = root
        self.state = state
        self.environment = environment
        self.now = now
        self.opener = opener
        self.holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        self.stopping: Callable[[], bool] = lambda: False
        """Asked before every new lease; what is leased is finished whatever it says."""
        self.journal = Journal(state)
        self.forge = forge
        self.reader = Reader(hub.store, root, forge)
        self.writer = Writer(hub.store, SENDER, self.reader.remember)
        self.looking = Looking(hub, root, state, now, self.reader, self.journal, forge)
        self.transmitting = Transmitting(hub, now, self.reader, self.journal)
        self.attesting = Attesting(hub, now, self.reader, self.writer, self.journal)

    def __enter__(self) -> Self:
        """Return the sender."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let another sender have the clone."""
        self.journal.close()

    # --- a round

    def round(self, items: Iterable[str] = (), *, dry_run: bool = False) -> list[Sent]:
        """Finish what was begun, then send what may be sent now.

        Args:
            items: only these, where any are named.
            dry_run: stop before the lease and say what would be sent.

        Raises:
            Refused: the line does not hold, or the flag is off and items were named.
            Unreachable: the hub cannot be used.
        """
        done = [] if dry_run else self.attesting.finish()
        named = tuple(items)
        board, effective = self.looking.look()
        ready, refused = self.looking.ready(board, effective, named)
        done += refused if dry_run else self._stranded(board, refused)
        for channel in sorted({one.part.item.channel for one in ready if one.part.item}):
            mine = [one for one in ready if one.part.item and one.part.item.channel == channel]
            done += (self._would if dry_run else self._over)(channel, mine, board)
        return done

    def _stranded(self, board: Board, refused: list[Sent]) -> list[Sent]:
        """Put what has a lease that nobody closed before a human, where the board alone does not show it.

        Lost to somebody faster it is done in the next round.
        """
        broken = {
            one.item: one for one in refused if (one.reason or "").startswith(("lease-open", "lease-exists"))
        }
        why = [(item, "stuck", (one.reason or "").split(": ", 1)[-1]) for item, one in broken.items()]
        for change in strand_broken(board, why):
            made = self.writer.commits(board.commit, [change], self.now(), sign=signs(board))[0]
            self.hub.move([RefMove(self.hub.main, board.commit, made)])
        return [replace(one, outcome="stuck") if one.item in broken else one for one in refused]

    # --- steps 2 to 7, for one channel

    def _would(self, name: str, ready: list[Ready], board: Board) -> list[Sent]:
        """Say what would be sent over one channel, once it let itself be checked."""
        fields = board.bus.channels[name].model_dump(mode="json", by_alias=True)
        try:
            transport = self.opener(name, fields, self.environment)
            try:
                transport.check()
            finally:
                transport.close()
        except Unusable as error:
            return [_unusable(one, error) for one in ready]
        return [Sent(one.part.id, "would-send") for one in ready]

    def _over(self, name: str, ready: list[Ready], board: Board) -> list[Sent]:
        """Send what is ready over one channel, batch by batch on one connection."""
        definition = board.bus.channels[name]
        most = room(board, name, self.now())
        mine = ready if most is None else ready[:most]
        done = [
            Sent(one.part.id, "later", "rate: the channel's rate is used up") for one in ready[len(mine) :]
        ]
        if not mine:
            return done
        fields = definition.model_dump(mode="json", by_alias=True)
        try:
            transport = self.opener(name, fields, self.environment)
        except Unusable as error:
            return done + [_unusable(one, error) for one in mine]
        try:
            identity = transport.check()
            size = board.bus.sending.batch
            for start in range(0, len(mine), size):
                if self.stopping():
                    break
                done += self._batch(transport, identity, definition, mine[start : start + size])
        except Unusable as error:
            told = {one.item for one in done}
            done += [_unusable(one, error) for one in mine if one.part.id not in told]
        finally:
            transport.close()
        return done

    def _batch(
        self, transport: Transport, identity: Identity, definition: Channel, batch: list[Ready]
    ) -> list[Sent]:
        leased, refused = self._lease(batch)
        entries = [
            self.transmitting.transmit(transport, identity, definition, one, claim, commit, nonces)
            for one, claim, commit, nonces in leased
        ]
        self.attesting.attest(entries)
        return refused + [self.attesting.told(entry) for entry in entries] + self._untouched(leased, entries)

    def _lease(self, batch: list[Ready]) -> tuple[list[tuple[Ready, Lease, Oid, Nonces]], list[Sent]]:
        """Take what is still ready on the very branch that was looked at, by compare-and-swap."""
        names = tuple(one.part.id for one in batch)
        for attempt in range(TRIES):
            board, effective = self.looking.look()
            ready, refused = self.looking.ready(board, effective, names)
            if not ready:
                return [], refused
            now = self.now()
            claims = [self._claim(one, board, effective, now) for one in ready]
            change = lease((one.part, claim) for one, claim, _ in claims)
            tip = board.commit
            made = self.writer.commits(tip, [change], now, sign=signs(board))[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                return [(one, claim, made, nonces) for one, claim, nonces in claims], refused
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
        raise HubMoved("the bus's branch moved each time a lease was made", rule="hub-moved")

    def _claim(
        self, one: Ready, board: Board, effective: Effective, now: datetime
    ) -> tuple[Ready, Lease, Nonces]:
        if one.part.item is None or one.proof.commit is None:
            raise ValueError("an item that is not ready")
        nonces = Nonces(secrets.token_hex(16), secrets.token_hex(16))
        claim = lease_of(
            one.part.item,
            approval=one.proof.commit,
            bus_blob=effective.blob,
            holder=self.holder,
            nonces=nonces,
            now=now,
            lasts=board.bus.sending.lease,
        )
        return one, claim, nonces

    @staticmethod
    def _untouched(leased: list[tuple[Ready, Lease, Oid, Nonces]], entries: list[JournalEntry]) -> list[Sent]:
        done = {entry.item for entry in entries}
        return [
            Sent(one.part.id, "stuck", "leased and not sent")
            for one, _, _, _ in leased
            if one.part.id not in done
        ]


def _unusable(one: Ready, error: Unusable) -> Sent:
    return Sent(one.part.id, "later", f"{error.rule}: {error.message}")
