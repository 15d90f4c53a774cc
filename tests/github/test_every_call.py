"""Every call that our small GitHub serves is made once, on a repository in which there is something of everything."""

from __future__ import annotations

import re
from typing import Any

import jwt
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
ENVIRONMENT = {
    "wait_timer": 5,
    "deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True},
}


def fill(github: GitHub, ada: Desk) -> dict[str, str]:
    """Put something of everything into the repository; returns what paths name it by."""
    app = github.app("gitbus", {"contents": "write", "pull_requests": "write", "issues": "write"}, {REPO})
    repo, owner, bob = github.world.repos[REPO], github.browser("acme"), github.browser("bob")
    ada.commit({".github/CODEOWNERS": "* @ada @nobody\n", "old.txt": "".join(f"{n}\n" for n in range(20))})
    ada.push("main")
    ada.branch("x", {"x.txt": "1\n"})
    number = github.browser("ada").open(REPO, "x", "A title", "with **text**")
    ada.branch("y", {"y.txt": "1\n"})
    waiting = github.browser("ada").open(REPO, "y")
    bob.review(REPO, number, "APPROVE", "fine")
    other = bob.review(REPO, waiting, "REQUEST_CHANGES", "no")
    github.browser("acme").ask(
        "POST", f"/repos/{REPO}/pulls/{waiting}/requested_reviewers", {"reviewers": ["rita"]}
    )
    bob.comment(REPO, waiting, "a comment")
    owner.ask(
        "POST", f"/repos/{REPO}/labels", {"name": "gitbus", "color": "0e8a16", "description": "the bus"}
    )
    owner.ask("POST", f"/repos/{REPO}/issues/{waiting}/labels", {"labels": ["gitbus", "new"]})
    bob.arm(REPO, waiting)
    bob.merge(REPO, number)
    ada.branch("spare", {"spare.txt": "1\n"})
    spare = github.browser("ada").open(REPO, "spare")
    ruleset = owner.ask("POST", f"/repos/{REPO}/rulesets", RULESET)["id"]
    owner.ask("PUT", f"/repos/{REPO}/environments/send", ENVIRONMENT)
    owner.ask("POST", f"/repos/{REPO}/environments/send/deployment-branch-policies", {"name": "main"})
    reviewers = [{"type": "User", "id": github.world.users["ada"].id}]
    owner.ask(
        "PUT", f"/repos/{REPO}/environments/other", {"reviewers": reviewers, "prevent_self_review": True}
    )
    repo.environments["send"].secrets.append("PASSWORD")
    repo.secrets.append("TOKEN")
    repo.keys.append(DeployKey(7, "laptop", "ssh-ed25519 AAAA", read_only=True, created=repo.created))
    error = {"line": 1, "column": 8, "kind": "Unknown owner", "source": "* @nobody", "suggestion": None}
    repo.codeowners_errors.append(error | {"message": "Unknown owner", "path": ".github/CODEOWNERS"})
    owner.ask("PUT", f"/repos/{REPO}/branches/x/protection", PROTECT)
    comment = github.pull(REPO, waiting).comments[0].id
    return {
        "owner": "acme",
        "repo": "bus",
        "branch": "main",
        "ref": "heads/main",
        "commit_sha": github.pull(REPO, number).merge_commit or "",
        "basehead": "main...y",
        "pull_number": str(waiting),
        "issue_number": str(waiting),
        "mergeable": str(spare),
        "review_id": str(other),
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
    "POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": {"reviewers": ["bob"]},
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
    "POST /repos/{owner}/{repo}/environments/{environment_name}/deployment-branch-policies": {
        "name": "other"
    },
    "PUT /repos/{owner}/{repo}/actions/permissions": {"enabled": True, "allowed_actions": "all"},
    "PUT /repos/{owner}/{repo}/actions/permissions/workflow": {"default_workflow_permissions": "read"},
    "POST /app/installations/{installation_id}/access_tokens": {"repositories": ["bus"]},
}
OTHERS = {
    "PATCH /repos/{owner}/{repo}/git/refs/{ref}": {"ref": "heads/z"},
    "DELETE /repos/{owner}/{repo}/git/refs/{ref}": {"ref": "heads/z"},
    "DELETE /repos/{owner}/{repo}/branches/{branch}/protection": {"branch": "main"},
    "GET /repos/{owner}/{repo}/branches/{branch}/protection": {"branch": "x"},
    "GET /repos/{owner}/{repo}/commits/{ref}": {"ref": "y"},
    "GET /repos/{owner}/{repo}/pulls/{pull_number}/merge": {"pull_number": "1"},
}
LAST = (
    "PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge",
    "DELETE /repos/{owner}/{repo}/rulesets/{ruleset_id}",
)
"""What ends what other calls need."""


