"""What the doctor warns of."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gitbus.health import Health, examine
from tests.support.world import make_world


def examined(tmp_path: Path, program: bytes) -> list[Health]:
    """Return what is said of a channel that is this program."""
    path = tmp_path / "chat"
    path.write_bytes(program)
    path.chmod(0o755)
    sha256 = hashlib.sha256(program).hexdigest()
    world = make_world(
        tmp_path, channels={"chat": {"transport": "exec", "command": [str(path)], "sha256": sha256}}
    )
    with world.open() as bus:
        return [one for one in examine(bus) if "its `sha256` holds the file" in one.what]


@pytest.mark.parametrize("line", [b"#!/usr/bin/python3\n", b"#!/usr/bin/env -S sh -u"])
def test_a_pinned_script_is_warned_of(tmp_path: Path, line: bytes) -> None:
    [found] = examined(tmp_path, line)
    assert found.level == "warning"
    assert line.decode().strip().removeprefix("#!") in found.what
    assert "standard library" in found.remedy


def test_a_program_that_is_no_script_is_not_warned_of(tmp_path: Path) -> None:
    assert examined(tmp_path, Path("/bin/true").read_bytes()) == []
