"""A runner of GitHub Actions for tests: takes a workflow's file as it is and does what it says, job by job.

Rules: every job gets a home, a workspace and a temporary folder of its own, all empty; a token with the
rights that the job declares, and with no others; and the secrets of its environment only where that
lets in the run's branch. What a step runs is the text of the file; an action is either in the table
:data:`ACTIONS`, pinned by its commit, or a composite one in the workspace.

Example::

    run = Runner(host, folder).run(workflow, Trigger("push", "refs/heads/main", commit))
    assert run.jobs["conduct"].result == "success"
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.github.expressions import Status, condition, filled, shown
from tests.github.used import ACTIONS, basic

BASH = "bash --noprofile --norc -eo pipefail {0}"
PINNED = re.compile(r"(?P<name>[a-z-]+/[a-z-]+)@[0-9a-f]{40}")


@dataclass(frozen=True)
class Trigger:
    """What started a run."""

    event: str
    ref: str
    commit: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)


class Host(Protocol):
    """The GitHub that a run talks to."""

    web: str
    api: str
    repository: str

    def token(self, permissions: Mapping[str, str]) -> str:
        """Return a GITHUB_TOKEN with these rights."""
        ...

    def app_token(self, number: str, key: str, permissions: Mapping[str, str]) -> str:
        """Return an installation token of an App with these rights."""
        ...

    def held(self, environment: str | None, ref: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the secrets and variables that a job gets; KeyError where the environment shuts the ref out."""
        ...


@dataclass
class Step:
    """What became of a step."""

    name: str
    result: str
    output: str = ""
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """What became of a job, or of one of a matrix."""

    id: str
    result: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    summary: str = ""

    @property
    def text(self) -> str:
        """All that its steps printed."""
        return "\n".join(step.output for step in self.steps)


@dataclass
class Run:
    """What became of a run."""

    jobs: dict[str, Job]
    parts: dict[str, list[Job]]  # of a matrix, each by itself

    def ran(self) -> list[str]:
        """Return the jobs that were not skipped, in order."""
        return [name for name, job in self.jobs.items() if job.result != "skipped"]


