"""The hub's hook: real pushes by people, and what stays of the bus's branch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus.hub import create_clone, create_hub
from gitbus.hub.hook import UPDATE_HOOK, install_hook, only_ours
from tests.support.hubs import add_hook, first_commit

WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@acme.example")


@pytest.fixture(params=["main", "gitbus/bus"])
def branch(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def clones(tmp_path: Path, branch: str) -> tuple[Path, Path]:
    hub = create_hub(tmp_path / "h.git", branch)
    first_commit(hub, branch=branch)
    for name in ("ada", "bob"):
        create_clone(str(hub.git_dir), tmp_path / name, branch)
    return tmp_path / "ada", tmp_path / "bob"


def push(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "push", "-q", "origin", *arguments], cwd=clone, capture_output=True, text=True, check=False
    )


def commit(git: Callable[..., str], clone: Path, name: str) -> str:
    git(clone, *WHO, "commit", "-q", "--allow-empty", "-m", name)
    return git(clone, "rev-parse", "HEAD")


def test_a_fast_forward_passes_and_so_does_a_merge_on_top(
    clones, branch: str, git: Callable[..., str]
) -> None:
    ada, bob = clones
    commit(git, ada, "one")
    assert push(ada, branch).returncode == 0
    git(bob, "checkout", "-q", "-b", "side")
    commit(git, bob, "side")
    git(bob, "fetch", "-q")
    git(bob, "checkout", "-q", branch)
    git(bob, "merge", "-q", "--ff-only", f"origin/{branch}")
    git(bob, *WHO, "merge", "-q", "--no-ff", "side")
    assert push(bob, branch).returncode == 0


def test_a_pull_into_ones_own_commit_is_refused_and_the_advice_works(
    clones, branch: str, git: Callable[..., str], tmp_path: Path
) -> None:
    ada, bob = clones
    tip = commit(git, ada, "one")
    push(ada, branch)
    mine = commit(git, bob, "mine")
    git(bob, *WHO, "pull", "-q", "--no-rebase", "--no-ff", "--no-edit", "origin", branch)
    done = push(bob, branch)
    assert done.returncode != 0
    assert git(tmp_path / "h.git", "rev-parse", branch) == tip
    advice = [line for line in done.stderr.splitlines() if "git branch kept-" in line]
    command = advice[0].split("gitbus:")[1].strip()
    subprocess.run(["sh", "-c", command], cwd=bob, check=True, capture_output=True)
    kept = command.split()[2]
    assert git(bob, "merge-base", "--is-ancestor", mine, kept) == ""
    git(bob, *WHO, "cherry-pick", "--allow-empty", mine)
    assert push(bob, branch).returncode == 0


def test_neither_rewritten_nor_deleted(clones, branch: str, git: Callable[..., str], tmp_path: Path) -> None:
    ada, _ = clones
    first = git(ada, "rev-parse", "HEAD")
    tip = commit(git, ada, "one")
    push(ada, branch)
    git(tmp_path / "h.git", "config", "receive.denyDeleteCurrent", "ignore")
    assert push(ada, f"+{first}:refs/heads/{branch}").returncode != 0
    assert push(ada, f":refs/heads/{branch}").returncode != 0
    assert git(tmp_path / "h.git", "rev-parse", branch) == tip


def test_a_replace_ref_on_the_hub_hides_nothing(
    clones, branch: str, git: Callable[..., str], tmp_path: Path
) -> None:
    ada, bob = clones
    tip = commit(git, ada, "one")
    push(ada, branch)
    mine = commit(git, bob, "mine")
    git(bob, *WHO, "pull", "-q", "--no-rebase", "--no-ff", "--no-edit", "origin", branch)
    hiding = git(bob, "rev-parse", "HEAD")
    shown = git(bob, *WHO, "commit-tree", "-p", tip, "-p", mine, "-m", "honest", f"{hiding}^{{tree}}")
    assert push(bob, f"{shown}:refs/replace/{hiding}").returncode == 0
    assert push(bob, branch).returncode != 0
    assert git(tmp_path / "h.git", "rev-parse", branch) == tip


def test_other_branches_are_left_alone(clones, branch: str, git: Callable[..., str]) -> None:
    ada, _ = clones
    first = git(ada, "rev-parse", "HEAD")
    commit(git, ada, "one")
    other = "refs/heads/gitbus/workers/laptop"
    assert push(ada, f"HEAD:{other}").returncode == 0
    assert push(ada, f"+{first}:{other}").returncode == 0
    assert push(ada, f":{other}").returncode == 0


def test_only_ours_knows_a_foreign_hook(tmp_path: Path) -> None:
    bare = create_hub(tmp_path / "h.git", "main").git_dir
    assert only_ours(bare)
    (bare / "hooks/pre-push.sample").write_text("#!/bin/sh\n")
    (bare / "hooks/README").write_text("no program\n")
    assert only_ours(bare)
    (bare / "hooks/update").write_text(UPDATE_HOOK + "# more\n")
    assert not only_ours(bare)
    install_hook(bare)
    add_hook(bare, "post-receive")
    assert not only_ours(bare)
