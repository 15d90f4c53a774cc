"""The frame of the REST API: routes, what a call brings, what it gives back, and how it is refused.

Rules: a route is named as in GitHub's published description, so that a call can be looked up there. It
names the rights of which one set is needed. A list is cut into pages here, and linked.

Example::

    @route("GET", "/repos/{owner}/{repo}/labels", reads("issues"), reads("pull_requests"))
    def list_labels(call: Call) -> Answer:
        return call.many(list(call.repo.labels.values()), lambda one: call.shapes.label(call.repo, one))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, TypeVar
from urllib.parse import unquote, urlencode

from tests.github.rights import Need, accepted, allowed, has_role, refusal, sees
from tests.github.rules import Actor, actor_of
from tests.github.shapes_issues import IssueShapes
from tests.github.state import App, Issue, Pull, Repo, Token, User, World

T = TypeVar("T")
DOCS = "https://docs.github.com/rest"
_WIDE = frozenset({"ref", "branch", "basehead", "name", "environment_name", "path"})
"""Parameters that may hold slashes."""


class Fault(Exception):
    """A call is refused: its status, what is said, and headers."""

    def __init__(
        self, status: int, message: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.data = {"message": message, **more, "documentation_url": DOCS}
        if status not in (405, 409, 422):
            self.data["status"] = str(status)


def not_found() -> NoReturn:
    """Refuse what is not there, or what the caller may not know of."""
    raise Fault(404, "Not Found")


def invalid(resource: str, code: str, name: str | None = None, message: str | None = None) -> NoReturn:
    """Refuse a body, as GitHub's validation does."""
    error = {"resource": resource, "code": code, "field": name, "message": message}
    raise Fault(
        422, "Validation Failed", errors=[{key: one for key, one in error.items() if one is not None}]
    )


def unprocessable(*errors: str, message: str = "Unprocessable Entity") -> NoReturn:
    """Refuse a body, as GitHub does where one thing is wrong."""
    more: dict[str, Any] = {"errors": list(errors)} if errors else {}
    raise Fault(422, message, **more)


def fits(body: Any, resource: str) -> None:
    """Refuse a title or a text that is too long."""
    for name, most in (("title", 256), ("body", 65536)):
        if isinstance(body, dict) and len(body.get(name) or "") > most:
            invalid(resource, "custom", name, f"{name} is too long (maximum is {most} characters)")


