"""Rulesets: which rules hold for a ref, who may pass them by, and what they refuse.

Rules: a pattern's ``*`` and a ``**`` that no slash follows stop at a slash, ``**/`` goes through any
number of them. A rule holds for everybody but the ruleset's bypass actors; one whose mode is
``pull_request`` passes only when merging a pull request.

Example: ``refused_push(world, repo, actor, "refs/heads/main", old, new)`` says why, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tests.github.bare import ZERO, Made
from tests.github.rights import ACTIONS_APP, has_role, role_of
from tests.github.signing import verification
from tests.github.state import Pull, Repo, Review, Ruleset, Token, World

ROLE_IDS = {2: "maintain", 4: "write", 5: "admin"}
"""The numbers under which the API knows the roles that may pass rules by."""


@dataclass(frozen=True)
class Actor:
    """Who does something: the account, and whether by an app, a workflow's token or a deploy key."""

    login: str
    kind: str = "classic"
    app: int | None = None

    @property
    def starts(self) -> bool:
        """Whether workflows start from what he does."""
        return self.kind != "actions"


def actor_of(token: Token) -> Actor:
    """Return who a token speaks for."""
    app = ACTIONS_APP if token.kind == "actions" else token.app
    return Actor(token.login, token.kind, app)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*+|\?)", text)
    known = {"**/": "(?:[^/]+/)*", "?": "[^/]"}
    return re.compile("".join(known.get(p) or ("[^/]*" if p[:1] == "*" else re.escape(p)) for p in parts))


def _matches(repo: Repo, ref: str, patterns: list[str]) -> bool:
    for pattern in patterns:
        if pattern == "~ALL" or (pattern == "~DEFAULT_BRANCH" and ref == f"refs/heads/{repo.default_branch}"):
            return True
        if _pattern(pattern).fullmatch(ref):
            return True
    return False


def _holds(repo: Repo, ruleset: Ruleset, ref: str) -> bool:
    kind = "branch" if ref.startswith("refs/heads/") else "tag" if ref.startswith("refs/tags/") else ""
    names = ruleset.conditions.get("ref_name") or {}
    if ruleset.enforcement != "active" or ruleset.target != kind:
        return False
    return _matches(repo, ref, names.get("include", [])) and not _matches(repo, ref, names.get("exclude", []))


def rules_of(repo: Repo, ref: str) -> Iterator[tuple[Ruleset, dict[str, Any]]]:
    """Yield the rules that hold for a ref, with the ruleset of each."""
    for ruleset in repo.rulesets.values():
        if repo.plan_has_rules and _holds(repo, ruleset, ref):
            for rule in ruleset.rules:
                yield ruleset, rule


def _protecting(repo: Repo, ref: str) -> Iterator[tuple[Ruleset, dict[str, Any]]]:
    """Yield the rules that the older kind of protection of a branch comes to."""
    given = repo.protection.get(ref.removeprefix("refs/heads/"))
    if given is None or not repo.plan_has_rules:
        return
    admins = [{"actor_id": 5, "actor_type": "RepositoryRole"}]
    made = Ruleset(0, "", "branch", "active", [], {}, [], repo.created, repo.created)
    made.bypass = [] if given.get("enforce_admins") else admins
    kinds = {
        "non_fast_forward": not given.get("allow_force_pushes"),
        "deletion": not given.get("allow_deletions"),
        "required_linear_history": given.get("required_linear_history"),
        "required_status_checks": given.get("required_status_checks") is not None,
    }
    for kind, holds in kinds.items():
        if holds:
            yield made, {"type": kind}
    if (reviews := given.get("required_pull_request_reviews")) is not None:
        count = {"required_approving_review_count": reviews.get("required_approving_review_count", 1)}
        stale = {"dismiss_stale_reviews_on_push": reviews.get("dismiss_stale_reviews", False)}
        yield made, {"type": "pull_request", "parameters": count | stale}
    if (some := given.get("restrictions")) is not None:
        named = [{"actor_type": "login", "actor_id": one} for one in some.get("users", [])]
        named += [{"actor_type": "slug", "actor_id": one} for one in some.get("apps", [])]
        yield replace(made, bypass=[*made.bypass, *named]), {"type": "update"}


def enforced(repo: Repo, ref: str) -> Iterator[tuple[Ruleset, dict[str, Any]]]:
    """Yield all that is enforced for a ref."""
    yield from rules_of(repo, ref)
    yield from _protecting(repo, ref)


def bypass(world: World, repo: Repo, ruleset: Ruleset, actor: Actor) -> str | None:
    """Return how an actor passes a ruleset by: ``always``, ``pull_request``, or not at all."""
    found = None
    for one in ruleset.bypass:
        if _is(world, repo, one, actor):
            found = "always" if "always" in (found, one.get("bypass_mode", "always")) else "pull_request"
    return found


