"""The records of work: Task, Result, Refusal, Report, Worker and Presence.

A Task is the conductor's word, a Result a worker's. Work may be done twice; one result counts.

Example: a task at ``attempt: 2`` whose history holds attempt 1 as ``lost`` still takes the result
of attempt 1 from the worker that had it, if that comes first.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gitbus.records.base import (
    ArtifactPath,
    Count,
    Duration,
    Flag,
    Id,
    ItemId,
    Json,
    Nonce,
    Number,
    Oid,
    Part,
    Positive,
    Record,
    Sha256,
    Text,
    Time,
    Unit,
    rule,
    words,
)
from gitbus.records.goal import PlannedNode

TaskState = Literal["ready", "assigned", "done", "dead", "skipped", "cancelled"]
Reason = Literal[
    "worker_absent",
    "needs_unmet",
    "attempts_exhausted",
    "goal_cancelled",
    "inputs_unresolved",
    "superseded",
]
EvidenceKind = Annotated[
    Literal["commit", "url", "file", "command", "quote"],
    words("commit", "url", "file", "command", "quote"),
]
Provenance = Annotated[
    Literal["FACT", "INFERENCE", "ASSUMPTION", "OPINION"],
    words("FACT", "INFERENCE", "ASSUMPTION", "OPINION"),
]


class Feedback(Part):
    """A human's words on the result before, after a ``redo``."""

    by: Text
    revision: Positive | None = None
    text: Text


class PastAttempt(Part):
    """How an attempt ended. ``lost`` leaves it open: its result may still come and win."""

    attempt: Positive
    worker: Id | None
    outcome: Literal["lost", "refused", "failed", "retry"]
    reason: Text | None = None
    at: Time


class Task(Record):
    """One released node of a goal."""

    kind: Literal["Task"] = "Task"
    goal: Id
    id: Id
    state: TaskState
    reason: Reason | None = None
    ready_at: Time
    capability: Id
    title: Text | None = None
    prompt: Text | None = None
    inputs: dict[Text, Json] = Field(default_factory=dict)
    outputs: dict[Text, Json] | None = None  # the JSON Schema for the result's outputs
    channels: tuple[Id, ...] = ()
    needs: tuple[Id, ...] = ()  # the tasks whose artifacts the worker is given
    priority: int = 0
    lease: Duration | None = None
    attempt: Positive = 1
    first_attempt: Positive = 1  # the budget counts from here; earlier attempts are closed
    worker: Id | None = None
    assigned_at: Time | None = None
    deadline: Time | None = None
    not_before: Time | None = None
    feedback: tuple[Feedback, ...] = ()
    history: tuple[PastAttempt, ...] = ()


class Evidence(Part):
    """Something that a claim rests on and that anyone can look at."""

    id: Text
    kind: EvidenceKind
    ref: Text
    note: Text | None = None


class Claim(Part):
    """One statement and where it comes from."""

    text: Text
    provenance: Provenance
    evidence: tuple[Text, ...] = ()


class Artifact(Part):
    """A file that came with a result."""

    path: ArtifactPath
    sha256: Sha256
    bytes: Count
    media_type: Text = "application/octet-stream"


class Attachment(Part):
    """An artifact that goes along, and the name that the receiver sees."""

    path: ArtifactPath
    name: Text | None = None


class ProposedMessage(Part):
    """A message whose text, HTML, JSON and attachments name artifacts of the same result."""

    from_: Text | None = Field(default=None, alias="from")
    to: tuple[Text, ...] = ()
    cc: tuple[Text, ...] = ()
    bcc: tuple[Text, ...] = ()
    reply_to: Text | None = None
    subject: Text | None = None
    headers: dict[Text, Text] = Field(default_factory=dict)
    text: ArtifactPath | None = None
    html: ArtifactPath | None = None
    json_: ArtifactPath | None = Field(default=None, alias="json")
    attachments: tuple[Attachment, ...] = ()


class ProposedItem(Part):
    """Something that a worker thinks should leave the house."""

    name: Id = "item"
    channel: Id
    confidence: Unit | None = None
    message: ProposedMessage
    send_at: Time | None = None


class Failure(Part):
    """Why an attempt failed."""

    message: Text
    detail: Text | None = None


MOST = 10**15
"""What a usage counts at the most, so that sums stay numbers that every reader can bear."""


class Usage(Part):
    """What an attempt cost, as far as the worker knows."""

    model: Text | None = None
    tokens_in: Annotated[Count, Field(le=MOST)] | None = None
    tokens_out: Annotated[Count, Field(le=MOST)] | None = None
    cost_usd: Annotated[Number, Field(le=MOST)] | None = None


