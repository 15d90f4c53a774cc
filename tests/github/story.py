"""A bus on our small GitHub for a test: its Actions, a clone, and Ada, who decides in the browser.

Example::

    story = make_story(app=True)
    story.goal(GOAL)
    story.merge()
    assert story.messages()
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.github.actions import Actions
from tests.github.hub import GitHub
from tests.github.state import Repo

REPO = "acme/bus"
ROOT = Path(__file__).resolve().parents[2]
APP_RIGHTS = {"contents": "write", "issues": "write", "metadata": "read", "pull_requests": "write"}


@dataclass
class Story:
    """A bus on GitHub, and everybody who acts on it."""

    github: GitHub
    actions: Actions
    clone: Path
    mail: Path
    token: str
    branch: str = "main"

    # --- on Ada's machine

    def run(self, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program in Ada's clone, with her token in the environment."""
        there = self.github.environment(REPO, token or self.token)
        env = {**os.environ, **there, "GITBUS_NO_PACE": "1", "PYTHONPATH": str(ROOT)}
        return subprocess.run(words, cwd=self.clone, env=env, capture_output=True, text=True, check=False)

    def gitbus(self, *arguments: str, expect: int = 0, token: str = "") -> str:
        """Run gitbus, and return what it prints."""
        done = self.run(sys.executable, "-m", "gitbus", *arguments, token=token)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout

    def git(self, *arguments: str) -> str:
        """Run git, and return what it prints."""
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, files: Mapping[str, Any], message: str, to: str = "") -> None:
        """Commit files (a mapping is written as YAML) and push them."""
        for name, content in files.items():
            path = self.clone / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
            path.write_text(text, "utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{to or self.branch}")

    def goal(self, text: str) -> None:
        """Add a goal, and let Actions do what follows."""
        (self.clone.parent / "goal.yaml").write_text(text, "utf-8")
        self.gitbus("goal", "add", "../goal.yaml")
        self.actions.settle()

    # --- in the browser

    def open_pulls(self) -> list[int]:
        """Return the open pull requests."""
        return [one.number for one in self.repo.pulls.values() if one.state == "open"]

    def merge(self, number: int | None = None) -> int:
        """Merge a pull request, the only open one unless named, and let Actions do what follows."""
        found = [number] if number else self.open_pulls()
        assert len(found) == 1, self.told()
        self.github.browser("ada").merge(REPO, found[0])
        self.actions.settle()
        return found[0]

    def decide(self, key: str, value: Any) -> None:
        """Propose a change of the Bus, and merge its pull request."""
        self.gitbus("config", "set", "--propose", f"{key}={json.dumps(value)}")
        self.actions.settle()
        self.merge()

    # --- looking

    @property
    def repo(self) -> Repo:
        """The repository."""
        return self.actions.repo

    @property
    def refs(self) -> dict[str, str]:
        """What the API takes for the repository's refs."""
        return self.repo.refs

    def messages(self) -> list[bytes]:
        """Return what was delivered."""
        new = self.mail / "new"
        return [path.read_bytes() for path in sorted(new.iterdir())] if new.is_dir() else []

    def show(self, path: str) -> Any:
        """Return a record on the bus's branch."""
        return yaml.safe_load(self.repo.git.run("show", f"refs/heads/{self.branch}:{path}"))

    def jobs(self, since: int = 0) -> list[str]:
        """Return the jobs that ran, in order."""
        return [job for one in self.actions.runs[since:] for job in one.run.ran()]

    def failed(self) -> list[str]:
        """Return what failed, and what it printed."""
        return [
            f"{one.workflow} {name}: {job.text}"
            for one in self.actions.runs
            for name, job in one.run.jobs.items()
            if job.result == "failure"
        ]

    def told(self) -> str:
        """Return all that the runs printed, for a message."""
        return "\n".join(
            f"===== {one.workflow} on {one.trigger.event} {one.trigger.ref}: {name} {job.result}\n{job.text}"
            for one in self.actions.runs
            for name, job in one.run.jobs.items()
            if job.result != "skipped"
        )


MakeStory = Callable[..., Story]


def begin(
    github: GitHub,
    folder: Path,
    actions: Callable[[], Actions],
    *options: str,
    branch: str = "main",
    applied: bool = True,
) -> Story:
    """Make a repository and a bus in it, with Ada as its approver; nothing runs there yet.

    Args:
        github: where.
        folder: the test's.
        actions: makes the repository's Actions.
        options: further options of ``gitbus init``.
        branch: the bus's branch; another than ``main`` stands beside a project.
        applied: what can be made through the API is made.
    """
    ada = github.user("ada", email="ada@acme.example")
    github.repo(REPO, roles={"ada": "admin"})
    token = github.token("ada")
    clone = folder / "bus"
    clone.mkdir(parents=True)
    made = Story(github, actions(), clone, folder / "mail", token, branch)
    if branch != "main":
        _project(made, github.remote(REPO, token))
        options = ("--branch", branch, *options)
    else:
        options = ("--hub", github.remote(REPO, token), *options)
    made.gitbus(
        "init", ".", "--github", "--approver", f"ada:{ada.id}", *options, *(["--apply"] if applied else [])
    )
    if branch != "main":
        made.git("fetch", "--quiet", "origin")
        made.git("switch", "--quiet", "--create", "the-bus", "--track", f"origin/{branch}")
    return made


def _project(story: Story, url: str) -> None:
    """Put a project into the repository, and clone it."""
    story.git("clone", "--quiet", url, ".")
    story.git("switch", "--quiet", "--create", "main")
    (story.clone / "README.md").write_text("# A project\n", "utf-8")
    story.git("add", "--all")
    story.git("commit", "--quiet", "--message", "A project")
    story.git("push", "--quiet", "--set-upstream", "origin", "main")
    story.git("remote", "set-head", "origin", "main")


def furnish(story: Story, workers: Mapping[str, Mapping[str, Any]], *, sending: bool = True) -> None:
    """Give the bus a Maildir, its workers and the flag, by a pull request and a push; nothing runs for it."""
    at = story.clone / "bus.yaml"
    bus = yaml.safe_load(at.read_text("utf-8"))
    bus["channels"] = {
        "news": {"transport": "maildir", "path": str(story.mail), "from": ["Acme News <news@acme.example>"]}
    }
    bus["sending"] = {"enabled": sending}
    story.commit({"bus.yaml": bus}, "A channel", to="setup")
    browser = story.github.browser("ada")
    browser.merge(REPO, browser.open(REPO, "setup", base=story.branch))
    story.git("fetch", "--quiet", "origin", "--prune")
    story.git("reset", "--quiet", "--hard", f"origin/{story.branch}")
    head = {"apiVersion": "gitbus/v1", "kind": "Worker"}
    declared = {f"workers/{name}.yaml": {**head, "id": name, **one} for name, one in workers.items()}
    if declared:
        story.commit(declared, "Declare workers")
    story.actions.forget()
