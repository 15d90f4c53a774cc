"""What our small GitHub remembers: accounts, tokens, repositories, pull requests, issues, and what happened.

Rules: everything is plain data, so that a copy of a repository is how it was at a moment (late
consistency is served from such copies). Numbers are given out in order and never twice. Times have
whole seconds, as GitHub's have. A pull request is an issue with a head and a base.

Example::

    world = World(tmp_path)
    ada = world.add_user("ada", name="Ada", email="ada@acme.example")
    repo = world.add_repo("acme/bus")
    repo.roles["ada"] = "maintain"
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.github.bare import Bare

ROLES = ("read", "triage", "write", "maintain", "admin")
"""What a collaborator may be, from little to much."""


@dataclass
class User:
    """An account, of a person or of an app (``type`` is ``Bot``)."""

    id: int
    login: str
    name: str
    email: str
    type: str = "User"
    private_email: bool = False
    signing_keys: list[str] = field(default_factory=list)

    @property
    def noreply(self) -> str:
        """The address that GitHub gives everybody."""
        return f"{self.id}+{self.login}@users.noreply.github.com"

    @property
    def ident(self) -> str:
        """Name and address as GitHub writes them into commits that it makes for this account."""
        hidden = self.private_email or self.type == "Bot" or not self.email
        return f"{self.name or self.login} <{self.noreply if hidden else self.email}>"


@dataclass
class App:
    """A GitHub App, with one installation and its bot account."""

    id: int
    slug: str
    owner: str
    rights: dict[str, str]
    installation: int
    bot: str
    key: str
    """The private key, PEM."""
    public: str
    repos: set[str]
    created: datetime


@dataclass
class Token:
    """A token and what it may do.

    ``kind``: ``classic`` (a person's, with scopes), ``fine`` (a person's, with rights),
    ``installation`` (an app's), ``actions`` (the GITHUB_TOKEN of a workflow run), ``key`` (stands for a
    deploy key).
    """

    text: str
    kind: str
    login: str
    rights: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    repos: set[str] | None = None
    app: int | None = None
    expires: datetime | None = None
    limit: int = 5000
    used: int = 0
    reset: int = 0

    @property
    def remaining(self) -> int:
        """How many calls are left."""
        return max(0, self.limit - self.used)


@dataclass
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str
    description: str | None = None


@dataclass
class Comment:
    """A comment on an issue or a pull request."""

    id: int
    by: str
    body: str
    created: datetime
    app: int | None = None


@dataclass
class Event:
    """Something that happened to an issue; ``more`` is what this kind of event has besides."""

    id: int
    name: str
    actor: str
    at: datetime
    commit: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Review:
    """A review: ``commit`` is the head it was given at, and stays."""

    id: int
    by: str
    state: str
    body: str
    commit: str
    at: datetime


@dataclass
class Issue:
    """An issue, or what a pull request has of one."""

    id: int
    number: int
    title: str
    body: str | None
    by: str
    created: datetime
    updated: datetime
    state: str = "open"
    reason: str | None = None
    closed: datetime | None = None
    closed_by: str | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    app: int | None = None


@dataclass
class Pull(Issue):
    """A pull request; ``head_repo`` and ``base_repo`` are full names, ``commits`` what it brought when merged."""

    pull_id: int = 0
    head_repo: str | None = ""
    head_owner: str = ""
    head_ref: str = ""
    head: str = ""
    base_ref: str = ""
    base: str = ""
    draft: bool = False
    merged: datetime | None = None
    merged_by: str | None = None
    merge_commit: str | None = None
    commits: frozenset[str] = frozenset()
    reviewers: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    auto_merge: dict[str, Any] | None = None
    trial: str | None = None
    """The merge that GitHub last tried by itself."""
    unknown: int = 0
    """How many times ``mergeable`` is still to be null."""


@dataclass
class Ruleset:
    """A ruleset, its parts as the API takes and gives them."""

    id: int
    name: str
    target: str
    enforcement: str
    bypass: list[dict[str, Any]]
    conditions: dict[str, Any]
    rules: list[dict[str, Any]]
    created: datetime
    updated: datetime


@dataclass
class Environment:
    """An environment of Actions; ``policies`` are the branch patterns that may deploy to it, by id."""

    id: int
    name: str
    created: datetime
    wait: int = 0
    reviewers: list[dict[str, Any]] = field(default_factory=list)
    self_review: bool = False
    branch_policy: dict[str, bool] | None = None
    policies: dict[int, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)


@dataclass
class DeployKey:
    """A key that may read or push."""

    id: int
    title: str
    key: str
    read_only: bool
    created: datetime


@dataclass
class Repo:
    """A repository; ``refs`` is what the API takes for true."""

    id: int
    owner: str
    name: str
    git: Bare
    created: datetime
    private: bool = True
    default_branch: str = "main"
    parent: str | None = None
    refs: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    rulesets: dict[int, Ruleset] = field(default_factory=dict)
    environments: dict[str, Environment] = field(default_factory=dict)
    protection: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: list[DeployKey] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    codeowners_errors: list[dict[str, Any]] = field(default_factory=list)
    workflow_rights: str = "read"
    workflow_approves: bool = False
    actions: dict[str, Any] = field(default_factory=dict)
    plan_has_rules: bool = True
    """Whether the plan offers rulesets and environments for this repository."""

    @property
    def full_name(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"

    @property
    def pulls(self) -> dict[int, Pull]:
        """The pull requests by number."""
        return {number: one for number, one in self.issues.items() if isinstance(one, Pull)}

    def branch(self, name: str) -> str | None:
        """Return the tip of a branch, as the API sees it."""
        return self.refs.get(f"refs/heads/{name}")


@dataclass(frozen=True)
class Happening:
    """Something a workflow could start from; ``starts`` says whether it does (GITHUB_TOKEN's doings start nothing)."""

    name: str
    repo: str
    ref: str
    actor: str
    action: str = ""
    number: int | None = None
    sha: str = ""
    merged: bool = False
    starts: bool = True


@dataclass(frozen=True)
class Push:
    """A push that git took, with the refs that moved: before and after."""

    repo: str
    login: str
    changes: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Exchange:
    """One call and its answer, as it went over the wire."""

    verb: str
    template: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    headers: dict[str, str]
    answer: Any
    who: str


class World:
    """All that one GitHub knows.

    Args:
        folder: where the bare repositories go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.users: dict[str, User] = {}
        self.apps: dict[int, App] = {}
        self.tokens: dict[str, Token] = {}
        self.repos: dict[str, Repo] = {}
        self.log: list[Exchange] = []
        self.happened: list[Happening] = []
        self.calls: Counter[str] = Counter()
        self.pushes: list[Push] = []
        self.pinged: list[tuple[str, str]] = []
        """Who was told because a text mentioned him, and where."""
        self.unknown_at_first = 0
        """How many reads of a new pull request do not know yet whether it merges."""
        self.base = ""
        """The address of the server, without a slash at the end."""
        self._ids: Iterator[int] = itertools.count(1001)
        for number, login, kind in (
            (19864447, "web-flow", "User"),
            (41898282, "github-actions[bot]", "Bot"),
            (118344674, "github-merge-queue[bot]", "Bot"),
        ):
            self.users[login] = User(number, login, login, "", kind)
        self.users["web-flow"].name = "GitHub Web Flow"

    def id(self) -> int:
        """Return a number that nothing had before."""
        return next(self._ids)

    def now(self) -> datetime:
        """Return the time, in whole seconds."""
        return self.clock().astimezone(UTC).replace(microsecond=0)

    def add_user(self, login: str, *, name: str = "", email: str = "", **more: Any) -> User:
        """Make an account of a person."""
        user = User(self.id(), login, name or login.title(), email or f"{login}@test", **more)
        self.users[login] = user
        return user

    def user_of_email(self, email: str) -> User | None:
        """Return whose address this is."""
        if email == "noreply@github.com":
            return self.users["web-flow"]
        return next((one for one in self.users.values() if email and email in (one.email, one.noreply)), None)

    def user_of_id(self, number: int) -> User | None:
        """Return the account with this number."""
        return next((one for one in self.users.values() if one.id == number), None)

    def add_token(self, kind: str, login: str, **more: Any) -> Token:
        """Make a token."""
        prefix = {
            "classic": "ghp",
            "fine": "github_pat",
            "installation": "ghs",
            "actions": "ghs",
            "key": "key",
        }[kind]
        token = Token(f"{prefix}_{secrets.token_hex(18)}", kind, login, **more)
        token.reset = int((self.now() + timedelta(hours=1)).timestamp())
        self.tokens[token.text] = token
        return token

    def app_of(self, token: Token | None) -> App | None:
        """Return the app that a token speaks for."""
        return self.apps.get(token.app) if token is not None and token.app is not None else None