class Result(Record):
    """What a worker answers to one attempt."""

    kind: Literal["Result"] = "Result"
    goal: Id
    task: Id
    attempt: Positive
    worker: Id
    status: Annotated[Literal["ok", "failed", "retry"], words("ok", "failed", "retry")]
    confidence: Unit | None = None
    outputs: dict[Text, Json] = Field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    claims: tuple[Claim, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    items: tuple[ProposedItem, ...] = ()
    tasks: dict[Id, PlannedNode] | None = None  # of a planner
    error: Failure | None = None
    after: Duration | None = None  # with `retry`: not before this has passed
    started_at: Time | None = None
    finished_at: Time | None = None
    usage: Usage | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Result:
        if self.status == "failed" and self.error is None:
            raise rule("failed-without-error", "`status: failed` needs `error: {message: …}`", at=("status",))
        known: set[str] = set()
        for index, one in enumerate(self.evidence):
            if one.id in known:
                raise rule(
                    "evidence-twice", f"the evidence id {one.id!r} is defined twice", at=("evidence", index)
                )
            known.add(one.id)
        for index, claim in enumerate(self.claims):
            self._claim_stands(claim, ("claims", index), known)
        self._artifacts_apart()
        return self

    @staticmethod
    def _claim_stands(claim: Claim, at: tuple[str | int, ...], known: Set[str]) -> None:
        if claim.provenance == "FACT" and not claim.evidence:
            raise rule(
                "fact-without-evidence",
                f"the FACT {claim.text[:60]!r} names no evidence",
                "name the evidence, or say INFERENCE, ASSUMPTION or OPINION",
                at,
            )
        for index, name in enumerate(claim.evidence):
            if name not in known:
                why = f"the evidence id {name!r} is not defined in this result"
                raise rule("evidence-undefined", why, at=(*at, "evidence", index))

    def _artifacts_apart(self) -> None:
        seen: dict[str, str] = {}
        for index, artifact in enumerate(self.artifacts):
            other = seen.setdefault(artifact.path.lower(), artifact.path)
            if other is not artifact.path:
                why = f"{artifact.path!r} and {other!r} are one file on some systems"
                raise rule("path-collision", why, at=("artifacts", index))


class Refusal(Record):
    """A result, or a worker's whole branch, that did not pass."""

    kind: Literal["Refusal"] = "Refusal"
    goal: Id | None = None
    task: Id | None = None
    attempt: Positive | None = None
    worker: Id
    tip: Oid  # the commit that was refused
    rule: Text
    place: Text
    message: Text
    raw: Text | None = None
    truncated: Flag = False
    at: Time


class ReportedTask(Part):
    """How a task ended."""

    id: Id
    state: Literal["done", "dead", "skipped", "cancelled"]
    reason: Text | None = None
    worker: Id | None = None
    attempts: Count = 0
    capability: Id | None = None


class ReportedItem(Part):
    """An item of the goal, as it stood when the goal settled."""

    id: ItemId
    state: Text


class Report(Record):
    """Written when a goal settles."""

    kind: Literal["Report"] = "Report"
    goal: Id
    state: Literal["done", "partial", "failed", "cancelled"]
    settled_at: Time
    tasks: tuple[ReportedTask, ...] = ()
    outputs: dict[Id, Json] = Field(default_factory=dict)  # of the leaf tasks that are done
    missing: tuple[Id, ...] = ()
    items: tuple[ReportedItem, ...] = ()
    usage: Usage | None = None


class Worker(Record):
    """A declared worker: where it runs and what it can do."""

    kind: Literal["Worker"] = "Worker"
    id: Id
    capabilities: Annotated[tuple[Id, ...], Field(min_length=1)]
    capacity: Annotated[Positive, Field(le=1000)] = 1
    run: Text | tuple[Text, ...] | None = None
    as_: Text | None = Field(default=None, alias="as")
    env: tuple[Text, ...] = ()
    host: Text | None = None
    ci: Flag = False


class Presence(Record):
    """A worker's sign of life, alone on its own ref."""

    kind: Literal["Presence"] = "Presence"
    worker: Id
    capabilities: Annotated[tuple[Id, ...], Field(min_length=1)]
    capacity: Annotated[Positive, Field(le=1000)] = 1
    host: Text | None = None
    version: Text | None = None
    nonce: Nonce
    announced_at: Time
    once: Flag = False
    gone: Flag = False
