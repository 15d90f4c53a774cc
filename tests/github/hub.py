"""What a test holds: a GitHub to put people, apps and repositories on, to act on as a person, and to look into.

Rules: what a :class:`Browser` does is what a person does in the browser; it is neither counted nor
logged, so that counts and log are those of the program under test.

Example::

    github.user("ada", email="ada@acme.example")
    github.repo("acme/bus", roles={"ada": "maintain"})
    url = github.remote("acme/bus", github.token("ada"))
    github.browser("ada").merge("acme/bus", 1)
    assert github.calls["GET /repos/{owner}/{repo}/pulls"] == 1
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github import landing, merging
from tests.github.bare import Bare
from tests.github.faults import Faults
from tests.github.githttp import GitHttp, write_hook
from tests.github.moving import change_ref
from tests.github.rest import Request, Rest
from tests.github.rules import Actor
from tests.github.shapes import SETTINGS
from tests.github.signing import web_flow_key
from tests.github.state import App, Exchange, Happening, Pull, Repo, User, World

ALL_SCOPES = ("repo", "workflow")
WORKFLOW = {"contents": "read", "metadata": "read", "packages": "read"}
"""What a workflow's token may do unless the workflow asks for more."""


class RefusedCall(Exception):
    """A person's call was refused; ``status`` and ``data`` are the answer."""

    def __init__(self, status: int, data: Any) -> None:
        super().__init__(f"{status}: {data}")
        self.status = status
        self.data = data


