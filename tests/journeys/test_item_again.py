"""Items that are done again or edited: by their task, by an API, by a commit in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus import ids, paths
from gitbus.bus import Bus
from gitbus.errors import Refused
from gitbus.records import Task
from gitbus.runner.base import Answer
from tests.journeys.driving import (
    REFUSED,
    SENT,
    UNKNOWN,
    approved_item,
    nothing_to_object,
    on,
    outcomes,
    send,
    state,
)
from tests.support.world import ITEM, World, function_worker, make_world, ok, step_all, waiting_item

pytestmark = pytest.mark.long

EDITED = b"Hello,\nit is really out.\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def text(bus: Bus) -> bytes:
    return bus.payload(ITEM)["body.txt"]


def work_again(bus: Bus, confidence: float = 0.9) -> list[list[str]]:
    """Let a worker do what there is to do, and return the feedback that it was given."""
    heard: list[list[str]] = []

    def compose(task):
        heard.append([one.text for one in task.feedback])
        said = "; ".join(one.text for one in task.feedback)
        return ok(task, "laptop", confidence=confidence, outputs={"text": f"Heard: {said}\n"})

    worker = function_worker(
        bus, "laptop", {"write": lambda task: {"title": "Release 1.0"}, "compose": compose}
    )
    step_all(bus, [worker])
    worker.close()
    return heard


# --- redo


def test_redo_gives_the_words_to_the_worker(world: World) -> None:
    with waiting_item(world) as bus:
        bus.redo(ITEM, "warmer")
        assert state(bus) == "rejected"
        assert work_again(bus) == [["warmer"]]
        item = bus.board().items[ITEM].item
        assert item is not None
        assert (item.state, item.revision, item.attempt) == ("awaiting_approval", 2, 1)
        bus.redo(ITEM, "shorter")
        assert work_again(bus) == [["warmer", "shorter"]]
        assert text(bus) == b"Heard: warmer; shorter\n"
        [feedback] = [one.revision for one in bus.whole_board().goals["release"].tasks["mail"].feedback][1:]
        assert feedback == 2
        bus.approve([ITEM])
        on(bus)
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_redo_twice_before_anybody_began(world: World) -> None:
    """An attempt's number is never used again, so that no old answer is taken for a new one."""
    with waiting_item(world) as bus:
        bus.redo(ITEM, "warmer")
        bus.redo(ITEM, "shorter")
        assert bus.whole_board().goals["release"].tasks["mail"].attempt == 2
        assert work_again(bus) == [["warmer", "shorter"]]
        item = bus.board().items[ITEM].item
        assert item is not None
        assert (item.state, item.revision, item.source.attempt) == ("awaiting_approval", 2, 2)
        nothing_to_object(bus)


@pytest.mark.parametrize(("there", "attempt"), [("expired", 1), ("failed", 2), ("rejected", 1)])
def test_redo_of_what_did_not_go_out(world: World, there: str, attempt: int) -> None:
    with approved_item(world) as bus:
        match there:
            case "expired":
                world.clock.forward(days=7)
                bus.conduct()
            case "failed":
                send(bus, REFUSED)
            case _:
                bus.reject(ITEM, "no")
        assert state(bus) == there
        bus.redo(ITEM, "again")
        work_again(bus)
        item = bus.board().items[ITEM].item
        assert item is not None
        assert (item.state, item.revision, item.attempt) == ("awaiting_approval", 2, attempt)
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_redo_of_an_approved_item(world: World) -> None:
    with approved_item(world) as bus:
        bus.redo(ITEM, "no, wait")
        assert send(bus) == []
        work_again(bus)
        assert state(bus) == "awaiting_approval"
        assert send(bus) == []
        nothing_to_object(bus)


def test_redo_opens_what_was_built_on_it(world: World) -> None:
    goal = b"""\
apiVersion: gitbus/v1
kind: Goal
id: chain
tasks:
  mail:
    capability: compose
    item: {name: news, channel: news, to: [a@b.example], subject: S, text: "${mail.outputs.text}"}
  after: {capability: count, needs: [mail], inputs: {text: "${mail.outputs.text}"}}
  last: {capability: count, needs: [after], inputs: {text: "${after.outputs.text}"}}
  beside: {capability: count, inputs: {text: alone}}
"""
    counted: list[tuple[str, str]] = []

    def count(task):
        counted.append((task.id, task.inputs["text"]))
        return {"text": task.inputs["text"] + "!"}

    def compose(task):
        return ok(task, "w", confidence=0.9, outputs={"text": str(len(task.feedback))})

    with world.open() as bus:
        bus.add_goal(goal)
        worker = function_worker(bus, "w", {"compose": compose, "count": count})
        step_all(bus, [worker])
        assert bus.board().goals["chain"].state == "done"
        counted.clear()
        bus.redo("chain.mail.news", "again")
        assert bus.board().goals["chain"].state == "running"
        step_all(bus, [worker])
        worker.close()
        assert counted == [("after", "1"), ("last", "1!")]
        part = bus.whole_board().goals["chain"]
        assert (part.state, part.tasks["last"].attempt, part.tasks["beside"].attempt) == ("done", 2, 1)
        nothing_to_object(bus)


