"""Objects are on disk whole after a flush, or not at all; and what is read is what was asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitbus import effects
from gitbus.errors import Unreachable
from gitbus.hub import Draft, RefMove, create_hub
from gitbus.hub.database import LOOSE
from gitbus.hub.direct import DirectHub
from gitbus.hub.objects import oid_of
from gitbus.hub.packs import LARGE
from gitbus.hub.store import GitStore
from tests.support.hubs import ADA, MAIN, WHEN, first_commit

FULL = """
import os, resource, sys
from pathlib import Path
from gitbus.errors import Unreachable
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
git = Git(Path(sys.argv[1]))
store = GitStore(git, git)
for _ in range(int(sys.argv[2])):
    store.write_blob(os.urandom(200_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    store.flush()
except Unreachable as error:
    assert error.rule == "disk", error.rule
else:
    raise SystemExit("it was taken")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
left = [str(path) for path in (git.git_dir / "objects").rglob("*") if path.is_file()]
assert not left, left
store.flush()
store.close()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GitStore]:
    git = create_hub(tmp_path / "h.git", "main")
    made = GitStore(git, git)
    yield made
    made.close()


def files(store: GitStore) -> list[str]:
    objects = store.git.git_dir / "objects"
    return sorted(str(path.relative_to(objects)) for path in objects.rglob("*") if path.is_file())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blobs=st.lists(st.binary(max_size=300), max_size=12))
def test_what_is_written_is_read_before_and_after_it_is_flushed(store: GitStore, blobs: list[bytes]) -> None:
    oids = [store.write_blob(data) for data in blobs]
    assert oids == [oid_of("blob", data) for data in blobs]
    assert [store.blob(oid) for oid in oids] == blobs
    store.flush()
    fresh = GitStore(store.git, store.git)
    assert [fresh.size(oid) for oid in oids] == [len(data) for data in blobs]
    assert [fresh.blob(oid) for oid in oids] == blobs
    fresh.close()
    subprocess.run(["git", "fsck", "--strict"], cwd=store.git.git_dir, check=True, capture_output=True)


@pytest.mark.parametrize("number", [1, LOOSE, LOOSE + 1, 40])
def test_few_are_loose_and_many_are_one_pack(store: GitStore, number: int) -> None:
    for one in range(number):
        store.write_blob(b"%d" % one)
    assert files(store) == []
    store.flush()
    assert len(files(store)) == (number if number <= LOOSE else 2)
    assert all(Path(name).suffix in ("", ".pack", ".idx") for name in files(store))
    store.write_blob(b"0")
    store.flush()
    store.flush()
    modes = {
        path.stat().st_mode & 0o777 for path in (store.git.git_dir / "objects").rglob("*") if path.is_file()
    }
    assert modes == {0o444}


