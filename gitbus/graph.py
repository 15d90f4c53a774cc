"""A goal's tasks as they really are: what its author wrote, what planners added, what loops made.

Nothing of this is stored. The graph is derived from the goal and the results that were taken, so
it is the same for everybody who looks.

Example: with ``foreach`` over two customers, the node ``mail`` stands for the tasks ``mail-ada`` and
``mail-bob``; who needs ``mail`` waits for both and gets the list of their outputs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gitbus import ids
from gitbus.board import Board, GoalBoard
from gitbus.expressions import Unresolved, resolve
from gitbus.records import Goal, Item, Need, Node, Result, Task
from gitbus.states import TASK_FINAL

NOT_STARTED = "unreleased"


@dataclass(frozen=True)
class Planned:
    """One task: its node, under which names it knows its siblings, and which element it is for."""

    id: str
    node: Node
    needs: tuple[Need, ...]
    group: str | None = None  # the foreach node that it is one of
    each: Any = None
    aliases: Mapping[str, str] = field(default_factory=dict)  # a planner's local names

    @property
    def scoring(self) -> bool:
        """Whether it only scores an item."""
        return self.node.outputs == SCORE_SCHEMA


@dataclass(frozen=True)
class Graph:
    """The tasks of one goal with their states.

    ``groups`` names the tasks of every foreach node whose list is known, and ``loops`` holds those
    nodes themselves, whose list may be empty; ``broken`` says why a foreach node has none.
    """

    goal: Goal
    tasks: Mapping[str, Planned]
    groups: Mapping[str, tuple[str, ...]]
    broken: Mapping[str, str]
    states: Mapping[str, str]
    results: Mapping[str, Result]
    loops: Mapping[str, Planned] = field(default_factory=dict)

    def after(self, result: Result) -> Graph:
        """Return the graph once a result was taken that leaves the goal's shape as it is."""
        states = {**self.states, result.task: "done"}
        results = {**self.results, result.task: result}
        return replace(self, states=states, results=results)

    @cached_property
    def needed(self) -> frozenset[str]:
        """The tasks that another task needs; one that only scores an item does not count."""
        return frozenset(
            name
            for one in self.tasks.values()
            if not one.scoring
            for need in one.needs
            for name in self.members(need.task)
        )

    def leaves(self) -> tuple[str, ...]:
        """The tasks that no other needs; those that only score an item are none."""
        return tuple(name for name, one in self.tasks.items() if name not in self.needed and not one.scoring)

    def members(self, name: str) -> tuple[str, ...]:
        """Return the tasks that a name in ``needs`` stands for: itself, or a loop's."""
        return self.groups.get(name, (name,))

    def state(self, name: str) -> str:
        """Return a task's state, ``unreleased`` before it has one; a loop's is its members' together."""
        if name not in self.groups:
            return self.states.get(name, NOT_STARTED)
        states = {self.state(member) for member in self.groups[name]}
        if states <= {"done"}:
            return "done"
        if not states <= TASK_FINAL:
            return NOT_STARTED
        return next(state for state in ("cancelled", "dead", "skipped") if state in states)

    def standing(self, planned: Planned) -> str:
        """Say whether a task's needs are ``met``, ``unmet`` for good, or still ``pending``."""
        states = [(need.optional, self.state(need.task)) for need in planned.needs]
        if any(not optional and state in ("dead", "skipped", "cancelled") for optional, state in states):
            return "unmet"
        met = all(state == "done" or (optional and state in TASK_FINAL) for optional, state in states)
        return "met" if met else "pending"

    def scope(self, planned: Planned) -> dict[str, Any]:
        """Return what a task's references can see: the goal, its element, and what it needs."""
        scope: dict[str, Any] = {"goal": {"id": self.goal.id, "inputs": self.goal.inputs}}
        for name in self.ancestors(planned.needs):
            scope[name] = self._outputs(name)
        for local, name in planned.aliases.items():
            if name in scope:
                scope[local] = scope[name]
        if planned.group is not None:
            scope["each"] = planned.each
        return scope

    def _outputs(self, name: str) -> dict[str, Any] | None:
        if name in self.groups:
            return {"outputs": [(self._outputs(member) or {}).get("outputs") for member in self.groups[name]]}
        if self.states.get(name) != "done" or name not in self.results:
            return None
        return {"outputs": self.results[name].outputs}

    def ancestors(self, needs: Iterable[Need]) -> tuple[str, ...]:
        """Return the tasks (and loops) that these needs reach, directly or through others."""
        seen: dict[str, None] = {}
        queue = [need.task for need in needs]
        while queue:
            name = queue.pop()
            if name in seen:
                continue
            seen[name] = None
            for member in {name, *self.members(name)}:
                known = self.tasks.get(member) or self.loops.get(member)
                queue += [need.task for need in known.needs] if known else []
        return tuple(seen)

    def descendants(self, name: str) -> tuple[str, ...]:
        """Return the tasks that need this one, directly or through others."""
        found: dict[str, None] = {}
        frontier = {name}
        everything = {**self.tasks, **self.loops}
        while frontier:
            nearer = {
                one.id
                for one in everything.values()
                if one.id not in found
                and any(frontier & {need.task, *self.members(need.task)} for need in one.needs)
            }
            found.update(dict.fromkeys(sorted(nearer)))
            frontier = nearer
        return tuple(one for one in found if one not in self.loops)