def test_a_sent_item_whose_task_is_done_again_stays_sent(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, SENT)) == ["sent"]
        before = text(bus)
        with pytest.raises(Refused) as refused:
            bus.redo(ITEM, "one more time")
        assert refused.value.rule == "wrong-state"
        for act in (
            lambda: bus.reject(ITEM, "too late"),
            lambda: bus.withdraw(ITEM),
            lambda: bus.retry_item(ITEM),
        ):
            with pytest.raises(Refused):
                act()
        with pytest.raises(Refused):
            bus.revise(ITEM, {"body.txt": EDITED})
        assert (state(bus), text(bus)) == ("sent", before)
        assert send(bus) == []


def test_a_sent_item_below_one_that_is_redone_stays_sent(world: World) -> None:
    """Two items of one goal: the first is redone after the second, which needs it, was sent."""
    goal = b"""\
apiVersion: gitbus/v1
kind: Goal
id: two
tasks:
  first:
    capability: compose
    item: {name: news, channel: news, to: [a@b.example], subject: S, text: "${first.outputs.text}"}
  second:
    capability: compose
    needs: [first]
    item: {name: news, channel: news, to: [a@b.example], subject: S, text: "${second.outputs.text}"}
"""
    first, second = "two.first.news", "two.second.news"
    with world.open() as bus:
        bus.add_goal(goal)
        worker = function_worker(
            bus,
            "w",
            {
                "compose": lambda task: ok(
                    task, "w", confidence=0.9, outputs={"text": f"{task.id} {task.attempt}"}
                )
            },
        )
        step_all(bus, [worker])
        on(bus)
        bus.approve([second])
        assert outcomes(send(bus, SENT)) == ["sent"]
        bus.redo(first, "better")
        step_all(bus, [worker])
        worker.close()
        assert (state(bus, first), state(bus, second)) == ("awaiting_approval", "sent")
        assert bus.payload(second)["body.txt"] == b"second 1\n"
        assert bus.whole_board().goals["two"].results["second"].attempt == 2
        bus.approve([first])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


# --- revise


@pytest.mark.parametrize("approved", [False, True])
def test_revised_by_a_person(world: World, approved: bool) -> None:
    with waiting_item(world) as bus:
        on(bus)
        if approved:
            bus.approve([ITEM])
        bus.revise(ITEM, {"body.txt": EDITED})
        assert send(bus) == []
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.revision, part.approval, text(bus)) == (
            "awaiting_approval",
            2,
            None,
            EDITED,
        )
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_a_revision_of_what_failed_does_not_reuse_the_attempt(world: World) -> None:
    with approved_item(world) as bus:
        assert outcomes(send(bus, REFUSED)) == ["failed"]
        bus.revise(ITEM, {"body.txt": EDITED})
        bus.conduct()
        item = bus.board().items[ITEM].item
        assert item is not None
        assert (item.state, item.revision, item.attempt) == ("awaiting_approval", 2, 2)
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


@pytest.mark.parametrize("how", [UNKNOWN, SENT])
def test_what_is_out_of_the_house_is_not_revised(world: World, how) -> None:
    with approved_item(world) as bus:
        send(bus, how)
        with pytest.raises(Refused) as refused:
            bus.revise(ITEM, {"body.txt": EDITED})
        assert refused.value.rule == "wrong-state"
        assert text(bus) != EDITED


def edit_in_the_browser(world: World, *, more: str | None = None) -> None:
    """Commit an edit of the payload on the approval branch, as a git host's editor does."""
    world.git("fetch", "--quiet", "--prune", "origin")
    world.git("checkout", "--quiet", "-B", "edit", f"origin/gitbus/approve/{ITEM}")
    (world.clone / f"outbox/{ITEM}/body.txt").write_bytes(EDITED)
    if more:
        (world.clone / more).write_text("more\n")
        world.git("add", more)
    world.git("commit", "--quiet", "--all", "--no-gpg-sign", "-m", "Update body.txt")
    world.git("push", "--quiet", "origin", f"HEAD:refs/heads/gitbus/approve/{ITEM}")
    world.git("checkout", "--quiet", "main")


def test_edited_on_the_approval_branch(world: World) -> None:
    with waiting_item(world) as bus:
        on(bus)
        edit_in_the_browser(world)
        with pytest.raises(Refused) as refused:
            bus.approve([ITEM])
        assert refused.value.rule == "stale-branch"
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.revision, text(bus)) == ("awaiting_approval", 2, EDITED)
        assert part.approval is None
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_an_edit_that_was_merged_before_it_was_taken_in(world: World) -> None:
    with waiting_item(world) as bus:
        on(bus)
        edit_in_the_browser(world)
        world.git("reset", "--quiet", "--hard", "origin/main")
        world.git("merge", "--quiet", "--no-ff", "-S", "--no-edit", f"origin/gitbus/approve/{ITEM}")
        world.git("fetch", "--quiet", "origin")
        world.git("push", "--quiet", "origin", "HEAD:main")
        [refused] = send(bus)
        assert refused.outcome == "refused"
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.revision, text(bus)) == ("awaiting_approval", 2, EDITED)
        assert send(bus) == []
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_an_edit_of_more_than_the_payload_is_no_revision(world: World) -> None:
    with waiting_item(world) as bus:
        edit_in_the_browser(world, more="bus.yaml.orig")
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.revision) == ("awaiting_approval", 1)
        assert bus.hub.store.entry(bus.refs()[bus.hub.main], "bus.yaml.orig") is None
        bus.approve([ITEM])
        assert state(bus) == "approved"
        nothing_to_object(bus)


