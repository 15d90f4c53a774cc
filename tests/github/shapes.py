"""How accounts, repositories and commits look in the API's answers.

Example: ``Shapes(world).user("ada")["html_url"]``.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from tests.github.bare import Line, Made
from tests.github.rights import role_of
from tests.github.rules import rules_of
from tests.github.signing import verification
from tests.github.state import ROLES, Repo, Token, User, World

Json = dict[str, Any]

_USER_URLS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
_REPO_URLS = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
    "hooks": "/hooks",
}
SETTINGS: Json = {
    "allow_merge_commit": True,
    "allow_squash_merge": True,
    "allow_rebase_merge": True,
    "allow_auto_merge": False,
    "allow_update_branch": False,
    "delete_branch_on_merge": False,
    "use_squash_pr_title_as_default": False,
    "squash_merge_commit_title": "COMMIT_OR_PR_TITLE",
    "squash_merge_commit_message": "COMMIT_MESSAGES",
    "merge_commit_title": "MERGE_MESSAGE",
    "merge_commit_message": "PR_TITLE",
    "web_commit_signoff_required": False,
    "has_issues": True,
    "has_projects": True,
    "has_wiki": True,
    "has_discussions": False,
    "description": None,
    "homepage": None,
    "allow_forking": True,
    "archived": False,
    "is_template": False,
}
"""What a new repository is set to; PATCH changes these."""


def iso(when: datetime) -> str:
    """Return a time as the API writes it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe(when: datetime | None) -> str | None:
    """Return a time as the API writes it, or null."""
    return None if when is None else iso(when)


