"""Whatever a goal's shape and whatever its workers answer: it settles, and everything in it is accounted for.

The stages are pure, so that whole lives of goals are played here without a repository.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gitbus import attempts, codec, graph, paths
from gitbus.board import Board, File
from gitbus.change import blob_oid
from gitbus.conductor import STAGES
from gitbus.flow.people import redo
from gitbus.goalcheck import check
from gitbus.history import FILE, Entry
from gitbus.incoming import Answer, Crew, Inbox, Tip, Touched, WorkerCommit
from gitbus.records import Bus, Goal, Node, Report, Result, Task
from gitbus.records.bus import Conducting
from gitbus.states import NONE, TASK_FINAL, may

START = datetime(2026, 11, 30, tzinfo=UTC)
POLICY = Conducting(max_attempts=2, max_lost=2, max_retries=1, absent_grace=timedelta(0))
CREW = {name: Crew(name, frozenset({"do"}), 2, healthy=True) for name in ("v", "w")}
NAMES = "abcdef"


@st.composite
def goals(draw: st.DrawFn) -> Goal:
    """Return a goal that may be added: needs go back, some tasks are loops, some are planners."""
    tasks: dict[str, Any] = {}
    for index in range(draw(st.integers(1, len(NAMES)))):
        earlier = draw(st.lists(st.sampled_from(NAMES[:index]), unique=True, max_size=3)) if index else []
        needs = [{"task": name, "optional": draw(st.booleans())} for name in earlier]
        node: dict[str, Any] = {
            "capability": draw(st.sampled_from(["do", "do", "do", "nobody"])),
            "needs": needs,
        }
        plain = [one["task"] for one in needs if not one["optional"] and "foreach" not in tasks[one["task"]]]
        match draw(st.sampled_from(["plain", "plain", "loop", "planner"])):
            case "loop":
                source = f"${{{plain[0]}.outputs.list}}" if plain else "${goal.inputs.list}"
                node["foreach"] = {"in": source, "max": 3}
                node["inputs"] = {"one": "${each}"}
            case "planner":
                node["expands"] = {"max": 3, "capabilities": ["do"]}
            case _:
                node["inputs"] = {"all": [f"${{{one}.outputs}}" for one in earlier]}
        tasks[NAMES[index]] = node
    return Goal.model_validate(
        {"id": "g", "inputs": {"list": draw(st.lists(st.integers(), max_size=3))}, "tasks": tasks}
    )


PLANS = (
    None,
    {},
    {"x": {"capability": "do"}},
    {"x": {"capability": "do"}, "y": {"capability": "do", "needs": ["x"]}},
)
ANSWERS = ("ok", "ok", "ok", "failed", "retry", "lost", "garbage")
answers = st.lists(
    st.tuples(
        st.sampled_from(ANSWERS),
        st.sampled_from([[], [1], [1, 2], [1, 2, 3, 4], "no list"]),
        st.sampled_from(PLANS),
    ),
    min_size=1,
    max_size=30,
)


@dataclass
class Life:
    """A goal being played, with what was seen on the way."""

    board: Board
    answers: list[Any]
    now: datetime = START
    number: int = 0
    moves: list[tuple[str, str, str, str]] = field(default_factory=list)
    begun: list[tuple[Task, graph.Graph]] = field(default_factory=list)

    def tick(self, tips: tuple[Tip, ...] = ()) -> bool:
        """Let every stage decide once; say whether anything changed."""
        changed = False
        for stage in STAGES:
            for change in stage(self.board, Inbox(tips, CREW), self.now):
                self._saw(change)
                self.board = self.board.after(change)
                changed = True
        return changed

    def _saw(self, change: Any) -> None:
        part = self.board.goals["g"]
        for content in change.writes.values():
            if isinstance(content, Task):
                old = part.tasks.get(content.id)
                self.moves.append((content.id, old.state if old else NONE, content.state, change.verb))
                if content.state == "assigned":
                    self.begun.append((content, graph.of(self.board, part)))

    def answer(self, task: Task) -> Tip | None:
        """Return what the task's worker commits; None where it never answers."""
        what, outputs, plan = self.answers[self.number % len(self.answers)]
        self.number += 1
        if what == "lost":
            return None
        planner = self.board.goals["g"].goal.tasks.get(task.id)
        fields: dict[str, Any] = {"status": what, "outputs": {"list": outputs}}
        if what == "ok" and planner is not None and planner.expands:
            fields["tasks"] = plan
        if what == "failed":
            fields["error"] = {"message": "no"}
        data = b"garbage: [" if what == "garbage" else self._result(task, fields)
        path = paths.result("g", task.id)
        entry = Entry(FILE, blob_oid(data))
        oid = blob_oid(b"%d" % self.number)
        found = Answer("g", task.id, path, entry, len(data), data)
        return Tip(
            task.worker or "",
            oid,
            (WorkerCommit(oid, ("0" * 40,), (Touched(path, entry, len(data)),), (found,)),),
        )

    @staticmethod
    def _result(task: Task, fields: dict[str, Any]) -> bytes:
        base = {"goal": "g", "task": task.id, "attempt": task.attempt, "worker": task.worker}
        if fields["status"] == "garbage":
            return b"garbage: ["
        return codec.write(Result.model_validate({**base, **fields}))

    def play(self) -> Report:
        """Play until the goal settles."""
        for _ in range(200):
            while self.tick():
                pass
            part = self.board.goals["g"]
            if part.report is not None:
                return part.report
            assigned = [task for task in part.tasks.values() if task.state == "assigned"]
            tips = [tip for task in assigned if (tip := self.answer(task))]
            self.tick(tuple(sorted(tips, key=lambda tip: tip.worker)))
            if len(tips) < len(assigned) or not assigned:
                self.now += timedelta(minutes=16)  # past every deadline and every wait
        raise AssertionError("it never settled")


