"""What comes in from workers, as values: signs of life, and the commits on their branches.

The conductor looks at git and hands these to the flow, which decides; nothing here is believed.

Example: ``Tip("laptop", oid, (WorkerCommit(...),))`` is a branch with one commit that ``main`` does
not hold yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitbus.board import Board
from gitbus.history import Entry, Oid


@dataclass(frozen=True, slots=True)
class Crew:
    """A worker as the conductor sees it now."""

    id: str
    capabilities: frozenset[str]
    capacity: int
    healthy: bool
    nonce: str | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """A path that a worker's commit changes; ``size`` is of the new blob, in bytes (0 when removed)."""

    path: str
    entry: Entry | None
    size: int = 0


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file in a task's artifacts folder, as it stands in a worker's commit."""

    entry: Entry
    size: int
    sha256: str | None  # None where it is larger than the limit and was not read
    not_text: str | None = None  # why it cannot be a message's text, or None where it can


@dataclass(frozen=True, slots=True)
class Answer:
    """A result file in a worker's commit: its bytes (None: too large to read), and what came with it."""

    goal: str
    task: str
    path: str
    entry: Entry
    size: int
    data: bytes | None
    artifacts: Mapping[str, FoundFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerCommit:
    """One commit on a worker's branch."""

    oid: Oid
    parents: tuple[Oid, ...]
    touched: tuple[Touched, ...]
    answers: tuple[Answer, ...] = ()
    signed: bool = True  # False: the bus wants this worker's commits signed, and this one is not


@dataclass(frozen=True, slots=True)
class Tip:
    """A worker's branch: its new commits, the oldest first."""

    worker: str
    tip: Oid
    commits: tuple[WorkerCommit, ...]


@dataclass(frozen=True)
class Inbox:
    """All that came in since the tick before."""

    tips: tuple[Tip, ...] = ()
    crew: Mapping[str, Crew] = field(default_factory=dict)

    def able(self, capability: str) -> list[Crew]:
        """Return the healthy workers with a capability, by name."""
        return [one for _, one in sorted(self.crew.items()) if one.healthy and capability in one.capabilities]


def load(board: Board) -> dict[str, int]:
    """Return how many tasks are assigned to each worker."""
    count: dict[str, int] = {}
    for goal in board.goals.values():
        for task in goal.tasks.values():
            if task.state == "assigned" and task.worker:
                count[task.worker] = count.get(task.worker, 0) + 1
    return count