@functools.cache
def _rsa() -> tuple[str, str]:
    """Return one private key and its public one, PEM (they take long to make, so all apps have the same)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


class GitHub:
    """One GitHub on loopback.

    Args:
        folder: where its repositories go.
    """

    git: GitHttp

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.faults = Faults(self.world)
        self.rest = Rest(self.world, self.faults)

    # --- where it is

    @property
    def url(self) -> str:
        """The address of the pages, as ``GITHUB_SERVER_URL``."""
        return self.world.base

    @property
    def api(self) -> str:
        """The address of the API, as ``GITHUB_API_URL``."""
        return f"{self.world.base}/api/v3"

    def remote(self, repo: str, token: str | None = None) -> str:
        """Return the URL to clone and push with, with a token in it."""
        place = self.url if token is None else self.url.replace("://", f"://x-access-token:{token}@")
        return f"{place}/{repo}.git"

    def environment(self, repo: str, token: str) -> dict[str, str]:
        """Return what a process needs in its environment to be a caller here."""
        place = {"GITHUB_SERVER_URL": self.url, "GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": repo}
        return {"GH_TOKEN": token, **place}

    def web_flow_key(self) -> str:
        """Return the public key with which GitHub signs what it makes."""
        return web_flow_key()

    # --- what is on it

    def user(self, login: str, **more: Any) -> User:
        """Make an account: ``name``, ``email``, ``private_email``, ``signing_keys`` (public SSH keys)."""
        return self.world.add_user(login, **more)

    def repo(
        self, full_name: str, *, private: bool = True, roles: dict[str, str] | None = None, **settings: Any
    ) -> Repo:
        """Make an empty repository; settings are those that PATCH takes."""
        owner, _, name = full_name.partition("/")
        if owner not in self.world.users:
            self.world.add_user(owner)
        git = Bare.create(self.world.folder / owner / f"{name}.git")
        repo = Repo(self.world.id(), owner, name, git, self.world.now(), private, roles=dict(roles or {}))
        repo.settings = {one: value for one, value in settings.items() if one in SETTINGS}
        write_hook(repo)
        self.world.repos[full_name] = repo
        return repo

    def fork(self, repo: str, login: str) -> Repo:
        """Fork a repository."""
        source = self.world.repos[repo]
        made = self.repo(f"{login}/{source.name}", private=source.private)
        made.git.run("fetch", "-q", str(source.git.path), "+refs/heads/*:refs/heads/*")
        made.parent, made.refs = repo, made.git.refs()
        return made

    def token(
        self,
        login: str,
        kind: str = "classic",
        *,
        rights: dict[str, str] | None = None,
        scopes: tuple[str, ...] = ALL_SCOPES,
        repos: set[str] | None = None,
    ) -> str:
        """Make a person's token: ``classic`` with scopes, or ``fine`` with rights."""
        more: dict[str, Any] = {"rights": dict(rights or {}), "repos": repos}
        scoped = scopes if kind == "classic" else ()
        return self.world.add_token(kind, login, scopes=scoped, **more).text

    def app(self, slug: str, rights: dict[str, str], repos: set[str], owner: str | None = None) -> App:
        """Make an app that is installed on repositories; ``.key`` is its private key."""
        private, public = _rsa()
        number, bot = self.world.id(), f"{slug}[bot]"
        self.world.users[bot] = User(self.world.id(), bot, bot, "", "Bot")
        keeper = owner or sorted(repos)[0].partition("/")[0]
        ids = (number, slug, keeper, dict(rights), self.world.id(), bot)
        self.world.apps[number] = App(*ids, private, public, set(repos), self.world.now())
        return self.world.apps[number]

    def installation_token(self, app: App, rights: dict[str, str] | None = None) -> str:
        """Return a token of an app's installation."""
        more: dict[str, Any] = {"rights": dict(rights or app.rights), "repos": set(app.repos), "app": app.id}
        return self.world.add_token("installation", app.bot, **more).text

    def workflow_token(self, repo: str, rights: dict[str, str] | None = None) -> str:
        """Return a GITHUB_TOKEN: what is done with it starts no workflow."""
        more: dict[str, Any] = {"rights": dict(WORKFLOW if rights is None else rights), "repos": {repo}}
        return self.world.add_token("actions", "github-actions[bot]", limit=1000, **more).text

    def deploy_key(self, repo: str, *, write: bool = True) -> str:
        """Return a password that stands for a deploy key (which no ruleset tells from another)."""
        rights = {"contents": "write" if write else "read"}
        return self.world.add_token("key", self.world.repos[repo].owner, rights=rights, repos={repo}).text

    def rights(self, token: str) -> dict[str, str]:
        """Return a token's rights, to be changed in place."""
        return self.world.tokens[token].rights

    def absorb(self, repo: str, login: str) -> None:
        """Let the API see refs that a test moved in the bare repository itself, as pushed by somebody."""
        with self.world.lock:
            self.git.absorb(self.world.repos[repo], Actor(login))

    def browser(self, login: str) -> Browser:
        """Return what a person does in the browser."""
        return Browser(self, login)

    # --- looking into it

    @property
    def calls(self) -> Counter[str]:
        """How many calls were made, by verb and template."""
        return self.world.calls

    @property
    def log(self) -> list[Exchange]:
        """Every call with its answer."""
        return self.world.log

    @property
    def pinged(self) -> list[tuple[str, str]]:
        """Who was told because a text mentioned him, and where (``acme/bus#7``, or a commit)."""
        return self.world.pinged

    def pull(self, repo: str, number: int) -> Pull:
        """Return a pull request."""
        found = self.world.repos[repo].issues[number]
        assert isinstance(found, Pull)
        return found

    def happened(self, name: str = "", *, starts: bool | None = None) -> list[Happening]:
        """Return what happened that workflows could start from, and that they do or do not start from."""
        return [one for one in self.world.happened if name in ("", one.name) and starts in (None, one.starts)]


