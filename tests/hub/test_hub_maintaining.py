"""A repository with many small packs becomes quick again, and loses nothing."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from gitbus.hub import RefMove, create_hub, maintain
from gitbus.hub.direct import DirectHub
from tests.support.hubs import MAIN, advance, first_commit


def packs(bare: Path) -> int:
    return len(list((bare / "objects/pack").glob("*.pack")))


def test_small_packs_are_rolled_up_and_nothing_is_lost(tmp_path: Path) -> None:
    git = create_hub(tmp_path / "h.git", "main")
    first_commit(git)
    hub, other = DirectHub(git, git, MAIN), DirectHub(git, git, MAIN)
    garbage = [hub.store.write_blob(b"unreachable %d" % one) for one in range(9)]
    for number in range(12):
        advance(hub, {f"a/{number}": b"1", f"b/{number}": b"1"})
    other.look()
    waiting = [other.store.write_blob(b"waiting %d" % one) for one in range(9)]
    other.store.flush()
    assert not maintain(hub)
    with (git.git_dir / "gitbus-maintenance").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not maintain(git, packs=5)
    assert packs(git.git_dir) > 5
    assert maintain(hub, packs=5)
    assert packs(git.git_dir) <= 3
    fresh = DirectHub(git, git, MAIN)
    assert all(fresh.store.size(oid) for oid in (*garbage, *waiting))
    assert len(fresh.store.line(fresh.look()[MAIN])) == 13
    tip = advance(other, {"c": b"1"})
    assert hub.store.commit(hub.look()[MAIN]).oid == tip
    assert hub.move([RefMove(MAIN, tip, tip)]).moved(MAIN)
    subprocess.run(["git", "fsck", "--strict"], cwd=git.git_dir, check=True, capture_output=True)
    for one in (hub, other, fresh):
        one.close()


def test_loose_objects_are_packed_whether_reachable_or_not(tmp_path: Path) -> None:
    git = create_hub(tmp_path / "h.git", "main")
    first_commit(git)
    hub = DirectHub(git, git, MAIN)
    oids = []
    number = 0
    while not list((git.git_dir / "objects/17").glob("*")):
        oids.append(hub.store.write_blob(b"%d" % number))
        hub.store.flush()
        number += 1
    assert maintain(git, loose=200)
    assert not list((git.git_dir / "objects/17").glob("*"))
    fresh = DirectHub(git, git, MAIN)
    assert [fresh.store.blob(oid) for oid in oids] == [b"%d" % one for one in range(number)]
    hub.close()
    fresh.close()
