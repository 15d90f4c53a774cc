"""Fixtures: a GitHub on loopback, and the desk of somebody who works in a repository on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.github.desk import Desk
from tests.github.hub import GitHub
from tests.github.server import serve
from tests.github.validating import validated

__all__ = ["ada", "desk", "github", "validated"]

REPO = "acme/bus"
"""The repository of :func:`ada`."""


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    """Serve a GitHub with nothing in it; a call that it does not know fails the test in the end."""
    with serve(tmp_path / "github") as made:
        yield made
        assert made.rest.unknown == [], "calls that tests/github does not serve"


@pytest.fixture
def desk(github: GitHub, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Return a function that gives somebody a clone and an API client of ``acme/bus``."""
    made: list[Desk] = []

    def sit(login: str, token: str | None = None, repo: str = REPO) -> Desk:
        made.append(Desk(github, tmp_path / f"desk{len(made)}", repo, login, token))
        return made[-1]

    yield sit
    for one in made:
        one.client.close()


@pytest.fixture
def ada(github: GitHub, desk: Callable[..., Desk]) -> Desk:
    """Make ``acme/bus`` with one commit on ``main``; Ada maintains it, Bob may write, Rita may read."""
    for login in ("acme", "ada", "bob", "rita", "mallory"):
        github.user(login, email=f"{login}@acme.example")
    github.repo(REPO, roles={"ada": "maintain", "bob": "write", "rita": "read"})
    sits = desk("ada")
    sits.commit({"readme.txt": "a bus\n"}, "first")
    sits.push("main")
    assert sits.api.default_branch == "main"  # asked for now, so that no switch of a test meets this call
    return sits
