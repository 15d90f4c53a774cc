"""The sender killed, and made to fail, at each of its own effects: nothing twice, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitbus.auditing import audit_bus
from tests.crash.driver import ROOT
from tests.support.world import ITEM, World, make_world, waiting_item

SENDER_EFFECTS = 40
"""More than a send of one item has; the last ones do not stop it at all."""

CHILD_EFFECTS = 10


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Return (where the world has to stand, a copy of it) with one approved item and sending on."""
    home = tmp_path_factory.mktemp("crash-home")
    kept = dict(os.environ)
    os.environ.update(HOME=str(home), GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=str(home / ".gitconfig"))
    folder = tmp_path_factory.mktemp("crash") / "world"
    folder.mkdir()
    world = make_world(folder)
    with waiting_item(world) as bus:
        bus.approve([ITEM])
        bus.conduct()
        bus.set_config("sending.enabled", True)
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy, symlinks=True)
    yield folder, copy
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture
def world(template: tuple[Path, Path]) -> World:
    folder, copy = template
    shutil.rmtree(folder)
    shutil.copytree(copy, folder, symlinks=True)
    return World(folder)


def send(world: World, *stop: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.crash.driver",
            str(world.clone),
            world.clock().isoformat(),
            *(stop or ("count", "0")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def holds(world: World) -> str:
    """Restart everything until nothing moves any more; return the item's last state."""
    restarted = send(world)
    assert restarted.returncode == 0, restarted.stderr
    world.clock.forward(hours=1)
    with world.open() as bus:
        bus.conduct()
    again = send(world)
    assert again.returncode == 0, again.stderr
    with world.open() as bus:
        bus.conduct()
        tip = bus.refs()[bus.hub.main]
        part = bus.board().items[ITEM]
        audited = audit_bus(bus.hub.store, tip, bus.root, now=world.clock())
        assert audited.findings == ()
        messages = len(world.messages())
        assert part.state in ("sent", "stuck")
        assert messages == 1 if part.state == "sent" else messages <= 1
        assert len(part.leases) >= 1
    quiet = send(world)
    assert quiet.returncode == 0, quiet.stderr
    with world.open() as bus:
        assert bus.refs()[bus.hub.main] == tip
    assert len(world.messages()) == messages
    world.git("--git-dir", str(world.hub), "fsck", "--strict")
    return part.state


def numbers(most: int, quick: tuple[int, ...]) -> list[object]:
    return [n if n in quick else pytest.param(n, marks=pytest.mark.long) for n in range(1, most + 1)]


def test_undisturbed(world: World) -> None:
    done = send(world)
    assert f"{ITEM} sent" in done.stdout, done.stderr
    assert int(done.stdout.rsplit("effects", 1)[1]) < SENDER_EFFECTS
    assert holds(world) == "sent"


@pytest.mark.parametrize("n", numbers(SENDER_EFFECTS, (9,)))
def test_killed_at_each_effect(world: World, n: int) -> None:
    send(world, "kill", str(n))
    holds(world)


@pytest.mark.parametrize("n", numbers(SENDER_EFFECTS, (6,)))
def test_failing_at_each_effect(world: World, n: int) -> None:
    send(world, "fail", str(n))
    holds(world)


@pytest.mark.parametrize("what", ["kill", pytest.param("fail", marks=pytest.mark.long)])
@pytest.mark.parametrize("n", numbers(CHILD_EFFECTS, (3,)))
def test_the_transmission_dies_at_each_effect(world: World, what: str, n: int) -> None:
    send(world, "count", "0", what, str(n))
    world.clock.forward(minutes=2)
    holds(world)


@pytest.mark.long
def test_the_journal_is_lost_after_the_lease(world: World) -> None:
    killed = next(n for n in range(8, SENDER_EFFECTS) if _leased(world, n))
    assert killed
    shutil.rmtree(world.clone / ".git" / "gitbus" / "journal")
    assert holds(world) == "stuck"


def _leased(world: World, n: int) -> bool:
    send(world, "kill", str(n))
    with world.open() as bus:
        return bus.board().items[ITEM].state == "sending"
