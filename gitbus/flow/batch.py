"""One absorbing commit, while it is put together. Pure.

Example: ``Batch(board, now).changes()`` is empty until something was taken in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from gitbus import graph, paths
from gitbus.board import Board
from gitbus.change import Change, Content, Thread
from gitbus.history import Oid
from gitbus.records import Result, Task


@dataclass
class Batch:
    """What one absorbing commit will hold, while it is being put together."""

    board: Board
    now: datetime
    writes: dict[str, Content] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    about: list[Thread] = field(default_factory=list)
    parents: list[Oid] = field(default_factory=list)
    sources: dict[tuple[str, str], Oid] = field(default_factory=dict)
    tasks: dict[tuple[str, str], Task] = field(default_factory=dict)
    results: dict[str, dict[str, Result]] = field(default_factory=dict)
    graphs: dict[str, graph.Graph] = field(default_factory=dict)

    def task(self, goal: str, task: str) -> Task | None:
        """Return a task as this batch leaves it; None where there is none that may be moved on."""
        part = self.board.goals.get(goal)
        if part is not None and part.halted:
            return None
        return self.tasks.get((goal, task)) or (part.tasks.get(task) if part else None)

    def set_task(self, task: Task) -> None:
        """Write a task."""
        self.tasks[task.goal, task.id] = task
        self.writes[paths.task(task.goal, task.id)] = task

    def graph(self, goal: str) -> graph.Graph | None:
        """Return a goal's graph as this batch leaves it; built once, as long as it keeps its shape."""
        part = self.board.goals.get(goal)
        if part is None or part.goal is None:
            return None
        if goal not in self.graphs:
            mine = {name: task for (of, name), task in self.tasks.items() if of == goal}
            results = {**part.results, **self.results.get(goal, {})}
            self.graphs[goal] = graph.of(self.board, part, {**part.tasks, **mine}, results)
        return self.graphs[goal]

    def took(self, result: Result) -> None:
        """Take a result into what later answers of this batch are judged by."""
        self.results.setdefault(result.goal, {})[result.task] = result
        known = self.graphs.get(result.goal)
        if known is not None:
            if graph.grows(known.goal):
                del self.graphs[result.goal]
            else:
                self.graphs[result.goal] = known.after(result)

    def note(self, line: str, thread: Thread) -> None:
        """Say in the commit what became of something."""
        self.lines.append(line)
        self.about.append(thread)

    def changes(self) -> list[Change]:
        """Return the one commit, or none where nothing came in."""
        if not self.parents and not self.writes:
            return []
        subject = self.lines[0] if len(self.lines) == 1 else f"{len(self.lines)} answers"
        body = tuple(self.lines) if len(self.lines) > 1 else ()
        return [
            Change(
                "absorb",
                subject if self.lines else "nothing new",
                self.writes,
                tuple(self.about),
                body,
                tuple(dict.fromkeys(self.parents)),
                sources=self.sources,
            )
        ]
