"""Calls about pull requests: open, list, change, merge, bring up to date.

Example: ``PUT /repos/acme/bus/pulls/7/merge`` with ``{"sha": HEAD}`` merges, or answers 409.
"""

from __future__ import annotations

from tests.github.api import Answer, Call, Fault, fits, invalid, reads, route, unprocessable, writes
from tests.github.api_repos import REPO
from tests.github.bare import GitFailed
from tests.github.diffs import EMPTY_TREE, changed, shown
from tests.github.landing import land
from tests.github.merging import Conflict, updated_branch
from tests.github.moving import bring, change_ref, close, happen_pull, ping, record, reopen
from tests.github.rights import has_role
from tests.github.rules import refused_merge
from tests.github.shapes import SETTINGS
from tests.github.state import Pull, Repo

PULLS = f"{REPO}/pulls"
PULL = f"{PULLS}/{{pull_number}}"
_ALLOWED = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
_NAMES = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}


@route("GET", PULLS, reads("pull_requests"))
def list_pulls(call: Call) -> Answer:
    """Pull requests, newest first unless asked otherwise."""
    state, query = call.query.get("state", "open"), call.query
    found = [one for one in call.repo.pulls.values() if state in ("all", one.state)]
    if ":" in query.get("head", ""):
        owner, _, branch = query["head"].partition(":")
        found = [one for one in found if (one.head_owner.lower(), one.head_ref) == (owner.lower(), branch)]
    if query.get("base"):
        found = [one for one in found if one.base_ref == query["base"]]
    sort = query.get("sort", "created")
    down = query.get("direction", "desc" if sort == "created" else "asc") == "desc"
    updated = sort in ("updated", "long-running")
    found.sort(key=lambda one: (one.updated if updated else one.created, one.number), reverse=down)
    return call.many(found, lambda one: call.shapes.pull_in_list(call.repo, one))


@route("POST", PULLS, writes("pull_requests"))
def open_pull(call: Call) -> Answer:
    """Open a pull request."""
    fits(call.body, "PullRequest")
    base = call.repo.branch(call.given("base", ""))
    if not call.given("title"):
        invalid("PullRequest", "missing_field", "title")
    if base is None:
        invalid("PullRequest", "invalid", "base")
    if call.actor.kind == "actions" and not call.repo.workflow_approves:
        raise Fault(403, "GitHub Actions is not permitted to create or approve pull requests.")
    pull = _new_pull(call, base)
    _check_new(call, pull)
    call.repo.issues[pull.number] = pull
    bring(call.world, call.repo, pull)
    ping(call.world, call.place(pull), pull.body)
    happen_pull(call.world, call.repo, pull, call.actor, "opened")
    return Answer(
        call.shapes.pull(call.repo, pull), 201, {"Location": f"{call.shapes.api}{call.path}/{pull.number}"}
    )


def _head_of(call: Call) -> tuple[Repo, str, str]:
    """Return the repository, the branch and the commit that a body names as the head."""
    text = str(call.given("head", ""))
    owner, _, branch = text.rpartition(":")
    home = next(
        (one for one in _family(call) if one.owner.lower() == (owner or call.repo.owner).lower()), None
    )
    sha = home.branch(branch) if home is not None else None
    if home is None or sha is None:
        invalid("PullRequest", "invalid", "head")
    return home, branch, sha


def _family(call: Call) -> list[Repo]:
    forks = [one for one in call.world.repos.values() if one.parent == call.repo.full_name]
    return [call.repo, *forks]


def _new_pull(call: Call, base: str) -> Pull:
    home, branch, sha = _head_of(call)
    now = call.world.now()
    return Pull(
        id=call.world.id(),
        pull_id=call.world.id(),
        number=max(call.repo.issues, default=0) + 1,
        title=call.given("title"),
        body=call.given("body"),
        by=call.actor.login,
        created=now,
        updated=now,
        head_repo=home.full_name,
        head_owner=home.owner,
        head_ref=branch,
        head=sha,
        base_ref=call.given("base"),
        base=base,
        draft=bool(call.given("draft", False)),
        app=call.token.app if call.token else None,
        unknown=1 + call.world.unknown_at_first,
    )


def _check_new(call: Call, pull: Pull) -> None:
    where = (pull.head_repo, pull.head_ref, pull.base_ref)
    for one in call.repo.pulls.values():
        if one.state == "open" and (one.head_repo, one.head_ref, one.base_ref) == where:
            text = f"A pull request already exists for {pull.head_owner}:{pull.head_ref}."
            invalid("PullRequest", "custom", message=text)
    home = call.world.repos[pull.head_repo or ""].git
    inside = pull.head_repo == call.repo.full_name
    if inside and home.contains(pull.base, pull.head):
        text = f"No commits between {pull.base_ref} and {pull.head_ref}"
        invalid("PullRequest", "custom", message=text)


@route("GET", PULL, reads("pull_requests"))
def get_pull(call: Call) -> Answer:
    """A pull request, with who merged it and whether it can be."""
    return Answer(call.shapes.pull(call.repo, call.pull()))


