"""Calls about Actions and commit statuses: dispatching a workflow, what a commit's checks say, variables.

Rules: a workflow can be dispatched only where the default branch has a file of its name; a dispatch by
GITHUB_TOKEN starts a run all the same. Importing this module serves the calls.

Example: ``POST /repos/acme/bus/actions/workflows/gitbus.yml/dispatches`` with ``{"ref": "main"}``.
"""

from __future__ import annotations

import base64
from typing import Any

from tests.github.api import Answer, Call, invalid, not_found, reads, route, unprocessable, writes
from tests.github.api_repos import REPO
from tests.github.moving import happen
from tests.github.rules import Actor
from tests.github.shapes import Json, iso, node

STATES = ("error", "failure", "pending", "success")


@route("POST", f"{REPO}/actions/workflows/{{workflow_id}}/dispatches", writes("actions"))
def dispatch(call: Call) -> Answer:
    """Start a workflow on a branch."""
    repo, name = call.repo, call.parameters["workflow_id"]
    path = f".github/workflows/{name}"
    if not repo.git.ok("cat-file", "-e", f"refs/heads/{repo.default_branch}:{path}"):
        not_found()
    ref = f"refs/heads/{str(call.given('ref', '')).removeprefix('refs/heads/')}"
    if ref not in repo.refs:
        unprocessable(
            f"No ref found for: {call.given('ref')}", message=f"No ref found for: {call.given('ref')}"
        )
    inputs = call.given("inputs") or {}
    known = Actor(call.actor.login)  # whoever it is, a dispatch starts a run
    happen(call.world, f"workflow_dispatch {name}", repo, known, ref=ref, sha=repo.refs[ref])
    repo.actions.setdefault("inputs", []).append(inputs)
    return Answer(None, 204)


def _statuses(call: Call, sha: str) -> list[Any]:
    found: list[Any] = call.repo.actions.setdefault("statuses", {}).setdefault(sha, [])
    return found


@route("POST", f"{REPO}/statuses/{{sha}}", writes("statuses"))
def set_status(call: Call) -> Answer:
    """Say what a check of a commit came to."""
    sha = call.parameters["sha"]
    if not call.repo.git.ok("cat-file", "-e", f"{sha}^{{commit}}"):
        unprocessable(f"No commit found for SHA: {sha}", message=f"No commit found for SHA: {sha}")
    if call.given("state") not in STATES:
        invalid("Status", "custom", "state")
    if len(call.given("description") or "") > 140:
        invalid("Status", "custom", "description")
    made = {**_status(call, sha), "creator": call.shapes.user(call.user.login)}
    _statuses(call, sha).insert(0, made)
    return Answer(made, 201)


def _status(call: Call, sha: str) -> Json:
    number, now = call.world.id(), iso(call.world.now())
    return {
        "url": f"{call.shapes.api}/repos/{call.repo.full_name}/statuses/{sha}",
        "avatar_url": None,
        "id": number,
        "node_id": node("SC_", number),
        "state": call.given("state"),
        "description": call.given("description"),
        "target_url": call.given("target_url"),
        "context": call.given("context", "default"),
        "created_at": now,
        "updated_at": now,
    }


@route("GET", f"{REPO}/commits/{{ref}}/status", reads("statuses"))
def combined_status(call: Call) -> Answer:
    """What all checks of a commit came to, the newest of each."""
    sha = call.parameters["ref"]
    newest: dict[str, Any] = {}
    for one in _statuses(call, sha):
        newest.setdefault(one["context"], {key: value for key, value in one.items() if key != "creator"})
    states = {one["state"] for one in newest.values()}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    base = f"{call.shapes.api}/repos/{call.repo.full_name}"
    return Answer(
        {
            "state": state,
            "statuses": list(newest.values()),
            "sha": sha,
            "total_count": len(newest),
            "repository": call.shapes.simple_repo(call.repo),
            "commit_url": f"{base}/commits/{sha}",
            "url": f"{base}/commits/{sha}/status",
        }
    )


@route("GET", f"{REPO}/contents/{{path}}", reads("contents"))
def get_file(call: Call) -> Answer:
    """A file on a branch."""
    repo, path = call.repo, call.parameters["path"]
    commit = repo.refs.get(f"refs/heads/{call.query.get('ref', repo.default_branch)}")
    if commit is None or not repo.git.ok("cat-file", "-e", f"{commit}:{path}"):
        not_found()
    sha = repo.git.run("rev-parse", f"{commit}:{path}")
    data = base64.b64encode((repo.git.run("cat-file", "blob", sha)).encode()).decode()
    base = f"{call.shapes.api}/repos/{repo.full_name}"
    links = {
        "self": f"{base}/contents/{path}",
        "git": f"{base}/git/blobs/{sha}",
        "html": f"{call.shapes.web}/{path}",
    }
    return Answer(
        {
            "type": "file",
            "encoding": "base64",
            "size": int(repo.git.run("cat-file", "-s", sha)),
            "name": path.rpartition("/")[2],
            "path": path,
            "content": data,
            "sha": sha,
            "url": links["self"],
            "git_url": links["git"],
            "html_url": links["html"],
            "download_url": links["html"],
            "_links": links,
        }
    )


def _variable(call: Call, where: str) -> Answer:
    value = call.repo.actions.get("variables", {}).get((where, call.parameters["name"]))
    if value is None:
        not_found()
    made = iso(call.repo.created)
    return Answer({"name": call.parameters["name"], "value": value, "created_at": made, "updated_at": made})


@route("GET", f"{REPO}/environments/{{environment_name}}/variables/{{name}}", reads("environments"))
def environment_variable(call: Call) -> Answer:
    """A variable of an environment."""
    return _variable(call, call.parameters["environment_name"])


@route("GET", f"{REPO}/actions/variables/{{name}}", reads("actions_variables"))
def repo_variable(call: Call) -> Answer:
    """A variable of the repository."""
    return _variable(call, "")
