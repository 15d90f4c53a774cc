"""Calls about what holds for branches: rulesets, and the older kind of protection.

Example: ``GET /repos/acme/bus/rules/branches/main`` gives the rules that hold for ``main``.
"""

from __future__ import annotations

from tests.github.api import Answer, Call, Fault, not_found, reads, route, unprocessable, writes
from tests.github.api_repos import REPO
from tests.github.rules import bypass, rules_of
from tests.github.shapes import Json, iso, node
from tests.github.state import Repo, Ruleset

RULES = frozenset(
    [
        "creation",
        "update",
        "deletion",
        "required_linear_history",
        "merge_queue",
        "required_deployments",
        "required_signatures",
        "pull_request",
        "required_status_checks",
        "non_fast_forward",
        "commit_message_pattern",
        "commit_author_email_pattern",
        "committer_email_pattern",
        "branch_name_pattern",
        "tag_name_pattern",
        "file_path_restriction",
        "max_file_path_length",
        "file_extension_restriction",
        "max_file_size",
        "workflows",
        "code_scanning",
        "copilot_code_review",
    ]
)
_BYPASS = {"always": "always", "pull_request": "pull_requests_only", None: "never"}
_PULL = {
    "dismiss_stale_reviews_on_push",
    "require_code_owner_review",
    "require_last_push_approval",
    "required_approving_review_count",
    "required_review_thread_resolution",
}
UPGRADE = "Upgrade to GitHub Pro or make this repository public to enable this feature."


def _plan(repo: Repo) -> None:
    if not repo.plan_has_rules:
        raise Fault(403, UPGRADE)


# --- rulesets


def _short(call: Call, ruleset: Ruleset) -> Json:
    repo, shapes = call.repo, call.shapes
    return {
        "id": ruleset.id,
        "name": ruleset.name,
        "target": ruleset.target,
        "source_type": "Repository",
        "source": repo.full_name,
        "enforcement": ruleset.enforcement,
        "node_id": node("RRS_", ruleset.id),
        "_links": {
            "self": {"href": f"{shapes.api}/repos/{repo.full_name}/rulesets/{ruleset.id}"},
            "html": {"href": f"{shapes.web}/{repo.full_name}/rules/{ruleset.id}"},
        },
        "created_at": iso(ruleset.created),
        "updated_at": iso(ruleset.updated),
    }


def _whole(call: Call, ruleset: Ruleset) -> Json:
    found = _short(call, ruleset) | {"conditions": ruleset.conditions, "rules": ruleset.rules}
    if call.token is not None:
        found["current_user_can_bypass"] = _BYPASS[bypass(call.world, call.repo, ruleset, call.actor)]
    if call.has("administration", "write"):
        found["bypass_actors"] = ruleset.bypass
    return found


def _ruleset(call: Call) -> Ruleset:
    found = call.repo.rulesets.get(call.number("ruleset_id"))
    return found if found is not None else not_found()


@route("GET", f"{REPO}/rulesets", reads("metadata"))
def list_rulesets(call: Call) -> Answer:
    """The rulesets, without their rules."""
    _plan(call.repo)
    return call.many(list(call.repo.rulesets.values()), lambda one: _short(call, one))


@route("GET", f"{REPO}/rulesets/{{ruleset_id}}", reads("metadata"))
def get_ruleset(call: Call) -> Answer:
    """A ruleset; who may pass it by is told only to whoever may change it."""
    _plan(call.repo)
    return Answer(_whole(call, _ruleset(call)))


@route("POST", f"{REPO}/rulesets", writes("administration"))
def make_ruleset(call: Call) -> Answer:
    """Make a ruleset."""
    _plan(call.repo)
    _check(call.body or {})
    now = call.world.now()
    made = Ruleset(
        call.world.id(), call.body["name"], "branch", call.body["enforcement"], [], {}, [], now, now
    )
    if any(one.name == made.name for one in call.repo.rulesets.values()):
        unprocessable("Name must be unique", message="Validation Failed")
    _fill(made, call.body)
    call.repo.rulesets[made.id] = made
    return Answer(_whole(call, made), 201)


@route("PUT", f"{REPO}/rulesets/{{ruleset_id}}", writes("administration"))
def change_ruleset(call: Call) -> Answer:
    """Change a ruleset."""
    ruleset = _ruleset(call)
    _check({"name": ruleset.name, "enforcement": ruleset.enforcement, **(call.body or {})})
    _fill(ruleset, call.body)
    ruleset.updated = call.world.now()
    return Answer(_whole(call, ruleset))


@route("DELETE", f"{REPO}/rulesets/{{ruleset_id}}", writes("administration"))
def drop_ruleset(call: Call) -> Answer:
    """Delete a ruleset."""
    del call.repo.rulesets[_ruleset(call).id]
    return Answer(None, 204)


def _check(body: Json) -> None:
    for name in ("name", "enforcement"):
        if not body.get(name):
            unprocessable(f"Missing required field: {name}", message="Invalid request")
    for rule in body.get("rules", []):
        if rule["type"] not in RULES:
            unprocessable(f"Invalid rule '{rule['type']}': ", message="Validation Failed")
        if rule["type"] == "pull_request" and not set(rule.get("parameters", {})) >= _PULL:
            unprocessable("Invalid rule 'pull_request': missing parameters", message="Validation Failed")
    if (
        body.get("target", "branch") == "branch"
        and "conditions" in body
        and "ref_name" not in body["conditions"]
    ):
        unprocessable("Invalid conditions: ref_name", message="Validation Failed")


