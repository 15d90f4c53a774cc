"""`gitbus init --github --apply` and `gitbus doctor --github`, against what the server then enforces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitbus.bus import Bus
from gitbus.forge.github.client import Client
from gitbus.forge.github.place import Place
from gitbus.forge.github.setup.applying import Step, apply
from gitbus.forge.github.setup.rendering import Setting
from gitbus.forge.github.setup.visiting import Visit, visit
from tests.github.actions import Actions
from tests.github.hub import GitHub, RefusedCall
from tests.github.state import DeployKey
from tests.github.story import APP_RIGHTS, REPO, MakeStory, Story, begin

pytestmark = pytest.mark.long

ALONE = Setting("main", "1a" * 20, "1.2.3")
APP = Setting("main", "1a" * 20, "1.2.3", app=True, secrets=("ACME_SMTP_PASSWORD",))


@pytest.fixture
def client(github: GitHub) -> Any:
    """Return calls of the owner of an empty repository with a branch ``main``."""
    github.user("ada", email="ada@acme.example")
    github.repo(REPO, roles={"ada": "admin"})
    made = Client(Place("acme", "bus", github.api, github.url), github.token("ada"), pace=False)
    yield made
    made.close()


def words(steps: list[Step]) -> dict[str, str]:
    return {one.what: one.word for one in steps}


# --- apply


def test_applied_again_it_changes_nothing(github: GitHub, client: Client) -> None:
    app = github.app("acme-bus", APP_RIGHTS, {REPO})
    repo = github.world.repos[REPO]
    repo.actions["variables"] = {("gitbus-conduct", "GITBUS_APP_ID"): str(app.id)}
    first = list(apply(client, APP))
    assert all(one.done for one in first), first
    assert set(repo.environments) == {"gitbus-send", "gitbus-conduct"}
    assert {tuple(one.policies.values()) for one in repo.environments.values()} == {("main",)}
    assert sorted(one.name for one in repo.rulesets.values()) == [
        "gitbus: history stays",
        "gitbus: names stay free",
        "gitbus: who puts up",
        "gitbus: who writes the bus",
    ]
    before = dict(github.calls)
    assert set(words(list(apply(client, APP))).values()) == {"is there"}
    changed = [call for call, count in github.calls.items() if count != before.get(call, 0)]
    assert all(call.startswith("GET ") for call in changed)


def test_a_ruleset_that_somebody_loosened_is_put_right(github: GitHub, client: Client) -> None:
    list(apply(client, ALONE))
    loose = next(one for one in github.world.repos[REPO].rulesets.values() if "history" in one.name)
    loose.rules = [{"type": "deletion"}]
    loose.bypass = [{"actor_id": 5, "actor_type": "RepositoryRole", "bypass_mode": "always"}]
    assert words(list(apply(client, ALONE)))["ruleset gitbus: history stays"] == "changed"
    assert [one["type"] for one in loose.rules] == ["deletion", "non_fast_forward"]
    assert loose.bypass == []


def test_what_people_set_stays(github: GitHub, client: Client) -> None:
    ada = github.world.users["ada"].id
    github.browser("ada").ask(
        "PUT",
        f"/repos/{REPO}/environments/gitbus-send",
        {"wait_timer": 5, "reviewers": [{"type": "User", "id": ada}], "prevent_self_review": True},
    )
    github.browser("ada").ask("POST", f"/repos/{REPO}/labels", {"name": "Stuck", "color": "000000"})
    list(apply(client, ALONE))
    repo = github.world.repos[REPO]
    send = repo.environments["gitbus-send"]
    assert (send.wait, send.self_review, [one["id"] for one in send.reviewers]) == (5, True, [ada])
    assert "stuck" not in repo.labels


def test_a_branch_too_many_is_left_to_people(github: GitHub, client: Client) -> None:
    list(apply(client, ALONE))
    github.browser("ada").ask(
        "POST", f"/repos/{REPO}/environments/gitbus-send/deployment-branch-policies", {"name": "release/*"}
    )
    (left,) = [one for one in apply(client, ALONE) if not one.done]
    assert (left.word, left.what) == ("left", "environment gitbus-send")
    assert "release/*" in left.why


def test_a_plan_without_rulesets_holds_nothing_else_up(github: GitHub, client: Client) -> None:
    github.world.repos[REPO].plan_has_rules = False
    steps = list(apply(client, ALONE))
    refused = {one.what for one in steps if one.word == "refused"}
    assert refused == {"environments", "rulesets"}
    assert words(steps)["label gitbus"] == "made"
    assert words(steps)["what GITHUB_TOKEN may do"] == "changed"


def test_a_token_that_does_not_administer(github: GitHub) -> None:
    github.user("ada")
    github.user("bob")
    github.repo(REPO, roles={"ada": "admin", "bob": "write"})
    client = Client(Place("acme", "bus", github.api, github.url), github.token("bob"), pace=False)
    steps = list(apply(client, ALONE))
    client.close()
    refused = [one for one in steps if one.word == "refused"]
    assert {one.what for one in refused} >= {"environments", "rulesets"}
    assert all(one.why for one in refused)
    assert github.world.repos[REPO].rulesets == {}


# --- what holds then


@pytest.fixture
def make_story(github: GitHub, tmp_path: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> MakeStory:
    """Return what makes a bus on GitHub with Ada as its approver."""
    (isolated / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@acme.example\n", "utf-8")

    def make(*options: str, branch: str = "main", applied: bool = True) -> Story:
        story = begin(
            github,
            tmp_path,
            lambda: Actions(github, REPO, tmp_path),
            *options,
            branch=branch,
            applied=applied,
        )
        for name, value in github.environment(REPO, story.token).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GITBUS_NO_PACE", "1")
        return story

    return make


def with_app(story: Story) -> int:
    """Put the App's number where it belongs, and apply."""
    app = story.github.app("acme-bus", APP_RIGHTS, {REPO})
    story.repo.actions["variables"] = {("gitbus-conduct", "GITBUS_APP_ID"): str(app.id)}
    story.gitbus("init", ".", "--github", "--apply")
    return app.id


