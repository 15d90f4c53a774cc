"""The Python API: a bus as one clone sees it, with everything that the command line does.

Example::

    from gitbus import Bus

    bus = Bus.open("acme")
    bus.add_goal(Path("goal.yaml").read_bytes())
    bus.conduct()
    print(bus.board().goals["release"].state)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitbus.bus.config import Config
from gitbus.bus.core import Done
from gitbus.bus.goals import Goals
from gitbus.bus.items import Items
from gitbus.errors import Unreachable
from gitbus.flow import people
from gitbus.forge.base import Forge, PlainForge
from gitbus.pins import show_digest, shown_digests

if TYPE_CHECKING:
    from gitbus.auditing import Audited, Window
    from gitbus.conductor import Conductor
    from gitbus.documents import Status
    from gitbus.runner.base import Runner
    from gitbus.sender import Sender
    from gitbus.worker import Offer, WorkerActor

__all__ = ["Bus", "Done"]


class Bus(Goals, Items, Config):
    """One bus, from one clone.

    Args:
        folder: somewhere in the clone.
        hub: the shared repository.
        state: the clone's local state.
        root: the commit that began the bus.
        now: what time it is.
        environment: where a forge's token and the channels' secrets are; the process's unless given.
    """

    def status(self, goal: str | None = None) -> Status:
        """Return what is going on, of one goal or all.

        Raises:
            Refused: there is no such goal.
        """
        from gitbus.overview import overview

        return overview(self, goal)

    # --- actors

    def conductor(self) -> Conductor:
        """Return a conductor on this clone."""
        from gitbus.conductor import Conductor

        return Conductor(self.hub, self.root, self.now, self.state, self.shown_forge())

    def shown_forge(self) -> Forge:
        """Return the forge where there is a token for it; else one that does nothing, and says so."""
        try:
            return self.forge
        except Unreachable as error:
            without = PlainForge()
            without.troubles.append(f"{error.message}: no pull request is opened, closed or heard")
            return without

    def conduct(self) -> int:
        """Tick until nothing is left to decide; return how many ticks did something."""
        conductor = self.conductor()
        count = 0
        while conductor.tick():
            count += 1
        return count

    def worker(self, offer: Offer, run: Runner) -> WorkerActor:
        """Return a worker on this clone."""
        from gitbus.worker import WorkerActor

        return WorkerActor(self.hub, self.root, self.state, offer, run, self.now)

    def sender(self, environment: Mapping[str, str] | None = None) -> Sender:
        """Return the sender of this clone."""
        from gitbus.sender import Sender

        return Sender(
            self.hub,
            self.root,
            self.state,
            self.environment if environment is None else environment,
            self.now,
            forge=self.proof,
        )

    # --- proving

    def audit(self, window: Window | None = None, *, online: bool = False) -> Audited:
        """Prove the whole history.

        Args:
            window: which findings are reported.
            online: ask the forge again who merged; else what receipts froze is weighed.

        Raises:
            Unreachable: the forge cannot be asked, or does not tell of this branch.
        """
        from gitbus.auditing import audit_bus

        store, tip = self.hub.store, self.hub.look()[self.hub.main]
        proof = self.forge.proof if online else None
        lacking = proof.agrees(store, tip) if proof is not None else None
        if lacking is not None:
            raise Unreachable(lacking.message, rule=lacking.rule, remedy=lacking.remedy or None)
        return audit_bus(
            store, tip, self.root, now=self.now(), branch=self.branch, window=window, forge=proof
        )

    # --- what was shown

    def mark_shown(self, items: Iterable[str]) -> None:
        """Remember that the person at this clone saw these items as they are."""
        board = self.board()
        for item in items:
            _, record = people.part_of(board, item)
            show_digest(self.state, item, record.digest)

    def was_shown(self, item: str) -> bool:
        """Say whether the person at this clone last saw this item as it is."""
        _, record = people.part_of(self.board(), item)
        return shown_digests(self.state).get(item) == record.digest
