"""What every hub promises, over the real ones: direct, by path, by URL, by HTTP and by ssh."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitbus.errors import Misuse, NoBus, Refused, Unreachable
from gitbus.hub import RefMove
from gitbus.hub.direct import DirectHub
from gitbus.hub.push import PushHub
from tests.support import sshgit
from tests.support.hubs import MAIN, Made, add_hook, advance, commit_on, hub_of

WORKER = "refs/heads/gitbus/workers/laptop"
PRESENCE = "refs/heads/gitbus/presence/laptop"
RACER = Path(__file__).with_name("racer.py")
KINDS = [
    "direct",
    "path",
    "http",
    pytest.param("file", marks=pytest.mark.long),
    pytest.param(
        "ssh",
        marks=[pytest.mark.long, pytest.mark.skipif(sshgit.SSHD is None, reason="there is no sshd here")],
    ),
]
PUSHED = KINDS[1:]


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    with hub_of(request.param, tmp_path, monkeypatch.setenv) as found:
        yield found


every = pytest.mark.parametrize("made", KINDS, indirect=True)
pushed = pytest.mark.parametrize("made", PUSHED, indirect=True)
direct = pytest.mark.parametrize("made", ["direct"], indirect=True)
http = pytest.mark.parametrize("made", ["http"], indirect=True)


@every
def test_the_way_is_chosen_by_what_the_hub_is(made: Made) -> None:
    assert isinstance(made.open("ada"), DirectHub if made.kind == "direct" else PushHub)


@every
def test_look_gives_the_refs_of_the_bus_and_no_others(made: Made, git: Callable[..., str]) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    one = commit_on(ada, (made.root,), {"x": b"1"})
    git(made.bare, "update-ref", "refs/heads/feature", made.root)
    git(made.bare, "update-ref", "refs/tags/v1", made.root)
    assert ada.move([RefMove(WORKER, None, one)]).moved(WORKER)
    assert bob.look() == {MAIN: made.root, WORKER: one}
    entry = bob.store.entry(one, "x")
    assert entry is not None
    assert bob.store.blob(entry.oid) == b"1"


@every
def test_of_two_who_move_main_from_the_same_tip_one_wins(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    mine = commit_on(ada, (ada.look()[MAIN],), {"a": b"ada"})
    yours = commit_on(bob, (bob.look()[MAIN],), {"b": b"bob"})
    assert ada.move([RefMove(MAIN, made.root, mine)]).done == {MAIN}
    assert bob.move([RefMove(MAIN, made.root, yours)]).lost == {MAIN}
    again = commit_on(bob, (bob.look()[MAIN],), {"b": b"bob"})
    assert bob.move([RefMove(MAIN, mine, again)]).done == {MAIN}
    assert ada.look()[MAIN] == again
    assert ada.store.entry(again, "a") is not None
    made.fsck()


@every
def test_when_main_is_lost_the_answer_says_truly_what_moved(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    late = commit_on(bob, (made.root,), {"b": b"1"})
    advance(ada, {"a": b"1"})
    moves = bob.move([RefMove(WORKER, None, late), RefMove(MAIN, made.root, late)])
    assert MAIN in moves.lost
    assert (WORKER in moves.done) == (WORKER in ada.look())
    assert moves.done | moves.lost == {MAIN, WORKER}


@every
def test_main_and_others_move_together(made: Made) -> None:
    ada = made.open("ada")
    new = commit_on(ada, (made.root,), {"a": b"1"})
    moves = ada.move([RefMove(WORKER, None, made.root), RefMove(MAIN, made.root, new)])
    assert moves.done == {MAIN, WORKER}
    assert ada.look() == {MAIN: new, WORKER: made.root}


@every
def test_a_ref_can_be_deleted_and_only_as_it_was_seen(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    one = commit_on(ada, (made.root,), {"a": b"1"})
    two = commit_on(ada, (one,), {"a": b"2"})
    ada.move([RefMove(WORKER, None, one)])
    bob.look()
    ada.move([RefMove(WORKER, one, two)])
    assert bob.move([RefMove(WORKER, one, None)]).lost == {WORKER}
    assert bob.move([RefMove(WORKER, two, None)]).done == {WORKER}
    assert WORKER not in ada.look()
    assert ada.move([RefMove(WORKER, two, None)]).done == {WORKER}  # it is gone, which is all that was asked


@every
def test_a_presence_is_replaced_with_the_old_value_named(made: Made) -> None:
    ada = made.open("ada")
    tree = {"presence.yaml": b"1"}
    one, two, three = (commit_on(ada, (), tree, f"here {n}") for n in range(3))
    assert ada.move([RefMove(PRESENCE, None, one)]).done == {PRESENCE}
    assert ada.move([RefMove(PRESENCE, one, two, replace=True)]).done == {PRESENCE}
    assert ada.move([RefMove(PRESENCE, one, three, replace=True)]).lost == {PRESENCE}
    assert ada.look()[PRESENCE] == two


@every
def test_of_two_who_put_the_same_commit_one_is_told_that_he_was_late(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    same = commit_on(ada, (made.root,), {"claim": b"1"})
    assert commit_on(bob, (made.root,), {"claim": b"1"}) == same
    assert ada.move([RefMove(WORKER, None, same)]).done == {WORKER}
    assert bob.move([RefMove(WORKER, None, same)]).lost == {WORKER}


@every
def test_a_ref_that_exists_is_not_made_again(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    ada.move([RefMove(WORKER, None, made.root)])
    assert bob.move([RefMove(WORKER, None, commit_on(bob, (made.root,), {"b": b"1"}))]).lost == {WORKER}


@every
def test_a_stale_lock_is_no_lost_race(made: Made) -> None:
    ada = made.open("ada")
    new = commit_on(ada, (made.root,), {"a": b"1"})
    lock = made.bare / f"{MAIN}.lock"
    lock.touch()
    with pytest.raises(Unreachable) as caught:
        ada.move([RefMove(MAIN, made.root, new)])
    if made.kind == "direct":
        assert caught.value.rule == "ref-locked"
        assert str(lock) in caught.value.message
    else:
        assert caught.value.rule == "push-refused"
    assert ada.look()[MAIN] == made.root
    lock.unlink()
    assert ada.move([RefMove(MAIN, made.root, new)]).done == {MAIN}


@pushed
def test_a_hook_that_refuses_is_no_lost_race(made: Made) -> None:
    ada = made.open("ada")
    add_hook(made.bare, "pre-receive", "#!/bin/sh\necho 'no pushes\x1b[31m on Sundays' >&2\nexit 1\n")
    with pytest.raises(Unreachable, match=r"no pushes.* on Sundays") as caught:
        ada.move([RefMove(MAIN, made.root, commit_on(ada, (made.root,), {"a": b"1"}))])
    assert caught.value.rule == "push-refused"
    assert "\x1b" not in caught.value.message


@pushed
def test_one_ref_that_a_hook_refuses_does_not_hold_the_others_up(made: Made) -> None:
    ada = made.open("ada")
    add_hook(made.bare, "pre-receive", "#!/bin/sh\nexit 0\n")
    (made.bare / "hooks/update").write_text("#!/bin/sh\ncase $1 in */presence/*) exit 1;; esac\n")
    new = commit_on(ada, (made.root,), {"a": b"1"})
    here = commit_on(ada, (), {"presence.yaml": b"1"})
    moves = ada.move([RefMove(MAIN, made.root, new), RefMove(PRESENCE, None, here)])
    assert (moves.done, moves.lost) == ({MAIN}, {PRESENCE})
    with pytest.raises(Unreachable):
        ada.move([RefMove(PRESENCE, None, here)])


@every
def test_what_does_not_keep_the_old_value_is_not_tried(made: Made) -> None:
    ada = made.open("ada")
    tip = advance(ada, {"a": b"1"})
    other = commit_on(ada, (made.root,), {"b": b"1"})
    hiding = commit_on(ada, (other, tip), {"c": b"1"})
    for move in (RefMove(MAIN, tip, other), RefMove(MAIN, tip, hiding), RefMove(MAIN, tip, None)):
        with pytest.raises(Misuse) as caught:
            ada.move([move])
        assert caught.value.rule == "not-descendant"
    ada.move([RefMove(WORKER, None, tip)])
    with pytest.raises(Misuse):
        ada.move([RefMove(WORKER, tip, other)])
    assert ada.move([RefMove(WORKER, tip, hiding)]).moved(WORKER)


@http
def test_an_answer_that_was_lost_is_found_in_the_ref(made: Made) -> None:
    ada = made.open("ada")
    new = commit_on(ada, (made.root,), {"a": b"1"})
    made.drop.set()
    assert ada.move([RefMove(MAIN, made.root, new), RefMove(WORKER, None, new)]).done == {MAIN, WORKER}
    made.drop.clear()
    assert ada.look()[MAIN] == new


@http
def test_a_wrong_password_is_said_to_be_unreachable(made: Made, git: Callable[..., str]) -> None:
    ada = made.open("ada")
    git(made.clone("ada"), "remote", "set-url", "origin", made.url.replace("secret", "wrong"))
    with pytest.raises(Unreachable) as caught:
        ada.look()
    assert caught.value.rule == "hub-unreachable"


@every
def test_a_hub_that_is_gone_is_unreachable(made: Made) -> None:
    ada = made.open("ada")
    ada.look()
    made.bare.rename(made.bare.with_name("elsewhere"))
    with pytest.raises(Unreachable):
        ada.look()
    if made.kind in ("direct", "path", "file"):
        with pytest.raises(Unreachable) as caught:
            made.open("ada")
        assert caught.value.rule == "hub-gone"


@every
def test_a_hub_without_the_branch_has_no_bus(made: Made, git: Callable[..., str]) -> None:
    ada = made.open("ada")
    git(made.bare, "update-ref", "-d", MAIN)
    with pytest.raises(NoBus):
        ada.look()


@every
def test_wait_ends_when_a_ref_moves_and_when_time_is_up(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    seen = ada.look()
    began = time.monotonic()
    ada.wait(0.05, seen)
    assert 0.04 < time.monotonic() - began < 5
    if made.kind in ("direct", "path", "file"):
        advance(bob, {"b": b"1"})
        ada.wait(60, seen)
        assert time.monotonic() - began < 30
    ada.wake()
    ada.wait(60, ada.look())
    assert time.monotonic() - began < 30


@pushed
def test_a_shallow_clone_is_refused_with_the_way_out(made: Made, git: Callable[..., str]) -> None:
    advance(made.open("ada"), {"a": b"1"})
    url = made.url if "://" in made.url else f"file://{made.url}"
    git(made.bare.parent, "clone", "-q", "--depth=1", url, "flat")
    flat = made.open("flat")
    with pytest.raises(Refused) as caught:
        flat.look()
    assert caught.value.rule == "shallow"
    git(made.clone("flat"), *str(caught.value.remedy).split()[1:])
    assert len(flat.store.line(flat.look()[MAIN])) == 2


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


@pytest.mark.long
@direct
def test_sixteen_processes_at_once(made: Made) -> None:
    _race(made, 16, 50)


@pytest.mark.long
@pushed
def test_sixteen_processes_push_at_once(made: Made) -> None:
    _race(made, 16, 4)