def pushed(story: Story, token: str, what: str, ref: str) -> bool:
    """Say whether a push is taken."""
    url = story.github.remote(REPO, token)
    return story.run("git", "push", "--quiet", "--force", url, f"{what}:{ref}").returncode == 0


def test_nobody_pushes_history_back(make_story: MakeStory) -> None:
    story = make_story()
    assert pushed(story, story.token, "HEAD", "refs/heads/elsewhere")
    assert not pushed(story, story.token, "HEAD^", "refs/heads/main"), "an administrator's push"
    assert not pushed(story, story.token, "", "refs/heads/main"), "nor does anybody delete it"


def test_with_an_app_a_writer_pushes_only_workers_branches(make_story: MakeStory) -> None:
    story = make_story("--app")
    with_app(story)
    story.github.user("robot")
    story.repo.roles["robot"] = "write"
    robot = story.github.token("robot", "fine", rights={"contents": "write", "pull_requests": "write"})
    story.git("commit", "--quiet", "--allow-empty", "--message", "mine")
    assert pushed(story, robot, "HEAD", "refs/heads/gitbus/workers/robot")
    assert not pushed(story, robot, "HEAD", "refs/heads/main")
    assert not pushed(story, robot, "HEAD", "refs/heads/gitbus/approve/a.b.c")
    assert not pushed(story, robot, "HEAD", "refs/heads/gitbus/decide/bus")
    app = next(iter(story.github.world.apps.values()))
    assert pushed(story, story.github.installation_token(app), "HEAD", "refs/heads/gitbus/approve/a.b.c")
    assert pushed(story, story.github.installation_token(app), "HEAD", "refs/heads/main")


def test_squash_and_rebase_are_off(make_story: MakeStory) -> None:
    story = make_story()
    story.commit({"notes.md": "hello\n"}, "Notes", to="notes")
    browser = story.github.browser("ada")
    number = browser.open(REPO, "notes")
    for method in ("squash", "rebase"):
        with pytest.raises(RefusedCall):
            browser.merge(REPO, number, method)
    assert browser.merge(REPO, number)


# --- the doctor


def told(story: Story) -> Visit:
    with Bus.open(story.clone) as bus:
        return visit(bus)


def bad(story: Story) -> str:
    """Return what is not well, as text."""
    return "\n".join(one.what for one in told(story).found if one.level != "ok")


def test_a_bus_that_is_set_up_is_well(make_story: MakeStory) -> None:
    story = make_story("--app")
    with_app(story)
    story.repo.environments["gitbus-send"].secrets.append("GITBUS_APP_KEY")
    story.repo.environments["gitbus-conduct"].secrets.append("GITBUS_APP_KEY")
    assert bad(story) == ""


def test_without_an_app_it_says_what_that_costs(make_story: MakeStory) -> None:
    assert (
        bad(make_story()) == "everybody with the role Write may push to main, as github-actions[bot] has to"
    )


def test_nothing_applied(make_story: MakeStory) -> None:
    text = bad(make_story(applied=False))
    for part in (
        "nothing forbids that main is pushed back",
        "there is no environment gitbus-send",
        "may not open pull requests",
        "rebase merges are allowed",
    ):
        assert part in text


