"""Actions of our small GitHub: from what happened to runs, in the order in which GitHub would start them.

Rules: a run's workflow is the file as it stands at the commit that started it. What GITHUB_TOKEN does
starts nothing, but for a dispatch. Of runs that wait in one concurrency group only the newest is kept.

Example::

    actions = Actions(github, "acme/bus", tmp_path)
    actions.settle()
    assert [run.workflow for run in actions.runs] == ["gitbus.yml"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.github import api_actions
from tests.github.expressions import filled
from tests.github.hub import GitHub
from tests.github.images import image
from tests.github.runner import Run, Runner, Trigger, parsed
from tests.github.state import Happening, Pull

FOLDER = ".github/workflows"
assert api_actions


@dataclass(frozen=True)
class Ran:
    """A run that was."""

    workflow: str
    trigger: Trigger
    run: Run


@dataclass(frozen=True)
class _Waiting:
    workflow: str
    text: Mapping[str, Any]
    trigger: Trigger
    group: str


class Actions:
    """The Actions of one repository.

    Args:
        github: where it is.
        repository: ``owner/name``.
        folder: where the machines go.
        environment: variables of every machine that a test needs.
        programs: the machines' programs; they have gitbus already unless given.
    """

    def __init__(
        self,
        github: GitHub,
        repository: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        programs: Path | None = None,
    ) -> None:
        self.github = github
        self.repo = github.world.repos[repository]
        self.repository = repository
        self.web, self.api = github.url, github.api
        self.secrets: dict[str, dict[str, str]] = {}  # environment ("" for the repository's) → name → value
        self.variables: dict[str, dict[str, str]] = {}
        self.runs: list[Ran] = []
        self._seen = self._dispatched = 0
        self._runner = Runner(
            self,
            folder / "machines",
            programs or image(folder / "bin"),
            {"GITBUS_NO_PACE": "1", **(environment or {})},
        )
        self._waiting: list[_Waiting] = []
        self.forget()

    # --- what a run is given

    def token(self, permissions: Mapping[str, str]) -> str:
        """Return a GITHUB_TOKEN with these rights."""
        rights = {name.replace("-", "_"): level for name, level in permissions.items()}
        return self.github.workflow_token(self.repository, {"metadata": "read", **rights})

    def app_token(self, number: str, key: str, permissions: Mapping[str, str]) -> str:
        """Return an installation token with these rights; KeyError where number or key are wrong."""
        app = self.github.world.apps[int(number or 0)]
        if key != app.key:
            raise KeyError("the private key is another")
        assert all(app.rights.get(name) in (level, "write") for name, level in permissions.items()), (
            permissions
        )
        return self.github.installation_token(app, {"metadata": "read", **permissions})

    def held(self, environment: str | None, ref: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the secrets and variables of a job."""
        secrets, variables = dict(self.secrets.get("", {})), dict(self.variables.get("", {}))
        known = self.repo.environments.get(environment or "")
        guarded = known is not None and known.branch_policy is not None
        if known and guarded and ref.removeprefix("refs/heads/") not in known.policies.values():
            raise KeyError(f"{ref} may not deploy to {environment}")
        if environment:
            secrets |= self.secrets.get(environment, {})
            variables |= self.variables.get(environment, {})
        return secrets, variables

    # --- what starts runs

    def schedule(self) -> None:
        """Let the time come at which every schedule of the default branch is due."""
        ref = f"refs/heads/{self.repo.default_branch}"
        self._start("schedule", Trigger("schedule", ref, self.repo.refs[ref]), {})

    def dispatch(self, workflow: str, ref: str = "") -> None:
        """Start a workflow by hand."""
        ref = f"refs/heads/{ref or self.repo.default_branch}"
        self._start(
            f"workflow_dispatch {workflow}", Trigger("workflow_dispatch", ref, self.repo.refs[ref]), {}
        )

    def forget(self) -> None:
        """Let what happened until now start nothing."""
        self._seen = len(self.github.world.happened)
        self._dispatched = len(self.repo.actions.get("inputs", []))

    def settle(self, most: int = 60) -> None:
        """Run what was started, and what that starts, until nothing is left."""
        for _ in range(most):
            self._notice()
            if not self._waiting:
                return
            one = self._waiting.pop(0)
            fresh = Trigger(
                one.trigger.event,
                one.trigger.ref,
                one.trigger.commit,
                one.trigger.payload,
                one.trigger.inputs,
            )
            self.runs.append(Ran(one.workflow, fresh, self._runner.run(one.text, fresh)))
        raise AssertionError("it never came to rest: " + ", ".join(one.workflow for one in self.runs))

    def _notice(self) -> None:
        """Queue what the newest happenings start."""
        happened = [one for one in self.github.world.happened[self._seen :] if one.repo == self.repository]
        self._seen = len(self.github.world.happened)
        for one in happened:
            if one.name.startswith("workflow_dispatch "):
                inputs = self.repo.actions["inputs"][self._dispatched]
                self._dispatched += 1
                self._start(one.name, Trigger("workflow_dispatch", one.ref, one.sha, {}, inputs), {})
            elif one.starts and one.action != "deleted":
                self._happened(one)

    def _happened(self, one: Happening) -> None:
        kind = self.github.world.users[one.actor].type
        payload: dict[str, Any] = {"sender": {"login": one.actor, "type": kind}, "action": one.action}
        commit = one.sha
        if one.number is not None:
            pull = self.github.pull(self.repository, one.number)
            payload |= {"number": one.number, "pull_request": _pull(pull, one)}
            commit = commit or pull.head
        self._start(one.name, Trigger(one.name, one.ref, commit, payload), payload)

    def _start(self, name: str, trigger: Trigger, payload: Mapping[str, Any]) -> None:
        for file, text in self._workflows(trigger.commit):
            if _starts(text["on"], name, file, trigger, payload):
                self._queue(_Waiting(file, text, trigger, _group(text, file, trigger)))

    def _queue(self, one: _Waiting) -> None:
        self._waiting = [other for other in self._waiting if other.group != one.group] + [one]

    def _workflows(self, commit: str) -> list[tuple[str, dict[str, Any]]]:
        if not self.repo.git.ok("cat-file", "-e", f"{commit}:{FOLDER}"):
            return []
        names = self.repo.git.lines("ls-tree", "--name-only", f"{commit}:{FOLDER}")
        return [(name, parsed(self.repo.git.run("show", f"{commit}:{FOLDER}/{name}"))) for name in names]


