"""Commits are read as git reads them, and the same draft is the same commit."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from gitbus.errors import Refused
from gitbus.hub import Author, Draft, create_hub
from gitbus.hub.objects import oid_of, parse_commit
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
ADA = Author("Ada", "ada@acme.example")
WHEN = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
ONE, TWO = "1" * 40, "2" * 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GitStore]:
    git = create_hub(tmp_path / "h.git", "main")
    made = GitStore(git, git)
    made.write_tree(None, {})
    yield made
    made.close()


def test_the_same_draft_is_the_same_commit_whatever_the_zone(store: GitStore) -> None:
    draft = Draft(EMPTY, (), "say\n\nwhy", ADA, WHEN)
    east = replace(draft, when=WHEN.astimezone(timezone(timedelta(hours=5))), message="say\n\nwhy\n")
    assert store.write_commit(draft) == store.write_commit(east)
    commit = store.commit(store.write_commit(draft))
    assert (commit.author, commit.message) == (commit.committer, "say\n\nwhy\n")
    assert commit.author.raw == "Ada <ada@acme.example> 1796068800 +0000"
    assert commit.author.when == WHEN


def test_git_finds_nothing_wrong_with_what_a_stranger_wrote(store: GitStore, git: Callable[..., str]) -> None:
    odd = Author("A\nparent <x>\0 <b@c>", "a>\n@b")
    oid = store.write_commit(Draft(EMPTY, (), "a\0b\udcff\n", odd, WHEN))
    store.flush()
    git(store.git.git_dir, "fsck", "--strict")
    assert (
        git(store.git.git_dir, "log", "-1", "--format=%an|%ae|%s", oid)
        == "Aparent x b@c|a@b|a\N{REPLACEMENT CHARACTER}b?"
    )
    assert store.commit(oid).parents == ()


def test_a_parent_counts_only_where_git_looks_for_it() -> None:
    data = (
        f"tree {EMPTY}\nparent {ONE}\nauthor A <a@b> 1 +0000\nparent {TWO}\nauthor E <e@b> 2 +0000\n"
        f"committer C <c@d> 3 +0000\nnote x\n parent {TWO}\n\nmessage\n\nparent {TWO}\n"
    )
    commit = parse_commit(ONE, data.encode())
    assert commit.parents == (ONE,)
    assert commit.author.name == "A"
    assert commit.message == f"message\n\nparent {TWO}\n"


LINES = (
    f"tree {EMPTY}",
    f"parent {ONE}",
    f"parent {'AB' * 20}",
    f" parent {ONE}",
    f"parent  {ONE}",
    f"parent {ONE} ",
    f"parent\t{ONE}",
    f"Parent {TWO}",
    f"parent {TWO}\r",
    "author A <a@b> 1 +0000",
    "gpgsig -----BEGIN SSH SIGNATURE-----",
    " more",
    "",
)


def by_git(git: Git, oids: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the tree and the parents of the commits that git can read."""
    found = {}
    for oid in oids:
        ran = git.run("log", "--no-walk", "--format=%T %P", oid)
        if ran.code == 0:
            found[oid] = tuple(ran.text.split())
    return found


def test_tree_and_parents_are_those_that_git_sees(store: GitStore) -> None:
    pick = random.Random(7)
    made = {}
    for _ in range(60):
        lines = [f"tree {EMPTY if pick.random() < 0.8 else EMPTY.upper()}"]
        lines += [pick.choice(LINES) for _ in range(pick.randint(0, 3))]
        lines += ["author A <a@b> 1 +0000", "committer A <a@b> 1 +0000"]
        data = ("\n".join(lines) + "\n\nmessage\n").encode()
        made[oid_of("commit", data)] = data
    for oid, data in made.items():
        store.database.write(oid, "commit", data)
    store.flush()
    ours = {}
    for oid in made:
        with contextlib.suppress(KeyError):
            ours[oid] = (store.commit(oid).tree, *store.commit(oid).parents)
    theirs = by_git(store.git, list(made))
    assert 10 < len(theirs) < len(made)
    assert ours == theirs


@pytest.mark.parametrize("line", ["", "A", "A <a@b>", "A <a@b> x +0000", "A <a@b> 999999999999999 +0000"])
def test_an_odd_author_line_is_no_error(line: str) -> None:
    commit = parse_commit(ONE, f"tree {EMPTY}\nauthor {line}\ncommitter {line}\n\nm".encode())
    assert commit.author.raw == line


def test_an_absent_object_is_a_key_error(store: GitStore) -> None:
    for ask in (store.commit, store.tree, store.blob, store.size, lambda oid: store.signature(oid, [])):
        for oid in (ONE, "HEAD", f"{ONE}\ninfo {EMPTY}", EMPTY[:10]):
            with pytest.raises(KeyError):
                ask(oid)
    with pytest.raises(KeyError):
        store.line(ONE)
    with pytest.raises(KeyError):
        store.between([ONE], [])
    with pytest.raises(KeyError):
        store.is_ancestor(ONE, TWO)
    with pytest.raises(KeyError):
        store.commit(EMPTY)


def test_without_an_identity_nobody_is_guessed(
    store: GitStore, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused) as caught:
        store.write_commit(Draft(EMPTY, (), "m"))
    assert caught.value.rule == "no-identity"
    assert "user.email" in str(caught.value.remedy)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_AUTHOR_NAME", "Eve")
        patch.setenv("GIT_AUTHOR_EMAIL", "eve@acme.example")
        assert GitStore(store.git, store.git).identity() == Author("Eve", "eve@acme.example")
    git(store.git.git_dir, "config", "user.name", "Ada")
    git(store.git.git_dir, "config", "user.email", "ada@acme.example")
    assert store.commit(store.write_commit(Draft(EMPTY, (), "m"))).committer.name == "Ada"