def served(*verbs: str) -> list[str]:
    """Return the calls with these verbs, those that end something last."""
    found = [
        f"{one.verb} {one.template}"
        for one in ROUTES
        if one.verb in verbs and not _is_of_actions(one.template)
    ]
    return sorted(found, key=lambda call: (call in LAST, found.index(call)))


def _is_of_actions(template: str) -> bool:
    """Return whether another module, which may be imported or not, serves a call."""
    return (
        template.startswith("/repos/{owner}/{repo}/actions/w")
        or "status" in template
        or "variables" in template
        or "/contents/" in template
    )


def prepare(github: GitHub, ada: Desk, call: str, names: dict[str, str]) -> Any:
    """Do what one call needs before it; returns its body."""
    tip = ada.fetch()
    refs = github.world.repos[REPO].refs
    if ("/git/refs/" in call or call == "POST /repos/{owner}/{repo}/pulls") and "refs/heads/z" not in refs:
        github.browser("acme").ask("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/z", "sha": tip})
        github.browser("acme").edit(REPO, "z", {"z.txt": "1\n"})
    if call == "POST /repos/{owner}/{repo}/git/refs":
        return {"ref": "refs/heads/new", "sha": tip}
    if call == "PATCH /repos/{owner}/{repo}/git/refs/{ref}":
        return {"sha": tip, "force": True}
    if call == LAST[0]:
        names["pull_number"] = names["mergeable"]
    return BODIES.get(call)


def make(github: GitHub, ada: Desk, call: str, names: dict[str, str]) -> None:
    """Make one call, which is to succeed."""
    body = prepare(github, ada, call, names)
    verb, _, template = call.partition(" ")
    named = names | OTHERS.get(call, {})
    path = re.sub(r"\{(\w+)\}", lambda found: named[found[1]], template)
    headers = {"Authorization": f"Bearer {token_for(github, template)}", "X-GitHub-Api-Version": "2022-11-28"}
    answer = requests.request(verb, github.api + path, json=body, headers=headers, timeout=10)
    assert answer.status_code < 300, (call, answer.text)
    assert (github.log[-1].verb, github.log[-1].template) == (verb, template)


def token_for(github: GitHub, template: str) -> str:
    """Return what speaks for whoever may make a call: the owner, the app, or its installation."""
    app = next(iter(github.world.apps.values()))
    if template.startswith("/app") or template.endswith("/installation"):
        return jwt.encode({"iss": str(app.id)}, app.key, algorithm="RS256")
    return github.installation_token(app) if template.startswith("/installation/") else github.token("acme")


def test_whatever_reads_is_served(github: GitHub, ada: Desk) -> None:
    names = fill(github, ada)
    calls = served("GET")
    for call in calls:
        make(github, ada, call, names)
    assert len(calls) > 45


def test_whatever_changes_something_is_served(github: GitHub, ada: Desk) -> None:
    names = fill(github, ada)
    calls = served("POST", "PUT", "PATCH", "DELETE")
    for call in calls:
        make(github, ada, call, names)
    assert len(calls) > 25
