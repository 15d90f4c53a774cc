"""Calls about a repository, its branches, refs and commits.

Example: ``GET /repos/acme/bus/compare/main...gitbus/approve/a`` says how far a branch is ahead.
"""

from __future__ import annotations

import re
from typing import Any

from tests.github.api import Answer, Call, Fault, invalid, not_found, reads, route, unprocessable, writes
from tests.github.bare import ZERO, GitFailed, Made
from tests.github.diffs import EMPTY_TREE, changed, shown
from tests.github.moving import change_ref
from tests.github.rules import refused_push
from tests.github.shapes import SETTINGS, Json
from tests.github.state import Pull

REPO = "/repos/{owner}/{repo}"


@route("GET", REPO, reads("metadata"))
def get_repo(call: Call) -> Answer:
    """A repository."""
    return Answer(call.shapes.full_repo(call.repo, call.token))


@route("PATCH", REPO, writes("administration"))
def set_repo(call: Call) -> Answer:
    """Change settings."""
    for name, value in (call.body or {}).items():
        if name in SETTINGS:
            call.repo.settings[name] = value
        elif name == "default_branch":
            call.repo.default_branch = value
    settings = SETTINGS | call.repo.settings
    if not any(settings[f"allow_{one}"] for one in ("merge_commit", "squash_merge", "rebase_merge")):
        invalid("Repository", "custom", message="Sorry, you need to allow at least one merge strategy.")
    return Answer(call.shapes.full_repo(call.repo, call.token))


@route("GET", f"{REPO}/branches", reads("contents"))
def list_branches(call: Call) -> Answer:
    """The branches."""
    names = sorted(ref.removeprefix("refs/heads/") for ref in call.repo.refs if ref.startswith("refs/heads/"))

    def show(name: str) -> Json:
        whole = call.shapes.branch(call.repo, name, call.repo.refs[f"refs/heads/{name}"])
        commit = {part: whole["commit"][part] for part in ("sha", "url")}
        return {"name": name, "commit": commit, "protected": whole["protected"]}

    return call.many(names, show)


@route("GET", f"{REPO}/branches/{{branch}}", reads("contents"))
def get_branch(call: Call) -> Answer:
    """A branch with its tip."""
    name = call.parameters["branch"]
    sha = call.repo.branch(name)
    if sha is None:
        raise Fault(404, "Branch not found")
    return Answer(call.shapes.branch(call.repo, name, sha))


@route("GET", f"{REPO}/git/ref/{{ref}}", reads("contents"))
def get_ref(call: Call) -> Answer:
    """A ref."""
    ref = f"refs/{call.parameters['ref']}"
    sha = call.repo.refs.get(ref)
    return Answer(call.shapes.ref(call.repo, ref, sha)) if sha else not_found()


@route("POST", f"{REPO}/git/refs", writes("contents"))
def make_ref(call: Call) -> Answer:
    """Make a ref."""
    ref, sha = call.given("ref", ""), call.given("sha", "")
    if ref in call.repo.refs:
        unprocessable(message="Reference already exists")
    if not ref.startswith("refs/") or call.repo.git.commit(sha) is None:
        unprocessable(message="Object does not exist")
    _may_move(call, ref, ZERO, sha)
    change_ref(call.world, call.repo, call.actor, ref, sha, None)
    return Answer(call.shapes.ref(call.repo, ref, sha), 201)


@route("PATCH", f"{REPO}/git/refs/{{ref}}", writes("contents"))
def move_ref(call: Call) -> Answer:
    """Move a ref."""
    ref, sha = f"refs/{call.parameters['ref']}", call.given("sha", "")
    old = call.repo.refs.get(ref)
    if old is None:
        unprocessable(message="Reference does not exist")
    if call.repo.git.commit(sha) is None:
        unprocessable(message="Object does not exist")
    if not call.given("force") and not call.repo.git.contains(sha, old):
        unprocessable(message="Update is not a fast forward")
    _may_move(call, ref, old, sha)
    change_ref(call.world, call.repo, call.actor, ref, sha, old)
    return Answer(call.shapes.ref(call.repo, ref, sha))


@route("DELETE", f"{REPO}/git/refs/{{ref}}", writes("contents"))
def delete_ref(call: Call) -> Answer:
    """Delete a ref, as the button on a merged pull request does."""
    ref = f"refs/{call.parameters['ref']}"
    old = call.repo.refs.get(ref)
    if old is None:
        unprocessable(message="Reference does not exist")
    _may_move(call, ref, old, ZERO)
    change_ref(call.world, call.repo, call.actor, ref, None, old)
    return Answer(None, 204)


def _may_move(call: Call, ref: str, old: str, new: str) -> None:
    why = refused_push(call.world, call.repo, call.actor, ref, old, new)
    if why:
        unprocessable(message=why)


# --- commits


