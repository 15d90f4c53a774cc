"""Trees are written, read and compared as git itself does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitbus.errors import Misuse, Refused
from gitbus.history import EXECUTABLE, FILE, SYMLINK, TREE, Delta, Entry
from gitbus.hub.objects import oid_of, parse_tree, render_tree
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore

NAMES = st.sampled_from(["a", "a.b", "a-b", "a0", "b", "ä", "A", "a b", "z", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.one_of(
    st.none(),
    st.binary(max_size=3),
    st.builds(Entry, st.sampled_from([FILE, EXECUTABLE, SYMLINK]), st.just(oid_of("blob", b"here"))),
)
CHANGES = st.dictionaries(PATHS, CONTENT, max_size=6)
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def store(tmp_path: Path, git: Callable[..., str]) -> Iterator[GitStore]:
    git(tmp_path, "init", "-q", "--bare", "r")
    made = GitStore(Git(tmp_path / "r"), Git(tmp_path / "r"))
    made.write_blob(b"here")
    made.flush()
    yield made
    made.close()


def run(store: GitStore, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", f"--git-dir={store.git.git_dir}", *arguments]
    return subprocess.run(command, input=given, check=True, capture_output=True).stdout


def model(files: dict[str, Entry], changes: dict[str, object]) -> dict[str, Entry]:
    """Apply changes to a flat map of files: folders before what is below them."""
    for path, content in sorted(changes.items(), key=lambda one: one[0].count("/")):
        above = ["/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)]
        gone = lambda name, path=path: name == path or name.startswith(path + "/")  # noqa: E731
        files = {name: entry for name, entry in files.items() if not gone(name)}
        if content is None:
            continue
        files = {name: entry for name, entry in files.items() if name not in above}
        files[path] = content if isinstance(content, Entry) else Entry(FILE, oid_of("blob", content))
    return files


def conflicting(changes: dict[str, object]) -> bool:
    """Say whether a file is to stand where a folder of another change is."""
    return any(other.startswith(path + "/") for path in changes for other in changes)


def listed(store: GitStore, tree: str) -> dict[str, Entry]:
    lines = run(store, "ls-tree", "-r", "-z", tree).split(b"\0")[:-1]
    found = {}
    for line in lines:
        head, _, name = line.partition(b"\t")
        mode, _, oid = head.decode().split()
        found[name.decode("utf-8", "surrogateescape")] = Entry(int(mode, 8), oid)
    return found


@SLOW
@given(first=CHANGES, second=CHANGES)
def test_a_tree_is_what_git_reads_and_checks(store: GitStore, first: dict, second: dict) -> None:
    first = {path: content for path, content in first.items() if content is not None}
    if conflicting(first) or conflicting(second):
        return
    one = store.write_tree(None, first)
    two = store.write_tree(one, second)
    store.flush()
    files = model(model({}, first), second)
    assert listed(store, two) == files
    rebuilt = store.write_tree(None, files)
    assert rebuilt == two
    deltas = store.diff(one, two)
    raw = run(store, "diff-tree", "-r", "-z", "--no-renames", one, two).split(b"\0")[:-1]
    assert sorted((delta.path.encode("utf-8", "surrogateescape"), _raw(delta)) for delta in deltas) == sorted(
        zip(raw[1::2], [b" ".join(line.split()[:4]) for line in raw[::2]], strict=True)
    )


def _raw(delta: Delta) -> bytes:
    old = delta.old or Entry(0, "0" * 40)
    new = delta.new or Entry(0, "0" * 40)
    return f":{old.mode:06o} {new.mode:06o} {old.oid} {new.oid}".encode()


@SLOW
@given(files=CHANGES.map(lambda all_: {path: one for path, one in all_.items() if one is not None}))
def test_rendering_is_the_inverse_of_parsing(store: GitStore, files: dict) -> None:
    if conflicting(files):
        return
    tree = store.write_tree(None, files)
    store.flush()
    data = run(store, "cat-file", "tree", tree)
    assert render_tree(parse_tree(data)) == data
    assert run(store, "mktree", "-z", given=run(store, "ls-tree", "-z", tree)).decode().strip() == tree


def test_a_folder_changes_before_what_is_below_it_in_whatever_order(store: GitStore) -> None:
    base = store.write_tree(None, {"a/old": b"1", "b": b"2"})
    other = Entry(TREE, store.write_tree(None, {"x": b"3"}))
    for content, wanted in (
        (None, {"a/new", "b"}),
        (b"file", {"a/new", "b"}),
        (other, {"a/new", "a/x", "b"}),
    ):
        made = {
            store.write_tree(base, dict(order))
            for order in ([("a", content), ("a/new", b"n")], [("a/new", b"n"), ("a", content)])
        }
        assert len(made) == 1
        store.flush()
        assert set(listed(store, made.pop())) == wanted


def test_removing_what_is_not_there_changes_nothing(store: GitStore) -> None:
    base = store.write_tree(None, {"a": b"1", "b/c": b"2"})
    assert store.write_tree(base, {"a/x": None, "a/y/z": None, "b/c/d": None, "e": None, "f/g": None}) == base


def test_an_empty_folder_disappears_and_nothing_left_is_the_empty_tree(store: GitStore) -> None:
    base = store.write_tree(None, {"a/b/c": b"1"})
    assert store.write_tree(base, {"a/b/c": None}) == store.write_tree(None, {}) == oid_of("tree", b"")
    assert store.write_tree(base, {}) == base
    assert store.write_tree(base, {"a/b/c": b"1", "x/y": None}) == base


@pytest.mark.parametrize("path", ["", "a//b", "/a", "a/", "../a", "a/./b", "a/.git/config", ".GIT", "a\0b"])
def test_a_path_that_git_cannot_hold_is_misuse(store: GitStore, path: str) -> None:
    with pytest.raises(Misuse) as caught:
        store.write_tree(None, {path: b"1"})
    assert caught.value.rule == "bad-path"


def test_below_a_folder_only_what_differs_there(store: GitStore) -> None:
    one = store.write_tree(None, {"a/b/c": b"1", "a/d": b"1", "ab": b"1"})
    two = store.write_tree(one, {"a/b/c": b"2", "ab": b"2", "a/d": b"2"})
    assert [delta.path for delta in store.diff(one, two, "a/b")] == ["a/b/c"]
    assert [delta.path for delta in store.diff(one, two, "a/b/c")] == ["a/b/c"]
    assert [delta.path for delta in store.diff(None, two, "a")] == ["a/b/c", "a/d"]
    assert store.diff(one, two, "nothing") == []


def test_a_very_deep_tree_is_no_trouble(store: GitStore) -> None:
    entry = Entry(FILE, store.write_blob(b"deep"))
    for _ in range(3000):
        data = render_tree({"d": entry})
        entry = Entry(TREE, oid_of("tree", data))
        store.database.write(entry.oid, "tree", data)
    assert len(store.diff(None, entry.oid)) == 1


def test_what_no_honest_tree_holds_has_a_name_that_no_path_has() -> None:
    oid = bytes.fromhex(oid_of("blob", b""))
    data = b"".join(b"100644 %s\0" % name + oid for name in (b"a", b"a", b"goals/x", b""))
    names = list(parse_tree(data))
    assert names[0] == "a"
    assert len(names) == 4
    assert all("\0" in name and "/" not in name for name in names[1:])


@pytest.mark.parametrize("mode", [b"+100644", b"100_644", b"100648", b" 40000", b""])
def test_a_mode_that_git_does_not_read_is_no_tree(mode: bytes) -> None:
    with pytest.raises(ValueError, match="no tree"):
        parse_tree(mode + b" a\0" + bytes(20))


def test_a_tree_that_is_cut_off_is_none() -> None:
    whole = render_tree({"a": Entry(FILE, oid_of("blob", b"")), "b": Entry(FILE, oid_of("blob", b""))})
    whole_entries = len(whole) // 2
    for size in range(1, len(whole)):
        if size != whole_entries:
            with pytest.raises(ValueError, match="no tree"):
                parse_tree(whole[:size])


def test_a_broken_folder_is_not_written_again(store: GitStore) -> None:
    blob = bytes.fromhex(oid_of("blob", b""))
    data = b"100644 a\0" + blob + b"100644 a\0" + blob
    inner = oid_of("tree", data)
    store.database.write(inner, "tree", data)
    base = store.write_tree(None, {"goals": Entry(TREE, inner), "keep": b"1"})
    assert store.tree(store.write_tree(base, {"other": b"2"}))["goals"].oid == inner
    with pytest.raises(Refused) as caught:
        store.write_tree(base, {"goals/b": b"2"})
    assert caught.value.rule == "broken-tree"
