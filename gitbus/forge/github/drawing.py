"""A goal's tasks and what they put up, as Mermaid for a page on GitHub.

Rules: a node is numbered and shows ids and states only, which no text from outside can be; a loop of
many tasks is one node with counts; what GitHub would not draw is left out for what the items rest on.

Example: ``drawing(board, board.goals["a"], ["a.mail.item"])`` has ``n0["mail<br/>done"] --> i0``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gitbus import graph, ids, mermaid
from gitbus.board import Board, GoalBoard

FEW = 4
"""Tasks of a loop, and items, that are drawn one by one."""

MOST_NODES = 60
MOST_ARROWS = 200
"""GitHub draws no graph of more than 500 arrows or 50,000 characters; nobody reads one of half that."""

_FIRST = ("assigned", "ready", graph.NOT_STARTED, "dead", "skipped", "cancelled", "done")
"""Which of its tasks' states gives a loop its colour."""

_ITEM = "fill:#fff,stroke:#57606a,stroke-width:2px"


@dataclass(frozen=True)
class _Drawn:
    """Node → the tasks that it stands for, and arrows between nodes → whether they are optional."""

    nodes: Mapping[str, tuple[str, ...]]
    arrows: Mapping[tuple[str, str], bool]

    def only(self, kept: Collection[str]) -> _Drawn:
        nodes = {name: tasks for name, tasks in self.nodes.items() if name in kept}
        return _Drawn(nodes, {pair: how for pair, how in self.arrows.items() if set(pair) <= set(nodes)})

    @property
    def is_small(self) -> bool:
        return len(self.nodes) <= MOST_NODES and len(self.arrows) <= MOST_ARROWS


def drawing(board: Board, part: GoalBoard, items: Collection[str]) -> str | None:
    """Return the Mermaid block of a goal with the items that a page is about; None where it is not loaded.

    A graph that is too large for a picture is told in one sentence.
    """
    if part.goal is None or not part.open:
        return None
    whole = graph.of(board, part)
    drawn = _folded(whole)
    sources = {item: _node_of(drawn, ids.split_item(item)) for item in items}
    if not drawn.is_small:
        drawn = drawn.only(_behind(drawn, set(sources.values())))
    if not drawn.is_small:
        return f"{len(whole.tasks)} tasks: {_counts(whole, tuple(whole.tasks))}."
    return "\n".join(["```mermaid", *_lines(board, whole, drawn, sources), "```"])


def _folded(whole: graph.Graph) -> _Drawn:
    """Return the graph with every large loop as one node."""
    loops = {task: name for name, members in whole.groups.items() if len(members) > FEW for task in members}
    nodes: dict[str, tuple[str, ...]] = {}
    arrows: dict[tuple[str, str], bool] = {}
    for one in whole.tasks.values():
        name = loops.get(one.id, one.id)
        nodes[name] = (*nodes.get(name, ()), one.id)
        for need in one.needs:
            for source in whole.members(need.task):
                arrows[loops.get(source, source), name] = need.optional
    return _Drawn(nodes, arrows)


def _node_of(drawn: _Drawn, item: ids.ItemName | None) -> str:
    task = item.task if item else ""
    return next((name for name, tasks in drawn.nodes.items() if task in tasks), task)


def _behind(drawn: _Drawn, names: set[str]) -> set[str]:
    """Return these nodes and all that they rest on."""
    found: set[str] = set()
    while names:
        found |= names
        names = {source for source, target in drawn.arrows if target in names} - found
    return found


def _lines(board: Board, whole: graph.Graph, drawn: _Drawn, sources: Mapping[str, str]) -> list[str]:
    number = mermaid.numbered(drawn.nodes)
    states = {name: _state(whole, tasks) for name, tasks in drawn.nodes.items()}
    lines = [
        mermaid.box(number[name], states[name], *_label(whole, name, tasks))
        for name, tasks in drawn.nodes.items()
    ]
    lines += [
        mermaid.arrow(number[source], number[target], optional=optional)
        for (source, target), optional in drawn.arrows.items()
        if source in number
    ]
    lines += _items(board, number, sources)
    used = set(states.values())
    styles = {name: look for name, look in mermaid.STYLES.items() if name in used}
    return mermaid.graph(lines, {**styles, "item": _ITEM})


def _items(board: Board, number: Mapping[str, str], sources: Mapping[str, str]) -> list[str]:
    if len(sources) > FEW:
        lines = [mermaid.rounded("i0", "item", f"{len(sources)} items")]
        return lines + [f"{number[one]} ==> i0" for one in dict.fromkeys(sources.values()) if one in number]
    lines = []
    for at, (item, source) in enumerate(sources.items()):
        name = ids.split_item(item)
        state = board.items[item].state if item in board.items else "gone"
        lines.append(mermaid.rounded(f"i{at}", "item", name.name if name else "item", state))
        lines += [f"{number[source]} ==> i{at}"] if source in number else []
    return lines


def _label(whole: graph.Graph, name: str, tasks: tuple[str, ...]) -> tuple[str, str]:
    if tasks == (name,):
        return name, whole.state(name)
    return f"{name} × {len(tasks)}", _counts(whole, tasks)


def _state(whole: graph.Graph, tasks: tuple[str, ...]) -> str:
    states = {whole.state(task) for task in tasks}
    return next(state for state in _FIRST if state in states)


def _counts(whole: graph.Graph, tasks: tuple[str, ...]) -> str:
    counted = Counter(whole.state(task) for task in tasks)
    return ", ".join(f"{counted[state]} {state}" for state in _FIRST if counted[state])
