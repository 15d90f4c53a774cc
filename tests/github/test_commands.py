"""The commands that begin a bus on GitHub and that its workflows ask: init, due, check, work, and the password."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.world import ITEM, World, make_world, waiting_item

ROOT = Path(__file__).resolve().parents[2]


def gitbus(folder: Path, *arguments: str, expect: int = 0, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gitbus", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- init


def test_it_works_offline_and_says_what_is_left(tmp_path: Path) -> None:
    """Without a network, without a git identity, without a key: an account on GitHub is enough."""
    said = gitbus(tmp_path, "init", "acme", "--github", "--approver", "ada-l:1234567")
    bus = yaml.safe_load((tmp_path / "acme" / "bus.yaml").read_text("utf-8"))
    assert bus["approval"] == {"proof": "github"}
    (ada,) = bus["people"]
    assert ada["github"] == {"login": "ada-l", "id": 1234567}
    assert ada["email"] == "1234567+ada-l@users.noreply.github.com"
    for left in ("git remote set-url origin", "gitbus init . --github --apply", "see that all is well"):
        assert f"left: {left}" in said
    root = subprocess.run(
        ["git", "-C", str(tmp_path / "acme"), "rev-list", "--max-parents=0", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert root in (tmp_path / "acme" / ".github" / "workflows" / "gitbus.yml").read_text("utf-8")
    assert "audit ok" in gitbus(tmp_path / "acme", "audit")


@pytest.mark.parametrize(
    ("arguments", "expect", "said"),
    [
        (["--github"], 1, "--approver LOGIN:ID"),
        (["--github", "--approver", "ada"], 2, "no LOGIN:ID"),
        (["--app"], 2, "go with --github"),
        (["--github", "--approver", "ada:1", "--branch", "a b"], 1, "cannot name the branch"),
        (["--github", "--approver", "ada:1", "--branch", "it's"], 1, "cannot name the branch"),
    ],
)
def test_what_it_refuses(tmp_path: Path, arguments: list[str], expect: int, said: str) -> None:
    assert said in gitbus(tmp_path, "init", "acme", *arguments, expect=expect)
    assert not (tmp_path / "acme").exists(), "then nothing was made"


@pytest.mark.long
def test_again_it_renews_the_files(tmp_path: Path) -> None:
    gitbus(tmp_path, "init", "acme", "--github", "--approver", "ada:1")
    clone = tmp_path / "acme"
    at = clone / ".github" / "workflows"
    before = (at / "gitbus.yml").read_bytes()
    (at / "gitbus.yml").write_text("spoilt", "utf-8")
    gitbus(clone, "init", ".", "--github")
    assert (at / "gitbus.yml").read_bytes() == before
    gitbus(clone, "init", ".", "--github", "--app")
    assert sorted(path.name for path in at.iterdir()) == [
        "gitbus-check.yml",
        "gitbus-conduct.yml",
        "gitbus-send.yml",
        "gitbus-work.yml",
    ]
    assert "GitHub App" in gitbus(clone, "init", ".", "--github"), "it stays with the App"
    assert not (at / "gitbus.yml").exists()


@pytest.mark.long
def test_apply_needs_a_github(tmp_path: Path) -> None:
    gitbus(tmp_path, "init", "acme", "--github", "--approver", "ada:1")
    said = gitbus(tmp_path / "acme", "init", ".", "--github", "--apply", expect=1)
    assert "is no repository on GitHub" in said


# --- due, work, check


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a bus with its hub on this machine."""
    return make_world(tmp_path)


GOAL = "apiVersion: gitbus/v1\nkind: Goal\nid: g\ntasks:\n  a: {capability: count}\n"
WORKER = "apiVersion: gitbus/v1\nkind: Worker\nid: counter\ncapabilities: [count]\nrun: [echo, three]\n"


def declare(world: World, text: str) -> None:
    (world.clone / "workers").mkdir(exist_ok=True)
    (world.clone / "workers" / "counter.yaml").write_text(text, "utf-8")
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message", "A worker")
    world.git("push", "--quiet", "origin", "HEAD:main")


