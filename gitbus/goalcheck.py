"""Whether a goal makes sense before anything runs: cycles, names, references, schemas, channels.

A check yields issues with their place in the goal; nothing is raised, so that a person sees all
of them at once. A planner's tasks are checked by the same code.

Example: ``list(check(goal, bus, taken={"old"}))`` is empty for a goal that may be added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from gitbus import ids, schema
from gitbus.expressions import Reference, Unresolved, references
from gitbus.records import Bus, Goal, Node, PlannedNode, Template

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Issue:
    """Something that a goal gets wrong: its place in the record, the rule, and what would help."""

    place: Place
    rule: str
    message: str
    remedy: str = ""


def check(goal: Goal, bus: Bus, taken: Collection[str]) -> Iterator[Issue]:
    """Yield everything that keeps the goal from being added.

    Args:
        goal: the goal.
        bus: the effective Bus.
        taken: ids of goals that exist or existed.
    """
    if goal.id in taken:
        yield Issue(
            ("id",), "id-taken", f"there is or was a goal {goal.id}", "an id is used once; choose another"
        )
    yield from _needs(goal.tasks, ("tasks",), goal.tasks)
    reach = _reach(goal.tasks)
    for name, node in goal.tasks.items():
        place = ("tasks", name)
        yield from _references(goal, name, node, place, reach[name])
        yield from _schema(node.outputs, (*place, "outputs"))
        yield from _channels(node, place, bus)


def check_plan(
    goal: Goal, planner: str, tasks: Mapping[str, PlannedNode], names: Collection[str]
) -> Iterator[Issue]:
    """Yield what is wrong with the tasks that a planner's result adds.

    Args:
        goal: the goal that they are added to.
        planner: the task whose result proposes them.
        tasks: the proposed tasks by their local ids.
        names: the ids of all tasks that the goal has already.
    """
    node = goal.tasks.get(planner)
    bound = node.expands if node else None
    if bound is None:
        yield Issue(
            ("tasks",), "not-a-planner", f"{planner} may not add tasks", "give it `expands` in the goal"
        )
        return
    if len(tasks) > bound.max:
        yield Issue(
            ("tasks",), "too-many-tasks", f"{len(tasks)} tasks are more than expands.max: {bound.max}"
        )
    reach_of_planner = _reach(goal.tasks).get(planner, frozenset()) | {planner}
    known = {*tasks, *reach_of_planner}
    yield from _needs(tasks, ("tasks",), known)
    reach = _reach(tasks)
    for local, planned in tasks.items():
        place = ("tasks", local)
        full = f"{planner}-{local}"
        if why := ids.why_not_id(full):
            yield Issue(place, "bad-id", f"{full}: {why}")
        if full in names:
            yield Issue(place, "id-taken", f"the goal has a task {full} already")
        if planned.capability not in bound.capabilities:
            yield Issue(
                (*place, "capability"),
                "capability-not-allowed",
                f"{planner} may not ask for the capability {planned.capability}",
                "expands.capabilities lists those it may",
            )
        yield from _seen(
            goal, planned.inputs, (*place, "inputs"), reach[local] | reach_of_planner, each=False
        )
        yield from _schema(planned.outputs, (*place, "outputs"))


def _needs(
    tasks: Mapping[str, Node] | Mapping[str, PlannedNode], place: Place, known: Collection[str]
) -> Iterator[Issue]:
    for name, node in tasks.items():
        seen = set()
        for index, need in enumerate(node.needs):
            where = (*place, name, "needs", index)
            if need.task not in known:
                yield Issue(where, "unknown-need", f"{name} needs {need.task}, and there is no such task")
            if need.task in seen:
                yield Issue(where, "twice", f"{name} names {need.task} twice")
            seen.add(need.task)
    if cycle := _cycle({name: [need.task for need in node.needs] for name, node in tasks.items()}):
        yield Issue(
            (*place, cycle[0], "needs"),
            "cycle",
            "the tasks need each other in a circle: " + " → ".join(cycle),
        )


def _cycle(needs: Mapping[str, list[str]]) -> list[str] | None:
    """Return one cycle, its first task again at the end; None where there is none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return None


