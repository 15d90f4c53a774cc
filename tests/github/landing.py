"""A pull request is merged: by a person, by auto-merge, or by the merge queue.

Example: ``land(world, repo, pull, Actor("ada"), "merge")`` returns the commit that is now the base's tip.
"""

from __future__ import annotations

from tests.github.bare import GitFailed
from tests.github.merging import Conflict, merge_commit, rebased, squash_commit
from tests.github.moving import change_ref, happen, mark_merged, record
from tests.github.rules import Actor
from tests.github.state import Pull, Repo, World

QUEUE = Actor("github-merge-queue[bot]", "installation")
"""Who merges what the merge queue let through."""

ARMED = {"merge": "auto_merge_enabled", "squash": "auto_squash_enabled", "rebase": "auto_rebase_enabled"}
"""The event that says that a pull request will merge by itself, by method."""


def land(
    world: World,
    repo: Repo,
    pull: Pull,
    actor: Actor,
    method: str,
    title: str = "",
    body: str = "",
) -> str:
    """Merge a pull request: make the commits, move the base, and say so.

    Raises:
        Conflict: it has conflicts.
        GitFailed: the base moved meanwhile.
    """
    base = repo.branch(pull.base_ref)
    if base is None:
        raise Conflict
    if repo.git.refs().get(f"refs/heads/{pull.base_ref}") != base:
        raise GitFailed("the base moved")
    brought = repo.git.range(base, pull.head)
    by = world.users[actor.login]
    if method == "squash":
        made = [squash_commit(world, repo, pull, base, title, body)]
    elif method == "rebase":
        made = rebased(world, repo, pull, by, base)
    else:
        made = [merge_commit(world, repo, pull, by, base, title, body)]
    pull.base = base
    tip = made[-1] if made else base
    mark_merged(world, repo, pull, actor, tip, [*brought, *made])
    change_ref(world, repo, actor, f"refs/heads/{pull.base_ref}", tip, base)
    if repo.settings.get("delete_branch_on_merge") and pull.head_repo == repo.full_name:
        change_ref(world, repo, actor, f"refs/heads/{pull.head_ref}", None, pull.head)
    return tip


def arm(world: World, repo: Repo, pull: Pull, actor: Actor, method: str = "merge") -> None:
    """Let a pull request merge by itself as soon as it may."""
    pull.auto_merge = {"by": actor.login, "method": method}
    record(world, pull, ARMED[method], actor.login)


def fire(world: World, repo: Repo, pull: Pull) -> str:
    """Merge a pull request that was armed; GitHub names whoever armed it as the merger."""
    assert pull.auto_merge is not None
    actor = Actor(pull.auto_merge["by"])
    return land(world, repo, pull, actor, pull.auto_merge["method"])


def enqueue(world: World, repo: Repo, pull: Pull, actor: Actor) -> None:
    """Put a pull request into the merge queue."""
    record(world, pull, "added_to_merge_queue", actor.login)
    happen(
        world,
        "merge_group",
        repo,
        actor,
        ref=f"refs/heads/gh-readonly-queue/{pull.base_ref}/pr-{pull.number}",
    )


def dequeue(world: World, repo: Repo, pull: Pull, method: str = "merge") -> str:
    """Merge a pull request that stands in the queue."""
    record(world, pull, "removed_from_merge_queue", QUEUE.login)
    return land(world, repo, pull, QUEUE, method)