def test_main_brought_into_the_approval_branch_changes_nothing(world: World) -> None:
    """The host's button "update branch": the flip, with main merged into it."""
    with waiting_item(world) as bus:
        on(bus)
        world.git("fetch", "--quiet", "origin")
        world.git("checkout", "--quiet", "-B", "up", f"origin/gitbus/approve/{ITEM}")
        world.git("merge", "--quiet", "--no-gpg-sign", "--no-edit", "origin/main")
        world.git("push", "--quiet", "origin", f"HEAD:refs/heads/gitbus/approve/{ITEM}")
        branch = bus.refs()[paths.APPROVE + ITEM]
        bus.conduct()
        assert bus.refs()[paths.APPROVE + ITEM] == branch
        assert bus.board().items[ITEM].state == "awaiting_approval"
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_an_edit_after_the_approval_but_before_the_send(world: World) -> None:
    with waiting_item(world) as bus:
        on(bus)
        bus.approve([ITEM])
        edit_in_the_browser(world)
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.item is not None
        assert (part.state, part.item.revision, text(bus)) == ("awaiting_approval", 2, EDITED)
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        nothing_to_object(bus)


def test_an_edit_on_a_branch_that_was_brought_up_to_date(world: World) -> None:
    with waiting_item(world) as bus:
        bus.set_config("score.threshold", 0.85)
        world.git("fetch", "--quiet", "origin")
        world.git("checkout", "--quiet", "-B", "up", f"origin/gitbus/approve/{ITEM}")
        world.git("merge", "--quiet", "--no-gpg-sign", "--no-edit", "origin/main")
        world.git("push", "--quiet", "origin", f"HEAD:refs/heads/gitbus/approve/{ITEM}")
        edit_in_the_browser(world)
        bus.conduct()
        assert text(bus) == EDITED
        assert state(bus) == "awaiting_approval"
        nothing_to_object(bus)


@pytest.mark.parametrize(
    "file", ["item.yaml", "approval.yaml", "lease.1.yaml", "../../bus.yaml", "other.txt"]
)
def test_only_the_payload_is_revised(world: World, file: str) -> None:
    with waiting_item(world) as bus:
        before = bus.refs()[bus.hub.main]
        with pytest.raises(Refused) as refused:
            bus.revise(ITEM, {file: b"x\n"})
        assert refused.value.rule == "no-such-file"
        with pytest.raises(Refused) as refused:
            bus.revise(ITEM, {"body.txt": b"\0\n"})
        assert refused.value.rule == "not-text"
        assert bus.refs()[bus.hub.main] == before


TWO = b"""\
apiVersion: gitbus/v1
kind: Goal
id: two
tasks:
  both: {capability: both, channels: [news]}
  after:
    capability: after
    needs: [both]
    item: {name: third, channel: news, to: [c@partners.example], subject: s, text: "${after.outputs.text}"}
"""


def test_everything_that_was_made_of_the_old_outputs_is_done_again(world: World) -> None:
    made = []

    def both(task: Task) -> Answer:
        made.append(task.attempt)
        text = f"text {len(made)}\n".encode()
        message = {"to": ["a@partners.example"], "subject": "s", "text": "a.txt"}
        files = [
            {"path": "a.txt", "sha256": ids.sha256(text), "bytes": len(text), "media_type": "text/plain"}
        ]
        items = [{"name": name, "channel": "news", "message": message} for name in ("first", "second")]
        return Answer(ok(task, "w", artifacts=files, items=items), {"a.txt": text})

    with world.open() as bus:
        bus.add_goal(TWO)
        worker = function_worker(
            bus, "w", {"both": both, "after": lambda task: ok(task, "w", outputs={"text": "x\n"})}
        )
        step_all(bus, [worker])
        names = ["two.after.third", "two.both.first", "two.both.second"]
        assert {name: bus.board().items[name].state for name in names} == dict.fromkeys(
            names, "awaiting_approval"
        )
        bus.approve([names[2]])
        bus.redo(names[1], "say it better")
        assert {name: bus.board().items[name].state for name in names} == dict.fromkeys(names, "rejected")
        step_all(bus, [worker])
        worker.close()
        board = bus.board()
        assert {board.items[name].state for name in names} == {"awaiting_approval"}
        assert [board.items[name].item.revision for name in names] == [2, 2, 2]  # type: ignore[union-attr]
        assert made == [1, 2]
        nothing_to_object(bus)
