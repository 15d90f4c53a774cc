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
    number = story.merge()
    print(story.jobs())
    attested(story)
    print(story.repo.pulls[number].labels, [c.body for c in story.repo.pulls[number].comments])
    assert 0
