"""What our small GitHub enforces: rulesets for pushes and merges, rights to workflows, environments, people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.github.conftest import REPO
from tests.github.desk import Desk, client
from tests.github.hub import GitHub, RefusedCall
from tests.github.validating import Validating

PULL_REQUEST = {
    "dismiss_stale_reviews_on_push": False,
    "require_code_owner_review": False,
    "require_last_push_approval": False,
    "required_approving_review_count": 0,
    "required_review_thread_resolution": False,
}


def ruleset(github: GitHub, *rules: str, on: str = "~DEFAULT_BRANCH", **more: Any) -> int:
    """Make a ruleset as the owner; returns its number."""
    parameters = {"pull_request": PULL_REQUEST | more.pop("parameters", {})}
    body = {
        "name": f"rules for {on}",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": [on], "exclude": []}},
        "rules": [
            {"type": one, "parameters": parameters[one]} if one in parameters else {"type": one}
            for one in rules
        ],
        **more,
    }
    return int(github.browser("acme").ask("POST", f"/repos/{REPO}/rulesets", body)["id"])


def why(call: Callable[[], object]) -> tuple[int, str]:
    """Return how a person's call is refused."""
    with pytest.raises(RefusedCall) as refused:
        call()
    return refused.value.status, str(refused.value.data["message"])


class TestPushes:
    def test_main_wants_a_pull_request(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "pull_request", "non_fast_forward", "deletion")
        before = ada.fetch()
        ada.commit({"x": "1\n"})
        assert "Changes must be made through a pull request." in ada.refused("main")
        assert ada.fetch() == before
        ada.push("main:refs/heads/other")

    def test_whoever_may_pass_it_by(self, github: GitHub, ada: Desk, desk: Callable[..., Desk]) -> None:
        app = github.app("gitbus", {"contents": "write"}, {REPO})
        bypass = [{"actor_id": app.id, "actor_type": "Integration", "bypass_mode": "always"}]
        ruleset(github, "pull_request", bypass_actors=bypass)
        ruleset(github, "non_fast_forward", on="refs/heads/main")
        robot = desk("gitbus[bot]", github.installation_token(app))
        robot.fetch()
        robot.git("checkout", "-q", "-B", "main", "origin/main")
        robot.commit({"x": "1\n"})
        robot.push("main")
        robot.git("commit", "-q", "--amend", "-m", "again")
        assert "Cannot force-push" in robot.refused("+main")

    def test_bypass_by_pull_request_alone_is_none_for_a_push(self, github: GitHub, ada: Desk) -> None:
        role = [{"actor_id": 2, "actor_type": "RepositoryRole", "bypass_mode": "pull_request"}]
        ruleset(github, "update", bypass_actors=role)
        ada.branch("x", {"x": "1\n"})
        ada.commit({"y": "1\n"})
        assert "Cannot update this protected ref." in ada.refused("main")
        number = github.browser("ada").open(REPO, "x")
        assert why(lambda: github.browser("bob").merge(REPO, number))[0] == 405
        assert github.browser("ada").merge(REPO, number)

    def test_a_star_stops_at_a_slash(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "creation", on="refs/heads/gitbus/workers/**/*")
        assert "Cannot create ref" in ada.refused("main:refs/heads/gitbus/workers/laptop")
        assert "Cannot create ref" in ada.refused("main:refs/heads/gitbus/workers/a/b")
        ruleset(github, "creation", on="refs/heads/one/*")
        assert "Cannot create ref" in ada.refused("main:refs/heads/one/a")
        ada.push("main:refs/heads/one/a/b")

    def test_one_ref_of_a_push_is_refused_by_itself(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "update")
        ada.commit({"x": "1\n"})
        ada.refused("main", "main:refs/heads/free")
        assert ada.fetch("free") == ada.git("rev-parse", "HEAD")

    def test_a_deploy_key_is_no_person(self, github: GitHub, ada: Desk, desk: Callable[..., Desk]) -> None:
        bypass = [{"actor_id": None, "actor_type": "DeployKey", "bypass_mode": "always"}]
        ruleset(github, "update", bypass_actors=bypass)
        key = desk("acme", github.deploy_key(REPO))
        key.fetch()
        key.git("checkout", "-q", "-B", "main", "origin/main")
        key.commit({"x": "1\n"})
        key.push("main")

    def test_linear_history_and_signatures(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "required_linear_history", "required_signatures")
        ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        assert why(lambda: github.browser("ada").merge(REPO, number))[0] == 405
        assert why(lambda: github.browser("ada").merge(REPO, number, "rebase"))[0] == 405
        ada.commit({"y": "1\n"})
        assert "verified signatures" in ada.refused("main")
        assert github.browser("ada").merge(REPO, number, "squash")

    def test_workflow_files_need_a_right_of_their_own(
        self, github: GitHub, ada: Desk, desk: Callable[..., Desk]
    ) -> None:
        run = desk("github-actions[bot]", github.workflow_token(REPO, {"contents": "write"}))
        run.fetch()
        run.git("checkout", "-q", "-B", "main", "origin/main")
        run.commit({".github/workflows/x.yml": "on: push\n"})
        assert "without `workflows` permission" in run.refused("main")

    def test_who_may_only_read(self, github: GitHub, ada: Desk, desk: Callable[..., Desk]) -> None:
        rita = desk("rita")
        rita.fetch()
        rita.git("checkout", "-q", "-B", "main", "origin/main")
        rita.commit({"x": "1\n"})
        assert "403" in rita.refused("main")


