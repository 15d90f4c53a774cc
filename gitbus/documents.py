"""What ``--json`` prints, as frozen values: one document a command, its JSON Schema published.

Rules: a document is built by the command that prints it and by nothing else, so that what is printed
and ``gitbus schema KIND`` are made from one class. Every field is always there, null where there is
nothing to say; only a list that says so is left out while it is empty.

Example: ``Missing(capabilities=(Wanted(capability="draw", tasks=("release/image",)),))``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gitbus.records import KINDS, Item, Receipt, Task
from gitbus.records.base import Part, Record
from gitbus.records.work import Claim, Evidence

GoalState = Literal["running", "done", "partial", "failed", "cancelled", "broken"]
TaskState = Literal["unreleased", "ready", "assigned", "done", "dead", "skipped", "cancelled"]
ItemState = Literal[
    "persisted",
    "scored",
    "in_review",
    "awaiting_approval",
    "approved",
    "sending",
    "sent",
    "stuck",
    "failed",
    "rejected",
    "withdrawn",
    "expired",
    "broken",
]
"""An item's state; ``broken`` where its record cannot be read."""


class Document(Record):
    """One JSON document, as ``--json`` prints it."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self.model_dump(mode="json", by_alias=True)


# --- status


class Problem(Part):
    """Something that somebody has to mend."""

    path: str  # a file on the bus, or a branch
    line: int  # from 1; 0 where there is none
    message: str
    remedy: str | None


class StatusTask(Part):
    """A task of a goal, also one that did not begin yet."""

    id: str
    state: TaskState
    attempt: int | None
    worker: str | None
    capability: str | None
    reason: str | None


class StatusGoal(Part):
    """A goal and its tasks."""

    id: str
    state: GoalState
    tasks: tuple[StatusTask, ...]


class StatusItem(Part):
    """An outbound thing; the fields of its record are null where that cannot be read."""

    id: str
    state: ItemState
    channel: str | None
    confidence: float | None
    digest: str | None
    attempt: int | None
    revision: int | None


class StatusWorker(Part):
    """A worker that is declared as run by CI, or has shown a sign of life."""

    id: str
    healthy: bool
    capabilities: tuple[str, ...]
    capacity: int
    assigned: int


class Status(Document):
    """``gitbus status``: what is going on."""

    kind: Literal["Status"] = "Status"
    main: str  # the commit that was looked at
    sending: bool
    goals: tuple[StatusGoal, ...]
    items: tuple[StatusItem, ...]
    workers: tuple[StatusWorker, ...]
    missing: tuple[str, ...]
    problems: tuple[Problem, ...] = Field(default=(), exclude_if=lambda found: not found)


class Workers(Document):
    """``gitbus worker list``."""

    kind: Literal["Workers"] = "Workers"
    workers: tuple[StatusWorker, ...]


# --- what is missing, and what is dead


class Wanted(Part):
    """A capability that tasks were skipped for."""

    capability: str
    tasks: tuple[str, ...]  # goal/task


class Missing(Document):
    """``gitbus missing``: the workers to build."""

    kind: Literal["Missing"] = "Missing"
    capabilities: tuple[Wanted, ...]


class DeadAttempt(Part):
    """How an attempt ended; of a refused one the rule that it broke, and what the worker wrote."""

    attempt: int
    worker: str | None
    outcome: Literal["lost", "refused", "failed", "retry"]
    rule: str | None
    message: str | None
    place: str | None
    raw: str | None


class DeadTask(Part):
    """A task that nobody tries any more."""

    goal: str
    task: str
    reason: str | None
    attempts: tuple[DeadAttempt, ...]


class Dead(Document):
    """``gitbus dead``: the dead letters."""

    kind: Literal["Dead"] = "Dead"
    tasks: tuple[DeadTask, ...]


# --- goals and tasks


class ListedGoal(Part):
    """A goal and how far it is."""

    id: str
    state: GoalState
    title: str | None


class Goals(Document):
    """``gitbus goal list``."""

    kind: Literal["Goals"] = "Goals"
    goals: tuple[ListedGoal, ...]


class Next(Document):
    """``gitbus task next``: the first task that is assigned to a worker; null where there is none."""

    kind: Literal["Next"] = "Next"
    task: Task | None


# --- items


class WaitingItem(Part):
    """An item that waits for a human."""

    id: str
    state: ItemState


class Waiting(Document):
    """``gitbus review``: what waits for a human."""

    kind: Literal["Waiting"] = "Waiting"
    items: tuple[WaitingItem, ...]


class Preview(Document):
    """``gitbus review ITEM``: what would leave the house, and why."""

    kind: Literal["Preview"] = "Preview"
    item: Item
    payload: dict[str, str]  # the texts by path; attachments stand in the item
    reviews: dict[str, Literal["ok", "no"]]  # by person
    claims: tuple[Claim, ...]
    evidence: tuple[Evidence, ...]


class StuckItem(Part):
    """An item of which nobody knows whether it was sent."""

    id: str
    attempt: int | None
    reason: str | None


class Stuck(Document):
    """``gitbus stuck``."""

    kind: Literal["Stuck"] = "Stuck"
    items: tuple[StuckItem, ...]


class SentItem(Part):
    """What a round of the sender did with one item; ``would-send`` in a dry run."""

    id: str
    outcome: Literal["sent", "later", "failed", "stuck", "refused", "would-send"]
    reason: str | None
    receipt: str | None  # its path on the bus


class Sent(Document):
    """``gitbus send``."""

    kind: Literal["Sent"] = "Sent"
    items: tuple[SentItem, ...]


class Receipts(Document):
    """``gitbus receipt ITEM``: one receipt for each attempt, the oldest first."""

    kind: Literal["Receipts"] = "Receipts"
    receipts: tuple[Receipt, ...]


# --- history


class LoggedCommit(Part):
    """A commit on the bus's line."""

    commit: str
    at: str
    by: str
    subject: str


