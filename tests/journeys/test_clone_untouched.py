"""A person's own work in the clone in which all actors run: nothing of it is ever touched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus.hub.push import PushHub
from tests.journeys.driving import SENT, as_direct, as_push, nothing_to_object, on, outcomes, send
from tests.support.world import ITEM, World, function_worker, make_world, step_all, waiting_item


def work_of_his_own(world: World) -> None:
    """Leave the clone as a person in the middle of something would."""
    clone = world.clone
    world.git("checkout", "--quiet", "-b", "draft")
    (clone / "notes.txt").write_text("one\n")
    world.git("add", "notes.txt")
    world.git("commit", "--quiet", "--no-gpg-sign", "-m", "notes")
    (clone / "notes.txt").write_text("one, stashed\n")
    world.git("stash", "push", "--quiet")
    world.git("checkout", "--quiet", "--detach", "main")
    (clone / "bus.yaml").write_text((clone / "bus.yaml").read_text() + "# not yet committed\n")
    (clone / "README.md").write_text("staged\n")
    world.git("add", "README.md")
    (clone / "README.md").write_text("staged, and edited again\n")
    (clone / "untracked").mkdir()
    (clone / "untracked" / "file").write_bytes(b"\0\1")
    (clone / "outbox").mkdir(exist_ok=True)
    (clone / "outbox" / "mine.txt").write_text("in the way\n")


def snapshot(world: World) -> dict[str, str]:
    """Return everything in a clone that is its user's."""
    git = world.clone / ".git"
    files = [path for path in world.clone.rglob("*") if path.is_file() and git not in path.parents]
    mine = [git / name for name in ("HEAD", "index", "config", "logs/HEAD", "logs/refs/stash", "ORIG_HEAD")]
    return {
        "refs": world.git("for-each-ref", "refs/heads", "refs/stash", "refs/tags", "refs/remotes"),
        "stash": world.git("stash", "list", "-p"),
        "hooks": str(sorted(path.name for path in (git / "hooks").glob("*"))),
        "worktrees": world.git("worktree", "list"),
        **{
            str(path.relative_to(world.clone)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (*files, *mine)
            if path.exists()
        },
    }


@pytest.mark.parametrize("way", [as_direct, as_push])
def test_the_whole_way_in_a_clone_with_work_in_it(tmp_path: Path, way: Callable[[World], None]) -> None:
    world = make_world(tmp_path)
    way(world)
    work_of_his_own(world)
    before = snapshot(world)
    with waiting_item(world, confidence=0.5) as bus:
        assert isinstance(bus.hub, PushHub) == (way is as_push)
        bus.redo(ITEM, "again")
        worker = function_worker(
            bus, "laptop", {"write": lambda task: {"title": "T"}, "compose": lambda task: {"text": "x"}}
        )
        step_all(bus, [worker])
        worker.close()
        bus.revise(ITEM, {"body.txt": b"better\n"})
        bus.conduct()
        on(bus)
        bus.review(ITEM, "ok")
        bus.approve([ITEM])
        assert outcomes(send(bus, SENT)) == ["sent"]
        bus.conduct()
        world.clock.forward(days=31)
        bus.conduct()
        assert bus.board().items == {}
        nothing_to_object(bus)
    assert snapshot(world) == before
    assert world.git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.long
@pytest.mark.parametrize("way", [as_direct, as_push])
def test_by_the_command_line(tmp_path: Path, way: Callable[[World], None]) -> None:
    world = make_world(tmp_path)
    way(world)
    (tmp_path / "goal.yaml").write_text(
        "apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks: {t: {capability: say}}\n"
    )
    work_of_his_own(world)
    before = snapshot(world)
    world.gitbus("goal", "add", str(tmp_path / "goal.yaml"))
    for arguments in (
        ["work", "--name", "w", "--capability", "say", "--once", "--", "true"],
        ["conduct"],
        ["work", "--name", "w", "--capability", "say", "--once", "--", "true"],
        ["conduct"],
    ):
        world.gitbus(*arguments)
    assert snapshot(world) == before
    with world.open() as bus:
        assert bus.board().goals["g"].state == "done"
