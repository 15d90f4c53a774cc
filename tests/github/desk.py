"""A person's desk in these tests: a clone with git, and PyGithub with his token.

Example::

    ada = Desk(github, tmp_path / "ada", "acme/bus", "ada")
    ada.commit({"a.txt": "hello\\n"})
    ada.push("main")
    ada.api.get_pulls()
"""

from __future__ import annotations

import os
import subprocess
from functools import cached_property
from pathlib import Path

from github import Auth, Github
from github.Repository import Repository  # noqa: TC002

from tests.github.hub import GitHub


class Desk:
    """A clone of a repository and a way to its API, both with one token."""

    def __init__(self, github: GitHub, folder: Path, repo: str, login: str, token: str | None = None) -> None:
        self.login = login
        self.folder = folder
        self.token = token or github.token(login)
        self.client = client(github, self.token)
        self.url = github.remote(repo, self.token)
        self._repo = repo
        user = github.world.users.get(login)
        self.git("init", "-q", "-b", "main", str(folder), at=folder.parent)
        self.git("config", "user.name", user.name if user else login)
        self.git("config", "user.email", user.email if user else f"{login}@test")
        self.git("remote", "add", "origin", self.url)

    @cached_property
    def api(self) -> Repository:
        """The repository, asked for once."""
        return self.client.get_repo(self._repo)

    def git(self, *arguments: str, at: Path | None = None, check: bool = True) -> str:
        """Run git in the clone; gives what it printed, or what it said of its failure."""
        done = subprocess.run(
            ["git", "-C", str(at or self.folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
        assert not check or done.returncode == 0, done.stderr
        return (done.stdout if done.returncode == 0 else done.stderr).strip()

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        """Commit files and return the commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def push(self, *refspecs: str) -> str:
        """Push; a refusal is an error."""
        return self.git("push", "-q", "origin", *refspecs)

    def refused(self, *refspecs: str) -> str:
        """Push what is to be refused; gives what git said."""
        done = subprocess.run(
            ["git", "-C", str(self.folder), "push", "--porcelain", "origin", *refspecs],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def fetch(self, branch: str = "main") -> str:
        """Fetch a branch and return its tip."""
        self.git("fetch", "-q", "origin", f"+refs/heads/{branch}:refs/remotes/origin/{branch}")
        return self.git("rev-parse", f"refs/remotes/origin/{branch}")

    def branch(self, name: str, files: dict[str, str], message: str = "change", start: str = "main") -> str:
        """Make a branch with one commit and push it; returns the commit."""
        self.git("checkout", "-q", "-B", name, start)
        sha = self.commit(files, message)
        self.push(f"+{name}")
        self.git("checkout", "-q", "main")
        return sha


def client(github: GitHub, token: str | None) -> Github:
    """Return PyGithub for a token, which waits for nothing and tries nothing again."""
    return Github(
        auth=Auth.Token(token) if token else None,
        base_url=github.api,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
        api_version="2022-11-28",
    )
