"""Fixtures for every test: an environment that knows nothing of the user, and real repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FIXED_DATE = "2026-11-30T20:00:00Z"


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty HOME and a git that reads no configuration but the test's own."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "GITBUS_", "SSH_", "GNUPG", "GITHUB_", "GH_")):
            monkeypatch.delenv(name)
    for name in ("CI", "GITHUB_ACTIONS", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    return home


@pytest.fixture
def git() -> Callable[..., str]:
    """Return a function that runs git in a folder and gives its output, stripped."""

    def run(folder: Path | str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        return done.stdout.strip()

    return run