BUILT_IN_SCORERS = frozenset({"evidence"})
"""Scorers that need no worker."""


def of(
    board: Board,
    part: GoalBoard,
    tasks: Mapping[str, Task] | None = None,
    results: Mapping[str, Result] | None = None,
) -> Graph:
    """Return the graph of a goal on the board, with the scores that its items wait for.

    Args:
        board: the board.
        part: the goal's part of it, loaded.
        tasks: its tasks, where they are further than on the board.
        results: its results, likewise.

    Raises:
        ValueError: the goal is not loaded.
    """
    if part.goal is None:
        raise ValueError(f"goal {part.id} is not loaded")
    scorers = [name for name in board.bus.score.scorers if name not in BUILT_IN_SCORERS]
    items = (
        [one.item for name, one in sorted(board.items.items()) if one.item and name.startswith(part.id + ".")]
        if scorers
        else []
    )
    goal = with_scoring(part.goal, items, scorers)
    return build(goal, part.tasks if tasks is None else tasks, part.results if results is None else results)


def scores_wanted(board: Board) -> Iterator[tuple[str, str]]:
    """Yield (item, capability) for every score that a persisted item needs from a worker."""
    scorers = [name for name in board.bus.score.scorers if name not in BUILT_IN_SCORERS]
    if scorers:
        for name, part in sorted(board.items.items()):
            if part.item is not None and not part.problems and part.item.state == "persisted":
                yield from ((name, scorer) for scorer in scorers)


def scoring_task(item: Item, scorer: str) -> str:
    """Return the id of the task in which a worker with the capability ``scorer`` scores an item's revision."""
    mark = ids.sha256(f"{item.id} {item.revision} {scorer}".encode())[:8]
    return f"{scorer[:39]}-{mark}"


def with_scoring(goal: Goal, items: Iterable[Item], scorers: Iterable[str]) -> Goal:
    """Return the goal with a task for every score that a worker has to give to one of its items."""
    wanted = [(item, scorer) for item in items for scorer in scorers]
    if not wanted:
        return goal
    more = {
        scoring_task(item, scorer): Node(
            capability=scorer,
            title=f"score {item.id}, revision {item.revision}",
            inputs={"item": _literal(item.model_dump(mode="json", by_alias=True))},
            needs=(Need(task=item.source.task, optional=True),) if item.source.task in goal.tasks else (),
            outputs=SCORE_SCHEMA,
        )
        for item, scorer in wanted
    }
    return goal.model_copy(update={"tasks": {**goal.tasks, **more}})


SCORE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
}


def _literal(value: Any) -> Any:
    """Return a JSON value in which nothing is a reference any more."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {key: _literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_literal(inner) for inner in value]
    return value


def build(goal: Goal, tasks: Mapping[str, Task], results: Mapping[str, Result]) -> Graph:
    """Derive the graph of a goal from what was asked and what was answered."""
    shape = _shape(goal)
    nodes, states = shape.nodes, {name: task.state for name, task in tasks.items()}
    if not shape.grows:
        return Graph(goal, nodes, {}, {}, states, results)
    added = {name: _expansion(name, results) for name, node in goal.tasks.items() if node.expands}
    for name, more in added.items():
        nodes.update(more)
        nodes = {other: _waits_for(one, name, tuple(more)) for other, one in nodes.items()}
    graph = Graph(goal, nodes, {}, {}, states, results)
    for name in [name for name, one in nodes.items() if one.node.foreach]:
        graph = _unrolled(graph, name)
    return graph


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a goal's own text says of its graph."""

    goal: Goal
    nodes: dict[str, Planned]
    grows: bool  # whether there is a planner or a loop


