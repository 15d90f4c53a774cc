"""The demo and its example, on this project's own history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitbus.bus import Bus

ROOT = Path(__file__).resolve().parents[2]
ITEM = "announce.mail.news"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def demo(where: Path, target: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gitbus", "demo", str(target)],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def history() -> bool:
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False)
    return found.returncode == 0


@pytest.mark.long
@pytest.mark.skipif(not history(), reason="this is no clone of the project")
def test_on_this_projects_own_history(tmp_path: Path) -> None:
    said = demo(ROOT, tmp_path / "demo")
    assert "audit ok" in said
    with Bus.open(tmp_path / "demo" / "bus") as bus:
        part = bus.whole_board().goals["announce"]
        assert part.state == "partial"
        assert part.report is not None
        assert part.report.missing == ("draw",)
        notes = part.results["write"]
        facts = [claim for claim in notes.claims if claim.provenance == "FACT"]
        refs = {one.id: one.ref for one in notes.evidence}
        assert facts
        for fact in facts:
            for name in fact.evidence:
                git(ROOT, "cat-file", "-e", refs[name])
                assert git(ROOT, "log", "-1", "--format=%s", refs[name]).strip() == fact.text
        assert bus.board().items[ITEM].state == "sent"
    assert len(list((tmp_path / "demo" / "mail" / "new").iterdir())) == 1
    told = git(tmp_path / "demo" / "bus.git", "log", "--format=%h %an %s %(trailers)", "main")
    for verb in (
        "add",
        "assign",
        "absorb",
        "skip",
        "persist",
        "score",
        "route",
        "approve",
        "lease",
        "attest",
        "settle",
    ):
        assert f"Gitbus-Verb: {verb}" in told
    assert f"Gitbus-Item: {ITEM}" in told
    git(tmp_path / "demo" / "bus.git", "fsck", "--strict")


@pytest.mark.long
def test_where_there_is_no_repository(tmp_path: Path) -> None:
    said = demo(tmp_path, tmp_path / "demo")
    assert "on the history of parser" in said
    again = subprocess.run(
        [sys.executable, "-m", "gitbus", "demo", str(tmp_path / "demo")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert again.returncode == 1
    assert "[exists]" in again.stderr
