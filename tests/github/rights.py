"""Who may do what: a token's rights, a person's role, and how GitHub says no.

Rules: a repository that the caller may not see is not found (404); one that he sees and may not use so
is forbidden (403), and the answer names the rights that would do. An app and a workflow's token have
their rights and no role; a fine-grained token has the less of its rights and its person's role.

Example: ``allowed(world, token, repo, "contents", "write")``.
"""

from __future__ import annotations

from tests.github.state import ROLES, Repo, Token, World

Need = tuple[tuple[str, str], ...]
"""Rights that are needed together, such as ``(("contents", "write"),)``."""

LEVELS = {"none": 0, "read": 1, "write": 2, "admin": 3}
_BY_READERS = frozenset({"metadata", "contents", "pull_requests", "issues", "actions", "checks", "statuses"})
_NO_PERSON = ("installation", "actions", "key")
_BY_ADMINS = frozenset({"administration", "environments"})
ACTIONS_APP = 15368
"""The number of the app that GitHub Actions is."""


def role_of(repo: Repo, login: str) -> str | None:
    """Return what a person is in a repository; everybody may read a public one."""
    if login == repo.owner:
        return "admin"
    return repo.roles.get(login) or (None if repo.private else "read")


def has_role(repo: Repo, login: str, least: str) -> bool:
    """Return whether a person is at least this."""
    role = role_of(repo, login)
    return role is not None and ROLES.index(role) >= ROLES.index(least)


def _role_for(right: str, level: str) -> str:
    if right in _BY_ADMINS:
        return "admin"
    if right in ("pull_requests", "issues") or (right in _BY_READERS and level == "read"):
        return "read"
    return "write"


def sees(world: World, token: Token | None, repo: Repo) -> bool:
    """Return whether a repository exists for a caller."""
    if not repo.private:
        return True
    if token is None:
        return False
    if token.kind in _NO_PERSON:
        return token.repos is None or repo.full_name in token.repos
    chosen = token.repos is None or repo.full_name in token.repos
    return chosen and role_of(repo, token.login) is not None


def allowed(world: World, token: Token | None, repo: Repo, right: str, level: str) -> bool:
    """Return whether a caller has a right in a repository."""
    if not sees(world, token, repo):
        return False
    if token is None:
        return right in _BY_READERS and level == "read"
    given = "read" if right == "metadata" else token.rights.get(right, "none")
    if token.kind in _NO_PERSON:
        return LEVELS[given] >= LEVELS[level] and (token.repos is None or repo.full_name in token.repos)
    if token.kind == "fine" and LEVELS[given] < LEVELS[level]:
        return False
    if token.kind == "classic" and not _scoped(token, repo, right):
        return False
    return has_role(repo, token.login, _role_for(right, level))


def _scoped(token: Token, repo: Repo, right: str) -> bool:
    if right == "workflows":
        return "workflow" in token.scopes
    return "repo" in token.scopes or ("public_repo" in token.scopes and not repo.private)


def refusal(token: Token | None) -> str:
    """Return the words with which a call without the right is refused."""
    kind = token.kind if token is not None else ""
    if kind == "fine":
        return "Resource not accessible by personal access token"
    if kind in ("installation", "actions"):
        return "Resource not accessible by integration"
    return "Must have admin rights to Repository."


def accepted(needs: tuple[Need, ...]) -> str:
    """Return the header that names the rights that would do."""
    return "; ".join(",".join(f"{right}={level}" for right, level in need) for need in needs)
