"""Our small GitHub by itself: who may ask, what it costs, and what goes wrong on demand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import requests
from github import Auth, GithubException, GithubIntegration

from tests.github.conftest import REPO
from tests.github.desk import Desk, client
from tests.github.hub import GitHub
from tests.github.validating import Validating

PULLS = "/repos/{owner}/{repo}/pulls"


def ask(github: GitHub, path: str, token: str | None, **headers: str) -> requests.Response:
    """Ask without a library in between."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    return requests.get(github.api + path, headers=sent, timeout=10)


def status_of(call: Callable[[], object]) -> GithubException:
    """Return how a call is refused."""
    with pytest.raises(GithubException) as refused:
        call()
    return refused.value


class TestWhoAsks:
    def test_a_token_is_its_person(self, github: GitHub, ada: Desk) -> None:
        assert ada.client.get_user().login == "ada"
        assert ada.client.get_user_by_id(github.world.users["bob"].id).login == "bob"

    def test_a_bad_token_is_not_taken(self, github: GitHub, ada: Desk) -> None:
        answer = ask(github, "/user", "ghp_wrong")
        assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")

    def test_a_private_repository_is_hidden_from_strangers(self, github: GitHub, ada: Desk) -> None:
        assert ask(github, f"/repos/{REPO}", github.token("mallory")).status_code == 404
        assert ask(github, f"/repos/{REPO}", None).status_code == 404
        assert ask(github, f"/repos/{REPO}", github.token("rita")).status_code == 200

    def test_a_right_that_is_missing_is_named(self, github: GitHub, ada: Desk) -> None:
        token = github.token("ada", "fine", rights={"contents": "read"}, repos={REPO})
        answer = ask(github, f"/repos/{REPO}/pulls", token)
        assert answer.status_code == 403
        assert answer.json()["message"] == "Resource not accessible by personal access token"
        assert answer.headers["X-Accepted-GitHub-Permissions"] == "pull_requests=read"

    def test_a_role_bounds_what_a_token_may(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        rita = client(github, github.token("rita")).get_repo(REPO)
        assert status_of(lambda: rita.get_pull(number).merge()).status == 403

    def test_an_app_gets_tokens_for_its_installation(self, github: GitHub, ada: Desk) -> None:
        app = github.app("gitbus", {"contents": "write", "pull_requests": "write"}, {REPO})
        with GithubIntegration(auth=Auth.AppAuth(app.id, app.key), base_url=github.api) as there:
            installation = there.get_repo_installation("acme", "bus")
            token = there.get_access_token(installation.id, permissions={"pull_requests": "read"})
        assert token.permissions == {"metadata": "read", "pull_requests": "read"}
        assert ask(github, f"/repos/{REPO}/pulls", token.token).status_code == 200
        refused = ask(github, f"/repos/{REPO}/git/ref/heads/main", token.token)
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            "Resource not accessible by integration",
        )

    def test_a_token_expires(self, github: GitHub, ada: Desk) -> None:
        app = github.app("gitbus", {"contents": "read"}, {REPO})
        token = github.installation_token(app)
        github.world.tokens[token].expires = datetime.now(UTC) - timedelta(seconds=1)
        assert ask(github, f"/repos/{REPO}", token).status_code == 401

    def test_only_one_version_is_served(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        with validated.off():
            assert ask(github, "/user", ada.token, X_GitHub_Api_Version="2026-03-10").status_code == 400


class TestLimits:
    def test_what_did_not_change_costs_nothing(self, github: GitHub, ada: Desk) -> None:
        first = ask(github, f"/repos/{REPO}/branches/main", ada.token)
        again = ask(github, f"/repos/{REPO}/branches/main", ada.token, If_None_Match=first.headers["ETag"])
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"]
        ada.commit({"more": "1\n"})
        ada.push("main")
        changed = ask(github, f"/repos/{REPO}/branches/main", ada.token, If_None_Match=first.headers["ETag"])
        assert changed.status_code == 200

    def test_the_primary_limit(self, github: GitHub, ada: Desk) -> None:
        github.faults.primary_limit("ada")
        refused = ask(github, f"/repos/{REPO}", ada.token)
        assert (refused.status_code, refused.headers["X-RateLimit-Remaining"]) == (403, "0")
        assert ask(github, "/rate_limit", ada.token).json()["rate"]["remaining"] == 0
        reset = int(refused.headers["X-RateLimit-Reset"])
        github.world.clock = lambda: datetime.fromtimestamp(reset, UTC)
        assert ask(github, f"/repos/{REPO}", ada.token).status_code == 200

    def test_the_secondary_limit(self, github: GitHub, ada: Desk) -> None:
        github.faults.secondary_limit(retry_after=30, status=429)
        refused = ask(github, f"/repos/{REPO}", ada.token)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
        assert ask(github, f"/repos/{REPO}", ada.token).status_code == 200

    def test_lists_have_pages(self, github: GitHub, ada: Desk) -> None:
        for number in range(7):
            ada.api.create_label(f"label-{number}", "ededed")
        first = ask(github, f"/repos/{REPO}/labels?per_page=3&page=2", ada.token)
        assert [one["name"] for one in first.json()] == ["label-3", "label-4", "label-5"]
        assert {rel: link["url"][-6:] for rel, link in first.links.items()} == {
            "prev": "page=1",
            "first": "page=1",
            "next": "page=3",
            "last": "page=3",
        }
        assert len(list(ada.api.get_labels())) == 7


class TestFaults:
    def test_done_and_answered_with_an_error(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.after("POST", PULLS, status=502)
        refused = status_of(lambda: ada.api.create_pull(base="main", head="x", title="x", body=""))
        assert (refused.status, [one.title for one in ada.api.get_pulls()]) == (502, ["x"])

    def test_not_done_and_answered_with_an_error(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.before("POST", PULLS, status=500)
        refused = status_of(lambda: ada.api.create_pull(base="main", head="x", title="x", body=""))
        assert (refused.status, list(ada.api.get_pulls())) == (500, [])

    def test_no_answer_at_all(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.after("POST", PULLS, status=0)
        with pytest.raises(requests.ConnectionError):
            ada.api.create_pull(base="main", head="x", title="x", body="")
        assert len(list(ada.api.get_pulls())) == 1

    def test_what_was_just_created_is_not_found(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.missing_after_create()
        number = ada.api.create_pull(base="main", head="x", title="x", body="").number
        assert status_of(lambda: ada.api.get_pull(number)).status == 404
        assert ada.api.get_pull(number).number == number

    def test_the_api_lags_behind_git(self, github: GitHub, ada: Desk) -> None:
        before = ada.git("rev-parse", "HEAD")
        github.faults.stale_api(2)
        after = ada.commit({"more": "1\n"})
        ada.push("main")
        assert ada.fetch() == after
        assert ada.api.get_branch("main").commit.sha == before
        assert status_of(lambda: ada.api.get_git_commit(after)).status == 404
        assert ada.api.get_branch("main").commit.sha == after

    def test_git_lags_behind_the_api(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        before = ada.fetch()
        github.faults.stale_git(1)
        merge = github.browser("bob").merge(REPO, number)
        assert ada.api.get_branch("main").commit.sha == merge
        assert ada.fetch() == before
        assert ada.fetch() == merge

    def test_lists_lag(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.stale_api(1, lists_only=True)
        number = github.browser("ada").open(REPO, "x")
        assert ada.api.get_pull(number).state == "open"
        assert list(ada.api.get_pulls()) == []
        assert len(list(ada.api.get_pulls())) == 1

    def test_each_write_is_seen_late(self, github: GitHub, ada: Desk) -> None:
        github.faults.always_stale(1)
        for title in ("one", "two"):
            ada.api.create_issue(title)
            assert title not in {one.title for one in ada.api.get_issues()}
            assert title in {one.title for one in ada.api.get_issues()}

    def test_mergeable_is_not_known_at_once(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.faults.mergeable_unknown(1)
        made = ada.api.create_pull(base="main", head="x", title="x", body="")
        assert made.mergeable is None
        assert made.merge_commit_sha is None
        assert ada.api.get_pull(made.number).mergeable is None
        assert ada.api.get_pull(made.number).mergeable is True


class TestLog:
    def test_calls_are_counted_and_those_in_the_browser_are_not(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        ada.api.get_pull(number)
        assert github.calls == {f"GET {PULLS}/{{pull_number}}": 1, "GET /repos/{owner}/{repo}": 1}
        last = github.log[-1]
        assert (last.status, last.answer["number"], last.who) == (200, number, "ada")

    def test_a_workflows_token_starts_nothing(
        self, github: GitHub, ada: Desk, desk: Callable[..., Desk]
    ) -> None:
        token = github.workflow_token(REPO, {"contents": "write", "pull_requests": "write"})
        run = desk("github-actions[bot]", token)
        run.fetch()
        run.git("checkout", "-q", "-B", "main", "origin/main")
        run.commit({"from": "a run\n"})
        run.push("main")
        pushes = github.happened("push")
        assert [(one.actor, one.starts) for one in pushes] == [("ada", True), ("github-actions[bot]", False)]
        assert github.happened("push", starts=True) == pushes[:1]
