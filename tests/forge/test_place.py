"""Which repository on which GitHub a URL names, and where its token comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus.errors import Refused
from gitbus.forge.github.place import Place, place_of, token_of

GITHUB = Place("acme", "bus", "https://api.github.com", "https://github.com")
ACTIONS = {
    "GITHUB_SERVER_URL": "https://git.acme.example",
    "GITHUB_API_URL": "https://git.acme.example/api/v3",
}


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/bus",
        "https://github.com/acme/bus.git",
        "https://x-access-token:secret@github.com/acme/bus.git",
        "https://GitHub.com/acme/bus/",
        "git@github.com:acme/bus.git",
        "github.com:acme/bus",
        "ssh://git@github.com/acme/bus.git",
        "ssh://git@ssh.github.com:443/acme/bus.git",
    ],
)
def test_github_by_every_url(url: str) -> None:
    assert place_of(url, {}) == GITHUB


def test_an_own_server_is_known_in_actions_or_by_the_bus() -> None:
    url = "https://git.acme.example/acme/bus.git"
    own = Place("acme", "bus", "https://git.acme.example/api/v3", "https://git.acme.example")
    assert place_of(url, {}) is None
    assert place_of(url, ACTIONS) == own
    assert place_of(url, {}, certain=True) == own
    assert place_of("git@git.acme.example:acme/bus.git", {}, certain=True) == own


def test_data_residency_has_an_api_host_of_its_own() -> None:
    place = place_of("https://acme.ghe.com/acme/bus", {})
    assert place == Place("acme", "bus", "https://api.acme.ghe.com", "https://acme.ghe.com")


@pytest.mark.parametrize(
    "url",
    [
        "/srv/acme.git",
        "../acme.git",
        "file:///srv/acme.git",
        "C:\\acme\\bus.git",
        "https://github.com/acme",
        "https://github.com/acme/bus/tree/main",
        "https://github.com.evil.example/acme/bus",
        "https://evil.example/github.com/acme/bus",
        "git@gitlab.com:acme/bus.git",
        "ext::sh -c touch% /tmp/x",
    ],
)
def test_everything_else_is_no_github(url: str) -> None:
    assert place_of(url, {}) is None
    assert place_of(url, ACTIONS) is None


def test_the_api_of_actions_is_taken_for_its_own_host_only() -> None:
    assert place_of("https://github.com/acme/bus", ACTIONS) == GITHUB


def test_links() -> None:
    assert GITHUB.file("c" * 40, "outbox/a/body.txt").startswith("https://github.com/acme/bus/blob/cccc")
    assert GITHUB.path == "/repos/acme/bus"


def test_the_first_token_counts() -> None:
    env = {"GH_TOKEN": "one", "GITHUB_TOKEN": "two", "PATH": "/nowhere"}
    assert token_of(GITHUB, env) == "one"
    assert token_of(GITHUB, env | {"GH_TOKEN": ""}) == "two"
    assert token_of(GITHUB, {"PATH": "/nowhere"}) is None


def test_gh_is_asked_where_it_is_there(tmp_path: Path) -> None:
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\n[ "$*" = "auth token --hostname github.com" ] && echo from-gh\n', "utf-8")
    gh.chmod(0o755)
    assert token_of(GITHUB, {"PATH": f"{tmp_path}:/bin:/usr/bin"}) == "from-gh"


def test_no_token_goes_in_the_clear() -> None:
    clear = Place("acme", "bus", "http://git.acme.example/api/v3", "http://git.acme.example")
    with pytest.raises(Refused) as refused:
        token_of(clear, {"GH_TOKEN": "secret"})
    assert refused.value.rule == "plain-http"
    here = Place("acme", "bus", "http://127.0.0.1:8080/api/v3", "http://127.0.0.1:8080")
    assert token_of(here, {"GH_TOKEN": "secret"}) == "secret"