class Log(Document):
    """``gitbus log``: the newest first."""

    kind: Literal["Log"] = "Log"
    commits: tuple[LoggedCommit, ...]


class AuditApprovals(Part):
    """How many approvals anybody can prove, and how many a forge told of."""

    proved: int
    recorded: int


class AuditOpen(Part):
    """Something that waits for a human; no finding."""

    subject: str
    state: str
    since: str


class AuditFinding(Part):
    """Something that the history should not hold."""

    rule: str
    subject: str
    commit: str
    message: str


class Audit(Document):
    """``gitbus audit``."""

    kind: Literal["Audit"] = "Audit"
    ok: bool
    commits: int
    sent: int
    approvals: AuditApprovals
    open: tuple[AuditOpen, ...]
    findings: tuple[AuditFinding, ...]


# --- people and machines


class ListedPerson(Part):
    """A person of the bus."""

    id: str
    email: str
    roles: tuple[str, ...]
    keys: int  # how many


class People(Document):
    """``gitbus person list``."""

    kind: Literal["People"] = "People"
    people: tuple[ListedPerson, ...]


class Looked(Part):
    """One thing that the doctor looked at."""

    level: Literal["ok", "warning", "problem"]
    what: str
    remedy: str | None


class Thief(Part):
    """What somebody could do who got hold of a kind of token, and what he could not."""

    token: str
    could: tuple[str, ...]
    could_not: tuple[str, ...]


class Doctor(Document):
    """``gitbus doctor``: ``ok`` where nothing is a problem; ``thieves`` where GitHub was asked."""

    kind: Literal["Doctor"] = "Doctor"
    ok: bool
    looked: tuple[Looked, ...]
    thieves: tuple[Thief, ...] | None


class Notice(Document):
    """What a command of ``notify`` gets on stdin."""

    kind: Literal["Notice"] = "Notice"
    on: Literal["in_review", "awaiting_approval", "stuck", "failed", "dead", "expiring"]
    subject: str  # an item, or goal/task
    bus: str


DOCUMENTS: dict[str, type[Document]] = {
    kind.model_fields["kind"].default: kind
    for kind in (
        Status,
        Workers,
        Missing,
        Dead,
        Goals,
        Next,
        Waiting,
        Preview,
        Stuck,
        Sent,
        Receipts,
        Log,
        Audit,
        People,
        Doctor,
        Notice,
    )
}
"""Every document by its ``kind``."""


def json_schema(kind: str) -> dict[str, Any] | None:
    """Return the JSON Schema of a record as it may be written, or of a document as it is printed.

    Args:
        kind: without regard to case.
    """
    names = {name.lower(): name for name in (*KINDS, *DOCUMENTS)}
    name = names.get(kind.lower())
    if name is None:
        return None
    if name in KINDS:
        made = KINDS[name].model_json_schema(by_alias=True)
    else:
        made = DOCUMENTS[name].model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