def _fill(ruleset: Ruleset, body: Json) -> None:
    ruleset.name = body.get("name", ruleset.name)
    ruleset.target = body.get("target", ruleset.target)
    ruleset.enforcement = body.get("enforcement", ruleset.enforcement)
    ruleset.conditions = body.get("conditions", ruleset.conditions)
    ruleset.rules = [_normal(one) for one in body.get("rules", ruleset.rules)]
    given = body.get("bypass_actors", ruleset.bypass)
    ruleset.bypass = [
        {
            "actor_id": one.get("actor_id"),
            "actor_type": one["actor_type"],
            "bypass_mode": one.get("bypass_mode", "always"),
        }
        for one in given
    ]


def _normal(rule: Json) -> Json:
    """Return a rule as GitHub gives it back: with the parameters that it has by default."""
    if rule["type"] == "pull_request":
        methods = {"allowed_merge_methods": ["merge", "squash", "rebase"], "required_reviewers": []}
        return {"type": rule["type"], "parameters": methods | rule["parameters"]}
    if rule["type"] == "update" and "parameters" not in rule:
        return {"type": "update", "parameters": {"update_allows_fetch_and_merge": False}}
    return rule


@route("GET", f"{REPO}/rules/branches/{{branch}}", reads("metadata"))
def rules_of_branch(call: Call) -> Answer:
    """The rules that hold for a branch, wherever they come from."""
    _plan(call.repo)
    found = list(rules_of(call.repo, f"refs/heads/{call.parameters['branch']}"))
    source = {"ruleset_source_type": "Repository", "ruleset_source": call.repo.full_name}
    return call.many(found, lambda one: one[1] | source | {"ruleset_id": one[0].id})


PROTECTION = f"{REPO}/branches/{{branch}}/protection"
_SWITCHES = (
    "required_linear_history",
    "allow_force_pushes",
    "allow_deletions",
    "block_creations",
    "required_conversation_resolution",
    "lock_branch",
    "allow_fork_syncing",
)


def _branch(call: Call) -> str:
    branch = call.parameters["branch"]
    if call.repo.branch(branch) is None:
        raise Fault(404, "Branch not found")
    return branch


@route("GET", PROTECTION, reads("administration"))
def get_protection(call: Call) -> Answer:
    """The older kind of protection of a branch."""
    _plan(call.repo)
    branch = _branch(call)
    if branch not in call.repo.protection:
        raise Fault(404, "Branch not protected")
    return Answer(_protection(call, branch))


@route("PUT", PROTECTION, writes("administration"))
def set_protection(call: Call) -> Answer:
    """Protect a branch in the older way; what the body does not name is off."""
    _plan(call.repo)
    branch = _branch(call)
    needed = {"required_status_checks", "enforce_admins", "required_pull_request_reviews", "restrictions"}
    if missing := needed - set(call.body or {}):
        unprocessable(*(f'"{one}" wasn\'t supplied.' for one in sorted(missing)), message="Invalid request.")
    call.repo.protection[branch] = dict(call.body)
    return Answer(_protection(call, branch))


@route("DELETE", PROTECTION, writes("administration"))
def drop_protection(call: Call) -> Answer:
    """Protect a branch no longer."""
    if call.repo.protection.pop(_branch(call), None) is None:
        raise Fault(404, "Branch not protected")
    return Answer(None, 204)


def _protection(call: Call, branch: str) -> Json:
    given = call.repo.protection[branch]
    url = f"{call.shapes.api}/repos/{call.repo.full_name}/branches/{branch}/protection"
    found: Json = {
        "url": url,
        "required_signatures": {"url": f"{url}/required_signatures", "enabled": False},
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": bool(given.get("enforce_admins"))},
        **{name: {"enabled": bool(given.get(name))} for name in _SWITCHES},
    }
    if (reviews := given.get("required_pull_request_reviews")) is not None:
        off = {"dismiss_stale_reviews": False, "require_code_owner_reviews": False}
        more = {"required_approving_review_count": 1, "require_last_push_approval": False}
        plain = {name: value for name, value in reviews.items() if not isinstance(value, dict)}
        shown = {"url": f"{url}/required_pull_request_reviews", **off, **more, **plain}
        found["required_pull_request_reviews"] = shown
    if (some := given.get("restrictions")) is not None:
        found["restrictions"] = _restrictions(call, f"{url}/restrictions", some)
    if (checks := given.get("required_status_checks")) is not None:
        names = checks.get("contexts", [])
        listed = [{"context": one, "app_id": None} for one in names]
        kept = {
            "url": f"{url}/required_status_checks",
            "contexts_url": f"{url}/required_status_checks/contexts",
        }
        found["required_status_checks"] = {
            **kept,
            "strict": checks["strict"],
            "contexts": names,
            "checks": listed,
        }
    return found


def _restrictions(call: Call, url: str, some: Json) -> Json:
    apps = [one for one in call.world.apps.values() if one.slug in some.get("apps", [])]
    known = ("metadata", "contents", "issues", "single_file")
    shown = [call.shapes.app(one) or {} for one in apps]
    for one in shown:
        one["permissions"] = {name: level for name, level in one["permissions"].items() if name in known}
    return {
        "url": url,
        **{f"{name}_url": f"{url}/{name}" for name in ("users", "teams", "apps")},
        "users": [call.shapes.user(login) for login in some.get("users", [])],
        "teams": [],
        "apps": shown,
    }
