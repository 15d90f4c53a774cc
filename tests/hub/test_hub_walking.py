"""Walking agrees with the plain definition on random histories, near and far."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitbus.hub import Author, Draft, create_hub, walking
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from tests.support.hubs import WHEN

ADA = Author("Ada", "ada@acme.example")
PATHS = ("a/x", "a/y", "b", "c")
DATES = st.integers(-3, 3)


@st.composite
def histories(draw):
    """Draw commits as (parents by number, changes, shift of the date in minutes)."""
    commits = []
    for number in range(draw(st.integers(1, 14))):
        most = min(number, 3)
        parents = (
            draw(st.lists(st.integers(max(0, number - 5), number - 1), max_size=most, unique=True))
            if number
            else []
        )
        changes = draw(
            st.dictionaries(st.sampled_from(PATHS), st.sampled_from([b"1", b"2", None]), max_size=2)
        )
        commits.append((parents, changes, draw(DATES)))
    return commits


class Model:
    """The plain definition of every question, on sets."""

    def __init__(self, store: GitStore, commits) -> None:
        self.ids: list[str] = []
        self.parents: dict[str, tuple[str, ...]] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        for number, (above, changes, _shift) in enumerate(commits):
            parents = tuple(dict.fromkeys(self.ids[one] for one in above))
            base = store.commit(parents[0]).tree if parents else None
            tree = store.write_tree(base, changes)
            when = WHEN.replace(minute=30 + _shift, second=number)
            oid = store.write_commit(Draft(tree, parents, f"c{number}", ADA, when))
            self.ids.append(oid)
            self.parents[oid] = parents
            old = self.files[parents[0]] if parents else {}
            new = {**old, **changes}
            self.files[oid] = {path: data for path, data in new.items() if data is not None}

    def reach(self, *tips: str) -> set[str]:
        found: set[str] = set()
        stack = list(tips)
        while stack:
            here = stack.pop()
            if here not in found:
                found.add(here)
                stack.extend(self.parents[here])
        return found

    def line(self, tip: str, until: str | None) -> list[str]:
        found = []
        here: str | None = tip
        while here is not None and here != until:
            found.append(here)
            here = next(iter(self.parents[here]), None)
        return found

    def at(self, oid: str | None, path: str) -> dict[str, bytes]:
        files = self.files[oid] if oid else {}
        return {name: data for name, data in files.items() if name == path or name.startswith(path + "/")}

    def touches(self, oid: str, paths, *, first: bool) -> bool:
        parents = self.parents[oid][:1] if first else self.parents[oid]
        return any(self.at(oid, path) != self.at(one, path) for one in (parents or (None,)) for path in paths)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_hub(tmp_path_factory.mktemp("walk") / "h.git", "main").git_dir


@pytest.mark.long
@pytest.mark.parametrize("near", [0, 2, 250])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_question_is_answered_by_the_definition(template: Path, near: int, data) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "NEAR", near)
        git = Git(Path(shutil.copytree(template, f"{folder}/h.git")))
        store = GitStore(git, git)
        try:
            model = Model(store, data.draw(histories()))
            one = st.sampled_from(model.ids)
            tip, other, more = data.draw(one), data.draw(one), data.draw(one)
            paths = data.draw(
                st.lists(st.sampled_from(["a", "a/x", "b", "c", "a/none"]), max_size=2, unique=True)
            )
            check_line(store, model, tip, other, paths)
            check_between(store, model, [tip], [other], paths)
            check_between(store, model, [tip, more], [other], paths)
            check_between(store, model, [tip], [], paths)
            assert store.is_ancestor(other, tip) == (other in model.reach(tip))
        finally:
            store.close()


def check_line(store: GitStore, model: Model, tip: str, other: str, paths: list[str]) -> None:
    for until in (None, other):
        line = model.line(tip, until)
        assert list(store.line(tip, until=until)) == line
        if paths:
            wanted = [oid for oid in line if model.touches(oid, paths, first=True)]
            assert list(store.line(tip, until=until, touching=paths)) == wanted


def check_between(store: GitStore, model: Model, tips, without, paths) -> None:
    wanted = model.reach(*tips) - model.reach(*without)
    found = list(store.between(tips, without))
    assert set(found) == wanted
    assert len(found) == len(wanted)
    for oid, below in itertools.combinations(found, 2):
        assert below not in model.parents[oid], "parents come before children"
    if paths:
        touching = list(store.between(tips, without, touching=paths))
        assert touching == [oid for oid in touching if oid in wanted]
        assert set(touching) == {oid for oid in wanted if model.touches(oid, paths, first=False)}


def test_a_far_line_is_cut_where_it_leaves_the_old_one(template: Path, tmp_path: Path) -> None:
    git = Git(Path(shutil.copytree(template, tmp_path / "h.git")))
    store = GitStore(git, git)
    tree = store.write_tree(None, {"a": b"1"})
    oids: list[str] = []
    for number in range(walking.NEAR + 60):
        oids.append(store.write_commit(Draft(tree, tuple(oids[-1:]), f"c{number}", ADA, WHEN)))
    aside = store.write_commit(Draft(tree, (oids[10],), "aside", ADA, WHEN))
    assert list(store.line(oids[-1], until=oids[3])) == oids[:3:-1]
    assert list(store.line(oids[-1], until=aside)) == oids[::-1]
    assert list(store.line(oids[-1], until="1" * 40)) == oids[::-1]
    assert list(store.line(oids[-1], touching=["a"])) == [oids[0]]
    assert store.walker.is_on_line(oids[0], oids[-1])
    assert not store.walker.is_on_line(aside, oids[-1])
    assert list(store.between([oids[-1]], [oids[0]])) == oids[1:]
    store.close()
