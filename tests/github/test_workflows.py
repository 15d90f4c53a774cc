"""The workflows that `gitbus init --github` writes, executed as they stand: from goal to receipt in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.github.actions import Actions
from tests.github.hub import GitHub
from tests.github.images import bare_image
from tests.github.runner import Runner, Trigger, parsed
from tests.github.story import APP_RIGHTS, REPO, MakeStory, Story, begin, furnish

ITEM = "news.write.news"
NOSY = """\
seen=$(cat /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n' | grep -ao 'gh[ps]_[0-9a-f]*' | sort -u)
seen="$seen $(grep -rhao 'gh[ps]_[0-9a-f]*' "$1" 2> /dev/null | sort -u)"
printf 'status: ok\\nconfidence: 0.9\\noutputs: {text: it is out., seen: "%s"}\\n' "$(echo $seen)" > "$GITBUS_RESULT"
"""
"""A worker that looks for tokens in every process that it may see, and below a folder."""
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
        return begin(
            github, tmp_path, lambda: Actions(github, REPO, tmp_path, env, path), *options, branch=branch
        )

    return make


def attested(story: Story) -> None:
    """Say that the item was sent once, with a receipt that names who merged."""
    assert story.failed() == [], story.told()
    assert [message.count(b"it is out.") for message in story.messages()] == [1]
    assert story.show(f"outbox/{ITEM}/item.yaml")["state"] == "sent"
    receipt = story.show(f"outbox/{ITEM}/receipt.1.yaml")
    assert (receipt["outcome"], receipt["approval"]["proof"]) == ("sent", "github")
    assert receipt["approval"]["people"] == ["ada"]


@pytest.mark.long
def test_a_task_is_given_out_done_and_taken(make_story: MakeStory) -> None:
    """The first part of the story: two jobs that conduct, and between them one that may not push."""
    story = make_story()
    furnish(story, {"gatherer": GATHERER})
    story.goal("apiVersion: gitbus/v1\nkind: Goal\nid: news\ntasks:\n  gather: {capability: gather}\n")
    assert story.jobs() == ["conduct", "work", "absorb"], story.told()
    assert story.show("goals/news/report.yaml")["outputs"] == {"gather": {"text": "three commits"}}


@pytest.mark.long
def test_a_goal_comes_to_its_receipt(make_story: MakeStory) -> None:
    story = make_story()
    furnish(story, {"writer": WRITER})
    story.goal(SHORT)
    assert story.jobs() == ["conduct", "work", "absorb", "check"]
    (number,) = story.open_pulls()
    pull = story.repo.pulls[number]
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
    story.commit(
        {f"workers/{name}.yaml": {**head, "id": name, **one} for name, one in workers.items()}, "Workers"
    )
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
    """Make the App that SETUP.md asks for, and put its number and key where it says."""
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
def test_beside_a_project(make_story: MakeStory, tmp_path: Path) -> None:
    """The bus on a branch of its own: what is scheduled starts there by the stub on the default branch."""
    story = make_story(branch="gitbus/bus")
    furnish(story, {"writer": {**WRITER, "run": ["sh", "-c", NOSY, "sh", str(tmp_path / "machines")]}})
    name = ".github/workflows/gitbus.yml"
    stub = story.repo.git.run("show", f"refs/heads/gitbus/bus:{name}".replace("workflows", "default-branch"))
    story.git("switch", "--quiet", "main")
    story.commit({name: stub + "\n"}, "Start gitbus on its branch", to="main")
    story.git("switch", "--quiet", "the-bus")
    (tmp_path / "goal.yaml").write_text(SHORT, "utf-8")
    story.gitbus("goal", "add", "../goal.yaml")
    story.actions.forget()  # a push that started nothing
    story.actions.schedule()
    story.actions.settle()
    assert story.jobs() == ["relay", "conduct", "work", "absorb", "check"], story.told()
    story.merge()
    attested(story)
    assert tokens_seen(story), "the worker looked, and there was something to see"
    for rights in tokens_seen(story):
        assert rights == {"metadata": "read", "contents": "read"}


def tokens_seen(story: Story) -> list[dict[str, str]]:
    """Return the rights of every token that the worker saw."""
    words = story.show("goals/news/results/write.yaml")["outputs"]["seen"].split()
    return [story.github.rights(word) for word in words if word in story.github.world.tokens]


@pytest.mark.long
def test_closed_without_a_merge(make_story: MakeStory) -> None:
    story = make_story()
    furnish(story, {"writer": WRITER})
    story.goal(SHORT)
    (number,) = story.open_pulls()
    story.github.browser("ada").comment(REPO, number, "Not this week")
    story.github.browser("ada").close(REPO, number)
    before = len(story.actions.runs)
    story.actions.settle()
    assert story.jobs(before) == ["relay", "conduct"]
    item = story.show(f"outbox/{ITEM}/item.yaml")
    assert (item["state"], item["reason"]) == (
        "rejected",
        f"ada closed pull request #{number}: Not this week",
    )


@pytest.mark.long
def test_a_pull_request_with_a_broken_record(make_story: MakeStory) -> None:
    story = make_story()
    furnish(story, {})
    story.commit(
        {"goals/a/goal.yaml": "apiVersion: gitbus/v1\nkind: Goal\nid: a\ntasks: {}\nx: 1\n"},
        "A goal",
        to="idea",
    )
    story.github.browser("ada").open(REPO, "idea")
    story.actions.settle()
    (run,) = [one.run for one in story.actions.runs if one.workflow == "gitbus-check.yml"]
    assert run.jobs["check"].result == "failure"
    assert "::error file=goals/a/goal.yaml,line=5," in run.jobs["check"].text
    assert "goals/a/goal.yaml" in run.jobs["check"].summary


@pytest.mark.long
def test_rounds_are_bounded(make_story: MakeStory, tmp_path: Path) -> None:
    story = make_story()
    workflow = parsed(story.repo.git.run("show", "main:.github/workflows/gitbus.yml"))
    again = {key: one for key, one in workflow["jobs"]["again"].items() if key not in ("if", "needs")}
    runner = Runner(story.actions, tmp_path / "more", tmp_path / "bin")
    results = {}
    for number in ("", "0", "19", "20", "7;id", "999"):
        before = len(story.github.world.happened)
        trigger = Trigger(
            "workflow_dispatch", "refs/heads/main", story.refs["refs/heads/main"], {}, {"round": number}
        )
        job = runner.run({**workflow, "jobs": {"again": again}}, trigger).jobs["again"]
        results[number] = (job.result, len(story.github.world.happened) - before)
    assert story.repo.actions["inputs"] == [{"round": "1"}, {"round": "1"}, {"round": "20"}]
    assert results == {
        "": ("success", 1),
        "0": ("success", 1),
        "19": ("success", 1),
        "20": ("success", 0),
        "7;id": ("failure", 0),
        "999": ("failure", 0),
    }
