"""Approvals that nobody with the right gave: each attack on a real repository, each refused by its rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus import paths
from tests.support.busparts import ident, public
from tests.support.busrepo import ITEM, BusRepo

OTHER = "a.post.item"


def people_of(bus: BusRepo, **keys: list[str]) -> list[dict[str, object]]:
    """Return the bus's people, some with other keys (named), nobody's where there are none."""
    people = [one.model_dump(mode="json") for one in bus.bus.people]
    for one in people:
        if one["id"] in keys:
            one["keys"] = [public(name) for name in keys[one["id"]]]
    return [one for one in people if one["keys"]]


# --- carried in


@pytest.fixture
def poisoned(bus: BusRepo) -> tuple[BusRepo, Path]:
    """Ada's clone is behind a ``main`` on which the conductor flipped an item by itself."""
    bus.put_up()
    clone = bus.clone("ada")
    (clone / "notes.md").write_text("hers\n")
    bus.git("ada", "add", "notes.md", at=clone)
    bus.git("ada", "commit", "-q", "-S", "-m", "hers", at=clone)
    bus.commit(bus.flipped(ITEM, bus._entries[ITEM], bus.tip), f"approve\n\nGitbus-Item: {ITEM}\n")
    return bus, clone


def test_git_pull_of_an_unsigned_flip(poisoned: tuple[BusRepo, Path]) -> None:
    bus, clone = poisoned
    bus.git("ada", "pull", "-q", "--no-rebase", "--no-edit", "-S", "origin", "main", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert bus.store.signature(bus.tip, [public("ada")]).verdict == "good"
    assert bus.refused() == {"not-named"}


def test_git_pull_rebase_of_an_unsigned_flip(poisoned: tuple[BusRepo, Path]) -> None:
    bus, clone = poisoned
    bus.git("ada", "pull", "-q", "--rebase", "-S", "origin", "main", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert bus.refused() == {"unsigned"}


def test_git_rebase_that_signs_an_unsigned_flip(poisoned: tuple[BusRepo, Path]) -> None:
    """The flip was pulled, then ``main`` was put back: a rebase makes the flip anew, with Ada's signature."""
    bus, clone = poisoned
    flip = bus.tip
    bus.git("ada", "reset", "-q", "--hard", "HEAD~1", at=clone)
    bus.git("ada", "pull", "-q", "--ff-only", "origin", "main", at=clone)
    bus.point("main", bus.store.commit(flip).parents[0])
    bus.commit({"goals/x.md": "more\n"})
    bus.git("ada", "fetch", "-q", "origin", at=clone)
    bus.git("ada", "rebase", "-q", "--no-fork-point", "-S", "origin/main", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert bus.store.signature(bus.tip, [public("ada")]).verdict == "good"
    assert bus.refused() == {"rewritten"}


@pytest.mark.parametrize("by", ["conductor", "ada"])
def test_git_rebase_that_signs_a_forged_merge(bus: BusRepo, by: str) -> None:
    """``git rebase -r`` makes a merge anew: the message is the conductor's, and so may the author's name be."""
    bus.put_up()
    bus.checkout()
    line = ident(by, bus.now)
    flip = bus.at(f"gitbus/approve/{ITEM}")
    base, tree = bus.tip, bus.store.commit(flip).tree
    message = f"Merge branch 'gitbus/approve/{ITEM}'"
    forged = bus.commit({}, message, parents=[base, flip], on="topic", author=line, committer=line, tree=tree)
    tip = bus.commit({"goals/x.md": "more\n"}, parents=[base])
    bus.git("ada", "checkout", "-q", "topic")
    bus.git("ada", "rebase", "-q", "-r", "-S", tip)
    assert bus.at("topic") != forged
    bus.point("main", bus.at("topic"))
    assert bus.store.signature(bus.tip, [public("ada")]).verdict == "good"
    assert bus.refused() == {"rewritten"}


def test_amended_merge(bus: BusRepo) -> None:
    """It cannot be told from a rebased one; ``--reset-author`` makes it one's own again."""
    bus.put_up()
    bus.merge("ada", sign=False)
    bus.git("ada", "commit", "-q", "--amend", "--no-edit", "-S")
    assert bus.refused() == {"rewritten"}
    bus.git("ada", "commit", "-q", "--amend", "--no-edit", "-S", "--reset-author")
    assert bus.prove().proved


@pytest.mark.parametrize("forged", ["Conductor <conductor@test>", "Ada <ada@test>"])
def test_rebase_of_a_flip_with_a_forged_author(bus: BusRepo, forged: str) -> None:
    bus.put_up()
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    before = int(bus.now.timestamp())
    bus.commit(flip, "yes", by="ada", key="ada", author=f"{forged} {before} +0000")
    assert bus.refused() == {"rewritten"}


def test_merge_of_another_made_anew_with_an_approvers_signature(bus: BusRepo) -> None:
    bus.put_up()
    side = bus.at(f"gitbus/approve/{ITEM}")
    bus.commit(
        {},
        f"Merge branch 'gitbus/approve/{ITEM}'",
        by="ada",
        key="ada",
        author=ident("conductor", bus.now),
        parents=[bus.tip, side],
        tree=bus.store.commit(side).tree,
    )
    assert bus.refused() == {"rewritten"}


@pytest.mark.parametrize("source", ["main", f"gitbus/approve/{OTHER}"])
def test_git_merge_squash_of_an_unsigned_flip(bus: BusRepo, source: str) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    base = bus.tip
    bus.commit(bus.flipped(ITEM, bus._entries[ITEM], base), "approve", on=source, parents=[base])
    bus.point("main", base)
    tip = bus.at(source) if source != "main" else bus.detached(bus.flipped(ITEM, bus._entries[ITEM], base))
    bus.checkout()
    bus.git("ada", "merge", "-q", "--squash", tip)
    bus.git("ada", "commit", "-q", "-S", "--no-edit")
    assert bus.store.commit(bus.tip).parents == (base,)
    assert bus.refused() == {"squashed"}


def test_squash_that_names_another_item(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    flips = {
        **bus.flipped(ITEM, bus._entries[ITEM], bus.tip),
        **bus.flipped(OTHER, bus._entries[OTHER], bus.tip),
    }
    bus.commit(flips, f"yes\n\nGitbus-Item: {OTHER}\n", by="ada", key="ada")
    assert bus.refused() == {"not-named"}
    assert bus.prove(OTHER).proved


def test_flip_of_another_item_on_a_merged_branch(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    branch = f"gitbus/approve/{OTHER}"
    bus.commit(bus.flipped(ITEM, bus._entries[ITEM], bus.at(branch)), "approve", on=branch)
    bus.merge("ada", OTHER)
    assert bus.refused() == {"not-named"}
    assert bus.prove(OTHER).proved


def test_foxtrot_then_fast_forward(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    clone = bus.clone("ada")
    bus.git("ada", "checkout", "-q", f"gitbus/approve/{ITEM}", at=clone)
    bus.git("ada", "merge", "-q", "-S", "--no-edit", "origin/main", at=clone)
    bus.git("ada", "push", "-q", "origin", f"HEAD:gitbus/approve/{ITEM}", at=clone)
    bus.point("main", bus.at(f"gitbus/approve/{ITEM}"))
    assert bus.refused() == {"unsigned"}
    assert bus.refused(OTHER) == {"not-approved"}


# --- by nobody with the right


@pytest.mark.parametrize(
    ("by", "key", "rule"),
    [
        ("conductor", None, "unsigned"),
        ("laptop", None, "unsigned"),
        ("ada", None, "unsigned"),
        ("ada", "mallory", "unknown-key"),
        ("rita", "rita", "wrong-role"),
        ("oscar", "oscar", "wrong-role"),
        ("conductor", "mallory", "unknown-key"),
    ],
)
def test_committed_directly(bus: BusRepo, by: str, key: str | None, rule: str) -> None:
    bus.put_up()
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    bus.commit(flip, f"approve\n\nGitbus-Item: {ITEM}\n", by=by, key=key)
    assert bus.refused() == {rule}


def test_unsigned_merge(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", sign=False)
    assert bus.refused() == {"unsigned"}


@pytest.mark.parametrize(("key", "rule"), [(None, "unsigned"), ("bot", "unknown-key")])
def test_fast_forwarded_from_the_bot(bus: BusRepo, key: str | None, rule: str) -> None:
    bus.put_up()
    flip = bus.flipped(ITEM, bus._entries[ITEM], bus.tip)
    tip = bus.commit(flip, "approve", parents=[bus.tip], on=f"gitbus/approve/{ITEM}", key=key)
    bus.checkout()
    bus.git("ada", "merge", "-q", "--ff-only", f"gitbus/approve/{ITEM}")
    assert bus.tip == tip
    assert bus.refused() == {rule}


def test_signature_of_another_commit(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    honest = bus.store.commit(bus.tip)
    bus.point("main", honest.parents[0])
    good = bus.store.database.read(honest.oid)[1]
    bus.point("main", bus.object("commit", good.replace(b"Merge branch", b"Merge  branch")))
    assert bus.refused() == {"bad-signature"}


def test_author_forged_to_look_like_an_approver(bus: BusRepo) -> None:
    bus.put_up()
    line = ident("ada", bus.now)
    bus.commit(
        bus.flipped(ITEM, bus._entries[ITEM], bus.tip), "yes", author=line, committer=line, key="mallory"
    )
    assert bus.refused() == {"unknown-key"}


def test_key_added_in_the_same_merge(bus: BusRepo) -> None:
    bus.put_up()
    branch = f"gitbus/approve/{ITEM}"
    more = bus.bus.model_copy(update={"people": (*bus.bus.people, bus.bus.people[0].model_copy(
        update={"id": "mallory", "keys": (public("mallory"),)}))})  # fmt: skip
    bus.commit({paths.BUS: more}, "key", on=branch)
    bus.merge("mallory", ITEM)
    assert bus.refused() == {"unknown-key", "merge-holds-more"}
    assert bus.effective().blob == bus.effective(bus.root).blob


def test_key_added_in_an_unproved_commit_before(bus: BusRepo) -> None:
    bus.put_up()
    bus.set_bus("conductor", key=None, people=people_of(bus, ada=["ada", "mallory"]))
    bus.merge("mallory", ITEM)
    assert bus.refused() == {"unknown-key"}
    assert len(bus.effective().pending) == 1


def test_key_added_honestly_but_after_the_approval(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("late", ITEM)
    bus.set_bus("ada", people=people_of(bus, bob=["late"]))
    assert bus.refused() == {"added-since"}


def test_key_removed_before(bus: BusRepo) -> None:
    bus.put_up()
    bus.set_bus("ada", people=people_of(bus, bob=["bob-new"]))
    bus.merge("bob", ITEM)
    assert bus.refused() == {"unknown-key"}


@pytest.mark.parametrize("how", ["key", "person", "role"])
def test_removed_between_approval_and_lease(bus: BusRepo, how: str) -> None:
    bus.put_up()
    bus.merge("bob", ITEM)
    assert bus.prove().proved
    people = people_of(bus, bob={"key": ["bob-new"], "person": [], "role": ["bob"]}[how])
    if how == "role":
        people[1]["roles"] = ["reviewer"]
    bus.set_bus("ada", people=people)
    assert bus.refused() == {"removed-since"}


# --- for something else


def test_merge_with_words_of_its_own(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", ITEM, options=["-m", "looks fine"])
    assert bus.refused() == {"not-named"}


def test_merge_into_another_branch(bus: BusRepo) -> None:
    bus.put_up()
    bus.checkout()
    bus.git("ada", "checkout", "-q", "-b", "work")
    bus.git("ada", "merge", "-q", "--no-ff", "-S", "--no-edit", f"gitbus/approve/{ITEM}")
    bus.point("main", bus.at("work"))
    assert bus.refused() == {"wrong-branch"}


@pytest.mark.parametrize(
    "message",
    [
        f"Merge commit 'gitbus/approve/{ITEM}'",
        f"Merge tag 'gitbus/approve/{ITEM}'",
        f"Merge branch 'gitbus/approve/{OTHER}'\n\n* gitbus/approve/{ITEM}:\n  Gitbus-Item: {ITEM}",
        f"Merge branch 'gitbus/approve/{OTHER}'\n\nSee\nGitbus-Item: {ITEM}",
        f"Merge branch 'gitbus/approve/{OTHER}'\n\nGitbus-Item: {ITEM}\n\nand more",
        f"Revert \"Merge branch 'gitbus/approve/{ITEM}'\"",
        f"Merge branch 'main' of gitbus/approve/{ITEM}",
        f"Merge branch 'main' of host:'gitbus/approve/{ITEM}'",
        f"Merge branch 'elsewhere/gitbus/approve/{ITEM}'",
        f"Gitbus-Item: {ITEM}",
    ],
)
def test_message_that_names_nothing(bus: BusRepo, message: str) -> None:
    bus.put_up()
    tree = bus.store.commit(bus.at(f"gitbus/approve/{ITEM}")).tree
    parents = [bus.tip, bus.at(f"gitbus/approve/{ITEM}")]
    bus.commit({}, message, by="ada", key="ada", parents=parents, tree=tree)
    assert bus.refused() == {"not-named"}


def test_merged_tag_whose_own_message_names_the_item(bus: BusRepo) -> None:
    bus.put_up()
    words = f"version 1\n\nGitbus-Item: {ITEM}"
    bus.git("conductor", "tag", "-a", "-m", words, "v1", f"gitbus/approve/{ITEM}")
    merge = bus.merge("ada", "refs/tags/v1")
    assert bus.store.commit(merge).message.rstrip().endswith(words)
    assert bus.refused() == {"not-named"}


def test_batch_that_the_item_is_not_in(bus: BusRepo) -> None:
    bus.put_up()
    bus.put(OTHER, together=ITEM)  # a batch is called by two names, never by an item's three
    bus.again(OTHER)
    parents = [bus.tip, bus.at(f"gitbus/approve/{OTHER}")]
    flip = bus.flipped(OTHER, bus._entries[OTHER], bus.tip)
    bus.commit(flip, f"Merge branch 'gitbus/approve/{ITEM}'", by="ada", key="ada", parents=parents)
    assert bus.refused(OTHER) == {"not-named"}


# --- decided on something else


def test_flip_on_a_decision_that_is_to_resolve(bus: BusRepo) -> None:
    """A merge that says ``resolve`` approves nothing, whatever was put on the branch that it merged."""
    bus.put_up()
    flip = bus.at(f"gitbus/approve/{ITEM}")
    bus.point(f"gitbus/decide/{ITEM}", flip)
    message = f"resolve {ITEM}, as proposed\n\nGitbus-Verb: resolve\nGitbus-Item: {ITEM}\n"
    bus.merge("ada", f"gitbus/decide/{ITEM}", options=["-m", message])
    assert bus.refused() == {"not-named"}


def test_plain_merge_of_a_decision_that_is_a_flip(bus: BusRepo) -> None:
    bus.put_up()
    bus.point(f"gitbus/decide/{ITEM}", bus.at(f"gitbus/approve/{ITEM}"))
    bus.merge("ada", f"gitbus/decide/{ITEM}")
    assert bus.refused() == {"not-named"}