def resolve(call: Call, name: str) -> Made | None:
    """Return the commit that a branch, a tag, ``owner:branch`` or an id names, as the API sees it."""
    _, _, name = name.rpartition(":")
    for ref in (f"refs/heads/{name}", f"refs/tags/{name}", f"refs/{name}", name):
        if ref in call.repo.refs:
            return call.repo.git.commit(call.repo.refs[ref])
    if re.fullmatch(r"[0-9a-f]{7,39}", name):
        try:
            name = call.repo.git.run("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        except GitFailed:
            return None
    made = call.repo.git.commit(name)
    return made if made is not None and _is_known(call, made.sha) else None


def _is_known(call: Call, sha: str) -> bool:
    """Return whether the API knows a commit that git has: where it lags behind it may not."""
    if call.repo is call.world.repos[call.repo.full_name]:
        return True
    return any(call.repo.git.contains(tip, sha) for tip in call.repo.refs.values())


@route("GET", f"{REPO}/git/commits/{{commit_sha}}", reads("contents"))
def get_git_commit(call: Call) -> Answer:
    """A commit, as git has it."""
    made = call.repo.git.commit(call.parameters["commit_sha"])
    if made is None or not _is_known(call, made.sha):
        not_found()
    return Answer(call.shapes.git_commit(call.repo, made))


@route("GET", f"{REPO}/commits/{{ref}}", reads("contents"))
def get_commit(call: Call) -> Answer:
    """A commit with what it changes against its first parent."""
    made = resolve(call, call.parameters["ref"])
    if made is None:
        raise Fault(422, f"No commit found for SHA: {call.parameters['ref']}")
    parent = made.parents[0] if made.parents else EMPTY_TREE
    files = changed(call.repo, parent, made.sha)
    plus, minus = sum(one.additions for one in files), sum(one.deletions for one in files)
    stats = {"total": plus + minus, "additions": plus, "deletions": minus}
    shapes = call.shapes
    place, span = (shapes.api, shapes.web), (parent, made.sha)
    shown_files = [shown(call.repo, place, span, one) for one in files[:300]]
    return Answer(shapes.commit(call.repo, made) | {"stats": stats, "files": shown_files})


@route("GET", f"{REPO}/commits", reads("contents"))
def list_commits(call: Call) -> Answer:
    """The commits reachable from one."""
    made = resolve(call, call.query.get("sha", call.repo.default_branch))
    if made is None:
        not_found()
    return call.many(
        call.repo.git.lines("rev-list", made.sha),
        lambda sha: call.shapes.commit(call.repo, call.repo.git.must(sha)),
    )


@route("GET", f"{REPO}/commits/{{commit_sha}}/pulls", reads("contents", "pull_requests"))
def pulls_of_commit(call: Call) -> Answer:
    """The merged pull requests that brought a commit to the default branch; else the open ones that hold it."""
    made = resolve(call, call.parameters["commit_sha"])
    if made is None:
        raise Fault(422, f"No commit found for SHA: {call.parameters['commit_sha']}")
    main = call.repo.branch(call.repo.default_branch)
    landed = main is not None and call.repo.git.contains(main, made.sha)
    found = [one for one in call.repo.pulls.values() if _brings(call, one, made.sha, landed=landed)]
    return call.many(found, lambda one: call.shapes.pull_in_list(call.repo, one))


def _brings(call: Call, pull: Pull, sha: str, *, landed: bool) -> bool:
    if landed:
        return pull.merged is not None and sha in pull.commits
    return pull.state == "open" and sha in call.repo.git.range(pull.base, pull.head)


@route("GET", f"{REPO}/compare/{{basehead}}", reads("contents"))
def compare(call: Call) -> Answer:
    """How two commits stand to each other."""
    names = call.parameters["basehead"].split("...")
    sides = [resolve(call, name) for name in names]
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        not_found()
    base, head = sides[0], sides[1]
    git = call.repo.git
    common = git.merge_base(base.sha, head.sha)
    if common is None:
        raise Fault(404, f"No common ancestor between {names[0]} and {names[1]}.")
    ahead, behind = git.range(base.sha, head.sha), git.range(head.sha, base.sha)
    page = call.many(ahead, lambda sha: call.shapes.commit(call.repo, git.must(sha)), size=250)
    files = changed(call.repo, common, head.sha)
    return Answer(
        _comparison(call, base, common, head, page.data, (ahead, behind), files), headers=page.headers
    )


def _comparison(
    call: Call,
    base: Made,
    common: str,
    head: Made,
    commits: list[Json],
    counts: tuple[list[str], list[str]],
    files: list[Any],
) -> Json:
    repo, shapes = call.repo, call.shapes
    url, web = f"{shapes.api}/repos/{repo.full_name}", f"{shapes.web}/{repo.full_name}/compare"
    ahead, behind = (len(one) for one in counts)
    status = {
        (False, False): "identical",
        (True, False): "ahead",
        (False, True): "behind",
        (True, True): "diverged",
    }
    return {
        "url": f"{url}/compare/{base.sha}...{head.sha}",
        "html_url": f"{web}/{base.sha}...{head.sha}",
        "permalink_url": f"{web}/{base.sha}...{head.sha}",
        "diff_url": f"{web}/{base.sha}...{head.sha}.diff",
        "patch_url": f"{web}/{base.sha}...{head.sha}.patch",
        "base_commit": shapes.commit(repo, base),
        "merge_base_commit": shapes.commit(repo, repo.git.must(common)),
        "status": status[bool(ahead), bool(behind)],
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": commits,
        "files": [shown(repo, (shapes.api, shapes.web), (common, head.sha), one) for one in files[:300]],
    }
