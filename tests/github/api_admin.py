"""Calls about environments, about who may do what, and about Actions.

Example: ``GET /repos/acme/bus/collaborators/ada/permission`` says what Ada may do.
"""

from __future__ import annotations

from typing import Any

from tests.github.api import Answer, Call, Fault, invalid, not_found, reads, route, writes
from tests.github.api_repos import REPO
from tests.github.rights import role_of
from tests.github.shapes import Json, iso, node
from tests.github.state import ROLES, DeployKey, Environment

# --- environments


def _environment(call: Call) -> Environment:
    found = call.repo.environments.get(call.parameters["environment_name"])
    return found if found is not None else not_found()


def _shown(call: Call, one: Environment) -> Json:
    url = f"{call.shapes.api}/repos/{call.repo.full_name}/environments/{one.name}"
    return {
        "id": one.id,
        "node_id": node("EN_", one.id),
        "name": one.name,
        "url": url,
        "html_url": f"{call.shapes.web}/{call.repo.full_name}/deployments/activity_log?environment={one.name}",
        "created_at": iso(one.created),
        "updated_at": iso(one.created),
        "protection_rules": _protection(call, one),
        "deployment_branch_policy": one.branch_policy,
    }


def _protection(call: Call, one: Environment) -> list[Json]:
    rules: list[Json] = []
    if one.wait:
        rules.append(
            {
                "id": one.id + 1,
                "node_id": node("GA_", one.id + 1),
                "type": "wait_timer",
                "wait_timer": one.wait,
            }
        )
    if one.reviewers:
        people = [call.world.user_of_id(each["id"]) for each in one.reviewers]
        shown = [{"type": "User", "reviewer": call.shapes.user(each.login)} for each in people if each]
        rule: Json = {"id": one.id + 2, "node_id": node("GA_", one.id + 2), "type": "required_reviewers"}
        rules.append(rule | {"prevent_self_review": one.self_review, "reviewers": shown})
    if one.branch_policy is not None:
        rules.append({"id": one.id + 3, "node_id": node("GA_", one.id + 3), "type": "branch_policy"})
    return rules


@route("GET", f"{REPO}/environments", reads("actions"))
def list_environments(call: Call) -> Answer:
    """The environments."""
    found = list(call.repo.environments.values())
    return call.many(found, lambda one: _shown(call, one), key="environments")


@route("GET", f"{REPO}/environments/{{environment_name}}", reads("actions"))
def get_environment(call: Call) -> Answer:
    """An environment."""
    return Answer(_shown(call, _environment(call)))


@route("PUT", f"{REPO}/environments/{{environment_name}}", writes("administration"))
def set_environment(call: Call) -> Answer:
    """Make an environment, or change it; what the body does not name is off afterwards."""
    name, body = call.parameters["environment_name"], call.body or {}
    policy = body.get("deployment_branch_policy")
    if not call.repo.plan_has_rules and (policy or body.get("reviewers") or body.get("wait_timer")):
        raise Fault(
            422, "Failed to create the environment protection rule. Please ensure the plan supports it."
        )
    if policy and policy["protected_branches"] == policy["custom_branch_policies"]:
        raise Fault(422, "protected_branches and custom_branch_policies cannot have the same value")
    known = call.repo.environments.get(name)
    one = known or Environment(call.world.id(), name, call.world.now())
    [call.world.id() for _ in range(3)]  # the numbers of its protection rules
    one.wait, one.reviewers = body.get("wait_timer") or 0, body.get("reviewers") or []
    one.self_review, one.branch_policy = bool(body.get("prevent_self_review")), policy
    call.repo.environments[name] = one
    return Answer(_shown(call, one))


POLICIES = f"{REPO}/environments/{{environment_name}}/deployment-branch-policies"


@route("GET", POLICIES, reads("actions"))
def list_policies(call: Call) -> Answer:
    """The branches that may deploy to an environment."""
    found = list(_environment(call).policies.items())
    return call.many(found, lambda one: _policy(*one), key="branch_policies")


def _policy(number: int, name: str) -> Json:
    return {"id": number, "node_id": node("DBP_", number), "name": name, "type": "branch"}


@route("POST", POLICIES, writes("administration"))
def add_policy(call: Call) -> Answer:
    """Let a branch deploy to an environment."""
    one = _environment(call)
    if one.branch_policy is None or not one.branch_policy["custom_branch_policies"]:
        not_found()
    if call.given("name") in one.policies.values():
        raise Fault(303, "Already exists")
    number = call.world.id()
    one.policies[number] = call.given("name") or invalid("DeploymentBranchPolicy", "missing_field", "name")
    return Answer(_policy(number, one.policies[number]))