_SHAPES: OrderedDict[int, _Shape] = OrderedDict()
"""By the identity of the goal, which each holds so that no other can get it; goals never change."""

_MOST = 64


def grows(goal: Goal) -> bool:
    """Say whether results may add tasks to a goal: it has a planner or a loop."""
    return _shape(goal).grows


def _shape(goal: Goal) -> _Shape:
    """Return a goal's shape, made once for as long as the goal is in use."""
    found = _SHAPES.pop(id(goal), None)
    if found is None:
        nodes = {name: Planned(name, node, node.needs) for name, node in goal.tasks.items()}
        found = _Shape(goal, nodes, any(node.expands or node.foreach for node in goal.tasks.values()))
    _SHAPES[id(goal)] = found
    if len(_SHAPES) > _MOST:
        _SHAPES.popitem(last=False)
    return found


def _expansion(name: str, results: Mapping[str, Result]) -> dict[str, Planned]:
    """Return the tasks that a planner's result added, by their full names."""
    result = results.get(name)
    if result is None or not result.tasks:
        return {}
    aliases = {local: f"{name}-{local}" for local in result.tasks}
    more = {}
    for local, planned in result.tasks.items():
        needs = (
            Need(task=name),
            *(need.model_copy(update={"task": aliases.get(need.task, need.task)}) for need in planned.needs),
        )
        more[aliases[local]] = Planned(
            aliases[local],
            Node(**{**planned.model_dump(exclude={"needs"}), "needs": needs}),
            needs,
            aliases=aliases,
        )
    return more


def _waits_for(planned: Planned, planner: str, more: tuple[str, ...]) -> Planned:
    """Let what needs a planner wait for the planner's tasks as well."""
    if planned.id in more:
        return planned
    need = next((need for need in planned.needs if need.task == planner), None)
    if need is None or not more:
        return planned
    extra = tuple(Need(task=name, optional=need.optional) for name in more)
    return Planned(
        planned.id, planned.node, (*planned.needs, *extra), planned.group, planned.each, planned.aliases
    )


def _unrolled(graph: Graph, name: str) -> Graph:
    """Replace a foreach node by its tasks, as soon as its list is known."""
    planned = graph.tasks[name]
    if graph.standing(planned) != "met":
        return graph
    try:
        members = dict(_members(graph, planned))
    except Unresolved as error:
        return replace(graph, broken={**graph.broken, name: str(error)})
    tasks = {other: one for other, one in graph.tasks.items() if other != name}
    tasks.update(members)
    groups = {**graph.groups, name: tuple(members)}
    return replace(graph, tasks=tasks, groups=groups, loops={**graph.loops, name: planned})


def _members(graph: Graph, planned: Planned) -> Iterator[tuple[str, Planned]]:
    loop = planned.node.foreach
    if loop is None:
        return
    scope = graph.scope(planned)
    elements = resolve(loop.in_, scope)
    if not isinstance(elements, (list, tuple)):
        raise Unresolved(f"foreach.in of {planned.id} gave no list")
    if len(elements) > loop.max:
        raise Unresolved(
            f"foreach.in of {planned.id} has {len(elements)} elements, more than max: {loop.max}"
        )
    seen = set(graph.tasks)
    for index, element in enumerate(elements):
        key = str(index) if loop.key is None else _key(resolve(loop.key, {**scope, "each": element}), index)
        member = f"{planned.id}-{key}"
        why = ids.why_not_id(member)
        if why or member in seen:
            raise Unresolved(
                f"foreach.key of {planned.id}: element {index} gives {key!r}: {why or 'it stands there twice'}"
            )
        seen.add(member)
        yield member, Planned(member, planned.node, planned.needs, planned.id, element)


def _key(value: Any, index: int) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Unresolved(f"foreach.key gives no text for element {index}")
    return str(value)
