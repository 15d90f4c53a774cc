"""What every hub promises, over the real ones: direct, by path, by URL, by HTTP and by ssh."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gitbus import effects
from gitbus.errors import Misuse, NoBus, Refused, Unreachable
from gitbus.hub import RefMove
from gitbus.hub.direct import DirectHub
from gitbus.hub.push import PushHub
from tests.contracts.kinds import PRESENCE, WORKER, direct, every, http, pushed
from tests.support.hubs import MAIN, Made, add_hook, advance, commit_on


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


@pushed
def test_who_is_refused_while_somebody_puts_the_same_commit_is_told_that_he_was_late(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    same = commit_on(ada, (made.root,), {"claim": b"1"})
    ada.move([RefMove(PRESENCE, None, same)])  # so that the hub has it
    assert commit_on(bob, (made.root,), {"claim": b"1"}) == same
    others = f"env -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY git update-ref {WORKER} {same}"
    add_hook(made.bare, "update", f"#!/bin/sh\n[ $1 = {WORKER} ] || exit 0\n{others}\n")
    assert bob.move([RefMove(WORKER, None, same)]).lost == {WORKER}
    assert bob.look()[WORKER] == same


@pushed
def test_who_tries_again_after_a_refusal_does_not_take_anothers_for_his_own(
    made: Made, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, pushes = made.open("bob"), []
    same = commit_on(made.open("ada"), (made.root,), {"claim": b"1"})
    made.hubs[-1].move([RefMove(PRESENCE, None, same)])  # so that the hub has it
    assert commit_on(bob, (made.root,), {"claim": b"1"}) == same
    lock = made.bare / f"{WORKER}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()

    def between(name: str, _detail: str) -> None:
        pushes.append(name) if name == "push" else None
        if pushes == ["push", "push"]:
            lock.unlink()
            git(made.bare, "update-ref", WORKER, same)

    monkeypatch.setattr(effects, "hook", between)
    assert bob.move([RefMove(WORKER, None, same)]).lost == {WORKER}
    assert len(pushes) == 2


@every
def test_a_ref_that_exists_is_not_made_again(made: Made) -> None:
    ada, bob = made.open("ada"), made.open("bob")
    ada.move([RefMove(WORKER, None, made.root)])
    assert bob.move([RefMove(WORKER, None, commit_on(bob, (made.root,), {"b": b"1"}))]).lost == {WORKER}


@pytest.mark.long
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


@pytest.mark.long
@direct
@pytest.mark.parametrize("name", ["HEAD.lock", "packed-refs.lock"])
def test_a_lock_beside_the_ref_is_named(made: Made, name: str) -> None:
    ada = made.open("ada")
    new = commit_on(ada, (made.root,), {"a": b"1"})
    ada.move([RefMove(WORKER, None, made.root)])
    lock = made.bare / name
    lock.touch()
    moves = [RefMove(MAIN, made.root, new)] if name == "HEAD.lock" else [RefMove(WORKER, made.root, None)]
    with pytest.raises(Unreachable) as caught:
        ada.move(moves)
    assert caught.value.rule == "ref-locked"
    assert str(lock) in caught.value.message
    lock.unlink()
    assert ada.move(moves).done == {moves[0].ref}


@pytest.mark.long
@pushed
def test_a_lock_that_a_fetch_left_behind_is_named(made: Made) -> None:
    ada = made.open("ada")
    ada.look()
    tip = advance(made.open("bob"), {"b": b"1"})
    lock = made.clone("ada") / ".git/refs/gitbus/hub/main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(Unreachable) as caught:
        ada.look()
    assert caught.value.rule == "ref-locked"
    assert str(lock) in caught.value.message
    lock.unlink()
    assert ada.look()[MAIN] == tip


@pushed
def test_a_hook_that_refuses_is_no_lost_race(made: Made) -> None:
    ada = made.open("ada")
    add_hook(made.bare, "pre-receive", "#!/bin/sh\necho 'no pushes\x1b[31m on Sundays' >&2\nexit 1\n")
    with pytest.raises(Unreachable, match=r"no pushes.* on Sundays") as caught:
        ada.move([RefMove(MAIN, made.root, commit_on(ada, (made.root,), {"a": b"1"}))])
    assert caught.value.rule == "push-refused"
    assert "\x1b" not in caught.value.message


@pushed
@pytest.mark.parametrize("words", ["echo 'error: only releases' >&2; ", ""])
@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_what_is_refused_in_so_many_words_is_tried_once(
    made: Made, monkeypatch: pytest.MonkeyPatch, hook: str, words: str
) -> None:
    ada, seen = made.open("ada"), []
    ada.look()
    add_hook(made.bare, hook, f"#!/bin/sh\n{words}exit 1\n")
    monkeypatch.setattr(effects, "hook", lambda name, _: seen.append(name))
    with pytest.raises(Unreachable) as caught:
        ada.move([RefMove(MAIN, made.root, commit_on(ada, (made.root,), {"a": b"1"}))])
    assert seen.count("push") == 1
    assert caught.value.rule == "push-refused"
    assert "hook declined" in caught.value.message
    assert ("only releases" in caught.value.message) == bool(words)


@http
def test_who_may_not_push_is_told_after_one_try(
    made: Made, monkeypatch: pytest.MonkeyPatch, git: Callable[..., str]
) -> None:
    ada, seen = made.open("ada"), []
    ada.look()
    git(made.bare, "config", "http.receivepack", "false")
    monkeypatch.setattr(effects, "hook", lambda name, _: seen.append(name))
    with pytest.raises(Unreachable, match="403") as caught:
        ada.move([RefMove(MAIN, made.root, commit_on(ada, (made.root,), {"a": b"1"}))])
    assert (caught.value.rule, seen.count("push")) == ("push-refused", 1)


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
    assert "Authentication failed" in caught.value.message
    assert "wrong" not in caught.value.message


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