def _secret(call: Call, name: str) -> Json:
    made = iso(call.repo.created)
    return {"name": name, "created_at": made, "updated_at": made}


@route("GET", f"{REPO}/environments/{{environment_name}}/secrets", reads("environments"))
def environment_secrets(call: Call) -> Answer:
    """The names of an environment's secrets."""
    return call.many(_environment(call).secrets, lambda one: _secret(call, one), key="secrets")


@route("GET", f"{REPO}/actions/secrets", reads("secrets"), role="write")
def repo_secrets(call: Call) -> Answer:
    """The names of the repository's secrets."""
    return call.many(call.repo.secrets, lambda one: _secret(call, one), key="secrets")


# --- people and keys


def _powers(role: str) -> dict[str, bool]:
    names = {"read": "pull", "write": "push"}
    return {names.get(one, one): ROLES.index(one) <= ROLES.index(role) for one in reversed(ROLES)}


@route("GET", f"{REPO}/collaborators", reads("metadata"), role="write")
def list_collaborators(call: Call) -> Answer:
    """Who may do what."""
    roles = {call.repo.owner: "admin", **call.repo.roles}
    people = [(login, role) for login, role in roles.items() if login in call.world.users]
    show = call.shapes.user
    return call.many(people, lambda one: show(one[0]) | {"permissions": _powers(one[1]), "role_name": one[1]})


@route("GET", f"{REPO}/collaborators/{{username}}/permission", reads("metadata"), role="write")
def permission(call: Call) -> Answer:
    """What one person may do."""
    login = call.parameters["username"]
    if login not in call.world.users:
        not_found()
    role = role_of(call.repo, login) or "none"
    plain = {"maintain": "write", "triage": "read"}.get(role, role)
    user = call.shapes.user(login) | {
        "permissions": _powers(role) if role in ROLES else {},
        "role_name": role,
    }
    if role not in ROLES:
        user["permissions"] = dict.fromkeys(("admin", "maintain", "push", "triage", "pull"), False)
    return Answer({"permission": plain, "user": user, "role_name": role})


@route("GET", f"{REPO}/keys", reads("administration"))
def list_keys(call: Call) -> Answer:
    """The deploy keys."""

    def show(one: DeployKey) -> Json:
        url = f"{call.shapes.api}/repos/{call.repo.full_name}/keys/{one.id}"
        known = {"id": one.id, "key": one.key, "url": url, "title": one.title, "verified": True}
        return known | {
            "created_at": iso(one.created), "read_only": one.read_only, "added_by": call.repo.owner,
            "last_used": None, "enabled": True,
        }  # fmt: skip

    return call.many(call.repo.keys, show)


# --- Actions


@route("GET", f"{REPO}/actions/permissions/workflow", reads("administration"))
def workflow_rights(call: Call) -> Answer:
    """What a workflow's token may do."""
    rights, approves = call.repo.workflow_rights, call.repo.workflow_approves
    return Answer({"default_workflow_permissions": rights, "can_approve_pull_request_reviews": approves})


@route("PUT", f"{REPO}/actions/permissions/workflow", writes("administration"))
def set_workflow_rights(call: Call) -> Answer:
    """Set what a workflow's token may do."""
    repo = call.repo
    repo.workflow_rights = call.given("default_workflow_permissions", repo.workflow_rights)
    repo.workflow_approves = call.given("can_approve_pull_request_reviews", repo.workflow_approves)
    return Answer(None, 204)


@route("GET", f"{REPO}/actions/permissions", reads("administration"))
def actions(call: Call) -> Answer:
    """Whether Actions run, and which."""
    known: dict[str, Any] = {"enabled": True, "allowed_actions": "all", "sha_pinning_required": False}
    return Answer({name: call.repo.actions.get(name, value) for name, value in known.items()})


@route("PUT", f"{REPO}/actions/permissions", writes("administration"))
def set_actions(call: Call) -> Answer:
    """Set whether Actions run, and which."""
    call.repo.actions |= call.body or {}
    return Answer(None, 204)


@route("GET", f"{REPO}/codeowners/errors", reads("contents"))
def codeowners(call: Call) -> Answer:
    """What is wrong in CODEOWNERS."""
    if not _has_codeowners(call):
        not_found()
    return Answer({"errors": call.repo.codeowners_errors})


def _has_codeowners(call: Call) -> bool:
    tip = call.repo.branch(call.repo.default_branch)
    paths = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
    return tip is not None and any(call.repo.git.ok("cat-file", "-e", f"{tip}:{one}") for one in paths)
