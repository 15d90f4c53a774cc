"""What every hub promises about all that surrounds it: the user's own work, hostile settings, many at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus.errors import Refused, Unreachable
from gitbus.hub import RefMove
from gitbus.hub.push import PushHub
from tests.contracts.kinds import WORKER, direct, every, pushed
from tests.support.hubs import MAIN, Made, advance, commit_on

pytestmark = pytest.mark.long

RACER = Path(__file__).with_name("racer.py")


def _state(clone: Path, git: Callable[..., str]) -> dict[str, object]:
    """Return everything of a clone that belongs to its user."""
    own = {"objects", "gitbus"}
    inside = {
        str(path.relative_to(clone)): path.read_bytes()
        for path in sorted(clone.rglob("*"))
        if path.is_file() and path.relative_to(clone).parts[1:2] != ("refs",)
        if not (path.relative_to(clone).parts[0] == ".git" and path.relative_to(clone).parts[1] in own)
    }
    kept = [line for line in git(clone, "show-ref").splitlines() if " refs/gitbus/" not in line]
    return {"files": inside, "refs": kept, "stash": git(clone, "stash", "list")}


@every
def test_nothing_of_the_users_own_is_touched(made: Made, git: Callable[..., str]) -> None:
    ada, clone = made.open("ada"), made.clone("ada")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    (clone / "bus.yaml").write_text("stashed\n")
    git(clone, *who, "stash")
    git(clone, *who, "commit", "-q", "--allow-empty", "-m", "mine")
    git(clone, "checkout", "-q", "--detach")
    (clone / "bus.yaml").write_text("staged\n")
    git(clone, "add", "bus.yaml")
    (clone / "bus.yaml").write_text("edited\n")
    (clone / "goals/new").write_text("untracked\n")
    before = _state(clone, git)
    tip = advance(made.open("bob"), {"b": b"1"})
    ada.look()
    new = commit_on(ada, (tip,), {"bus.yaml": b"changed\n"})
    assert ada.move([RefMove(MAIN, tip, new), RefMove(WORKER, None, new)]).done == {MAIN, WORKER}
    ada.store.line(new)
    ada.store.remerge(new, made.root)
    assert _state(clone, git) == before


@every
def test_a_clean_up_by_the_user_takes_nothing_that_is_needed(made: Made, git: Callable[..., str]) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    waiting = commit_on(bob, (advance(bob, {"b": b"1"}),), {"c": b"1"})
    assert bob.move([RefMove(WORKER, None, waiting)]).moved(WORKER)
    refs = ada.look()
    for name in ("ada", "bob"):
        git(made.clone(name), "gc", "--quiet", "--prune=now")
    for hub in (ada, made.open("ada")):
        assert [hub.store.commit(oid).oid for oid in refs.values()] == list(refs.values())
        assert len(hub.store.diff(None, hub.store.commit(waiting).tree)) == 4


@every
def test_a_hostile_surrounding_changes_nothing(
    made: Made, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone, trap = made.clone("ada"), tmp_path / "trapped"
    tip = advance(made.open("bob"), {"lease": b"1"})
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    git(clone, "fetch", "-q")
    git(clone, "replace", tip, made.root)
    (clone / ".git/info").mkdir(exist_ok=True)
    (clone / ".git/info/grafts").write_text(f"{tip}\n")
    (clone / ".git/info/attributes").write_text("* filter=bad diff=bad merge=bad\n")
    for key in (
        "core.fsmonitor",
        "filter.bad.smudge",
        "filter.bad.clean",
        "merge.bad.driver",
        "diff.bad.command",
    ):
        git(clone, "config", key, str(program))
    (clone / ".git/hooks").mkdir(exist_ok=True)
    for name in ("pre-push", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (clone / ".git/hooks" / name).write_bytes(program.read_bytes())
        (clone / ".git/hooks" / name).chmod(0o755)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_SHALLOW_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_NAMESPACE", "other")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(program))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.hooksPath={program.parent}'")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    ada = made.open("ada")
    assert ada.look()[MAIN] == tip
    assert ada.store.line(tip) == [tip, made.root]
    assert list(ada.store.between([tip], [], touching=["lease"])) == [tip]
    new = commit_on(ada, (tip,), {"a": b"1"})
    side = commit_on(ada, (made.root,), {"bus.yaml": b"kind: Other\n"})
    assert ada.store.remerge(new, side) is not None
    assert ada.move([RefMove(MAIN, tip, new)]).moved(MAIN)
    assert ada.store.line(ada.look()[MAIN]) == [new, tip, made.root]
    assert not trap.exists()


@direct
def test_a_remote_that_would_run_a_program_is_refused(
    made: Made, git: Callable[..., str], tmp_path: Path
) -> None:
    clone = made.clone("ada")
    git(clone, "remote", "set-url", "origin", f"ext::sh -c touch% {tmp_path}/trapped")
    with pytest.raises(Refused) as caught:
        made.open("ada")
    assert caught.value.rule == "remote-runs-program"
    hub = PushHub(made.open("bob").user, "origin", MAIN)
    git(made.clone("bob"), "remote", "set-url", "origin", f"ext::sh -c touch% {tmp_path}/trapped")
    git(made.clone("bob"), "config", "protocol.ext.allow", "always")
    with pytest.raises(Unreachable):
        hub.look()
    hub.close()
    assert not (tmp_path / "trapped").exists()


def _race(made: Made, processes: int, changes: int) -> None:
    command = [sys.executable, str(RACER)]
    clones = [made.clone(f"clone{number % 4}") for number in range(processes)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    running = [
        subprocess.Popen([*command, str(clone), str(number), str(changes)], env=env)
        for number, clone in enumerate(clones)
    ]
    assert [one.wait() for one in running] == [0] * processes
    hub = made.open("judge")
    line = hub.store.line(hub.look()[MAIN])
    subjects = [hub.store.commit(oid).subject for oid in line]
    wanted = {f"{number}/{change}" for number in range(processes) for change in range(changes)}
    assert sorted(subjects) == sorted(wanted | {"begin"})
    names = set(hub.store.tree(hub.store.commit(line[0]).tree))
    assert {f"{number}-{change}" for number in range(processes) for change in range(changes)} <= names
    made.fsck()


@pytest.mark.parametrize(
    "made",
    ["direct", "path", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("http", "file"))],
    indirect=True,
)
def test_changes_made_at_once_are_neither_lost_nor_made_twice(made: Made) -> None:
    _race(made, 3, 3)


@direct
def test_sixteen_processes_at_once(made: Made) -> None:
    _race(made, 16, 50)


@pushed
def test_sixteen_processes_push_at_once(made: Made) -> None:
    _race(made, 16, 4)
