"""What follows when a ref moves: pull requests get a new head, are merged indirectly, closed; issues are closed.

Rules: a pull request whose head a push brings into its base is merged *indirectly*: by whoever pushed,
with the pushed commit. A head that goes back, or aside, was force-pushed; a deleted head closes. What
``closes #7`` says in what reaches the default branch closes the issue.

Example: ``moved(world, repo, actor, {"refs/heads/main": (old, new)})`` after git took the push.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.github.bare import ZERO
from tests.github.rules import Actor, enforced
from tests.github.state import Event, Happening, Issue, Pull, Repo, World

_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +#(\d+)\b", re.IGNORECASE)
_CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)|<!--.*?(?:-->|\Z)", re.DOTALL)


_MENTIONS = re.compile(r"(?<![\w/.&@])@([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))(?![\w-])")


def ping(world: World, where: str, text: str | None) -> None:
    """Remember who is told because a text mentions him; code and HTML comments tell nobody."""
    for login in _MENTIONS.findall(_CODE.sub(" ", text or "")):
        if login.lower() in {one.lower() for one in world.users}:
            world.pinged.append((login, where))


def closing(text: str | None) -> set[int]:
    """Return the issues that a text closes when it is merged; code and HTML comments say nothing."""
    return {int(number) for number in _CLOSES.findall(_CODE.sub(" ", text or ""))}


def record(
    world: World, issue: Issue, name: str, actor: str, commit: str | None = None, **more: Any
) -> Event:
    """Add an event to an issue."""
    event = Event(world.id(), name, actor, world.now(), commit, more)
    issue.events.append(event)
    issue.updated = event.at
    return event


def happen(world: World, name: str, repo: Repo, actor: Actor, **more: Any) -> None:
    """Remember something that a workflow could start from."""
    ref = more.pop("ref", f"refs/heads/{repo.default_branch}")
    world.happened.append(Happening(name, repo.full_name, ref, actor.login, starts=actor.starts, **more))


def happen_pull(world: World, repo: Repo, pull: Pull, actor: Actor, action: str) -> None:
    """Remember something that happened to a pull request."""
    happen(
        world,
        "pull_request",
        repo,
        actor,
        ref=f"refs/pull/{pull.number}/merge",
        action=action,
        number=pull.number,
        sha=pull.head,
        merged=pull.merged is not None,
    )


def change_ref(world: World, repo: Repo, actor: Actor, ref: str, new: str | None, old: str | None) -> None:
    """Move a ref in git, and do all that follows.

    Raises:
        GitFailed: it was not ``old``.
    """
    repo.git.move(ref, new, old)
    moved(world, repo, actor, {ref: (old or ZERO, new or ZERO)})


def moved(world: World, repo: Repo, actor: Actor, changes: Mapping[str, tuple[str, str]]) -> None:
    """Do what follows from refs that git has moved."""
    for ref, (old, new) in changes.items():
        if new == ZERO:
            repo.refs.pop(ref, None)
        else:
            repo.refs[ref] = new
        happen(world, "push", repo, actor, ref=ref, sha=new, action="deleted" if new == ZERO else "")
        if ref.startswith("refs/heads/"):
            _branch_moved(world, repo, actor, ref.removeprefix("refs/heads/"), old, new)


def _branch_moved(world: World, repo: Repo, actor: Actor, branch: str, old: str, new: str) -> None:
    if new == ZERO:
        for pull in repo.pulls.values():
            if (pull.state, pull.head_ref, pull.head) == ("closed", branch, old):
                record(world, pull, "head_ref_deleted", actor.login)
    for base, pull in list(_open_pulls(world, repo, branch)):
        if new == ZERO:
            close(world, base, pull, actor)
            record(world, pull, "head_ref_deleted", actor.login)
        else:
            _new_head(world, base, pull, actor, new)
    onto = [one for one in repo.pulls.values() if (one.state, one.base_ref) == ("open", branch)]
    fresh = frozenset(_between(repo, old, new)) if onto else frozenset()
    for pull in onto:
        if new == ZERO:
            record(world, pull, "base_ref_deleted", actor.login)
            close(world, repo, pull, actor)
        elif pull.head in fresh:
            mark_merged(world, repo, pull, actor, new, _between(repo, old, pull.head))
    if branch == repo.default_branch and new != ZERO and old != ZERO:
        text = "\n".join(repo.git.must(sha).message for sha in repo.git.range(old, new))
        ping(world, f"{repo.full_name}@{new}", text)
        close_issues(world, repo, actor, text, new)


def _open_pulls(world: World, repo: Repo, branch: str) -> Iterator[tuple[Repo, Pull]]:
    """Yield the open pull requests whose head a branch is, with the repository they are in."""
    for base in world.repos.values():
        for pull in list(base.pulls.values()):
            if (pull.state, pull.head_repo, pull.head_ref) == ("open", repo.full_name, branch):
                yield base, pull


def _new_head(world: World, base: Repo, pull: Pull, actor: Actor, new: str) -> None:
    was, pull.head = pull.head, new
    bring(world, base, pull)
    pull.base = base.branch(pull.base_ref) or pull.base
    pull.updated = world.now()
    if not base.git.contains(new, was):
        record(world, pull, "head_ref_force_pushed", actor.login, new)
    _dismiss_stale(world, base, pull, actor)
    happen_pull(world, base, pull, actor, "synchronize")
    if base.git.contains(pull.base, new):
        close(world, base, pull, actor)


def _dismiss_stale(world: World, base: Repo, pull: Pull, actor: Actor) -> None:
    found = enforced(base, f"refs/heads/{pull.base_ref}")
    if not any((rule.get("parameters") or {}).get("dismiss_stale_reviews_on_push") for _, rule in found):
        return
    for review in pull.reviews:
        if review.state == "APPROVED" and review.commit != pull.head:
            dismissed(world, pull, review.id, actor, None)


def dismissed(world: World, pull: Pull, number: int, actor: Actor, message: str | None) -> None:
    """Dismiss a review; what it was stands in the event."""
    review = next(one for one in pull.reviews if one.id == number)
    about = {"state": review.state.lower(), "review_id": review.id, "dismissal_message": message}
    if message is None:
        about["dismissal_commit_id"] = pull.head
    record(world, pull, "review_dismissed", actor.login, dismissed_review=about)
    review.state = "DISMISSED"


def bring(world: World, base: Repo, pull: Pull) -> None:
    """Have the head's objects in the base's repository, under the ref that keeps them."""
    ref = f"refs/pull/{pull.number}/head"
    if pull.head_repo != base.full_name:
        source = world.repos[pull.head_repo or ""].git.path
        base.git.run("fetch", "-q", "--no-tags", str(source), f"+{pull.head}:{ref}")
    base.git.move(ref, pull.head)
    base.refs[ref] = pull.head


def _between(repo: Repo, old: str, new: str) -> list[str]:
    """Return what a branch gained."""
    if ZERO in (old, new):
        return [] if new == ZERO else repo.git.lines("rev-list", new)
    return repo.git.range(old, new)


def mark_merged(world: World, repo: Repo, pull: Pull, actor: Actor, commit: str, brought: list[str]) -> None:
    """Say that a pull request was merged, by whom and with which commit."""
    now = world.now()
    pull.state, pull.merged, pull.closed = "closed", now, now
    pull.merged_by = pull.closed_by = actor.login
    pull.merge_commit = commit
    pull.commits = frozenset([*brought, commit])
    record(world, pull, "merged", actor.login, commit)
    record(world, pull, "closed", actor.login)
    happen_pull(world, repo, pull, actor, "closed")
    if pull.base_ref == repo.default_branch:
        close_issues(world, repo, actor, pull.body, commit)


def close_issues(world: World, repo: Repo, actor: Actor, text: str | None, commit: str) -> None:
    """Close the issues that a text closes."""
    for number in closing(text):
        issue = repo.issues.get(number)
        if issue is not None and issue.state == "open" and not isinstance(issue, Pull):
            issue.state, issue.reason, issue.closed = "closed", "completed", world.now()
            issue.closed_by = actor.login
            record(world, issue, "closed", actor.login, commit, state_reason=None)


def close(world: World, repo: Repo, pull: Pull, actor: Actor) -> None:
    """Close a pull request without merging it."""
    pull.state, pull.closed, pull.closed_by, pull.auto_merge = "closed", world.now(), actor.login, None
    record(world, pull, "closed", actor.login)
    happen_pull(world, repo, pull, actor, "closed")


def reopen(world: World, repo: Repo, pull: Pull, actor: Actor) -> None:
    """Open a closed pull request again."""
    pull.state, pull.closed, pull.closed_by = "open", None, None
    record(world, pull, "reopened", actor.login)
    happen_pull(world, repo, pull, actor, "reopened")