def _is(world: World, repo: Repo, one: dict[str, Any], actor: Actor) -> bool:
    kind, number = one["actor_type"], one.get("actor_id")
    person = actor.app is None and actor.kind != "key"
    if kind == "Integration":
        return actor.app is not None and actor.app == number
    if kind == "DeployKey":
        return actor.kind == "key"
    if kind == "User":
        return person and world.users[actor.login].id == number
    if kind == "RepositoryRole":
        return person and has_role(repo, actor.login, ROLE_IDS.get(number or 0, "admin"))
    if kind in ("login", "slug"):
        return actor.login == (number if kind == "login" else f"{number}[bot]")
    return kind == "OrganizationAdmin" and person and role_of(repo, actor.login) == "admin"


def refused_push(world: World, repo: Repo, actor: Actor, ref: str, old: str, new: str) -> str | None:
    """Return why a push of a ref is refused; None where it is not."""
    for ruleset, rule in enforced(repo, ref):
        if bypass(world, repo, ruleset, actor) != "always":
            why = _push_refusal(world, repo, rule, old, new)
            if why:
                return f"Repository rule violations found for {ref}: {why}"
    return None


def _push_refusal(world: World, repo: Repo, rule: dict[str, Any], old: str, new: str) -> str | None:
    kind, git = rule["type"], repo.git
    creates, deletes = old == ZERO, new == ZERO
    if deletes or creates:
        plain = {"deletion": "Cannot delete this branch"} if deletes else {"creation": "Cannot create ref"}
        if kind in plain:
            return plain[kind]
    if deletes or (creates and kind in ("update", "pull_request", "merge_queue", "non_fast_forward")):
        return None
    simple = {
        "update": "Cannot update this protected ref.",
        "pull_request": "Changes must be made through a pull request.",
        "merge_queue": "Changes must be made through the merge queue",
        "required_status_checks": "Required status checks are expected.",
    }
    if kind in simple:
        return simple[kind]
    if kind == "non_fast_forward" and not git.contains(new, old):
        return "Cannot force-push to this branch"
    commits = [git.must(one) for one in git.lines("rev-list", new, "--not", "--branches")]
    return _commit_refusal(world, kind, commits)


def _commit_refusal(world: World, kind: str, commits: list[Made]) -> str | None:
    if kind == "required_signatures" and not all(verification(world, one)["verified"] for one in commits):
        return "Commits must have verified signatures."
    if kind == "required_linear_history" and any(len(one.parents) > 1 for one in commits):
        return "This branch must not contain merge commits."
    return None


def standing_reviews(repo: Repo, pull: Pull) -> dict[str, Review]:
    """Return the verdict of each person who may write: the latest that is not just a comment."""
    latest: dict[str, Review] = {}
    for review in pull.reviews:
        if review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED") and has_role(
            repo, review.by, "write"
        ):
            latest[review.by] = review
    return latest


def refused_merge(world: World, repo: Repo, pull: Pull, actor: Actor, method: str) -> str | None:
    """Return why rules refuse a merge; None where they do not."""
    ref = f"refs/heads/{pull.base_ref}"
    why = []
    for ruleset, rule in enforced(repo, ref):
        if bypass(world, repo, ruleset, actor) is None:
            refusal = _merge_refusal(world, repo, pull, rule, method)
            why += [refusal] if refusal else []
    return "Repository rule violations found\n\n" + "\n\n".join(dict.fromkeys(why)) if why else None


def _merge_refusal(world: World, repo: Repo, pull: Pull, rule: dict[str, Any], method: str) -> str | None:
    kind, parameters = rule["type"], rule.get("parameters") or {}
    simple = {
        "update": "Cannot update this protected ref.",
        "merge_queue": "Changes must be made through the merge queue",
        "required_status_checks": "Required status checks are expected.",
    }
    if kind in simple:
        return simple[kind]
    if kind == "pull_request":
        return _review_refusal(repo, pull, parameters, method)
    if kind == "required_linear_history" and method == "merge":
        return "This branch must not contain merge commits."
    if kind == "required_signatures":
        if method == "rebase":
            return "Rebase merges cannot be automatically signed by GitHub"
        made = [
            repo.git.must(one) for one in repo.git.range(repo.refs[f"refs/heads/{pull.base_ref}"], pull.head)
        ]
        return _commit_refusal(world, kind, made if method == "merge" else [])
    return None


def _review_refusal(repo: Repo, pull: Pull, parameters: dict[str, Any], method: str) -> str | None:
    if method not in parameters.get("allowed_merge_methods", ["merge", "squash", "rebase"]):
        return f"Merge method {method} merging is not allowed on this branch."
    standing = standing_reviews(repo, pull)
    if any(one.state == "CHANGES_REQUESTED" for one in standing.values()):
        return "Changes were requested by reviewers with write access."
    wanted = parameters.get("required_approving_review_count", 0)
    if sum(one.state == "APPROVED" for one in standing.values()) < wanted:
        return f"At least {wanted} approving review is required by reviewers with write access."
    return None
