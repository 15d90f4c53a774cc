"""Workers that break the rules, by mistake or on purpose: what is refused, what it costs, and whom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, ids, paths
from gitbus.bus import Bus
from gitbus.history import EXECUTABLE, SUBMODULE, SYMLINK, Entry
from gitbus.records import Refusal, Result, Task
from gitbus.worker import WorkerActor
from tests.journeys.driving import Tree, entry, hand_commit, nothing_to_object
from tests.support.world import World, function_worker, make_world, step_all

GOAL = b"""\
apiVersion: gitbus/v1
kind: Goal
id: g
tasks:
  t: {capability: do, channels: [news], outputs: {type: object, properties: {n: {type: integer}}}}
  other: {capability: other}
  after: {capability: other, needs: [t]}
"""
RESULT = paths.result("g", "t")
LIMITS = {"record": "4KiB", "artifact": "1KiB", "artifacts": "1536B", "raw": "200B"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, policy={"limits": LIMITS})


def task(bus: Bus, name: str = "t") -> Task:
    return bus.whole_board().goals["g"].tasks[name]


def refusal(bus: Bus, attempt: int = 1, name: str = "t") -> Refusal:
    return bus.whole_board().goals["g"].refusals[name, attempt]


def result(bus: Bus, name: str = "t", worker: str = "w", **fields: Any) -> bytes:
    """Return a result's bytes for a task's present attempt."""
    here = task(bus, name)
    base = {"goal": "g", "task": name, "attempt": here.attempt, "worker": worker, "status": "ok"}
    return codec.write(Result.model_validate({**base, **fields}))


def raw(**fields: Any) -> bytes:
    """Return a result as JSON, with fields that no model would let through."""
    base = {
        "apiVersion": "gitbus/v1",
        "kind": "Result",
        "goal": "g",
        "task": "t",
        "attempt": 1,
        "worker": "w",
        "status": "ok",
    }
    return json.dumps({**base, **fields}, indent=1).encode()


TEXT = raw().decode()
ARTIFACT = {"path": "a.txt", "sha256": ids.sha256(b"a\n"), "bytes": 2, "media_type": "text/plain"}
ITEM: dict[str, Any] = {
    "name": "n",
    "channel": "news",
    "message": {"to": ["a@b.example"], "subject": "S", "text": "a.txt"},
}


def item(**fields: Any) -> dict[str, Any]:
    message = {**ITEM["message"], **fields.pop("message", {})}
    return {"artifacts": [ARTIFACT], "items": [{**ITEM, **fields, "message": message}]}


GARBAGE: Mapping[str, tuple[bytes, str, str]] = {
    "bytes that are no UTF-8": (b"\xff" + raw(), "not-utf8", ":1:1"),
    "a byte-order mark": (b"\xef\xbb\xbf" + raw(), "byte-order-mark", ":1:1"),
    "a key twice": (TEXT.replace("{", '{"status": "ok",', 1).encode(), "duplicate-key", ":8:2"),
    "an anchor": (b"kind: &a Result\nother: *a\n", "alias", ":1:7"),
    "a tag": (b"kind: !!python/object:os.system Result\n", "tag", ":1:7"),
    "two documents": (b"kind: Result\n---\nkind: Result\n", "many-documents", ":2:1"),
    "nested too deep": (b"outputs: " + b"[" * 70 + b"]" * 70 + b"\n", "too-deep", ":1:75"),
    "infinite": (TEXT.replace('"ok"', ".inf").encode(), "non-finite", ":8:12"),
    "a bell": (b'kind: "Res\\x07ult"\n', "control-character", ":1:7"),
    "binary": (b"\x00\x01\x02", "control-character", ":1:1"),
    "conflict markers": (b"<<<<<<< ours\nkind: A\n=======\n>>>>>>> theirs\n", "conflict-markers", ":1:1"),
    "nothing at all": (b"", "empty", ":1:1"),
    "a text": (b"just a text\n", "not-a-mapping", ":1:1"),
    "no head": (b"goal: g\n", "wrong-api-version", ":1:1"),
    "another kind": (raw(kind="Task"), "wrong-kind", ":3:10"),
    "an unknown field": (raw(extra=1), "unknown-field", ":9:2"),
    "a status that there is not": (raw(status="done"), "bad-value", ":8:12"),
    "failed without saying why": (raw(status="failed"), "failed-without-error", ":8:12"),
    "a confidence above one": (raw(confidence=1.5), "bad-value", ":9:16"),
    "an attempt never assigned": (raw(attempt=777), "attempt-not-assigned", ":6:13"),
    "in another worker's name": (raw(worker="v"), "wrong-worker", ":7:12"),
    "for another task": (raw(task="other"), "wrong-task", ":5:10"),
    "outputs of another shape": (raw(outputs={"n": "one"}), "outputs-schema", ":10:8"),
    "a bare fact": (raw(claims=[{"text": "x", "provenance": "FACT"}]), "fact-without-evidence", ":10:3"),
    "evidence that it does not define": (
        raw(claims=[{"text": "x", "provenance": "FACT", "evidence": ["e9"]}]),
        "evidence-undefined",
        ":14:5",
    ),
    "evidence of one id twice": (
        raw(evidence=[{"id": "e", "kind": "url", "ref": "x"}, {"id": "e", "kind": "url", "ref": "y"}]),
        "evidence-twice",
        ":15:3",
    ),
    "evidence that is no file": (
        raw(evidence=[{"id": "e", "kind": "file", "ref": "nowhere.md"}]),
        "evidence-missing",
        ":10:3",
    ),
    "an artifact that did not come": (raw(artifacts=[ARTIFACT]), "artifact-missing", ":10:3"),
    "an artifact outside its folder": (raw(artifacts=[{**ARTIFACT, "path": "../up"}]), "bad-path", ":11:12"),
    "an item for another channel": (raw(items=[{**ITEM, "channel": "crm"}]), "channel-not-allowed", ":12:15"),
    "an item whose text is no artifact": (raw(items=[ITEM]), "no-such-artifact", ":18:13"),
    "an item with a line break in its subject": (
        raw(items=[{**ITEM, "message": {"to": ["a@b.example"], "subject": "S\nBcc: x@y.example"}}]),
        "control-in-header",
        ":17:16",
    ),
    "an item to nobody": (raw(items=[{**ITEM, "message": {"subject": "S"}}]), "no-recipient", ":13:15"),
    "an item from somebody else": (
        raw(items=[{**ITEM, "message": {"from": "Eve <eve@b.example>", "to": ["a@b.example"]}}]),
        "sender-not-allowed",
        ":14:13",
    ),
    "tasks by no planner": (raw(tasks={"x": {"capability": "do"}}), "not-a-planner", ":9:11"),
    "more than limits.record": (raw(outputs={"t": "x" * 5000}), "too-large", ""),
}
"""What a worker commits as its result → the rule, and the place in the file."""


def test_garbage_is_refused_with_rule_and_place(tmp_path: Path) -> None:
    budget = len(GARBAGE)
    world = make_world(tmp_path, policy={"limits": LIMITS, "conductor": {"max_attempts": budget}})
    with world.open() as bus:
        bus.add_goal(GOAL)
        worker = function_worker(bus, "w", {"do": lambda task: {}})
        other = function_worker(bus, "v", {"other": lambda task: {}})
        conductor = bus.conductor()
        conductor.tick()
        found = {}
        for attempt, (what, (data, _, _)) in enumerate(GARBAGE.items(), start=1):
            assert (task(bus).state, task(bus).attempt) == ("assigned", attempt)
            present = data.replace(b'"attempt": 1,', b'"attempt": %d,' % attempt)
            hand_commit(bus, "w", {RESULT: present})
            conductor.tick()
            said = refusal(bus, attempt)
            assert (said.task, said.attempt, said.worker) == ("t", attempt, "w")
            assert said.place is not None
            found[what] = (said.rule, said.place.removeprefix(RESULT))
            if what != "more than limits.record":
                assert said.truncated == (len(present) > 200)
                assert (said.raw or "")[:20].isprintable() or "\n" in (said.raw or "")
        assert found == {what: (rule, place) for what, (_, rule, place) in GARBAGE.items()}
        here = task(bus)
        assert (here.state, here.reason, here.attempt) == ("dead", "attempts_exhausted", budget)
        assert [past.outcome for past in here.history] == ["refused"] * budget
        assert task(bus, "other").history == ()
        dead = world.gitbus("dead")
        assert "g/t" in dead.stdout
        assert "too-large" in dead.stdout
        nothing_to_object(bus)
        worker.close()
        other.close()


# --- the rules of a branch


def folder(name: str) -> str:
    return f"{paths.artifacts('g', 't')}/{name}"


FORBIDDEN: Mapping[str, tuple[str, str | Entry, bytes, int]] = {
    "the bus": ("forbidden-path", paths.BUS, b"name: mine\n", 0o100644),
    "a goal": ("forbidden-path", paths.goal("g"), b"x\n", 0o100644),
    "a task record": ("forbidden-path", paths.task("g", "t"), b"x\n", 0o100644),
    "an item": ("forbidden-path", "outbox/g.t.n/item.yaml", b"x\n", 0o100644),
    "another worker's result": ("forbidden-path", paths.result("g", "other"), b"x\n", 0o100644),
    "another worker's artifact": ("forbidden-path", "goals/g/artifacts/other/a.txt", b"x\n", 0o100644),
    "a task that is not released": ("forbidden-path", paths.result("g", "after"), b"x\n", 0o100644),
    "a task that there is not": ("forbidden-path", paths.result("g", "none"), b"x\n", 0o100644),
    "a workflow": ("forbidden-path", ".github/workflows/x.yml", b"on: push\n", 0o100644),
    "a device's name": ("forbidden-path", folder("con"), b"x\n", 0o100644),
    "a name with a space": ("forbidden-path", folder("a b"), b"x\n", 0o100644),
    "a hidden file": ("forbidden-path", folder(".git-x"), b"x\n", 0o100644),
    "nine folders deep": ("forbidden-path", folder("/".join("abcdefghi")), b"x\n", 0o100644),
    "an executable": ("forbidden-kind", folder("a.sh"), b"x\n", EXECUTABLE),
    "a symlink": ("forbidden-kind", folder("a"), b"/etc/passwd", SYMLINK),
    "a symlink as its result": ("forbidden-kind", RESULT, b"/etc/passwd", SYMLINK),
    "a blob above the limit": ("too-large", folder("big"), b"x" * 1025, 0o100644),
}


def two(world: World) -> tuple[Bus, list[WorkerActor]]:
    bus = world.open()
    bus.add_goal(GOAL)
    workers = [
        function_worker(bus, "w", {"do": lambda task: {"n": task.attempt}}),
        function_worker(bus, "v", {"other": lambda task: {}}),
    ]
    bus.conduct()
    return bus, workers


def test_forbidden_entries_end_a_branch(tmp_path: Path) -> None:
    """Each of them, hidden between two good commits: refused by the tip, and nothing of it reaches the branch."""
    budget = len(FORBIDDEN) + 1
    world = make_world(tmp_path, policy={"limits": LIMITS, "conductor": {"max_attempts": budget}})
    bus, workers = two(world)
    with bus:
        conductor = bus.conductor()
        found = {}
        for attempt, (what, (_, path, data, mode)) in enumerate(FORBIDDEN.items(), start=1):
            before = bus.refs()[bus.hub.main]
            good: Tree = {RESULT: result(bus)}
            tip = hand_commit(bus, "w", {path: entry(bus, data, mode)}, {path: None}, good)
            conductor.tick()
            refused = bus.board().branch_refusals["w"]
            assert refused.tip == tip
            found[what] = (refused.rule, refusal(bus, attempt).rule, refused.place)
            assert task(bus).attempt == attempt + 1, what
            changed = bus.hub.store.diff(tree(bus, before), tree(bus))
            assert {one.path for one in changed} == {
                paths.branch_refusal("w"),
                paths.refusal("g", "t", attempt),
                paths.task("g", "t"),
            }, what
            assert not bus.hub.store.is_ancestor(tip, bus.refs()[bus.hub.main])
            assert not conductor.tick()
        assert found == {what: (rule, rule, path) for what, (rule, path, _, _) in FORBIDDEN.items()}
        assert task(bus, "other").history == ()
        step_all(bus, workers)
        assert bus.whole_board().goals["g"].results["t"].outputs == {"n": budget}
        assert bus.board().goals["g"].state == "done"
        assert "w" not in bus.board().branch_refusals or bus.refs()[paths.WORKERS + "w"] != tip
        nothing_to_object(bus)
        for worker in workers:
            worker.close()


def tree(bus: Bus, commit: str | None = None) -> str:
    return bus.hub.store.commit(commit or bus.refs()[bus.hub.main]).tree


def test_a_submodule_ends_a_branch(world: World) -> None:
    bus, workers = two(world)
    with bus:
        there = Entry(SUBMODULE, bus.refs()[bus.hub.main])
        hand_commit(bus, "w", {folder("sub"): there}, {RESULT: result(bus)})
        bus.conduct()
        assert refusal(bus).rule == "forbidden-kind"
        for worker in workers:
            worker.close()


def test_the_clean_commits_before_are_taken(world: World) -> None:
    bus, workers = two(world)
    with bus:
        hand_commit(bus, "w", {RESULT: result(bus, outputs={"n": 5})}, {paths.BUS: b"x\n"})
        bus.conduct()
        assert task(bus).state == "done"
        assert bus.whole_board().goals["g"].results["t"].outputs == {"n": 5}
        assert bus.board().branch_refusals["w"].rule == "forbidden-path"
        assert bus.whole_board().goals["g"].refusals == {}
        for worker in workers:
            worker.close()


def test_another_workers_task_is_never_spent(world: World) -> None:
    """A branch that only touches what is another's costs nobody's attempt."""
    bus, workers = two(world)
    with bus:
        hand_commit(bus, "w", {paths.result("g", "other"): result(bus, "other", "v")})
        bus.conduct()
        assert bus.board().branch_refusals["w"].rule == "forbidden-path"
        assert (task(bus, "other").state, task(bus, "other").attempt, task(bus, "other").history) == (
            "assigned",
            1,
            (),
        )
        assert (task(bus).state, task(bus).attempt) == ("assigned", 1)
        step_all(bus, workers)
        assert bus.board().goals["g"].state == "done"
        nothing_to_object(bus)
        for worker in workers:
            worker.close()


def test_a_branch_with_a_merge_or_another_root(world: World) -> None:
    bus, workers = two(world)
    with bus:
        hand_commit(bus, "w", {RESULT: result(bus)}, {}, merge=bus.root)
        bus.conduct()
        assert bus.board().branch_refusals["w"].rule == "not-one-line"
        for worker in workers:
            worker.close()


def test_names_that_differ_in_case_only(world: World) -> None:
    bus, workers = two(world)
    with bus:
        files: Tree = {folder("a.txt"): b"a\n", folder("A.txt"): b"b\n", RESULT: result(bus)}
        hand_commit(bus, "w", files)
        bus.conduct()
        assert refusal(bus).rule == "path-collision"
        for worker in workers:
            worker.close()


def test_more_artifacts_than_the_limit_together(world: World) -> None:
    bus, workers = two(world)
    with bus:
        data = b"x" * 1000
        named = [
            {"path": name, "sha256": ids.sha256(data), "bytes": 1000, "media_type": "text/plain"}
            for name in ("a", "b")
        ]
        hand_commit(
            bus, "w", {folder("a"): data, folder("b"): data, RESULT: result(bus, artifacts=tuple(named))}
        )
        bus.conduct()
        assert (refusal(bus).rule, refusal(bus).attempt) == ("too-large", 1)
        assert bus.board().branch_refusals == {}
        for worker in workers:
            worker.close()


def test_an_artifact_of_another_content(world: World) -> None:
    bus, workers = two(world)
    with bus:
        hand_commit(bus, "w", {folder("a.txt"): b"b\n", RESULT: result(bus, artifacts=(ARTIFACT,))})
        bus.conduct()
        assert refusal(bus).rule == "artifact-mismatch"
        for worker in workers:
            worker.close()
