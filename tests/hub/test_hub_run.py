"""What git sees of the user's environment, and what people see of git's failures."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus.errors import Unreachable
from gitbus.hub import create_hub
from gitbus.hub.run import Git, environment, run, said

KEPT = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_SSL_CAINFO",
    "GIT_TRACE",
    "GIT_TRACE_PACKET",
    "GIT_PROXY_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "HTTPS_PROXY",
    "GNUPGHOME",
]
DROPPED = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_ALLOW_PROTOCOL",
    "GIT_EXTERNAL_DIFF",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "GIT_LITERAL_PATHSPECS",
    "GIT_DEFAULT_HASH",
]


@pytest.mark.parametrize("name", KEPT)
def test_what_a_user_needs_to_reach_his_host_passes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert environment()[name] == "x"


@pytest.mark.parametrize("name", DROPPED)
def test_what_could_redirect_git_does_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert name not in environment()


@pytest.mark.parametrize("name", ["LC_ALL", "GIT_NO_REPLACE_OBJECTS", "GIT_GRAFT_FILE"])
def test_what_is_ours_to_say_cannot_be_said_by_others(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = environment()[name]
    monkeypatch.setenv(name, "x")
    assert environment()[name] == before != "x"


def test_the_users_configuration_counts_where_it_is_not_dangerous(
    tmp_path: Path, git: Callable[..., str]
) -> None:
    bare = create_hub(tmp_path / "h.git", "main")
    git(tmp_path, "config", "--global", "user.name", "Ada")
    git(tmp_path, "config", "--global", "gc.auto", "7")
    git(tmp_path, "config", "--global", "protocol.ext.allow", "always")
    assert bare.config("user.name") == "Ada"
    assert bare.config("user.name", local=True) is None
    assert (bare.config("gc.auto"), bare.config("protocol.ext.allow")) == ("0", "never")


def test_a_repository_that_is_gone_and_a_git_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = create_hub(tmp_path / "h.git", "main")
    with pytest.raises(Unreachable) as caught:
        bare.text("rev-parse", "--verify", "refs/heads/none")
    assert caught.value.rule == "git-failed"
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (lambda: bare.run("version"), lambda: bare.start("version")):
        with pytest.raises(Unreachable) as caught:
            ask()
        assert caught.value.rule == "no-git"
    shutil.rmtree(bare.git_dir)
    with pytest.raises(Unreachable) as caught:
        bare.run("version")
    assert caught.value.rule == "hub-gone"


def test_a_program_that_does_not_answer_is_ended() -> None:
    assert run(["sleep", "60"], seconds=0.05).code == -9


SSH = """Permission denied (publickey).
fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
"""
LOCKED = """error: cannot lock ref 'refs/x': Unable to create '/h/refs/x.lock': File exists.

Another git process seems to be running in this repository, e.g.
an editor opened by 'git commit'.
remove the file manually to continue.
"""
PROTECTED = """remote: Resolving deltas: 100% (2/2)
remote:
remote: error: GH006: Protected branch update failed for refs/heads/main.
remote: error: Changes must be made through a pull request.
To https://github.com/acme/bus.git
error: failed to push some refs to 'https://github.com/acme/bus.git'
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("remote: no\x1b[31m\r\nremote: \nremote: really\nerror: failed", "no\ufffd[31m / really"),
        ("hint: x\nfatal: not there\n\n", "fatal: not there"),
        ("", "it said nothing"),
        ("one\ntwo\n", "two"),
        (SSH, "Permission denied (publickey). / fatal: Could not read from remote repository."),
        (LOCKED, "error: cannot lock ref 'refs/x': Unable to create '/h/refs/x.lock': File exists."),
        (
            PROTECTED,
            "error: GH006: Protected branch update failed for refs/heads/main."
            " / error: Changes must be made through a pull request.",
        ),
        ("remote: " + "\nremote: ".join("abcdef"), "a / b / c / d"),
    ],
)
def test_what_is_shown_is_one_line_that_says_why(text: str, shown: str) -> None:
    assert said(text) == shown


def test_paths_are_literal(tmp_path: Path) -> None:
    assert "--literal-pathspecs" in Git(tmp_path).command("log")