class Browser:
    """A person who acts in the browser."""

    def __init__(self, github: GitHub, login: str) -> None:
        self._github = github
        self._login = login
        self._token = github.token(login)

    def ask(self, verb: str, path: str, body: Any = None, **query: str) -> Any:
        """Make a call and return what it answers.

        Raises:
            RefusedCall: it was refused.
        """
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"authorization": f"token {self._token}", "user-agent": "browser"}
        response = self._github.rest.handle(Request(verb, path, query, headers, data, quiet=True))
        answer = json.loads(response.body) if response.body else None
        if response.status >= 400:
            raise RefusedCall(response.status, answer)
        return answer

    def open(self, repo: str, head: str, title: str = "A change", body: str = "", base: str = "main") -> int:
        """Open a pull request; returns its number."""
        made = self.ask(
            "POST", f"/repos/{repo}/pulls", {"title": title, "body": body, "head": head, "base": base}
        )
        return int(made["number"])

    def merge(self, repo: str, number: int, method: str = "merge", **more: Any) -> str:
        """Press the merge button; returns the commit."""
        body = {"merge_method": method, **more}
        return str(self.ask("PUT", f"/repos/{repo}/pulls/{number}/merge", body)["sha"])

    def review(self, repo: str, number: int, event: str = "APPROVE", body: str = "") -> int:
        """Review: ``APPROVE``, ``REQUEST_CHANGES`` or ``COMMENT``; returns its number."""
        data = {"event": event, "body": body}
        return int(self.ask("POST", f"/repos/{repo}/pulls/{number}/reviews", data)["id"])

    def dismiss(self, repo: str, number: int, review: int, message: str = "no") -> None:
        """Dismiss a review."""
        path = f"/repos/{repo}/pulls/{number}/reviews/{review}/dismissals"
        self.ask("PUT", path, {"message": message})

    def comment(self, repo: str, number: int, body: str) -> None:
        """Comment."""
        self.ask("POST", f"/repos/{repo}/issues/{number}/comments", {"body": body})

    def change(self, repo: str, number: int, **fields: Any) -> None:
        """Change a pull request: ``title``, ``body``, ``base``, ``state``."""
        self.ask("PATCH", f"/repos/{repo}/pulls/{number}", fields)

    def close(self, repo: str, number: int) -> None:
        """Close a pull request without merging."""
        self.change(repo, number, state="closed")

    def reopen(self, repo: str, number: int) -> None:
        """Open a closed pull request again."""
        self.change(repo, number, state="open")

    def update_branch(self, repo: str, number: int) -> None:
        """Press the Update-branch button."""
        self.ask("PUT", f"/repos/{repo}/pulls/{number}/update-branch", {})

    def delete_branch(self, repo: str, branch: str) -> None:
        """Delete a branch."""
        self.ask("DELETE", f"/repos/{repo}/git/refs/heads/{branch}")

    def edit(self, repo: str, branch: str, files: dict[str, str | None], message: str = "Update") -> str:
        """Edit files in the browser: a commit by this person that GitHub makes and signs."""
        world, place = self._github.world, self._github.world.repos[repo]
        with world.lock:
            tip = place.refs[f"refs/heads/{branch}"]
            sha = merging.edited(world, place, tip, world.users[self._login], files, message)
            change_ref(world, place, Actor(self._login), f"refs/heads/{branch}", sha, tip)
        return sha

    def arm(self, repo: str, number: int, method: str = "merge") -> None:
        """Enable auto-merge."""
        with self._github.world.lock:
            place, pull = self._github.world.repos[repo], self._github.pull(repo, number)
            landing.arm(self._github.world, place, pull, Actor(self._login), method)

    def fire(self, repo: str, number: int) -> str:
        """Let auto-merge happen; returns the commit."""
        with self._github.world.lock:
            place, pull = self._github.world.repos[repo], self._github.pull(repo, number)
            return landing.fire(self._github.world, place, pull)

    def enqueue(self, repo: str, number: int) -> None:
        """Add a pull request to the merge queue."""
        with self._github.world.lock:
            place, pull = self._github.world.repos[repo], self._github.pull(repo, number)
            landing.enqueue(self._github.world, place, pull, Actor(self._login))

    def dequeue(self, repo: str, number: int, method: str = "merge") -> str:
        """Let the merge queue merge a pull request; returns the commit."""
        with self._github.world.lock:
            place, pull = self._github.world.repos[repo], self._github.pull(repo, number)
            return landing.dequeue(self._github.world, place, pull, method)