def test_a_plan_without_rulesets_and_environments(make_story: MakeStory) -> None:
    story = make_story(applied=False)
    story.repo.plan_has_rules = False
    assert "this plan has no rulesets for a private repository: nothing forbids" in bad(story)


def test_what_lets_thieves_in(make_story: MakeStory) -> None:
    story = make_story("--app")
    with_app(story)
    story.repo.secrets.append("GITBUS_APP_KEY")
    story.repo.keys.append(DeployKey(7, "laptop", "ssh-ed25519 AAAA", False, story.repo.created))
    story.repo.environments["gitbus-send"].policies[99] = "*"
    story.repo.settings["merge_commit_message"] = "PR_BODY"
    story.repo.workflow_rights = "write"
    text = bad(story)
    for part in (
        "secrets of the whole repository: GITBUS_APP_KEY",
        "deploy keys that may push, workflow files too: laptop",
        "environment gitbus-send lets in branches: main, *",
        "GITHUB_TOKEN may write unless a job says otherwise",
        "a merge's message repeats the page",
    ):
        assert part in text


def test_rules_that_are_in_the_way(make_story: MakeStory) -> None:
    story = make_story()
    body = {
        "name": "another",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
        "rules": [{"type": one} for one in ("required_linear_history", "required_signatures", "merge_queue")],
    }
    story.github.browser("ada").ask("POST", f"/repos/{REPO}/rulesets", body)
    text = bad(story)
    for part in ("requires linear history", "requires signed commits", "has a merge queue"):
        assert part in text


def test_approvers_are_looked_up(make_story: MakeStory, monkeypatch: pytest.MonkeyPatch) -> None:
    story = make_story()
    story.github.user("olga")
    story.repo.roles |= {"ada": "read", "olga": "admin"}
    monkeypatch.setenv("GH_TOKEN", story.github.token("olga"))
    assert "ada is an approver, and may not merge here" in bad(story)
    story.github.world.users["ada"].login = "ada-new"
    story.github.world.users["ada-new"] = story.github.world.users["ada"]
    assert "is ada-new, not ada" in bad(story)


def test_workflows_that_somebody_changed(make_story: MakeStory) -> None:
    story = make_story()
    name = ".github/workflows/gitbus.yml"
    text = (story.clone / name).read_text("utf-8")
    story.commit({name: text.replace("17 * * * *", "18 * * * *")}, "Another minute")
    assert "not as this gitbus writes them: .github/workflows/gitbus.yml" in bad(story)
    with Bus.open(story.clone) as bus:
        root = bus.root
    story.commit({name: text.replace(root, "0" * 40)}, "Another root")
    assert "does not name the root of this bus" in bad(story)
    (story.clone / name).unlink()
    story.commit({}, "Away with it")
    assert f"missing: {name}" in bad(story)


def test_stubs_are_missed(make_story: MakeStory) -> None:
    story = make_story(branch="gitbus/bus")
    assert "main has no gitbus.yml" in bad(story)


def test_thieves_are_told_of(make_story: MakeStory) -> None:
    story = make_story("--app")
    with_app(story)
    thieves = {one.token: one for one in told(story).powers}
    worker = thieves["a worker's push token"]
    assert "push main back" in str(worker.cannot)
    assert "push to main" in str(worker.cannot)
    assert "push to main" in str(thieves["the conductor's App"].can)
    assert "approve" in str(thieves["the conductor's App"].cannot)
    assert "read the channels' secrets" in str(thieves["GITHUB_TOKEN"].cannot)
    assert "a second person" in str(thieves["an approver's token or browser"].can)


def test_a_token_that_sees_little_says_so(make_story: MakeStory, monkeypatch: pytest.MonkeyPatch) -> None:
    story = make_story()
    monkeypatch.setenv(
        "GH_TOKEN",
        story.github.workflow_token(REPO, {"metadata": "read", "contents": "read", "pull_requests": "read"}),
    )
    text = bad(story)
    assert "who may pass it, this token is not told" in text
    assert "environment gitbus-send cannot be seen" in text


def test_the_command_line(make_story: MakeStory) -> None:
    story = make_story()
    output = story.gitbus("doctor", "--github")
    assert "a ruleset forbids that main is pushed back or deleted, to everybody" in output
    assert "cannot be seen from here" not in output
    assert "In wrong hands" in output
    shown = json.loads(story.gitbus("doctor", "--github", "--json"))
    assert next(one["token"] for one in shown["thieves"]) == "a worker's push token"