@pytest.mark.long
def test_due_names_the_workers_that_have_tasks(world: World) -> None:
    declare(world, WORKER + "ci: true\n")
    (world.folder / "goal.yaml").write_text(GOAL, "utf-8")
    assert gitbus(world.clone, "due") == "workers=[]\nsend=false\nproposed=false\n"
    gitbus(world.clone, "goal", "add", str(world.folder / "goal.yaml"))
    gitbus(world.clone, "conduct")
    assert gitbus(world.clone, "due").startswith('workers=["counter"]\n')
    gitbus(world.clone, "work", "--name", "counter")
    assert gitbus(world.clone, "due").startswith("workers=[]\n"), "it has answered"
    gitbus(world.clone, "conduct")
    assert "done" in gitbus(world.clone, "status")


@pytest.mark.long
def test_a_declared_worker_needs_to_say_what_it_runs(world: World) -> None:
    declare(world, WORKER.replace("run: [echo, three]\n", "ci: true\n"))
    assert "does not say what to run" in gitbus(world.clone, "work", "--name", "counter", expect=1)
    assert "does not say what to run" in gitbus(world.clone, "work", "--name", "nobody", expect=1)
    assert "needs --name" in gitbus(world.clone, "work", "--name", "x", "--capability", "count", expect=2)


@pytest.mark.long
def test_what_waits_is_checked_and_shown(world: World) -> None:
    waiting_item(world).close()
    assert "proposed=true" in gitbus(world.clone, "due")
    shown = gitbus(world.clone, "check", "--proposed", "--format", "markdown")
    assert f"Merging approves `{ITEM}`" in shown
    assert "list@partners.example" in shown
    assert gitbus(world.clone, "check", "--proposed", "--format", "github") == ""
    world.git("fetch", "--quiet", "origin")
    world.git("checkout", "--quiet", "--detach", f"origin/gitbus/approve/{ITEM}")
    assert "list@partners.example" in gitbus(world.clone, "check", "--format", "markdown")
    path = world.clone / "outbox" / ITEM / "approval.yaml"
    path.write_text(path.read_text("utf-8") + "more: 1\n", "utf-8")
    world.git("commit", "--quiet", "--all", "--message", "More")
    world.git("push", "--quiet", "origin", f"HEAD:refs/heads/gitbus/approve/{ITEM}")
    said = gitbus(world.clone, "check", "--proposed", "--format", "github", expect=1)
    assert said.startswith(f"::error file=outbox/{ITEM}/approval.yaml,line=")
    assert "--report goes with --proposed" in gitbus(world.clone, "check", "--report", expect=2)


# --- the password


def answer(question: str, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "gitbus.askpass", question],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


USERNAME = "Username for 'https://github.com': "
PASSWORD = "Password for 'https://x-access-token@github.com': "


def test_git_is_given_the_token_of_the_environment() -> None:
    assert answer(USERNAME, GH_TOKEN="t") == (0, "x-access-token\n")
    assert answer(PASSWORD, GH_TOKEN="t", GITHUB_TOKEN="u") == (0, "t\n")
    assert answer(PASSWORD, GITHUB_TOKEN="u") == (0, "u\n")
    assert answer(PASSWORD) == (1, "")


@pytest.mark.parametrize(
    "question",
    [
        "Password for 'https://github.com.evil.example': ",
        "Password for 'https://github.com@evil.example': ",
        "Password for 'http://github.com': ",
        "Enter passphrase for key '/home/ada/.ssh/id': ",
        "",
    ],
)
def test_nobody_else_is_given_the_token(question: str) -> None:
    assert answer(question, GH_TOKEN="t") == (1, "")


def test_an_own_server_is_given_the_token() -> None:
    there = {"GH_TOKEN": "t", "GITHUB_SERVER_URL": "https://git.acme.example:8443"}
    assert answer("Password for 'https://x-access-token@git.acme.example:8443': ", **there) == (0, "t\n")
    assert answer(PASSWORD, **there) == (1, "")
