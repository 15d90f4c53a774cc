"""Batches, scorers and quorums: items that need more than one word."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitbus import paths
from gitbus.bus import Bus
from tests.journeys.driving import SENT, add_person, nothing_to_object, on, outcomes, send, state
from tests.support.world import (
    ITEM,
    MAIL_GOAL,
    World,
    function_worker,
    make_world,
    ok,
    step_all,
    waiting_item,
)

BATCH = b"""\
apiVersion: gitbus/v1
kind: Goal
id: post
tasks:
  gather: {capability: gather}
  mail:
    capability: greet
    needs: [gather]
    foreach: {in: "${gather.outputs.people}", key: "${each.id}", max: 10}
    approve: together
    inputs: {name: "${each.id}"}
    max_attempts: 1
    item:
      name: hello
      channel: news
      to: [list@partners.example]
      subject: "Hello ${each.id}"
      text: "${mail.outputs.text}"
"""
BRANCH = paths.APPROVE + "post.mail"


def batch(world: World, names: str = "abcd", bad: str = "") -> Bus:
    bus = world.open()
    bus.add_goal(BATCH)

    def greet(task: Any) -> Any:
        if task.inputs["name"] in bad:
            raise ValueError("bad")
        return ok(task, "w", confidence=0.9, outputs={"text": f"Hello {task.inputs['name']}\n"})

    worker = function_worker(
        bus, "w", {"gather": lambda task: {"people": [{"id": one} for one in names]}, "greet": greet}, 2
    )
    step_all(bus, [worker])
    worker.close()
    on(bus)
    return bus


def item(name: str) -> str:
    return f"post.mail-{name}.hello"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def test_a_batch_is_one_approval(world: World) -> None:
    with batch(world) as bus:
        up = [ref for ref in bus.refs() if ref.startswith(paths.APPROVE)]
        assert up == [BRANCH]
        for name in "abcd":
            shown = bus.hub.store.entry(bus.refs()[BRANCH], paths.approval(item(name)))
            assert shown is not None
            assert f"Hello {name}".encode() in bus.hub.store.blob(shown.oid)
        bus.approve([item("a")])
        bus.conduct()
        assert outcomes(send(bus, SENT, SENT, SENT, SENT)) == ["sent"] * 4
        subjects = [subject(bus, oid) for oid in bus.hub.store.line(bus.refs()[bus.hub.main])]
        assert subjects.count("lease 4 items") == 1
        nothing_to_object(bus)


def subject(bus: Bus, oid: str) -> str:
    return bus.hub.store.commit(oid).message.split("\n", 1)[0]


def test_one_is_left_out_by_rejecting_it(world: World) -> None:
    with batch(world) as bus:
        before = bus.refs()[BRANCH]
        bus.reject(item("b"), "not this one")
        bus.conduct()
        assert bus.refs()[BRANCH] != before
        bus.approve([item("a")])
        bus.conduct()
        assert BRANCH not in bus.refs()
        assert outcomes(send(bus, SENT, SENT, SENT)) == ["sent"] * 3
        assert [state(bus, item(name)) for name in "abcd"] == ["sent", "rejected", "sent", "sent"]
        nothing_to_object(bus)


def test_a_branch_fetched_before_one_was_rejected(world: World) -> None:
    """A merge by plain git of a batch's branch that is older than a rejection approves nothing."""
    with batch(world) as bus:
        world.git("fetch", "--quiet", "origin")
        world.git("branch", "old", "origin/gitbus/approve/post.mail")
        bus.reject(item("b"), "not this one")
        bus.conduct()
        world.git("fetch", "--quiet", "origin")
        world.git("reset", "--quiet", "--hard", "origin/main")
        with pytest.raises(subprocess.CalledProcessError):
            world.git("merge", "--quiet", "--no-ff", "-S", "--no-edit", "old")
        world.git("checkout", "--ours", "--quiet", f"outbox/{item('b')}/item.yaml")
        world.git("add", "--all")
        world.git("commit", "--quiet", "-S", "--no-edit")
        world.git("push", "--quiet", "origin", "HEAD:main")
        assert set(outcomes(send(bus))) == {"refused"}
        bus.conduct()
        assert [state(bus, item(name)) for name in "abcd"] == [
            "awaiting_approval",
            "rejected",
            *["awaiting_approval"] * 2,
        ]
        bus.approve([item("a")])
        assert outcomes(send(bus, SENT, SENT, SENT)) == ["sent"] * 3
        assert state(bus, item("b")) == "rejected"


def test_one_that_died_is_not_waited_for(world: World) -> None:
    with batch(world, bad="c") as bus:
        bus.approve([item("a")])
        assert outcomes(send(bus, SENT, SENT, SENT)) == ["sent"] * 3
        assert item("c") not in bus.board().items
        nothing_to_object(bus)


def test_one_of_a_batch_is_edited(world: World) -> None:
    with batch(world) as bus:
        world.git("fetch", "--quiet", "origin")
        world.git("checkout", "--quiet", "-B", "edit", "origin/gitbus/approve/post.mail")
        (world.clone / f"outbox/{item('c')}/body.txt").write_text("Dear c\n")
        world.git("commit", "--quiet", "--all", "--no-gpg-sign", "-m", "Update body.txt")
        world.git("push", "--quiet", "origin", "HEAD:refs/heads/gitbus/approve/post.mail")
        edited = bus.refs()[BRANCH]
        assert bus.conductor().tick()
        assert bus.refs()[BRANCH] == edited  # it may go once the bus's branch holds the edit, not before
        bus.conduct()
        parts = bus.board().items
        assert [parts[item(name)].item.revision for name in "abcd"] == [1, 1, 2, 1]
        assert {parts[item(name)].state for name in "abcd"} == {"awaiting_approval"}
        bus.approve([item("a")])
        assert outcomes(send(bus, SENT, SENT, SENT, SENT)) == ["sent"] * 4
        assert bus.payload(item("c"))["body.txt"] == b"Dear c\n"
        nothing_to_object(bus)