CHANNEL = {"transport": "maildir", "path": "/nowhere", "from": ["news@acme.example"]}
ITEM = {"channel": "news", "to": ["list@partners.example"], "subject": "S", "text": "T"}


def life(goal: Goal, told: list[Any]) -> Life:
    bus = Bus.model_validate(
        {"name": "b", "conductor": POLICY.model_dump(mode="json"), "channels": {"news": CHANNEL}}
    )
    assert list(check(goal, bus, set())) == []
    return Life(Board(bus).apply([(paths.goal("g"), File(None, goal))]), told)


def accounted_for(one: Life, report: Report, budget: int = 2) -> None:
    """Assert that a settled goal says what became of each of its tasks, and that each kept its budget."""
    part = one.board.goals["g"]
    whole = graph.of(one.board, part)
    assert {task.id for task in report.tasks} == set(whole.tasks)
    for name in whole.tasks:
        task = part.tasks[name]
        assert task.state in TASK_FINAL
        assert (task.state == "done") == (name in part.results)
        assert not (task.state in ("dead", "skipped") and task.reason is None)
        present = [past for past in task.history if past.attempt >= task.first_attempt]
        for outcomes in (("failed", "refused"), ("lost",), ("retry",)):
            assert sum(past.outcome in outcomes for past in present) <= budget
        numbers = [past.attempt for past in task.history] + [task.attempt] * (task.state == "done")
        assert len(numbers) == len(set(numbers))
    states = {part.tasks[name].state for name in whole.tasks}
    done = any(whole.state(name) == "done" for name in whole.leaves())
    assert report.state == ("done" if states <= {"done"} else "partial" if done else "failed")
    assert not one.tick()  # what settled stays settled


@settings(max_examples=60, deadline=None)
@given(goals(), answers)
def test_every_goal_settles_and_accounts_for_every_task(goal: Goal, told: list[Any]) -> None:
    one = life(goal, told)
    accounted_for(one, one.play())


@settings(max_examples=60, deadline=None)
@given(goals(), answers)
def test_a_goal_that_is_redone_settles_again(goal: Goal, told: list[Any]) -> None:
    """Loops and planners below may make other tasks than before; what they make no more is cancelled."""
    node = Node.model_validate({"capability": "do", "item": ITEM})
    one = life(
        goal.model_copy(update={"tasks": {**goal.tasks, "a": node}}), [("ok", [1, 2], PLANS[3]), *told]
    )
    one.play()
    for _ in range(3):
        if "g.a.item" not in one.board.items:
            return
        before = one.board.goals["g"].tasks
        one.board = one.board.after(redo(one.board, "g.a.item", "ada", "again", one.now))
        assert one.board.items["g.a.item"].state == "rejected"
        accounted_for(one, one.play())
        part = one.board.goals["g"]
        whole = graph.of(one.board, part)
        assert part.tasks["a"].attempt > before["a"].attempt
        for name, task in part.tasks.items():
            assert task.state in TASK_FINAL
            assert task.reason != "superseded" or name not in whole.tasks
        for name in whole.descendants("a"):
            old, new = before.get(name), part.tasks.get(name)
            if old and new and old.state == new.state == "done":
                assert old.attempt < new.attempt
    legal(one)