class TestMerges:
    def test_reviews_that_are_wanted(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "pull_request", parameters={"required_approving_review_count": 1})
        tip = ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        bob, rita = github.browser("bob"), github.browser("rita")
        assert "approving review" in why(lambda: github.browser("ada").merge(REPO, number))[1]
        rita.review(REPO, number)  # who may only read does not count
        assert why(lambda: github.browser("ada").merge(REPO, number))[0] == 405
        review = bob.review(REPO, number)
        ada.branch("x", {"x": "2\n"})
        found = [(one.user.login, one.state, one.commit_id) for one in ada.api.get_pull(number).get_reviews()]
        assert found == [("rita", "APPROVED", tip), ("bob", "APPROVED", tip)]
        bob.dismiss(REPO, number, review, "not any more")
        last = list(ada.api.get_issue(number).get_timeline())[-1]
        assert last.event == "review_dismissed"
        assert last.raw_data["dismissed_review"] == {
            "state": "approved",
            "review_id": review,
            "dismissal_message": "not any more",
        }
        assert why(lambda: github.browser("ada").merge(REPO, number))[0] == 405
        bob.review(REPO, number)
        assert github.browser("ada").merge(REPO, number)

    def test_changes_that_were_requested(self, github: GitHub, ada: Desk) -> None:
        ruleset(github, "pull_request")
        ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        github.browser("bob").review(REPO, number, "REQUEST_CHANGES", "shorter")
        assert "Changes were requested" in why(lambda: github.browser("ada").merge(REPO, number))[1]

    def test_reviews_are_asked_for(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        pull = ada.api.create_pull(base="main", head="x", title="x", body="")
        pull.create_review_request(reviewers=["bob", "rita"])
        pull.delete_review_request(reviewers=["rita"])
        assert [one.login for one in ada.api.get_pull(pull.number).requested_reviewers] == ["bob"]
        github.browser("bob").review(REPO, pull.number)
        assert list(ada.api.get_pull(pull.number).requested_reviewers) == []


class TestSettings:
    def test_rulesets_are_shown_and_changed(self, github: GitHub, ada: Desk) -> None:
        number = ruleset(github, "pull_request", "deletion")
        owner = github.browser("acme")
        whole = owner.ask("GET", f"/repos/{REPO}/rulesets/{number}")
        assert whole["rules"][0]["parameters"]["allowed_merge_methods"] == ["merge", "squash", "rebase"]
        assert (whole["bypass_actors"], whole["current_user_can_bypass"]) == ([], "never")
        assert "bypass_actors" not in github.browser("bob").ask("GET", f"/repos/{REPO}/rulesets/{number}")
        owner.ask("PUT", f"/repos/{REPO}/rulesets/{number}", {"enforcement": "disabled"})
        assert owner.ask("GET", f"/repos/{REPO}/rules/branches/main") == []
        owner.ask("PUT", f"/repos/{REPO}/rulesets/{number}", {"enforcement": "active"})
        rules = owner.ask("GET", f"/repos/{REPO}/rules/branches/main")
        assert [(one["type"], one["ruleset_id"]) for one in rules] == [
            ("pull_request", number),
            ("deletion", number),
        ]

    def test_a_plan_without_rules(self, github: GitHub, ada: Desk) -> None:
        github.world.repos[REPO].plan_has_rules = False
        status, said = why(lambda: github.browser("acme").ask("GET", f"/repos/{REPO}/rulesets"))
        assert (status, said[:21]) == (403, "Upgrade to GitHub Pro")

    def test_environments(self, github: GitHub, ada: Desk) -> None:
        owner = client(github, github.token("acme"))
        repo = owner.get_repo(REPO)
        policy = {"protected_branches": False, "custom_branch_policies": True}
        path = f"/repos/{REPO}/environments/gitbus-send"
        asked = github.browser("acme").ask
        asked("PUT", path, {"deployment_branch_policy": policy})
        asked("POST", f"{path}/deployment-branch-policies", {"name": "main"})
        github.world.repos[REPO].environments["gitbus-send"].secrets.append("SMTP_PASSWORD")
        found = repo.get_environment("gitbus-send")
        assert found.deployment_branch_policy.custom_branch_policies
        policies = asked("GET", f"{path}/deployment-branch-policies")["branch_policies"]
        assert [one["name"] for one in policies] == ["main"]
        assert [one.name for one in found.get_secrets()] == ["SMTP_PASSWORD"]
        owner.close()

    def test_people(self, github: GitHub, ada: Desk) -> None:
        people = {one.login: one.role_name for one in ada.api.get_collaborators()}
        assert people == {"acme": "admin", "ada": "maintain", "bob": "write", "rita": "read"}
        assert ada.api.get_collaborator_permission("ada") == "write"
        assert ada.api.get_collaborator_permission("mallory") == "none"

    def test_who_is_no_admin_is_not_shown_keys(self, github: GitHub, ada: Desk) -> None:
        headers = {"Authorization": f"token {ada.token}"}
        answer = requests.get(f"{github.api}/repos/{REPO}/keys", headers=headers, timeout=10)
        assert answer.status_code == 404

    def test_labels_and_issues(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        ada.api.create_label("gitbus", "0e8a16", "about the bus")
        issue = ada.api.create_issue("stuck", body="help", labels=["gitbus"])
        with validated.off():  # PyGithub sends a bare list, which GitHub takes and does not describe
            issue.add_to_labels("stuck")
        issue.create_comment("seen")
        issue.remove_from_labels("gitbus")
        assert [one.name for one in ada.api.get_issue(issue.number).labels] == ["stuck"]
        assert [one.number for one in ada.api.get_issues(labels=["STUCK"])] == [issue.number]
        issue.edit(state="closed", state_reason="not_planned")
        found = ada.api.get_issue(issue.number)
        assert (found.state, found.state_reason, found.raw_data["closed_by"]["login"]) == (
            "closed",
            "not_planned",
            "ada",
        )
        names = [one.event for one in found.get_timeline()]
        assert names == ["labeled", "labeled", "commented", "unlabeled", "closed"]

    def test_the_older_protection(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        owner = client(github, github.token("acme"))
        branch = owner.get_repo(REPO).get_branch("main")
        with validated.off():  # PyGithub sends nulls, which GitHub takes and does not describe
            branch.edit_protection(required_approving_review_count=1, user_push_restrictions=["bob"])
        found = branch.get_protection()
        assert found.required_pull_request_reviews.required_approving_review_count == 1
        assert (found.allow_force_pushes, found.allow_deletions, found.enforce_admins) == (
            False,
            False,
            False,
        )
        assert [one["login"] for one in found.raw_data["restrictions"]["users"]] == ["bob"]
        ada.commit({"x": "1\n"})
        assert "Changes must be made through a pull request." in ada.refused("main")
        owner.close()