# --- scorers


CLAIMS = [
    {"text": "It parses.", "provenance": "FACT", "evidence": ["e1"]},
    {"text": "Users will like it.", "provenance": "INFERENCE"},
]


def scored(world: World, workers: dict[str, Any], **fields: Any) -> Bus:
    bus = world.open()
    bus.add_goal(MAIL_GOAL)
    makes = {
        "write": lambda task: {"title": "T"},
        "compose": lambda task: ok(task, "laptop", outputs={"text": "x\n"}, **fields),
    }
    worker = function_worker(bus, "laptop", {**makes, **workers})
    step_all(bus, [worker])
    worker.close()
    return bus


@pytest.mark.parametrize(
    ("claims", "expected", "there"),
    [
        (CLAIMS, 0.5, "in_review"),
        (CLAIMS[:1], 0.9, "awaiting_approval"),
        ([], 0.0, "in_review"),
    ],
)
def test_scored_by_evidence(tmp_path: Path, claims: list[Any], expected: float, there: str) -> None:
    world = make_world(tmp_path, policy={"score": {"scorers": ["evidence"]}})
    evidence = [{"id": "e1", "kind": "commit", "ref": "1a2b3c"}]
    with scored(world, {}, evidence=evidence, claims=claims) as bus:
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.item.confidence, part.state) == (expected, there)
        assert [one.by for one in part.item.scores] == ["producer", "evidence"]
        nothing_to_object(bus)


@pytest.mark.parametrize(("given", "there"), [(0.95, "awaiting_approval"), (0.3, "in_review")])
def test_scored_by_a_worker(tmp_path: Path, given: float, there: str) -> None:
    world = make_world(tmp_path, policy={"score": {"scorers": ["verify"]}})
    saw: list[Any] = []

    def verify(task: Any) -> Any:
        saw.append(task.inputs["item"]["message"]["subject"])
        return {"score": given}

    with scored(world, {"verify": verify}) as bus:
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.confidence) == (there, min(0.9, given))
        assert saw == ["T"]
        report = bus.board().goals["release"].report
        assert report is not None
        assert (report.state, list(report.outputs)) == ("done", ["mail"])
        on(bus)
        bus.revise(ITEM, {"body.txt": b"better\n"})
        worker = function_worker(bus, "laptop", {"verify": verify})
        step_all(bus, [worker])
        worker.close()
        assert len(saw) == 2  # each revision is scored anew
        assert state(bus) == there
        nothing_to_object(bus)


def test_scored_by_nobody(tmp_path: Path) -> None:
    """A scorer that no worker has scores nothing, so that the item goes in review; it is not kept back."""
    world = make_world(tmp_path, policy={"score": {"scorers": ["verify"]}})
    with scored(world, {}) as bus:
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.confidence) == ("in_review", 0.0)
        assert "worker_absent" in (part.item.scores[1].note or "")
        report = bus.board().goals["release"].report
        assert report is not None
        assert (report.state, report.missing, list(report.outputs)) == ("partial", ("verify",), ["mail"])
        nothing_to_object(bus)


@pytest.mark.parametrize("answer", [{"score": 2}, {"score": "high"}, {}])
def test_scored_with_nonsense(tmp_path: Path, answer: dict[str, Any]) -> None:
    world = make_world(tmp_path, policy={"score": {"scorers": ["verify"]}})
    with scored(world, {"verify": lambda task: answer}) as bus:
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.confidence) == ("in_review", 0.0)


# --- quorum


def test_two_approvals(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"approval": {"quorum": 2}})
    with waiting_item(world) as bus, add_person(bus, world, "bob", "approver") as bob:
        on(bus)
        bus.approve([ITEM])
        [refused] = send(bus)
        assert (refused.outcome, "quorum" in (refused.reason or "")) == ("refused", True)
        bus.conduct()
        assert state(bus) == "awaiting_approval"
        bob.review(ITEM, "ok")
        bus.approve([ITEM])
        bus.conduct()
        assert state(bus) == "approved"
        assert outcomes(send(bus, SENT)) == ["sent"]
        assert sorted(bus.board().items[ITEM].receipts[1].approval.people) == ["ada", "bob"]
        nothing_to_object(bus)


def test_two_reviews(tmp_path: Path) -> None:
    world = make_world(tmp_path, policy={"review": {"quorum": 2, "four_eyes": True}})
    with (
        waiting_item(world, confidence=0.2) as bus,
        add_person(bus, world, "bob", "reviewer") as bob,
        add_person(bus, world, "eve", "reviewer") as eve,
    ):
        on(bus)
        bus.review(ITEM, "ok")
        bob.review(ITEM, "ok")
        bus.approve([ITEM])
        assert outcomes(send(bus)) == ["refused"]
        bus.conduct()
        assert state(bus) == "in_review"
        eve.review(ITEM, "ok")
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_reviews_of_an_old_revision_do_not_count(world: World) -> None:
    with waiting_item(world, confidence=0.2) as bus:
        on(bus)
        bus.review(ITEM, "ok")
        bus.revise(ITEM, {"body.txt": b"other\n"})
        bus.conduct()
        assert state(bus) == "in_review"
        bus.approve([ITEM])
        assert outcomes(send(bus)) == ["refused"]
        bus.conduct()
        bus.review(ITEM, "ok")
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