def _reach(tasks: Mapping[str, Node] | Mapping[str, PlannedNode]) -> dict[str, frozenset[str]]:
    """Return for each task the tasks that it needs, directly or through others."""
    reach: dict[str, frozenset[str]] = {}
    for name in tasks:
        seen: set[str] = set()
        queue = [need.task for need in tasks[name].needs]
        while queue:
            other = queue.pop()
            if other not in seen:
                seen.add(other)
                queue += [need.task for need in tasks[other].needs] if other in tasks else []
        reach[name] = frozenset(seen)
    return reach


def _references(goal: Goal, name: str, node: Node, place: Place, reach: frozenset[str]) -> Iterator[Issue]:
    loop = node.foreach is not None
    yield from _seen(goal, node.inputs, (*place, "inputs"), reach, each=loop)
    if node.foreach:
        yield from _seen(goal, node.foreach.in_, (*place, "foreach", "in"), reach, each=False)
        yield from _seen(goal, node.foreach.key, (*place, "foreach", "key"), reach, each=True)
    if node.item:
        template = node.item.model_dump(mode="json", by_alias=True, exclude_none=True)
        yield from _seen(goal, template, (*place, "item"), reach | {name}, each=loop)


def _seen(goal: Goal, value: Any, place: Place, reach: frozenset[str], *, each: bool) -> Iterator[Issue]:
    try:
        found = list(references(value, place))
    except Unresolved as error:
        yield Issue(place, "bad-reference", str(error))
        return
    for where, reference in found:
        if why := _why_not(goal, reference, reach, each=each):
            yield Issue(where, "unknown-reference", f"${{{reference.text}}}: {why}")


def _why_not(goal: Goal, reference: Reference, reach: frozenset[str], *, each: bool) -> str | None:
    if reference.root == "each":
        return None if each else "each is known in a task with foreach only"
    if reference.root == "goal":
        if reference.steps == ("id",):
            return None
        if len(reference.steps) >= 2 and reference.steps[0] == "inputs":
            return (
                None
                if str(reference.steps[1]) in goal.inputs
                else f"the goal has no input {reference.steps[1]}"
            )
        return "of the goal, id and inputs.NAME can be had"
    if reference.root not in reach:
        return f"{reference.root} is not among the tasks that this one needs"
    if reference.steps[:1] != ("outputs",):
        return "of a task, its outputs can be had"
    return None


def _schema(outputs: Mapping[str, Any] | None, place: Place) -> Iterator[Issue]:
    if outputs is not None and (why := schema.check(outputs)):
        yield Issue(place, "bad-schema", f"this is no JSON Schema: {why}")


def _channels(node: Node, place: Place, bus: Bus) -> Iterator[Issue]:
    for index, channel in enumerate(node.channels):
        if channel not in bus.channels:
            yield Issue((*place, "channels", index), "unknown-channel", f"bus.yaml has no channel {channel}")
    if node.item:
        yield from _template(node.item, (*place, "item"), bus)


def _template(template: Template, place: Place, bus: Bus) -> Iterator[Issue]:
    channel = bus.channels.get(template.channel)
    if channel is None:
        yield Issue((*place, "channel"), "unknown-channel", f"bus.yaml has no channel {template.channel}")
        return
    if channel.recipients is not None:
        return
    for field, values in _addresses(template):
        if any("${" in value for value in values):
            yield Issue(
                (*place, field),
                "recipient-from-outside",
                f"`{field}` would be chosen by a task's output",
                f"write the address itself, or give the channel {template.channel} an allow-list `recipients`",
            )


def _addresses(template: Template) -> Iterable[tuple[str, tuple[str, ...]]]:
    return (
        ("from", (template.from_ or "",)),
        ("to", template.to),
        ("cc", template.cc),
        ("bcc", template.bcc),
        ("reply_to", (template.reply_to or "",)),
    )