@pytest.mark.parametrize("number", [1, 8])
def test_a_full_disk_leaves_nothing_half(store: GitStore, number: int) -> None:
    command = [sys.executable, "-c", FULL, str(store.git.git_dir), str(number)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    subprocess.run(["git", "fsck", "--strict"], cwd=store.git.git_dir, check=True, capture_output=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "gitbus", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_full_says_so_and_moves_nothing(small_disk: Path) -> None:
    git = create_hub(small_disk / "h.git", "main")
    root = first_commit(git)
    hub = DirectHub(git, git, MAIN)
    filler = small_disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(os.urandom(4096)) == 4096:
                pass
    except OSError:
        pass
    tree = hub.store.write_tree(None, {f"f{one}": os.urandom(100) for one in range(20)})
    new = hub.store.write_commit(Draft(tree, (root,), "m", ADA, WHEN))
    for _ in range(2):
        with pytest.raises(Unreachable) as caught:
            hub.move([RefMove(MAIN, root, new)])
        assert caught.value.rule == "disk"
    assert hub.look() == {MAIN: root}
    filler.unlink()
    assert hub.move([RefMove(MAIN, root, new)]).moved(MAIN)
    assert hub.look() == {MAIN: new}
    hub.close()
    subprocess.run(["git", "fsck", "--strict"], cwd=git.git_dir, check=True, capture_output=True)


def test_objects_are_durable_before_the_ref_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = create_hub(tmp_path / "h.git", "main")
    root = first_commit(git)
    hub = DirectHub(git, git, MAIN)
    seen: list[str] = []
    monkeypatch.setattr(effects, "hook", lambda name, detail: seen.append(name))
    new = hub.store.write_commit(Draft(hub.store.write_tree(None, {"a/b": b"1"}), (root,), "m", ADA, WHEN))
    assert seen == []
    hub.move([RefMove(MAIN, root, new)])
    one_file = ["object-write", "fsync", "object-write"]
    assert seen == [*one_file, *one_file, "fsync", "ref-move", "fsync"]
    hub.close()


@pytest.mark.parametrize("number", range(8))
def test_stopped_at_any_effect_the_hub_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    git = create_hub(tmp_path / "h.git", "main")
    root = first_commit(git)
    hub = DirectHub(git, git, MAIN)
    count = iter(range(100))

    def stop(name: str, detail: str) -> None:
        if next(count) == number:
            raise KeyboardInterrupt

    new = hub.store.write_commit(Draft(hub.store.write_tree(None, {"a/b": b"1"}), (root,), "m", ADA, WHEN))
    with monkeypatch.context() as patch:
        patch.setattr(effects, "hook", stop)
        with pytest.raises(KeyboardInterrupt):
            hub.move([RefMove(MAIN, root, new)])
    assert hub.look()[MAIN] in (root, new)
    subprocess.run(["git", "fsck", "--strict"], cwd=git.git_dir, check=True, capture_output=True)
    if hub.look()[MAIN] == root:
        assert hub.move([RefMove(MAIN, root, new)]).moved(MAIN)
    hub.close()


def test_a_size_is_asked_without_the_bytes(store: GitStore) -> None:
    oid = store.write_blob(bytes(50_000_000))
    store.flush()
    fresh = GitStore(store.git, store.git)
    assert fresh.size(oid) == 50_000_000
    assert fresh.database._cached == 0
    assert len(fresh.blob(oid)) == 50_000_000
    assert fresh.database._cached == 0
    fresh.close()


def test_a_reader_that_was_killed_is_started_again(store: GitStore) -> None:
    large = [bytes(LARGE) + b"%d" % one for one in range(3)]  # what git is asked for
    oids = [store.write_blob(one) for one in large]
    store.flush()
    fresh = GitStore(store.git, store.git)
    assert fresh.blob(oids[0]) == large[0]
    assert fresh.database._reader is not None
    os.kill(fresh.database._reader.pid, signal.SIGKILL)
    assert fresh.blob(oids[1]) == large[1]
    fresh.close()
    assert fresh.blob(oids[2]) == large[2]
    fresh.close()


def test_an_answer_left_unread_is_never_taken_for_the_next(store: GitStore) -> None:
    one, two = store.write_blob(bytes(LARGE + 1)), store.write_blob(bytes(LARGE + 2))
    store.flush()
    fresh = GitStore(store.git, store.git)
    reader = fresh.database.git.start("cat-file", "--batch-command")

    class Interrupted:
        def readline(self) -> bytes:
            raise KeyboardInterrupt

        def close(self) -> None:
            pipe.close()

    pipe, reader.stdout = reader.stdout, Interrupted()  # type: ignore[assignment]
    fresh.database._reader = reader
    with pytest.raises(KeyboardInterrupt):
        fresh.blob(one)
    assert len(fresh.blob(two)) == LARGE + 2
    fresh.close()


def test_what_somebody_else_wrote_is_seen_at_once(store: GitStore, git: Callable[..., str]) -> None:
    with pytest.raises(KeyError):
        store.blob("1" * 40)
    other = GitStore(store.git, store.git)
    for number in (1, 20):
        oids = [other.write_blob(os.urandom(20)) for _ in range(number)]
        other.flush()
        assert all(store.size(oid) == 20 for oid in oids)
    git(store.git.git_dir, "repack", "-adq")
    assert store.database.read(oids[0])
    other.close()


def test_a_remerge_is_readable_and_writes_nothing(store: GitStore) -> None:
    base = store.write_commit(
        Draft(store.write_tree(None, {"a": b"1\n", "b": b"1\n"}), (), "base", ADA, WHEN)
    )
    tree = store.commit(base).tree
    ours = store.write_commit(Draft(store.write_tree(tree, {"a": b"2\n"}), (base,), "o", ADA, WHEN))
    theirs = store.write_commit(Draft(store.write_tree(tree, {"b": b"2\n"}), (base,), "t", ADA, WHEN))
    against = store.write_commit(Draft(store.write_tree(tree, {"a": b"3\n"}), (base,), "x", ADA, WHEN))
    store.flush()
    before = files(store)
    made = store.remerge(ours, theirs)
    assert made is not None
    assert [store.blob(entry.oid) for entry in store.tree(made).values()] == [b"2\n", b"2\n"]
    assert store.remerge(ours, against) is None
    assert store.remerge(base, ours) == store.commit(ours).tree
    store.flush()
    assert files(store) == before
    store.write_commit(Draft(store.write_tree(made, {"c": b"1\n"}), (ours, theirs), "m", ADA, WHEN))
    store.flush()
    assert len(files(store)) == len(before) + 2
    subprocess.run(["git", "fsck", "--strict"], cwd=store.git.git_dir, check=True, capture_output=True)


def test_a_remerge_follows_a_rename_as_git_does_whatever_is_configured(
    store: GitStore, git: Callable[..., str], tmp_path: Path
) -> None:
    text = "".join(f"{line}\n" for line in range(30)).encode()
    base = store.write_commit(Draft(store.write_tree(None, {"old": text}), (), "base", ADA, WHEN))
    moved = store.write_commit(Draft(store.write_tree(None, {"new": text}), (base,), "m", ADA, WHEN))
    edited = store.write_commit(
        Draft(store.write_tree(None, {"old": text + b"x\n"}), (base,), "e", ADA, WHEN)
    )
    wanted = store.write_tree(None, {"new": text + b"x\n"})
    assert store.remerge(moved, edited) == wanted
    for key, value in (("merge.renames", "false"), ("diff.renames", "false"), ("merge.default", "bad")):
        git(store.git.git_dir, "config", key, value)
        git(tmp_path, "config", "--global", key, value)
    git(store.git.git_dir, "config", "merge.bad.driver", "false")
    (store.git.git_dir / "info").mkdir(exist_ok=True)
    (store.git.git_dir / "info/attributes").write_text("* merge=bad -merge\n")
    assert store.remerge(moved, edited) == wanted


def test_what_another_thread_writes_during_a_flush_is_kept(
    store: GitStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[str] = []
    writer = threading.Thread(target=lambda: late.append(store.write_blob(b"late")))

    def begin(_name: str, _detail: str) -> None:
        if writer.ident is None:
            writer.start()
            writer.join(0.1)  # long enough to write, where nothing holds it back

    first = [store.write_blob(b"%d" % number) for number in range(5)]
    monkeypatch.setattr(effects, "hook", begin)
    store.flush()
    writer.join()
    store.flush()
    other = GitStore(store.git, store.git)
    assert [other.size(oid) for oid in (*first, *late)] == [1] * 5 + [4]
    other.close()


def test_a_clean_up_beside_a_flush_does_no_harm(store: GitStore, monkeypatch: pytest.MonkeyPatch) -> None:
    oid = store.write_blob(b"1")
    folder = store.git.git_dir / "objects" / oid[:2]
    swept: list[str] = []

    def sweep(name: str, _detail: str) -> None:
        if len(swept) < 3 and folder.is_dir():  # right before the names of a new folder are made durable
            folder.rmdir()
            swept.append(name)

    monkeypatch.setattr(effects, "hook", sweep)
    store.flush()
    assert swept == ["fsync"] * 3
    assert files(store) == [f"{oid[:2]}/{oid[2:]}"]


def test_a_hub_that_is_gone_at_a_flush_is_said_to_be_gone(store: GitStore) -> None:
    store.write_blob(b"1")
    store.git.git_dir.rename(store.git.git_dir.with_name("elsewhere"))
    with pytest.raises(Unreachable) as caught:
        store.flush()
    assert caught.value.rule == "hub-gone"
