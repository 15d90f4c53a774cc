"""Every call that our small GitHub serves is made once, on a repository in which there is something of everything."""

from __future__ import annotations

import re
from typing import Any

import jwt
import pytest
import requests

from tests.github.api import ROUTES
from tests.github.conftest import REPO
from tests.github.desk import Desk
from tests.github.hub import GitHub
from tests.github.state import DeployKey

PROTECT = {
    "required_status_checks": {"strict": True, "contexts": ["ci"]},
    "enforce_admins": True,
    "required_pull_request_reviews": {"required_approving_review_count": 2},
    "restrictions": {"users": ["bob"], "teams": [], "apps": ["gitbus"]},
}
RULESET = {
    "name": "main",
    "target": "branch",
    "enforcement": "active",
    "bypass_actors": [{"actor_id": 5, "actor_type": "RepositoryRole", "bypass_mode": "always"}],
    "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
    "rules": [{"type": "deletion"}, {"type": "update"}],
}
ENVIRONMENT = {"wait_timer": 5, "deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True}}


def fill(github: GitHub, ada: Desk) -> dict[str, str]:
    """Put something of everything into the repository; returns what paths name it by."""
    app = github.app("gitbus", {"contents": "write", "pull_requests": "write", "issues": "write"}, {REPO})
    repo, owner, bob = github.world.repos[REPO], github.browser("acme"), github.browser("bob")
    ada.commit({".github/CODEOWNERS": "* @ada @nobody\n", "old.txt": "".join(f"{n}\n" for n in range(20))})
    ada.push("main")
    ada.branch("x", {"x.txt": "1\n"})
    number = github.browser("ada").open(REPO, "x", "A title", "with **text**")
    number_of_open = [ada.branch("y", {"y.txt": "1\n"}), github.browser("ada").open(REPO, "y")][1]
    review = bob.review(REPO, number, "APPROVE", "fine")
    other = bob.review(REPO, number_of_open, "REQUEST_CHANGES", "no")
    github.browser("acme").ask(
        "POST", f"/repos/{REPO}/pulls/{number_of_open}/requested_reviewers", {"reviewers": ["rita"]}
    )
    bob.comment(REPO, number_of_open, "a comment")
    owner.ask("POST", f"/repos/{REPO}/labels", {"name": "gitbus", "color": "0e8a16", "description": "the bus"})
    owner.ask("POST", f"/repos/{REPO}/issues/{number_of_open}/labels", {"labels": ["gitbus", "new"]})
    bob.arm(REPO, number_of_open)
    bob.merge(REPO, number)
    ruleset = owner.ask("POST", f"/repos/{REPO}/rulesets", RULESET)["id"]
    owner.ask("PUT", f"/repos/{REPO}/environments/send", ENVIRONMENT)
    owner.ask("POST", f"/repos/{REPO}/environments/send/deployment-branch-policies", {"name": "main"})
    reviewers = [{"type": "User", "id": github.world.users["ada"].id}]
    owner.ask("PUT", f"/repos/{REPO}/environments/other", {"reviewers": reviewers, "prevent_self_review": True})
    repo.environments["send"].secrets.append("PASSWORD")
    repo.secrets.append("TOKEN")
    repo.keys.append(DeployKey(7, "laptop", "ssh-ed25519 AAAA", read_only=True, created=repo.created))
    error = {"line": 1, "column": 8, "kind": "Unknown owner", "source": "* @nobody", "suggestion": None}
    repo.codeowners_errors.append(error | {"message": "Unknown owner", "path": ".github/CODEOWNERS"})
    owner.ask("PUT", f"/repos/{REPO}/branches/x/protection", PROTECT)
    comment = github.pull(REPO, number_of_open).comments[0].id
    return {
        "owner": "acme",
        "repo": "bus",
        "branch": "main",
        "ref": "heads/main",
        "commit_sha": github.pull(REPO, number).merge_commit or "",
        "basehead": "main...y",
        "pull_number": str(number_of_open),
        "issue_number": str(number_of_open),
        "merged": str(number),
        "review_id": str(other),
        "merged_review": str(review),
        "comment_id": str(comment),
        "name": "gitbus",
        "username": "ada",
        "account_id": str(github.world.users["bob"].id),
        "ruleset_id": str(ruleset),
        "environment_name": "send",
        "installation_id": str(app.installation),
    }


BODIES: dict[str, Any] = {
    "PATCH /repos/{owner}/{repo}": {"allow_rebase_merge": False},
    "POST /repos/{owner}/{repo}/pulls": {"title": "Z", "head": "z", "base": "main", "body": "b"},
    "PATCH /repos/{owner}/{repo}/pulls/{pull_number}": {"title": "Other", "body": "other"},
    "PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge": {"merge_method": "squash"},
    "PUT /repos/{owner}/{repo}/pulls/{pull_number}/update-branch": {},
    "POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": {"reviewers": ["ada"]},
    "DELETE /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": {"reviewers": ["rita"]},
    "POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews": {"event": "COMMENT", "body": "hm"},
    "PUT /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/dismissals": {"message": "why"},
    "POST /repos/{owner}/{repo}/issues": {"title": "stuck", "body": "b", "labels": ["gitbus"]},
    "PATCH /repos/{owner}/{repo}/issues/{issue_number}": {"body": "more"},
    "POST /repos/{owner}/{repo}/issues/{issue_number}/comments": {"body": "said"},
    "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}": {"body": "said otherwise"},
    "POST /repos/{owner}/{repo}/issues/{issue_number}/labels": {"labels": ["more"]},
    "PUT /repos/{owner}/{repo}/issues/{issue_number}/labels": {"labels": ["gitbus"]},
    "POST /repos/{owner}/{repo}/labels": {"name": "fresh", "color": "ffffff"},
    "PATCH /repos/{owner}/{repo}/labels/{name}": {"color": "000000"},
    "POST /repos/{owner}/{repo}/rulesets": RULESET | {"name": "another"},
    "PUT /repos/{owner}/{repo}/rulesets/{ruleset_id}": {"enforcement": "disabled"},
    "PUT /repos/{owner}/{repo}/branches/{branch}/protection": PROTECT,
    "PUT /repos/{owner}/{repo}/environments/{environment_name}": ENVIRONMENT,
    "POST /repos/{owner}/{repo}/environments/{environment_name}/deployment-branch-policies": {"name": "other"},
    "PUT /repos/{owner}/{repo}/actions/permissions": {"enabled": True, "allowed_actions": "all"},
    "PUT /repos/{owner}/{repo}/actions/permissions/workflow": {"default_workflow_permissions": "read"},
    "POST /app/installations/{installation_id}/access_tokens": {"repositories": ["bus"]},
}
OTHERS = {
    "PATCH /repos/{owner}/{repo}/git/refs/{ref}": {"ref": "heads/z"},
    "DELETE /repos/{owner}/{repo}/git/refs/{ref}": {"ref": "heads/z"},
    "DELETE /repos/{owner}/{repo}/branches/{branch}/protection": {"branch": "x"},
    "GET /repos/{owner}/{repo}/branches/{branch}/protection": {"branch": "x"},
    "GET /repos/{owner}/{repo}/commits/{ref}": {"ref": "y"},
}
HERE = tuple(f"{one.verb} {one.template}" for one in ROUTES if "/actions/w" not in one.template)
"""The calls served by the modules of this folder that :mod:`tests.github.rest` names."""


def prepare(github: GitHub, ada: Desk, call: str, names: dict[str, str]) -> Any:
    """Do what one call needs before it; returns its body."""
    tip = ada.fetch()
    if call.endswith(" /repos/{owner}/{repo}/pulls/{pull_number}/merge") and call.startswith("GET"):
        names["pull_number"] = names["merged"]
    if "/git/refs" in call or call == "POST /repos/{owner}/{repo}/pulls":
        github.browser("acme").ask("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/z", "sha": tip})
        github.browser("acme").edit(REPO, "z", {"z.txt": "1\n"})
    if call == "POST /repos/{owner}/{repo}/git/refs":
        return {"ref": "refs/heads/new", "sha": tip}
    if call == "PATCH /repos/{owner}/{repo}/git/refs/{ref}":
        return {"sha": tip, "force": True}
    if call.startswith("PUT") and call.endswith("/merge"):
        github.pull(REPO, int(names["pull_number"])).reviews.clear()
    return BODIES.get(call)


@pytest.mark.parametrize("call", HERE)
def test_it_is_served(call: str, github: GitHub, ada: Desk) -> None:
    names = fill(github, ada) | OTHERS.get(call, {})
    body = prepare(github, ada, call, names)
    verb, _, template = call.partition(" ")
    path = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], template)
    token = github.token("acme")
    if template.startswith("/app") or template.endswith("/installation"):
        app = next(iter(github.world.apps.values()))
        token = jwt.encode({"iss": str(app.id)}, app.key, algorithm="RS256")
    elif template.startswith("/installation/"):
        token = github.installation_token(next(iter(github.world.apps.values())))
    headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
    answer = requests.request(verb, github.api + path, json=body, headers=headers, timeout=10)
    assert answer.status_code < 300, answer.text
    assert (github.log[-1].verb, github.log[-1].template) == (verb, template)