def node(kind: str, number: int | str) -> str:
    """Return a node id."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()


class Shapes:
    """Answers of one world, for one call (what is the same in many places is made once)."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.web = world.base
        self.api = f"{world.base}/api/v3"
        self._made: dict[tuple[str, str], Json] = {}

    def user(self, login: str) -> Json:
        """An account, in short."""
        if ("user", login) not in self._made:
            self._made["user", login] = self._user(self.world.users[login])
        return self._made["user", login]

    def _user(self, user: User) -> Json:
        url = f"{self.api}/users/{user.login.replace('[', '%5B').replace(']', '%5D')}"
        page = user.login.removesuffix("[bot]")
        return {
            "login": user.login,
            "id": user.id,
            "node_id": node("U_", user.id),
            "avatar_url": f"{self.web}/avatars/u/{user.id}?v=4",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.web}/apps/{page}" if user.type == "Bot" else f"{self.web}/{page}",
            **{name: url + rest for name, rest in _USER_URLS.items()},
            "type": user.type,
            "user_view_type": "public",
            "site_admin": False,
        }

    def whole_user(self, login: str) -> Json:
        """An account, at length."""
        user = self.world.users[login]
        return self.user(login) | {
            "name": user.name,
            "company": None,
            "blog": "",
            "location": None,
            "email": None if user.private_email else user.email or None,
            "hireable": None,
            "bio": None,
            "twitter_username": None,
            "public_repos": 0,
            "public_gists": 0,
            "followers": 0,
            "following": 0,
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2020-01-01T00:00:00Z",
        }

    def simple_repo(self, repo: Repo) -> Json:
        """A repository, in short."""
        url = f"{self.api}/repos/{repo.full_name}"
        return {
            "id": repo.id,
            "node_id": node("R_", repo.id),
            "name": repo.name,
            "full_name": repo.full_name,
            "private": repo.private,
            "owner": self.user(repo.owner),
            "html_url": f"{self.web}/{repo.full_name}",
            "description": repo.settings.get("description"),
            "fork": repo.parent is not None,
            "url": url,
            **{f"{name}_url": url + rest for name, rest in _REPO_URLS.items()},
        }

    def repo(self, repo: Repo) -> Json:
        """A repository, as it stands in pull requests."""
        if ("repo", repo.full_name) not in self._made:
            self._made["repo", repo.full_name] = self._repo(repo)
        return self._made["repo", repo.full_name]

    def _repo(self, repo: Repo) -> Json:
        web = f"{self.web}/{repo.full_name}"
        opened = sum(one.state == "open" for one in repo.issues.values())
        settings = SETTINGS | repo.settings
        plain = ("has_issues", "has_projects", "has_wiki", "has_discussions", "homepage", "archived")
        also = ("allow_forking", "is_template", "web_commit_signoff_required")
        return self.simple_repo(repo) | {
            "created_at": iso(repo.created),
            "updated_at": iso(repo.created),
            "pushed_at": iso(repo.created),
            "git_url": web.replace("http:", "git:") + ".git",
            "ssh_url": f"git@127.0.0.1:{repo.full_name}.git",
            "clone_url": f"{web}.git",
            "svn_url": web,
            **{name: settings[name] for name in (*plain, *also)},
            "size": 108,
            "stargazers_count": 0,
            "watchers_count": 0,
            "language": None,
            "has_downloads": True,
            "has_pages": False,
            "forks_count": 0,
            "mirror_url": None,
            "disabled": False,
            "open_issues_count": opened,
            "license": None,
            "topics": [],
            "visibility": "private" if repo.private else "public",
            "forks": 0,
            "open_issues": opened,
            "watchers": 0,
            "default_branch": repo.default_branch,
        }

    def full_repo(self, repo: Repo, token: Token | None) -> Json:
        """A repository, at length, as one caller sees it: only who may push sees how it merges."""
        role = role_of(repo, token.login) if token is not None else None
        powers = ROLES[: ROLES.index(role) + 1] if role else ("read",)
        names = {"read": "pull", "write": "push"}
        found = self.repo(repo) | {
            "permissions": {names.get(one, one): one in powers for one in reversed(ROLES)},
            "temp_clone_token": "",
            "network_count": 0,
            "subscribers_count": 0,
        }
        app = token is not None and token.rights.get("contents") == "write"
        if "write" in powers or app:
            found |= {name: value for name, value in (SETTINGS | repo.settings).items() if "merge" in name}
            found["allow_update_branch"] = (SETTINGS | repo.settings)["allow_update_branch"]
        if repo.parent is not None and repo.parent in self.world.repos:
            found["parent"] = found["source"] = self.repo(self.world.repos[repo.parent])
        return found

    # --- commits

    def line(self, line: Line) -> Json:
        """An author or committer line."""
        return {"name": line.name, "email": line.email, "date": iso(line.at)}

    def git_commit(self, repo: Repo, made: Made) -> Json:
        """A commit, as git has it."""
        url = f"{self.api}/repos/{repo.full_name}/git"
        web = f"{self.web}/{repo.full_name}/commit"
        return {
            "sha": made.sha,
            "node_id": node("C_", made.sha),
            "url": f"{url}/commits/{made.sha}",
            "html_url": f"{web}/{made.sha}",
            "author": self.line(made.author),
            "committer": self.line(made.committer),
            "tree": {"sha": made.tree, "url": f"{url}/trees/{made.tree}"},
            "message": made.message,
            "parents": [
                {"sha": one, "url": f"{url}/commits/{one}", "html_url": f"{web}/{one}"}
                for one in made.parents
            ],
            "verification": verification(self.world, made),
        }

    def commit(self, repo: Repo, made: Made) -> Json:
        """A commit, with the accounts behind its lines."""
        git = self.git_commit(repo, made)
        url = f"{self.api}/repos/{repo.full_name}/commits"
        author = self.world.user_of_email(made.author.email)
        committer = self.world.user_of_email(made.committer.email)
        web = f"{self.web}/{repo.full_name}/commit"
        return {
            "sha": made.sha,
            "node_id": git["node_id"],
            "commit": {
                **{name: git[name] for name in ("author", "committer", "message", "tree", "url")},
                "comment_count": 0,
                "verification": git["verification"],
            },
            "url": f"{url}/{made.sha}",
            "html_url": f"{web}/{made.sha}",
            "comments_url": f"{url}/{made.sha}/comments",
            "author": self.user(author.login) if author else None,
            "committer": self.user(committer.login) if committer else None,
            "parents": [
                {"sha": one, "url": f"{url}/{one}", "html_url": f"{web}/{one}"} for one in made.parents
            ],
        }

    def branch(self, repo: Repo, name: str, sha: str) -> Json:
        """A branch with its protection."""
        url = f"{self.api}/repos/{repo.full_name}/branches/{name}"
        guarded = name in repo.protection or any(rules_of(repo, f"refs/heads/{name}"))
        checks = {"enforcement_level": "off", "contexts": [], "checks": []}
        return {
            "name": name,
            "commit": self.commit(repo, repo.git.must(sha)),
            "_links": {"self": url, "html": f"{self.web}/{repo.full_name}/tree/{name}"},
            "protected": guarded,
            "protection": {"enabled": name in repo.protection, "required_status_checks": checks},
            "protection_url": f"{url}/protection",
        }

    def ref(self, repo: Repo, ref: str, sha: str) -> Json:
        """A ref."""
        url = f"{self.api}/repos/{repo.full_name}/git"
        return {
            "ref": ref,
            "node_id": node("REF_", f"{repo.id}:{ref}"),
            "url": f"{url}/{ref}",
            "object": {"sha": sha, "type": "commit", "url": f"{url}/commits/{sha}"},
        }