@route("PATCH", PULL, writes("pull_requests"))
def change_pull(call: Call) -> Answer:
    """Change title, body, base, or open and close."""
    pull = call.pull()
    if not (pull.by == call.user.login or call.actor.app is not None or call.may_triage):
        raise Fault(403, "Must have admin rights to Repository.")
    fits(call.body, "PullRequest")
    if "title" in call.body and call.body["title"] != pull.title:
        record(
            call.world,
            pull,
            "renamed",
            call.user.login,
            rename={"from": pull.title, "to": call.body["title"]},
        )
        pull.title = call.body["title"]
    if "body" in call.body:
        pull.body, pull.updated = call.body["body"], call.world.now()
        ping(call.world, call.place(pull), pull.body)
    if call.given("base", pull.base_ref) != pull.base_ref:
        _retarget(call, pull)
    if call.given("state", pull.state) != pull.state:
        _open_or_close(call, pull)
    return Answer(call.shapes.pull(call.repo, pull))


def _retarget(call: Call, pull: Pull) -> None:
    base = call.repo.branch(call.body["base"])
    if base is None:
        invalid("PullRequest", "invalid", "base")
    if pull.state == "closed":
        invalid("PullRequest", "custom", message="Cannot change the base branch of a closed pull request.")
    pull.base_ref, pull.base = call.body["base"], base
    record(call.world, pull, "base_ref_changed", call.user.login)
    happen_pull(call.world, call.repo, pull, call.actor, "edited")


def _open_or_close(call: Call, pull: Pull) -> None:
    if call.body["state"] == "closed":
        close(call.world, call.repo, pull, call.actor)
        return
    home = call.world.repos.get(pull.head_repo or "")
    head = home.branch(pull.head_ref) if home is not None else None
    if pull.merged is not None or head is None:
        text = "state cannot be changed. "
        text += f"The {pull.head_ref} branch has been deleted." if head is None else "It was merged."
        invalid("PullRequest", "custom", "state", text)
    if not call.repo.git.contains(head, pull.head):
        text = f"state cannot be changed. The {pull.head_ref} branch was force-pushed or recreated."
        invalid("PullRequest", "custom", "state", text)
    pull.head = head
    bring(call.world, call.repo, pull)
    reopen(call.world, call.repo, pull, call.actor)


@route("GET", f"{PULL}/commits", reads("pull_requests"))
def commits_of_pull(call: Call) -> Answer:
    """The commits that a pull request brings."""
    pull = call.pull()
    found = call.repo.git.range(pull.base, pull.head)[:250]
    return call.many(found, lambda sha: call.shapes.commit(call.repo, call.repo.git.must(sha)))


@route("GET", f"{PULL}/files", reads("pull_requests"))
def files_of_pull(call: Call) -> Answer:
    """The files that a pull request changes."""
    pull, shapes = call.pull(), call.shapes
    base = call.repo.git.merge_base(pull.base, pull.head) or EMPTY_TREE
    found, place = changed(call.repo, base, pull.head)[:3000], (shapes.api, shapes.web)
    return call.many(found, lambda one: shown(call.repo, place, (base, pull.head), one))


@route("GET", f"{PULL}/merge", reads("pull_requests"))
def is_merged(call: Call) -> Answer:
    """Whether a pull request was merged."""
    if call.pull().merged is None:
        raise Fault(404, "Not Found")
    return Answer(None, 204)


@route("PUT", f"{PULL}/merge", writes("contents"), role="write")
def merge_pull(call: Call) -> Answer:
    """Merge a pull request, at the very head that the caller saw if he says which."""
    pull = call.pull()
    method = call.given("merge_method", "merge")
    _check_merge(call, pull, method)
    title, text = call.given("commit_title") or "", call.given("commit_message") or ""
    try:
        sha = land(call.world, call.repo, pull, call.actor, method, title, text)
    except Conflict:
        raise Fault(405, "Pull Request is not mergeable") from None
    except GitFailed:
        raise Fault(405, "Base branch was modified. Review and try the merge again.") from None
    return Answer({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def _check_merge(call: Call, pull: Pull, method: str) -> None:
    if pull.state == "closed":
        raise Fault(405, "Pull Request is not mergeable")
    if pull.draft:
        raise Fault(405, "Pull Request is still a draft")
    if method not in _ALLOWED:
        invalid("PullRequest", "invalid", "merge_method")
    if not (SETTINGS | call.repo.settings)[_ALLOWED[method]]:
        raise Fault(405, f"{_NAMES[method]} are not allowed on this repository.")
    if call.given("sha") not in (None, pull.head):
        raise Fault(409, "Head branch was modified. Review and try the merge again.")
    why = refused_merge(call.world, call.repo, pull, call.actor, method)
    if why:
        raise Fault(405, why)


@route("PUT", f"{PULL}/update-branch", writes("pull_requests"))
def update_branch(call: Call) -> Answer:
    """Merge the base into a pull request's branch."""
    pull = call.pull()
    if call.given("expected_head_sha") not in (None, pull.head):
        unprocessable(message="expected head sha didn’t match current head ref.")
    base = call.repo.branch(pull.base_ref)
    home = call.world.repos[pull.head_repo or ""]
    if not has_role(home, call.user.login, "write") and call.actor.app is None:
        raise Fault(403, "You do not have permission to update the head branch.")
    if base is None or call.repo.git.contains(pull.head, base):
        unprocessable(message="There are no new commits on the base branch.")
    try:
        sha = updated_branch(call.world, home, pull, call.user, base)
    except Conflict:
        unprocessable(message="merge conflict between base and head")
    change_ref(call.world, home, call.actor, f"refs/heads/{pull.head_ref}", sha, pull.head)
    page = f"{call.shapes.web}/{call.repo.full_name}/pull/{pull.number}"
    return Answer({"message": "Updating pull request branch.", "url": page}, 202)
