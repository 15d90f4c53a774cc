"""Refs read from files are those that git reads."""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus.hub import RefMove, create_hub
from gitbus.hub.direct import DirectHub
from gitbus.hub.refs import RefFiles, RefMover
from gitbus.hub.run import Git
from tests.support.hubs import MAIN, commit_on, first_commit

GITBUS = "refs/heads/gitbus"
ONE = f"{GITBUS}/workers/one"


@pytest.fixture
def bare(tmp_path: Path) -> Git:
    git = create_hub(tmp_path / "h.git", "main")
    first_commit(git)
    return git


def by_git(bare: Git) -> dict[str, str]:
    lines = bare.text("for-each-ref", "--format=%(refname) %(objectname)", MAIN, GITBUS).splitlines()
    return dict(line.split() for line in lines)


def test_loose_packed_and_both(bare: Git, git: Callable[..., str]) -> None:
    hub = DirectHub(bare, bare, MAIN)
    files = RefFiles(bare)
    root = hub.look()[MAIN]
    new = commit_on(hub, (root,), {"a": b"1"})
    hub.move([RefMove(ONE, None, root), RefMove(f"{GITBUS}/presence/two", None, root)])
    assert files.below(MAIN, GITBUS) == by_git(bare)
    git(bare.git_dir, "pack-refs", "--all")
    assert files.below(MAIN, GITBUS) == by_git(bare)
    hub.move([RefMove(ONE, root, new)])
    assert files.below(MAIN, GITBUS)[ONE] == new
    git(bare.git_dir, "update-ref", "refs/heads/gitbusy", root)
    (bare.git_dir / f"{ONE}.lock").touch()
    assert files.below(MAIN, GITBUS) == by_git(bare)
    (bare.git_dir / f"{ONE}.lock").unlink()
    hub.move([RefMove(ONE, new, None)])
    assert files.below(MAIN, GITBUS) == by_git(bare)
    assert files.value(ONE) is None
    hub.close()


def test_what_is_laid_out_oddly_is_left_to_git(bare: Git, git: Callable[..., str]) -> None:
    git(bare.git_dir, "symbolic-ref", ONE, MAIN)
    assert RefFiles(bare).below(MAIN, GITBUS) == by_git(bare)
    (bare.git_dir / ONE).write_text("")
    assert RefFiles(bare).below(MAIN) == {MAIN: by_git(bare)[MAIN]}
    assert RefFiles(bare).below(MAIN, GITBUS) == {MAIN: by_git(bare)[MAIN]}


def test_a_ref_is_never_missed_while_refs_are_packed(bare: Git) -> None:
    files = RefFiles(bare)
    hub = DirectHub(bare, bare, MAIN)
    root = hub.look()[MAIN]
    other = commit_on(hub, (root,), {"a": b"1"})
    hub.store.flush()
    hub.close()
    stop = threading.Event()

    def pack() -> None:
        while not stop.is_set():
            subprocess.run(["git", "pack-refs", "--all"], cwd=bare.git_dir, check=True)
            subprocess.run(["git", "update-ref", MAIN, other], cwd=bare.git_dir, check=True)
            subprocess.run(["git", "update-ref", MAIN, root], cwd=bare.git_dir, check=True)

    packer = threading.Thread(target=pack)
    packer.start()
    try:
        for _ in range(400):
            assert files.value(MAIN) in (root, other)
    finally:
        stop.set()
        packer.join()


def test_the_fingerprint_differs_after_every_move(bare: Git, git: Callable[..., str]) -> None:
    hub = DirectHub(bare, bare, MAIN)
    files = RefFiles(bare)
    root = hub.look()[MAIN]
    new = commit_on(hub, (root,), {"a": b"1"})
    seen = [files.fingerprint(MAIN, GITBUS)]
    for move in (
        RefMove(ONE, None, root),
        RefMove(ONE, root, new),
        RefMove(ONE, new, root, replace=True),
        RefMove(MAIN, root, new),
        RefMove(ONE, root, None),
    ):
        assert hub.move([move]).done
        seen.append(files.fingerprint(MAIN, GITBUS))
    git(bare.git_dir, "pack-refs", "--all")
    seen.append(files.fingerprint(MAIN, GITBUS))
    assert all(one != two for one, two in itertools.pairwise(seen))
    assert seen[-1] == files.fingerprint(MAIN, GITBUS)
    hub.close()


def test_a_mover_goes_on_after_a_move_that_failed_or_was_killed(bare: Git) -> None:
    hub = DirectHub(bare, bare, MAIN)
    root = hub.look()[MAIN]
    mover = RefMover(bare)
    assert mover.move(RefMove(ONE, None, root)) == "moved"
    assert mover.move(RefMove(ONE, None, root)) == "failed"
    assert mover.move(RefMove(ONE, root, None)) == "moved"
    assert mover._process is not None
    mover._process.kill()
    mover._process.wait()
    assert mover.move(RefMove(ONE, None, root)) == "unknown"
    assert mover.move(RefMove(ONE, None, root)) == "moved"
    assert mover.move(RefMove(f"{ONE}/below", None, root)) == "failed"
    mover.close()
    hub.close()