class Runner:
    """Runs workflows.

    Args:
        host: the GitHub.
        folder: where the machines of the jobs go.
        programs: what every machine has on its path before the system's own: ``python`` and what it installed.
        environment: variables of every machine, which a test needs (an index of packages).
    """

    def __init__(
        self, host: Host, folder: Path, programs: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.host = host
        self.folder = folder
        self.programs = programs
        self.environment = dict(environment or {})
        self.count = itertools.count(1)

    def run(self, workflow: Mapping[str, Any], trigger: Trigger) -> Run:
        """Run a workflow."""
        number = next(self.count)
        artifacts = self.folder / f"artifacts-{number}"
        run = Run({}, {})
        for name in _order(workflow["jobs"]):
            self._job(workflow, name, trigger, run, artifacts, str(number))
        return run

    def _job(
        self, workflow: Mapping[str, Any], name: str, trigger: Trigger, run: Run, artifacts: Path, number: str
    ) -> None:
        job = workflow["jobs"][name]
        needs = _needs(job)
        contexts = {
            "github": self._github(trigger, number),
            "needs": {
                one: {"result": run.jobs[one].result, "outputs": run.jobs[one].outputs} for one in needs
            },
            "inputs": dict(trigger.inputs),
            "vars": {},
        }
        status = Status(all(run.jobs[one].result == "success" for one in needs))
        if not condition(job.get("if"), contexts, status):
            run.jobs[name] = Job(name, "skipped")
            return
        parts = []
        for matrix in _matrix(job, contexts):
            machine = Machine(self, workflow, job, {**contexts, "matrix": matrix}, trigger, artifacts)
            parts.append(machine.run(name))
        run.parts[name] = parts
        results = {part.result for part in parts}
        outputs = {key: value for part in parts for key, value in part.outputs.items()}
        result = "failure" if "failure" in results else "success"
        run.jobs[name] = Job(name, result, outputs, [step for part in parts for step in part.steps])
        run.jobs[name].summary = "".join(part.summary for part in parts)

    def _github(self, trigger: Trigger, number: str) -> dict[str, Any]:
        return {
            "ref": trigger.ref,
            "sha": trigger.commit,
            "event_name": trigger.event,
            "event": dict(trigger.payload),
            "repository": self.host.repository,
            "server_url": self.host.web,
            "api_url": self.host.api,
            "run_id": number,
        }


class Machine:
    """One machine for one job."""

    def __init__(
        self,
        runner: Runner,
        workflow: Mapping[str, Any],
        job: Mapping[str, Any],
        contexts: dict[str, Any],
        trigger: Trigger,
        artifacts: Path,
    ) -> None:
        self.runner = runner
        self.job = job
        self.trigger = trigger
        self.artifacts = artifacts
        self.root = runner.folder / f"machine-{next(runner.count)}"
        for part in ("home", "work", "temp"):
            (self.root / part).mkdir(parents=True)
        self.contexts = contexts
        self.steps: dict[str, Step] = {}
        self.more: dict[str, str] = {}  # GITHUB_ENV
        self.paths: list[str] = []  # GITHUB_PATH
        self.shell = (workflow.get("defaults") or {}).get("run", {}).get("shell", "")
        self.workflow_env = workflow.get("env") or {}
        self.permissions = job.get("permissions", workflow.get("permissions"))
        self.summary = ""

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.root / "work"

    def run(self, name: str) -> Job:
        """Run the job."""
        made = Job(name)
        assert isinstance(self.permissions, Mapping), f"{name} declares no permissions"
        token = self.runner.host.token(self.permissions)
        environment = self.job.get("environment")
        try:
            secrets, variables = self.runner.host.held(environment, self.trigger.ref)
        except KeyError as error:
            made.result = "failure"
            made.steps.append(Step("environment", "failure", str(error)))
            return made
        self.contexts |= {
            "github": {**self.contexts["github"], "token": token},
            "secrets": {**secrets, "GITHUB_TOKEN": token},
            "vars": variables,
            "runner": {"temp": str(self.root / "temp"), "os": "Linux"},
        }
        self.contexts["env"] = filled({**self.workflow_env, **(self.job.get("env") or {})}, self.contexts)
        for step in self.job["steps"]:
            self._step(step, made)
        outputs = filled(self.job.get("outputs") or {}, self._now(made))
        made.outputs = {key: shown(value) for key, value in outputs.items() if shown(value)}
        made.summary = self.summary
        shutil.rmtree(self.root)
        return made

    def _now(self, made: Job) -> dict[str, Any]:
        steps = {
            name: {"outputs": step.outputs, "outcome": step.result, "conclusion": step.result}
            for name, step in self.steps.items()
        }
        return {**self.contexts, "steps": steps, "job": {"status": made.result}}

    def _step(self, step: Mapping[str, Any], made: Job) -> None:
        name = step.get("name") or step.get("uses") or step["run"]
        contexts = self._now(made)
        if not condition(step.get("if"), contexts, Status(made.result == "success")):
            done = Step(name, "skipped")
        else:
            env = {**self.contexts["env"], **filled(step.get("env") or {}, contexts)}
            contexts = {**contexts, "env": env}
            done = self._uses(step, name, contexts) if "uses" in step else self._run(step, name, contexts)
        made.steps.append(done)
        if "id" in step:
            self.steps[step["id"]] = done
        if done.result == "failure" and not step.get("continue-on-error"):
            made.result = "failure"

    # --- run:

    def _run(self, step: Mapping[str, Any], name: str, contexts: Mapping[str, Any], here: str = "") -> Step:
        assert "${{" not in step["run"], f"an expression in run: {step['run']}"
        temp = self.root / "temp"
        files = {key: temp / f"{key.lower()}-{next(self.runner.count)}" for key in _FILES}
        for file in files.values():
            file.touch()
        script = temp / f"step-{next(self.runner.count)}.sh"
        script.write_text(step["run"], "utf-8")
        shell = here or step.get("shell") or self.shell or BASH
        shell = BASH if shell == "bash" else shell
        env = self._environment(contexts) | {key: str(file) for key, file in files.items()}
        done = subprocess.run(
            shlex.split(shell.replace("{0}", shlex.quote(str(script)))),
            cwd=self.work / filled(step.get("working-directory") or ".", contexts),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
        outputs = _values(files["GITHUB_OUTPUT"])
        self.more |= _values(files["GITHUB_ENV"])
        self.paths += files["GITHUB_PATH"].read_text("utf-8").splitlines()
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        text = f"$ {step['run']}\n" + done.stdout.decode("utf-8", "replace")
        return Step(name, "success" if done.returncode == 0 else "failure", text, outputs)

    def _environment(self, contexts: Mapping[str, Any]) -> dict[str, str]:
        github = contexts["github"]
        system = {
            "PATH": os.pathsep.join([*reversed(self.paths), str(self.runner.programs), "/usr/bin", "/bin"]),
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "USER": "runner",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.work),
            "GITHUB_REPOSITORY": github["repository"],
            "GITHUB_REF": github["ref"],
            "GITHUB_SHA": github["sha"],
            "GITHUB_EVENT_NAME": github["event_name"],
            "GITHUB_SERVER_URL": github["server_url"],
            "GITHUB_API_URL": github["api_url"],
            "GITHUB_RUN_ID": github["run_id"],
            "RUNNER_TEMP": str(self.root / "temp"),
            "RUNNER_OS": "Linux",
        }
        given = {key: shown(value) for key, value in contexts["env"].items()}
        return system | self.runner.environment | self.more | given

    # --- uses:

    def _uses(self, step: Mapping[str, Any], name: str, contexts: dict[str, Any]) -> Step:
        given = {key: shown(value) for key, value in filled(step.get("with") or {}, contexts).items()}
        if step["uses"].startswith("./"):
            return self._composite(self.work / step["uses"], name, given, contexts)
        match = PINNED.fullmatch(step["uses"])
        assert match, f"{step['uses']} is not pinned"
        try:
            return Step(name, "success", "", ACTIONS[match["name"]](self, given) or {})
        except (subprocess.CalledProcessError, KeyError, OSError) as error:
            said = (getattr(error, "stderr", b"") or b"").decode("utf-8", "replace")
            return Step(name, "failure", f"{error}\n{said}")

    def _composite(self, where: Path, name: str, given: dict[str, str], contexts: dict[str, Any]) -> Step:
        """Run a composite action: its steps see its inputs and nothing of the job's secrets."""
        action = yaml.safe_load((where / "action.yml").read_text("utf-8"))
        defaults = {key: shown(filled(one.get("default"), contexts)) for key, one in action["inputs"].items()}
        inputs = defaults | given
        for key, one in action["inputs"].items():
            assert not one.get("required") or key in given, f"{key} is required"
        own: dict[str, Any] = {**contexts, "inputs": inputs, "steps": {}}
        own["github"] = {**contexts["github"], "action_path": str(where)}
        own.pop("secrets")
        told: list[Step] = []
        for step in action["runs"]["steps"]:
            env = {**contexts["env"], **filled(step.get("env") or {}, own)}
            inner = {**own, "env": env}
            if not condition(step.get("if"), inner, Status(all(one.result == "success" for one in told))):
                continue
            done = (
                self._uses(step, name, inner)
                if "uses" in step
                else self._run(step, name, inner, step["shell"])
            )
            told.append(done)
            if "id" in step:
                own["steps"][step["id"]] = {"outputs": done.outputs}
        outputs = {
            key: shown(filled(one["value"], own)) for key, one in (action.get("outputs") or {}).items()
        }
        result = "failure" if any(one.result == "failure" for one in told) else "success"
        return Step(name, result, "\n".join(one.output for one in told), outputs)

    def git(self, *arguments: str, token: str = "") -> str:
        """Run git in the workspace, with a token that stands in no file."""
        login = [] if not token else ["-c", f"http.extraHeader=Authorization: Basic {basic(token)}"]
        done = subprocess.run(
            ["git", *login, *arguments],
            cwd=self.work,
            env=self._environment({**self.contexts, "env": {"GIT_TERMINAL_PROMPT": "0"}}),
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()


_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")


# --- reading workflows


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return a workflow; ``on`` is a word in it, and not true."""
    found: dict[Any, Any] = yaml.safe_load(text)
    if True in found:
        found["on"] = found.pop(True)
    return found


def _order(jobs: Mapping[str, Any]) -> list[str]:
    """Return the jobs so that each comes after what it needs."""
    done: list[str] = []
    while len(done) < len(jobs):
        ready = [one for one in jobs if one not in done and set(_needs(jobs[one])) <= set(done)]
        assert ready, "jobs need each other"
        done.append(ready[0])
    return done


def _needs(job: Mapping[str, Any]) -> list[str]:
    needs = job.get("needs") or []
    return [needs] if isinstance(needs, str) else list(needs)


def _matrix(job: Mapping[str, Any], contexts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    matrix = filled((job.get("strategy") or {}).get("matrix") or {}, contexts)
    for values in itertools.product(*matrix.values()):
        yield dict(zip(matrix, values, strict=True))


def _values(file: Path) -> dict[str, str]:
    """Return what a step wrote to one of the files of variables."""
    found: dict[str, str] = {}
    lines = iter(file.read_text("utf-8").splitlines())
    for line in lines:
        if match := re.fullmatch(r"([A-Za-z_][A-Za-z0-9_-]*)<<(.+)", line):
            body = []
            for inner in lines:
                if inner == match[2]:
                    break
                body.append(inner)
            found[match[1]] = "\n".join(body)
        elif "=" in line:
            name, _, value = line.partition("=")
            found[name] = value
        else:
            assert not line, f"no output: {line}"
    return found