def legal(one: Life) -> None:
    for name, source, target, verb in one.moves:
        assert source == target or may("task", source, target, verb), (name, source, target, verb)


@settings(max_examples=60, deadline=None)
@given(goals(), answers)
def test_every_move_is_legal_and_nothing_begins_before_its_needs(goal: Goal, told: list[Any]) -> None:
    one = life(goal, told)
    one.play()
    legal(one)
    for task, whole in one.begun:
        for need in whole.tasks[task.id].needs:
            state = whole.state(need.task)
            assert state == "done" or (need.optional and state in TASK_FINAL), (task.id, need.task, state)


@settings(max_examples=40, deadline=None)
@given(goals(), answers)
def test_loops_and_planners_make_what_they_say(goal: Goal, told: list[Any]) -> None:
    one = life(goal, told)
    one.play()
    part = one.board.goals["g"]
    whole = graph.of(one.board, part)
    for name, node in goal.tasks.items():
        result = part.results.get(name)
        if node.expands and result is not None:
            for local in result.tasks or {}:
                assert f"{name}-{local}" in whole.tasks
        if name in whole.groups:
            members = whole.groups[name]
            assert members == tuple(f"{name}-{n}" for n in range(len(members)))
            assert [whole.tasks[member].each for member in members] == [
                part.tasks[member].inputs["one"] for member in members if member in part.tasks
            ]
            assert name not in whole.tasks
        for below in whole.descendants(name):
            assert name in whole.ancestors(whole.tasks[below].needs) or any(
                member in whole.ancestors(whole.tasks[below].needs) for member in whole.members(name)
            )


@settings(max_examples=30, deadline=None)
@given(goals(), answers)
def test_a_cancelled_goal_comes_to_rest_at_once(goal: Goal, told: list[Any]) -> None:
    one = life(goal, told)
    one.tick()
    part = one.board.goals["g"]
    if part.report is not None:
        return
    gone = goal.model_copy(update={"cancelled": "not needed"})
    one.board = one.board.apply([(paths.goal("g"), File(None, gone))])
    one.tick()
    after = one.board.goals["g"]
    assert after.report is not None
    assert {task.state for task in after.tasks.values()} <= TASK_FINAL
    assert after.report.state == "cancelled" or {task.state for task in after.tasks.values()} <= {
        "done",
        "dead",
        "skipped",
    }
    assert not one.tick()


def test_the_budget_of_a_task_is_its_own() -> None:
    goal = Goal.model_validate({"id": "g", "tasks": {"a": {"capability": "do", "max_attempts": 1}}})
    one = life(goal, [("failed", [], None)])
    assert one.play().state == "failed"
    [past] = one.board.goals["g"].tasks["a"].history
    assert past.outcome == "failed"
    assert attempts.exhausted(one.board.goals["g"].tasks["a"], goal.tasks["a"], POLICY)


def test_what_needs_an_empty_loop_still_sees_what_the_loop_needs() -> None:
    goal = Goal.model_validate(
        {
            "id": "g",
            "tasks": {
                "a": {"capability": "do"},
                "c": {"capability": "do", "needs": ["a"], "foreach": {"in": "${a.outputs.list}", "max": 3}},
                "e": {
                    "capability": "do",
                    "needs": ["c"],
                    "inputs": {"a": "${a.outputs.list}", "c": "${c.outputs}"},
                },
            },
        }
    )
    one = life(goal, [("ok", [], None)])
    assert one.play().state == "done"
    part = one.board.goals["g"]
    assert part.tasks["e"].inputs == {"a": [], "c": []}
    assert graph.of(one.board, part).descendants("a") == ("e",)


def test_a_graph_is_of_its_own_goal_however_many_there_are() -> None:
    made = [
        Goal(id=f"g{n}", tasks={f"t{n}": Node(capability="do"), "x": Node(capability=f"c{n}")})
        for n in range(100)
    ]
    for goal in [*made, *made, made[0].model_copy(update={"tasks": {"y": Node(capability="do")}})]:
        assert {name: one.node for name, one in graph.build(goal, {}, {}).tasks.items()} == goal.tasks
        assert not graph.grows(goal)
