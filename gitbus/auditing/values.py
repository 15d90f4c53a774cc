"""What an audit says: findings, what waits for a human, and the part of history that was asked for.

Example: ``Audited(12, (), (), sent=1, proved=1, recorded=0).ok``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta

from gitbus import documents
from gitbus.errors import Misuse
from gitbus.history import History, Oid


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the history should not hold."""

    rule: str
    subject: str
    commit: Oid
    message: str


@dataclass(frozen=True, slots=True)
class Open:
    """Something that waits for a human; no finding."""

    subject: str
    state: str
    since: str


@dataclass(frozen=True)
class Audited:
    """What an audit found.

    ``proved`` are approvals that anybody can prove from signatures; ``recorded`` those that a forge
    told of, now or in what a receipt froze.
    """

    commits: int
    findings: tuple[Finding, ...]
    open: tuple[Open, ...]
    sent: int
    proved: int
    recorded: int

    @property
    def ok(self) -> bool:
        """Whether there is no finding."""
        return not self.findings

    def document(self) -> documents.Audit:
        """Return the ``Audit`` document."""
        return documents.Audit(
            ok=self.ok,
            commits=self.commits,
            sent=self.sent,
            approvals=documents.AuditApprovals(proved=self.proved, recorded=self.recorded),
            open=tuple(documents.AuditOpen(**asdict(one)) for one in self.open),
            findings=tuple(documents.AuditFinding(**asdict(one)) for one in self.findings),
        )


@dataclass(frozen=True)
class Window:
    """Which findings are reported; the whole history is proved all the same."""

    since: Oid | None = None
    first: datetime | None = None
    last: datetime | None = None

    @classmethod
    def of(cls, since: str | None, first: str | None, last: str | None) -> Window:
        """Parse a commit and two days.

        Raises:
            Misuse: one of the days is none.
        """
        try:
            start = datetime.combine(datetime.fromisoformat(first).date(), time(), UTC) if first else None
            end = (
                datetime.combine(datetime.fromisoformat(last).date(), time(), UTC) + timedelta(days=1)
                if last
                else None
            )
        except ValueError:
            raise Misuse("a day reads like 2026-11-30", rule="usage") from None
        return cls(since, start, end)

    def holds(self, history: History, oid: Oid) -> bool:
        """Say whether findings of a commit are reported."""
        if self.since is not None and history.is_ancestor(oid, self.since):
            return False
        when = history.commit(oid).committer.when
        return not (self.first and when < self.first) and not (self.last and when >= self.last)
