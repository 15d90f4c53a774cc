"""``goal.yaml``: a directed acyclic graph of tasks, each naming the capability that it needs.

Example: a task ``mail`` with ``needs: [write, {task: image, optional: true}]`` runs after ``write``
is done and ``image`` is in any final state.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from gitbus.records.base import Duration, Flag, Id, Int, Json, Part, Positive, Record, Text, rule, words


class Need(Part):
    """A task that has to be final first; an optional one may be skipped or dead."""

    task: Id
    optional: Flag = False


def _need(value: Any) -> Any:
    return {"task": value} if isinstance(value, str) else value


def _need_out(need: Need) -> Any:
    return {"task": need.task, "optional": True} if need.optional else need.task


class Template(Part):
    """An item whose sender and recipients the goal's author wrote; ``${…}`` fills in the rest."""

    name: Id = "item"
    channel: Id
    from_: Text | None = Field(default=None, alias="from")
    to: tuple[Text, ...] = ()
    cc: tuple[Text, ...] = ()
    bcc: tuple[Text, ...] = ()
    reply_to: Text | None = None
    subject: Text | None = None
    headers: dict[Text, Text] = Field(default_factory=dict)
    text: Text | None = None
    html: Text | None = None
    json_: Json = Field(default=None, alias="json")
    attachments: tuple[Text, ...] = ()  # artifacts of the task, by path
    send_at: Text | None = None


class Expands(Part):
    """The bound of a planner: how many tasks its result may add, and of which capabilities."""

    max: Annotated[Positive, Field(le=500)]
    capabilities: Annotated[tuple[Id, ...], Field(min_length=1)]


class Foreach(Part):
    """One task for each element of a list."""

    in_: Text | tuple[Json, ...] = Field(alias="in")
    key: Text | None = None
    max: Annotated[Positive, Field(le=1000)] = 100


class Node(Part):
    """One task of a goal, as its author wrote it."""

    capability: Id
    needs: tuple[
        Annotated[Need, BeforeValidator(_need), PlainSerializer(_need_out, return_type=Any)], ...
    ] = ()
    title: Text | None = None
    prompt: Text | None = None
    inputs: dict[Text, Json] = Field(default_factory=dict)
    outputs: dict[Text, Json] | None = None  # JSON Schema (draft 2020-12) of the result's outputs
    channels: tuple[Id, ...] = ()
    item: Template | None = None
    max_attempts: Positive | None = None
    lease: Duration | None = None
    priority: Int = 0
    on_absent: Annotated[Literal["skip", "wait"], words("skip", "wait")] = "skip"
    expands: Expands | None = None
    foreach: Foreach | None = None
    approve: Annotated[Literal["each", "together"], words("each", "together")] = "each"

    @model_validator(mode="after")
    def _fits(self) -> Node:
        if self.approve == "together" and not self.foreach:
            raise rule("together-without-foreach", "`approve: together` needs `foreach`")
        if self.expands and (self.item or self.channels or self.foreach):
            raise rule("planner-with-items", "a task that `expands` has no `item`, `channels` or `foreach`")
        return self


class Goal(Record):
    """What the user asked for."""

    kind: Literal["Goal"] = "Goal"
    id: Id
    title: Text | None = None
    inputs: dict[Text, Json] = Field(default_factory=dict)
    tasks: Annotated[dict[Id, Node], Field(min_length=1)]
    cancelled: Text | None = None  # why, once somebody cancelled it


class PlannedNode(Part):
    """A task that a planner's result proposes; it has no item, no channels and no expansion of its own."""

    capability: Id
    needs: tuple[
        Annotated[Need, BeforeValidator(_need), PlainSerializer(_need_out, return_type=Any)], ...
    ] = ()
    title: Text | None = None
    prompt: Text | None = None
    inputs: dict[Text, Json] = Field(default_factory=dict)
    outputs: dict[Text, Json] | None = None
    priority: Int = 0
    on_absent: Annotated[Literal["skip", "wait"], words("skip", "wait")] = "skip"


__all__ = ["Expands", "Foreach", "Goal", "Need", "Node", "PlannedNode", "Template"]
