"""The composite action, executed from its file: what it runs, and that nothing in its inputs is code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitbus import __version__
from tests.github.actions import Actions
from tests.github.hub import GitHub
from tests.github.runner import Job, Runner, Trigger
from tests.github.story import REPO, ROOT, Story, begin

ACTION = ".github/actions/gitbus/action.yml"


@pytest.fixture
def story(github: GitHub, tmp_path: Path, isolated: Path) -> Story:
    """Make a bus in whose repository the action stands as well."""
    (isolated / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@acme.example\n", "utf-8")
    made = begin(github, tmp_path, lambda: Actions(github, REPO, tmp_path), applied=False)
    made.commit({ACTION: (ROOT / ACTION).read_text("utf-8")}, "The action")
    return made


def use(story: Story, folder: Path, **given: str) -> Job:
    """Use the action in a job of a workflow."""
    checkout = {"fetch-depth": 0, "persist-credentials": False}
    steps: list[dict[str, Any]] = [
        {"uses": f"actions/checkout@{'1' * 40}", "with": checkout},
        {"uses": "./.github/actions/gitbus", "id": "gitbus", "with": {"version": __version__, **given}},
    ]
    outputs = {"said": "${{ steps.gitbus.outputs.output }}"}
    job = {"permissions": {"contents": "read"}, "outputs": outputs, "steps": steps}
    trigger = Trigger("push", "refs/heads/main", story.refs["refs/heads/main"])
    return (
        Runner(story.actions, folder, folder.parent / "bin").run({"jobs": {"use": job}}, trigger).jobs["use"]
    )


@pytest.mark.long
def test_a_command_with_arguments(story: Story, tmp_path: Path) -> None:
    job = use(story, tmp_path / "machines", command="status\n--json\n")
    assert job.result == "success", job.text
    assert json.loads(job.outputs["said"])["kind"] == "Status"


@pytest.mark.long
def test_a_command_that_is_refused(story: Story, tmp_path: Path) -> None:
    job = use(story, tmp_path / "machines", command="review\nno.such.item")
    assert job.result == "failure"
    assert "no.such.item" in job.text


def refused(story: Story, folder: Path, given: dict[str, str]) -> None:
    """Use the action with a command in its inputs, and see that it was none."""
    trap = folder / "trap"
    job = use(
        story, folder / "machines", **{key: text.replace("{0}", str(trap)) for key, text in given.items()}
    )
    assert not trap.exists()
    assert job.result == "failure", job.text


@pytest.mark.long
def test_a_command_in_the_inputs_is_none(story: Story, tmp_path: Path) -> None:
    refused(story, tmp_path, {"command": "status\n$(touch {0})\n; touch {0}"})
    refused(story, tmp_path, {"command": "status", "version": "1.0; touch {0}"})


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        {"command": "status; touch {0}"},
        {"command": "status\n`touch {0}`\n&& touch {0}"},
        {"command": "status", "version": "1.0\ntouch {0}"},
        {"command": "status", "version": "git+https://evil.example/gitbus"},
        {"command": "status", "working-directory": "$(touch {0})"},
        {"command": "status", "token": "x$(touch {0})"},
    ],
)
def test_inputs_are_no_code(story: Story, tmp_path: Path, given: dict[str, str]) -> None:
    refused(story, tmp_path, given)
