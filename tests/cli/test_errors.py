"""What the command line says when something is wrong: one line that helps, and the right exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from tests.support.world import ITEM, make_world, waiting_item


def gitbus(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gitbus", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **env},
        stdin=subprocess.DEVNULL,
    )


def test_where_there_is_no_repository(tmp_path: Path) -> None:
    done = gitbus(tmp_path, "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[no-repository]" in done.stderr
    assert "gitbus init" in done.stderr


def test_where_there_is_no_bus(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    done = gitbus(tmp_path, "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[no-bus]" in done.stderr


def test_where_the_hub_is_gone(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    shutil.move(world.hub, tmp_path / "elsewhere")
    done = gitbus(world.clone, "status")
    assert (done.returncode, done.stdout) == (3, "")
    assert "[hub-gone]" in done.stderr


@pytest.mark.long
def test_a_broken_bus_is_named_and_the_last_good_one_serves(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    path = world.clone / "bus.yaml"
    path.write_text(path.read_text("utf-8").replace("people:", "peeple:"), "utf-8")
    world.git("commit", "--quiet", "--no-gpg-sign", "-am", "slip")
    world.git("push", "--quiet", "origin", "HEAD:main")
    done = gitbus(world.clone, "status", "--json")
    assert done.returncode == 0
    [problem] = json.loads(done.stdout)["problems"]
    line = path.read_text("utf-8").split("\n").index("peeple:") + 1
    assert (problem["path"], problem["line"]) == ("bus.yaml", line)
    assert "peeple" in problem["message"]
    assert gitbus(world.clone, "conduct").returncode == 0
    assert gitbus(world.clone, "send").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["goal", "add"],
        ["approve"],
        ["send", "--once", "--watch"],
        ["config", "set", "novalue"],
        ["review", "--nope"],
    ],
)
def test_usage(tmp_path: Path, arguments: list[str]) -> None:
    world = make_world(tmp_path)
    done = gitbus(world.clone, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_nothing_asks_where_nobody_answers(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    waiting_item(world).close()
    done = gitbus(world.clone, "approve", ITEM)
    assert done.returncode == 1
    assert "[not-shown]" in done.stderr
    assert gitbus(world.clone, "review", ITEM).returncode == 0
    assert gitbus(world.clone, "approve", ITEM).returncode == 0


def test_ci_needs_a_pinned_root(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    done = gitbus(world.clone, "send", CI="true")
    assert done.returncode == 1
    assert "[no-root]" in done.stderr
    root = world.git("rev-list", "--max-parents=0", "HEAD")
    assert gitbus(world.clone, "send", "--root", root, CI="true").returncode == 0


def test_goal_add_says_where(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    (world.clone / "g.yaml").write_text(
        "apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks:\n  a: {capability: x, needs: [b]}\n  b: {capability: x, needs: [a]}\n",
        "utf-8",
    )
    done = gitbus(world.clone, "goal", "add", "g.yaml")
    assert done.returncode == 1
    assert "g.yaml:5:" in done.stderr
    assert "→" in done.stderr
    assert "[cycle]" in done.stderr


def test_output_is_plain_in_a_pipe(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    waiting_item(world).close()
    for arguments in (["status"], ["review", ITEM], ["log"]):
        assert "\x1b" not in gitbus(world.clone, *arguments).stdout


def test_status_as_it_is_published(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    waiting_item(world).close()
    status = json.loads(gitbus(world.clone, "status", "--json").stdout)
    assert set(status) == {"apiVersion", "kind", "main", "sending", "goals", "items", "workers", "missing"}
    assert set(status["items"][0]) == {
        "id",
        "state",
        "channel",
        "confidence",
        "digest",
        "attempt",
        "revision",
    }
    assert set(status["goals"][0]["tasks"][0]) == {"id", "state", "attempt", "worker", "capability", "reason"}


def test_every_command_shows_an_example() -> None:
    from gitbus.cli.app import app

    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        for inner in getattr(command, "commands", {name: command}).values():
            assert "Example: gitbus " in (inner.help or ""), name


def test_start_up_imports_little() -> None:
    code = "import sys, gitbus.cli as c; c.run(['--version']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for module in ("pydantic", "ruamel.yaml", "git", "typer", "rich"):
        assert f"'{module}'" not in done.stdout
    code = "import sys, gitbus.cli as c; c.run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for module in ("pydantic", "ruamel.yaml", "git", "github", "jsonschema"):
        assert f"'{module}'" not in done.stderr


def test_a_bug_is_one_line_and_a_file(tmp_path: Path) -> None:
    code = (
        "import sys, gitbus.cli as c\n"
        "def boom(arguments): raise RuntimeError('secret details')\n"
        "c._invoke = boom\n"
        "sys.exit(c.run(['status']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "secret details" not in done.stderr
    assert "secret details" in next(tmp_path.glob("gitbus-bug-*")).read_text("utf-8")
