"""The workflows that `gitbus init --github` writes, executed as they stand: from goal to receipt in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.github.actions import Actions
from tests.github.hub import GitHub
from tests.github.runner import bare_image
from tests.github.story import APP_RIGHTS, REPO, MakeStory, Story, begin, furnish

ITEM = "news.write.news"
RESULT = 'printf "status: ok\\nconfidence: 0.9\\noutputs: {text: it is out.}\\n" > "$GITBUS_RESULT"'
WRITER: dict[str, Any] = {"capabilities": ["write"], "ci": True, "run": ["sh", "-c", RESULT]}
GATHERER: dict[str, Any] = {"capabilities": ["gather"], "ci": True, "run": ["echo", "three commits"]}
ITEM_TEMPLATE = """\
    item:
      name: news
      channel: news
      to: [list@partners.example]
      subject: Release 1.0
      text: "${write.outputs.text}"
"""
SHORT = f"""\
apiVersion: gitbus/v1
kind: Goal
id: news
tasks:
  write:
    capability: write
{ITEM_TEMPLATE}"""
LONG = f"""\
apiVersion: gitbus/v1
kind: Goal
id: news
tasks:
  gather: {{capability: gather}}
  write:
    capability: write
    needs: [gather]
{ITEM_TEMPLATE}"""


@pytest.fixture
def make_story(github: GitHub, tmp_path: Path, isolated: Path) -> MakeStory:
    """Return what makes a bus on GitHub with Ada as its approver."""
    (isolated / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@acme.example\n", "utf-8")

    def make(*options: str, branch: str = "main", image: tuple[Path, dict[str, str]] | None = None) -> Story:
        path, env = image or (None, {})
        return begin(github, tmp_path, lambda: Actions(github, REPO, tmp_path, env, path), *options, branch=branch)

    return make


def attested(story: Story) -> None:
    """Say that the item was sent once, with a receipt that names who merged."""
    assert story.failed() == [], story.told()
    assert [message.count(b"it is out.") for message in story.messages()] == [1]
    assert story.show(f"outbox/{ITEM}/item.yaml")["state"] == "sent"
    receipt = story.show(f"outbox/{ITEM}/receipt.1.yaml")
    assert (receipt["outcome"], receipt["approval"]["proof"]) == ("sent", "github")
    assert receipt["approval"]["people"] == ["ada"]


def test_a_goal_comes_to_its_receipt(make_story: MakeStory) -> None:
    story = make_story()
    furnish(story, {"writer": WRITER})
    story.goal(SHORT)
    assert story.jobs() == ["conduct", "work", "absorb", "check"]
    (pull,) = story.repo.pulls.values()
    assert [one["context"] for one in story.repo.actions["statuses"][pull.head]] == ["gitbus/check"]
    story.merge()
    assert {"relay", "conduct", "send", "again"} == set(story.jobs()[4:])
    attested(story)
    assert len(pull.comments) == 1
    assert "gitbus-open" not in pull.labels


@pytest.mark.long
def test_from_nothing_with_what_pip_installs(make_story: MakeStory, tmp_path: Path) -> None:
    """Everything by the book: decided in the browser, installed by pip, two workers one after the other."""
    story = make_story(image=bare_image(tmp_path / "image"))
    head = {"apiVersion": "gitbus/v1", "kind": "Worker"}
    workers = {"gatherer": GATHERER, "writer": WRITER}
    story.commit({f"workers/{id}.yaml": {**head, "id": id, **one} for id, one in workers.items()}, "Workers")
    story.actions.settle()
    channel = {"transport": "maildir", "path": str(story.mail), "from": ["Acme News <news@acme.example>"]}
    story.decide("channels", {"news": channel})
    story.goal(LONG)
    rounds = [one.trigger.inputs.get("round") for one in story.actions.runs if "work" in one.run.ran()]
    assert rounds == [None, "1"], "the second worker's turn comes in a round of its own"
    story.merge()
    assert story.messages() == [], "the flag is off"
    story.decide("sending.enabled", True)
    attested(story)
    story.git("pull", "--quiet", "origin", "main")
    assert "audit ok" in story.gitbus("audit")


def become_app(story: Story) -> None:
    """Make the App that the SETUP.md asks for, and put its number and key where it says."""
    app = story.github.app("acme-bus", APP_RIGHTS, {REPO})
    for environment in ("gitbus-conduct", "gitbus-send"):
        story.actions.secrets[environment] = {"GITBUS_APP_KEY": app.key}
        story.actions.variables[environment] = {"GITBUS_APP_ID": str(app.id)}
        story.repo.actions.setdefault("variables", {})[environment, "GITBUS_APP_ID"] = str(app.id)
    assert "made      ruleset gitbus: who puts up" in story.gitbus("init", ".", "--github", "--apply")


@pytest.mark.long
def test_with_an_app(make_story: MakeStory) -> None:
    story = make_story("--app")
    become_app(story)
    furnish(story, {"writer": WRITER})
    story.goal(SHORT)
    (number,) = story.open_pulls()
    story.merge()
    attested(story)
    assert story.github.world.users[story.repo.pulls[number].by].type == "Bot"
    checks = [one.run.jobs["check"] for one in story.actions.runs if one.workflow == "gitbus-check.yml"]
    assert checks, "what the App opens is checked"
    assert "it is out." in checks[-1].summary
    sent = [one.workflow for one in story.actions.runs if "send" in one.run.ran()]
    assert sent == ["gitbus-send.yml"]


@pytest.mark.long
def test_beside_a_project(make_story: MakeStory) -> None:
    """The bus on a branch of its own: what is scheduled starts from the default branch's stub."""
    story = make_story(branch="gitbus/bus")
    stub = story.repo.git.run("show", "refs/heads/gitbus/bus:.github/default-branch/gitbus.yml")
    furnish(story, {"writer": WRITER})
    print(story.git("log","--graph","--all","--oneline"), story.gitbus("status", "--json"))
    story.goal(SHORT)
    assert story.jobs() == ["conduct", "work", "absorb", "check", "again"] or story.jobs()