def _pull(pull: Pull, one: Happening) -> dict[str, Any]:
    return {
        "base": {"ref": pull.base_ref},
        "head": {"ref": pull.head_ref, "sha": pull.head, "repo": {"full_name": pull.head_repo}},
        "merged": one.merged,
    }


def _group(text: Mapping[str, Any], file: str, trigger: Trigger) -> str:
    """Return in which group a run waits; one that names none waits with nobody."""
    concurrency = text.get("concurrency")
    if concurrency is None:
        return f"{file} {trigger.event} {trigger.ref} {trigger.commit}"
    named = concurrency if isinstance(concurrency, str) else concurrency["group"]
    return str(filled(named, {"github": {"ref": trigger.ref}}))


def _starts(on: Any, name: str, file: str, trigger: Trigger, payload: Mapping[str, Any]) -> bool:
    """Say whether something starts a workflow."""
    event, _, only = name.partition(" ")
    if event not in on or (only and only != file):
        return False
    wanted = on[event] or {}
    if event == "push":
        branch = trigger.ref.removeprefix("refs/heads/")
        return trigger.ref.startswith("refs/heads/") and _matches(wanted.get("branches"), branch)
    if event == "pull_request":
        types = wanted.get("types", ["opened", "synchronize", "reopened"])
        base = payload["pull_request"]["base"]["ref"]
        return payload["action"] in types and _matches(wanted.get("branches"), base)
    if event == "pull_request_review":
        return payload["action"] in wanted.get("types", ["submitted", "edited", "dismissed"])
    return True


def _matches(patterns: list[str] | None, branch: str) -> bool:
    if patterns is None:
        return True
    return any(
        re.fullmatch(re.escape(one).replace(r"\*\*", ".*").replace(r"\*", "[^/]*"), branch)
        for one in patterns
    )
