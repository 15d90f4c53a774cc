"""Packs are written as git reads them, and read as git does or not at all."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitbus.hub import create_hub
from gitbus.hub.database import Database
from gitbus.hub.objects import oid_of
from gitbus.hub.packs import LARGE, Packs, Raw, loose, packed
from gitbus.hub.run import Git


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return create_hub(tmp_path / "h.git", "main")


def folder(git: Git) -> Path:
    return git.git_dir / "objects" / "pack"


def put(git: Git, objects: dict[str, Raw]) -> str:
    made = packed(objects)
    folder(git).mkdir(exist_ok=True)
    (folder(git) / f"{made.name}.pack").write_bytes(made.pack)
    (folder(git) / f"{made.name}.idx").write_bytes(made.index)
    return made.name


def blobs(*contents: bytes) -> dict[str, Raw]:
    return {oid_of("blob", data): ("blob", data) for data in contents}


@pytest.fixture
def many(git: Git) -> Iterator[dict[str, Raw]]:
    """A pack with differences, as git makes one of many similar objects."""
    objects = blobs(*(b"the same for all\n" * 200 + b"%d\n" % number for number in range(300)))
    put(git, objects)
    git.text("repack", "-adfq", "--keep-unreachable")
    assert git.text("verify-pack", "-s", *map(str, folder(git).glob("*.idx"))).count("chain length") > 1
    return objects


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=400) | st.binary(max_size=3).map(lambda one: one * 9_000), max_size=40))
def test_git_and_we_read_what_was_written(git: Git, contents: list[bytes]) -> None:
    objects = blobs(b"at least one", *contents)
    name = put(git, objects)
    git.text("index-pack", "--strict", "--verify", str(folder(git) / f"{name}.pack"))
    packs = Packs(folder(git))
    for oid, found in objects.items():
        assert packs.find(oid) == found
        assert packs.size(oid) == len(found[1])


def test_every_kind_of_object_keeps_its_kind(git: Git) -> None:
    tree = git.text("mktree", given=b"")
    objects = {tree: ("tree", b""), **blobs(b"")}
    put(git, objects)
    packs = Packs(folder(git))
    assert {oid: packs.find(oid) for oid in objects} == objects


def test_a_difference_is_left_to_git_and_all_else_is_read(git: Git, many: dict[str, Raw]) -> None:
    packs = Packs(folder(git))
    found = {oid: packs.find(oid) for oid in many}
    assert None in found.values()
    assert any(found.values())
    assert all(one in (None, many[oid]) for oid, one in found.items())
    assert all(packs.size(oid) in (None, len(many[oid][1])) for oid in many)


def test_a_new_pack_is_seen_and_one_that_went_is_let_go(git: Git) -> None:
    packs = Packs(folder(git))
    first, second = blobs(b"one"), blobs(b"two")
    assert packs.find(next(iter(first))) is None
    name = put(git, first)
    assert packs.find(next(iter(first))) == ("blob", b"one")
    for end in (".pack", ".idx"):
        (folder(git) / f"{name}{end}").unlink()
    assert packs.find(next(iter(first))) == ("blob", b"one")  # it is held
    put(git, second)
    assert packs.find(next(iter(second))) == ("blob", b"two")
    assert packs.find(next(iter(first))) is None


def test_what_is_large_is_left_to_git(git: Git) -> None:
    objects = blobs(bytes(LARGE), bytes(LARGE + 1))
    put(git, objects)
    packs = Packs(folder(git))
    assert [packs.find(oid) for oid in objects] == [("blob", bytes(LARGE)), None]
    assert [packs.size(oid) for oid in objects] == [LARGE, LARGE + 1]


@pytest.mark.parametrize("keep", [0, 7, 8, 100, 1031, 1032, 1100])
def test_an_index_that_is_cut_off_is_left_to_git(git: Git, keep: int) -> None:
    objects = blobs(b"one", b"two", b"three")
    path = folder(git) / f"{put(git, objects)}.idx"
    path.write_bytes(path.read_bytes()[:keep])
    packs = Packs(folder(git))
    assert [packs.find(oid) for oid in objects] == [None, None, None]


def test_a_damaged_object_is_left_to_git(git: Git) -> None:
    objects = blobs(os.urandom(300))
    path = folder(git) / f"{put(git, objects)}.pack"
    data = bytearray(path.read_bytes())
    data[14:40] = bytes(26)
    path.write_bytes(data)
    assert Packs(folder(git)).find(next(iter(objects))) is None


def test_a_pack_without_its_folder_or_its_other_half_is_none(git: Git) -> None:
    objects = blobs(b"one")
    name = put(git, objects)
    (folder(git) / f"{name}.pack").unlink()
    assert Packs(folder(git)).find(next(iter(objects))) is None
    assert Packs(folder(git) / "none").find(next(iter(objects))) is None


def test_an_object_with_a_file_of_its_own(git: Git) -> None:
    oid = git.text("hash-object", "-w", "--stdin", given=b"hello\n")
    objects = git.git_dir / "objects"
    assert loose(objects, oid) == ("blob", b"hello\n")
    path = objects / oid[:2] / oid[2:]
    path.chmod(0o644)
    for broken in (b"", b"no zlib", zlib.compress(b"blob 5\0hello\n"), zlib.compress(b"blub 6\0hello\n")):
        path.write_bytes(broken)
        assert loose(objects, oid) is None
    large = git.text("hash-object", "-w", "--stdin", given=bytes(LARGE + 100))
    assert loose(objects, large) is None
    assert loose(objects, "0" * 40) is None


def test_a_pack_with_more_than_a_word_can_count(git: Git, tmp_path: Path) -> None:
    """An offset behind 2 GiB stands in a table of its own; the pack here is a sparse file."""
    oid = oid_of("blob", b"far")
    made = packed(blobs(b"near", b"far"))
    far = 1 << 33
    index = bytearray(made.index)
    number = sorted(blobs(b"near", b"far")).index(oid)
    table = 8 + 1024 + 2 * 24
    at = int.from_bytes(index[table + number * 4 : table + number * 4 + 4], "big")
    index[table + number * 4 : table + number * 4 + 4] = (1 << 31).to_bytes(4, "big")
    index[table + 8 : table + 8] = far.to_bytes(8, "big")
    place = folder(git)
    place.mkdir(exist_ok=True)
    with (place / "pack-x.pack").open("wb") as file:
        file.write(made.pack)
        file.seek(far)
        file.write(made.pack[at : at + 40])
    (place / "pack-x.idx").write_bytes(index)
    assert Packs(place).find(oid) == ("blob", b"far")


def test_a_store_with_alternates_is_read_through_git(git: Git, tmp_path: Path) -> None:
    put(git, blobs(b"borrowed"))
    subprocess.run(["git", "clone", "-q", "-s", "--bare", git.git_dir, tmp_path / "b.git"], check=True)
    database = Database(Git(tmp_path / "b.git"))
    oid = oid_of("blob", b"borrowed")
    assert database.read(oid) == ("blob", b"borrowed")
    assert database.size(oid) == 8
    database.close()
