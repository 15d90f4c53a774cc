"""What a repository with a bus shall look like on GitHub: rulesets, environments, labels, settings. Pure.

The bodies are those of GitHub's REST API (2022-11-28). Rules tell users, teams and apps apart, not deploy
keys and not ``github-actions[bot]``, which no bypass list takes.

Example: ``[one["name"] for one in rulesets(setting, app=7, organisation=True)]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gitbus.forge.github.pulls import LABELS
from gitbus.forge.github.setup.rendering import CONDUCT, SEND, WORK, Setting

MAINTAIN, WRITE, ADMIN = 2, 4, 5
"""The numbers of repository roles in a ruleset's bypass list."""


@dataclass(frozen=True)
class Environment:
    """An environment, whose branch policy lets in the bus's branch alone."""

    name: str
    holds: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Label:
    """A label."""

    name: str
    color: str
    description: str


def rulesets(setting: Setting, *, app: int | None, organisation: bool) -> list[dict[str, Any]]:
    """Return the rulesets, as they are sent to ``POST /repos/{owner}/{repo}/rulesets``.

    Args:
        setting: the bus.
        app: the App's number, where conductor and sender act as one.
        organisation: whether an organisation owns the repository, which alone has the role Maintain.
    """
    branch = f"refs/heads/{setting.branch}"
    found = [
        _ruleset("gitbus: history stays", [branch], [{"type": "deletion"}, {"type": "non_fast_forward"}]),
        _ruleset("gitbus: names stay free", ["refs/heads/gitbus"], [{"type": "creation"}]),
    ]
    if app is None:
        return found
    passing = _bypass(app, organisation=organisation)
    put_up = [f"refs/heads/gitbus/{one}/*" for one in ("approve", "decide", "kept")]
    changes = [{"type": "creation"}, {"type": "update"}, {"type": "deletion"}]
    return [
        *found,
        _ruleset("gitbus: who writes the bus", [branch], [_PULL_REQUEST], passing),
        _ruleset("gitbus: who puts up", put_up, changes, passing),
    ]


_PULL_REQUEST: Mapping[str, Any] = {
    "type": "pull_request",
    "parameters": {
        "allowed_merge_methods": ["merge"],
        "dismiss_stale_reviews_on_push": False,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_approving_review_count": 0,
        "required_review_thread_resolution": False,
    },
}


def _ruleset(
    name: str, refs: list[str], rules: list[Any], bypass: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "target": "branch",
        "enforcement": "active",
        "bypass_actors": bypass or [],
        "conditions": {"ref_name": {"include": refs, "exclude": []}},
        "rules": rules,
    }


def _bypass(app: int, *, organisation: bool) -> list[dict[str, Any]]:
    """Return who may pass: the App, and the people who look after the repository."""
    roles = (MAINTAIN, ADMIN) if organisation else (ADMIN,)
    return [
        {"actor_id": app, "actor_type": "Integration", "bypass_mode": "always"},
        *({"actor_id": role, "actor_type": "RepositoryRole", "bypass_mode": "always"} for role in roles),
    ]


RULESETS: Mapping[str, str] = {
    "gitbus: history stays": "nobody deletes `{branch}` or pushes it back: not even administrators",
    "gitbus: names stay free": "nobody makes a branch called `gitbus`, which would be in the way of `gitbus/…`",
    "gitbus: who writes the bus": "only the App and those who look after the repository push to `{branch}`;"
    " everybody else comes by a pull request, merged by a merge commit",
    "gitbus: who puts up": "only they make, change and delete `gitbus/approve/*`, `gitbus/decide/*` and `gitbus/kept/*`",
}
"""What each ruleset is for."""


def environments(setting: Setting) -> tuple[Environment, ...]:
    """Return the environments."""
    app = ("GITBUS_APP_ID", "GITBUS_APP_KEY") if setting.app else ()
    worker = tuple(sorted({name for names in setting.workers.values() for name in names}))
    found = [Environment(SEND, (*app, *setting.secrets), "the sender")]
    if setting.app:
        found.append(Environment(CONDUCT, app, "the conductor, and the delivery of workers' answers"))
    if worker:
        found.append(Environment(WORK, worker, "workers in CI"))
    return tuple(found)


def labels() -> tuple[Label, ...]:
    """Return the labels."""
    return tuple(Label(name, color, text) for name, (color, text) in LABELS.items())


MERGING: Mapping[str, bool | str] = {
    "allow_merge_commit": True,
    "allow_squash_merge": False,
    "allow_rebase_merge": False,
    "allow_auto_merge": False,
    "delete_branch_on_merge": True,
    "merge_commit_title": "MERGE_MESSAGE",
    "merge_commit_message": "PR_TITLE",  # never the body, which holds what workers wrote
}
"""The settings of a repository that holds nothing but the bus."""


def actions(setting: Setting) -> dict[str, Any]:
    """Return what GITHUB_TOKEN may do unless a job says otherwise, and whether it may open pull requests."""
    return {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": not setting.app}