@dataclass
class Answer:
    """What a call gives back."""

    data: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Call:
    """One call: who asks for what, and the repository as he sees it."""

    world: World
    verb: str
    template: str
    path: str
    parameters: dict[str, str]
    query: dict[str, str]
    body: Any
    token: Token | None
    app: App | None = None
    """The app that speaks for itself, with a signed statement instead of a token."""
    seen: Repo | None = None

    @cached_property
    def shapes(self) -> IssueShapes:
        """How answers look."""
        return IssueShapes(self.world)

    @property
    def repo(self) -> Repo:
        """The repository."""
        assert self.seen is not None
        return self.seen

    @property
    def actor(self) -> Actor:
        """Who asks."""
        assert self.token is not None
        return actor_of(self.token)

    @property
    def user(self) -> User:
        """The account that asks."""
        return self.world.users[self.actor.login]

    @property
    def may_triage(self) -> bool:
        """Whether the caller may sort issues: label them, close those of others."""
        assert self.token is not None
        return self.actor.app is not None or has_role(self.repo, self.user.login, "triage")

    def given(self, name: str, default: Any = None) -> Any:
        """Return a field of the body."""
        return self.body.get(name, default) if isinstance(self.body, dict) else default

    def number(self, name: str) -> int:
        """Return a parameter of the path that is a number."""
        text = self.parameters[name]
        return int(text) if text.isdigit() else not_found()

    def issue(self) -> Issue:
        """Return the issue that the path names."""
        found = self.repo.issues.get(self.number("issue_number"))
        if found is None:
            not_found()
        level = "read" if self.verb == "GET" else "write"
        if not isinstance(found, Pull) and not self.has("issues", level):
            accept = {"X-Accepted-GitHub-Permissions": f"issues={level}"}
            raise Fault(403, refusal(self.token), headers=accept)
        return found

    def pull(self) -> Pull:
        """Return the pull request that the path names."""
        found = self.repo.issues.get(self.number("pull_number"))
        return found if isinstance(found, Pull) else not_found()

    def place(self, issue: Issue) -> str:
        """Return what an issue is called from outside."""
        return f"{self.repo.full_name}#{issue.number}"

    def has(self, right: str, level: str) -> bool:
        """Return whether the caller has a right here."""
        return allowed(self.world, self.token, self.repo, right, level)

    def many(self, found: Sequence[T], show: Callable[[T], Any], key: str = "", size: int = 30) -> Answer:
        """Return a page of a list, and the links to others.

        Args:
            found: all of it.
            show: how one looks.
            key: where it stands in the answer, beside ``total_count``, if the answer is no list.
            size: how many a page has where the caller does not say.
        """
        per = min(100, max(1, _number(self.query.get("per_page"), size)))
        page = max(1, _number(self.query.get("page"), 1))
        last = max(1, -(-len(found) // per))
        data: Any = [show(one) for one in found[(page - 1) * per : page * per]]
        if key:
            data = {"total_count": len(found), key: data}
        return Answer(data, headers=self.links(page, last))

    def links(self, page: int, last: int) -> dict[str, str]:
        """Return the header that leads to other pages."""
        to: dict[str, int] = {}
        if page > 1:
            to |= {"prev": min(page - 1, last), "first": 1}
        if page < last:
            to |= {"next": page + 1, "last": last}
        base = f"{self.world.base}/api/v3{self.path}"
        made = [f'<{base}?{urlencode(self.query | {"page": str(n)})}>; rel="{rel}"' for rel, n in to.items()]
        return {"Link": ", ".join(made)} if made else {}


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.lstrip("-").isdigit() else default


Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Route:
    """A call that is served."""

    verb: str
    template: str
    pattern: re.Pattern[str]
    needs: tuple[Need, ...]
    role: str | None
    handler: Handler


ROUTES: list[Route] = []


def reads(*rights: str) -> Need:
    """Return that these rights are needed together, to read."""
    return tuple((right, "read") for right in rights)


def writes(*rights: str) -> Need:
    """Return that these rights are needed together, to write."""
    return tuple((right, "write") for right in rights)


def _compile(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    names = parts[1::2]
    made = [re.escape(parts[0])]
    for name, literal in zip(names, parts[2::2], strict=True):
        made.append(f"(?P<{name}>{'.+' if name in _WIDE else '[^/]+'})" + re.escape(literal))
    return re.compile("".join(made))


def route(verb: str, template: str, *needs: Need, role: str | None = None) -> Callable[[Handler], Handler]:
    """Serve a call.

    Args:
        verb: the HTTP verb.
        template: the path as GitHub's description names it.
        needs: sets of rights, one of which is needed; none where the call concerns no repository.
        role: what a person must be in the repository besides.
    """

    def keep(handler: Handler) -> Handler:
        ROUTES.append(Route(verb, template, _compile(template), needs, role, handler))
        ROUTES.sort(key=lambda one: (-one.template.count("/"), one.template.count("{")))
        return handler

    return keep


def find(verb: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route for a call and what its path names."""
    for one in ROUTES:
        found = one.pattern.fullmatch(path) if one.verb == verb else None
        if found:
            return one, {name: unquote(text) for name, text in found.groupdict().items()}
    return None


def check_rights(call: Call, one: Route) -> None:
    """Refuse a call whose caller may not make it.

    Raises:
        Fault: he does not see the repository, or has no right to do this.
    """
    if not one.needs:
        return
    if not sees(call.world, call.token, call.repo):
        not_found()
    if call.token is None and call.verb != "GET":
        raise Fault(401, "Requires authentication")
    fits = any(all(call.has(*right) for right in need) for need in one.needs)
    person = call.token is not None and call.actor.app is None
    if fits and (one.role is None or not person or has_role(call.repo, call.user.login, one.role)):
        return
    if call.token is None or (call.token.kind == "classic" and call.verb == "GET"):
        not_found()
    raise Fault(403, refusal(call.token), headers={"X-Accepted-GitHub-Permissions": accepted(one.needs)})
