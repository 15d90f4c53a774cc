"""Which hub a folder belongs to, and which of the two ways leads there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitbus.errors import Misuse, NoBus, Refused, Unreachable
from gitbus.hub import create_clone, create_hub, find_clone, local_state, open_hub
from gitbus.hub.direct import DirectHub
from gitbus.hub.push import PushHub
from gitbus.hub.run import Git
from tests.support.hubs import add_hook, first_commit


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Any]]:
    hubs: list[Any] = []

    def opener(folder: Path) -> Any:
        hubs.append(open_hub(folder))
        return hubs[-1]

    yield opener
    for hub in hubs:
        hub.close()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    git = create_hub(tmp_path / "acme.git", "main")
    first_commit(git)
    return git.git_dir


@pytest.fixture
def clone(bare: Path, tmp_path: Path) -> Path:
    create_clone(str(bare), tmp_path / "acme", "main")
    return tmp_path / "acme"


def test_from_anywhere_in_a_clone(clone: Path, bare: Path, opened, git: Callable[..., str]) -> None:
    hub = opened(clone / "goals/a")
    assert isinstance(hub, DirectHub)
    assert hub.git.git_dir == bare
    git(clone, "worktree", "add", "-q", "--detach", str(clone.parent / "linked"))
    assert find_clone(clone.parent / "linked").git_dir == clone / ".git"
    assert isinstance(opened(clone.parent / "linked"), DirectHub)


@pytest.mark.parametrize("url", ["../acme.git", "../acme", "file://{bare}", "{bare}/"])
def test_every_way_to_write_a_path(
    clone: Path, bare: Path, opened, git: Callable[..., str], url: str
) -> None:
    if url == "../acme":
        clone = clone.rename(clone.with_name("elsewhere"))
    git(clone, "remote", "set-url", "origin", url.format(bare=bare))
    hub = opened(clone)
    assert isinstance(hub, DirectHub)
    assert hub.git.git_dir == bare
    add_hook(bare, "post-receive")
    hub = opened(clone)
    assert isinstance(hub, PushHub)
    assert hub.look()


def test_no_repository(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(NoBus) as caught:
            find_clone(folder)
        assert caught.value.rule == "no-repository"


def test_a_repository_of_somebody_else_is_not_used(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(clone / ".git", 12345, 12345)
    os.chown(clone, 12345, 12345)
    with pytest.raises(NoBus):
        find_clone(clone)


def test_a_repository_without_a_bus(tmp_path: Path, opened, git: Callable[..., str]) -> None:
    git(tmp_path, "init", "-q", "project")
    with pytest.raises(NoBus) as caught:
        opened(tmp_path / "project")
    assert caught.value.rule == "no-bus"
    hub = create_hub(tmp_path / "h.git", "main")
    first_commit(hub, {"README": b"no bus\n"})
    create_clone(str(hub.git_dir), tmp_path / "clone", "main")
    with pytest.raises(NoBus):
        opened(tmp_path / "clone")
    add_hook(hub.git_dir, "post-receive")
    with pytest.raises(NoBus):
        opened(tmp_path / "clone")


def test_a_bare_repository_is_its_own_hub(bare: Path, opened) -> None:
    assert isinstance(opened(bare), DirectHub)


def test_a_bare_clone_can_be_read_without_its_hub(
    bare: Path, tmp_path: Path, opened, git: Callable[..., str]
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(bare), "copy.git")
    bare.rename(tmp_path / "away")
    with pytest.raises(Unreachable):
        opened(tmp_path / "copy.git")
    hub = open_hub(tmp_path / "copy.git", offline=True)
    assert hub.store.line(hub.look()[hub.main])
    hub.close()


def test_a_branch_beside_a_project_is_its_own_hub(tmp_path: Path, opened, git: Callable[..., str]) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "project")
    project = tmp_path / "project"
    first_commit(Git(project / ".git"), branch="gitbus/bus")
    with pytest.raises(NoBus):
        opened(project)
    git(project, "config", "gitbus.branch", "gitbus/bus")
    hub = opened(project)
    assert (hub.main, list(hub.look())) == ("refs/heads/gitbus/bus", ["refs/heads/gitbus/bus"])
    git(project, "checkout", "-q", "gitbus/bus")
    with pytest.raises(NoBus):
        opened(project)


@pytest.mark.parametrize("foreign", [False, True])
def test_the_branch(
    bare: Path, clone: Path, opened, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch, foreign: bool
) -> None:
    if foreign:
        add_hook(bare, "post-receive")
    for branch in ("gitbus/bus", "other"):
        git(bare, "update-ref", f"refs/heads/{branch}", "main")
    hub = opened(clone)
    assert hub.main == "refs/heads/main"
    git(clone, "config", "gitbus.branch", "gitbus/bus")
    hub = opened(clone)
    assert hub.main == "refs/heads/gitbus/bus"
    assert hub.main in hub.look()
    monkeypatch.setenv("GITBUS_BRANCH", "other")
    hub = opened(clone)
    assert hub.main == "refs/heads/other"
    assert hub.look().keys() == {"refs/heads/other", "refs/heads/gitbus/bus"}


def test_a_branch_that_is_not_tracked_yet_is_asked_for(
    bare: Path, clone: Path, opened, git: Callable[..., str]
) -> None:
    add_hook(bare, "post-receive")
    first_commit(Git(bare), branch="gitbus/bus")
    git(bare, "update-ref", "refs/heads/main", _without_bus(Git(bare)))
    git(clone, "fetch", "-q", "-f", "origin", "+main:refs/remotes/origin/main")
    assert opened(clone).main == "refs/heads/gitbus/bus"


def _without_bus(git: Git) -> str:
    first_commit(git, {"README": b"a project\n"}, branch="project")
    return git.text("rev-parse", "project")


def test_direct_only_where_nothing_else_has_a_say(
    bare: Path, clone: Path, opened, git: Callable[..., str], tmp_path: Path
) -> None:
    git(bare, "config", "core.hooksPath", "hooks")
    assert isinstance(opened(clone), PushHub)
    git(bare, "config", "--unset", "core.hooksPath")
    git(clone, "config", "remote.origin.pushurl", "https://host.example/acme.git")
    assert isinstance(opened(clone), PushHub)
    git(clone, "config", "--unset", "remote.origin.pushurl")
    git(tmp_path, "config", "--global", "core.hooksPath", str(tmp_path))
    assert isinstance(opened(clone), DirectHub)


def test_another_remote_can_be_the_hub(bare: Path, clone: Path, opened, git: Callable[..., str]) -> None:
    git(clone, "remote", "rename", "origin", "bus")
    with pytest.raises(NoBus):
        opened(clone)
    git(clone, "config", "gitbus.remote", "bus")
    assert isinstance(opened(clone), DirectHub)
    add_hook(bare, "post-receive")
    hub = opened(clone)
    assert hub.look() == opened(bare).look()


def test_a_hub_that_is_gone(clone: Path, bare: Path, opened) -> None:
    bare.rename(bare.with_name("away"))
    with pytest.raises(Unreachable) as caught:
        opened(clone)
    assert caught.value.rule == "hub-gone"
    bare.mkdir()
    with pytest.raises(Unreachable):
        opened(clone)


def test_local_state_is_the_users_own(clone: Path) -> None:
    state = local_state(clone)
    assert state == clone / ".git/gitbus"
    assert state.stat().st_mode & 0o777 == 0o700
    assert local_state(clone / "goals") == state


def test_a_hub_is_made_for_gitbus(bare: Path, clone: Path, git: Callable[..., str], tmp_path: Path) -> None:
    assert git(bare, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert [path.name for path in (bare / "hooks").iterdir()] == ["update"]
    assert git(bare, "config", "gc.auto") == "0"
    assert git(bare, "config", "receive.fsckObjects") == "true"
    assert git(clone, "config", "pull.ff") == "only"
    assert git(clone, "status", "--porcelain") == ""
    with pytest.raises(Refused) as caught:
        create_hub(bare, "main")
    assert caught.value.rule == "exists"
    with pytest.raises(Refused):
        create_clone(str(bare), clone, "main")
    for name in ("", "a b", "-x", "a..b", "x.lock"):
        with pytest.raises(Misuse):
            create_hub(tmp_path / "new.git", name)
    with pytest.raises(Unreachable):
        create_clone(str(bare), tmp_path / "new", "nothing")


def test_what_the_user_has_set_up_does_not_get_into_a_hub(tmp_path: Path, git: Callable[..., str]) -> None:
    template = tmp_path / "template/hooks"
    template.mkdir(parents=True)
    add_hook(template.parent, "post-receive")
    add_hook(template.parent, "post-checkout", f"#!/bin/sh\ntouch {tmp_path}/trapped\n")
    git(tmp_path, "config", "--global", "init.templateDir", str(template.parent))
    git(tmp_path, "config", "--global", "core.hooksPath", str(template))
    git(tmp_path, "config", "--global", "clone.defaultRemoteName", "other")
    hub = create_hub(tmp_path / "h.git", "main")
    first_commit(hub)
    create_clone(str(hub.git_dir), tmp_path / "c", "main")
    assert [path.name for path in (hub.git_dir / "hooks").iterdir()] == ["update"]
    assert git(tmp_path / "c", "remote") == "origin"
    assert not (tmp_path / "trapped").exists()
