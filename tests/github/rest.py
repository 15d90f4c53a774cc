"""One REST call from the wire to the wire: who asks, limits, faults, rights, the answer and its ETag.

Rules: a bad token is 401 before anything else; a call that answers 304 costs nothing of the rate limit;
everything that was asked and answered is logged. A path that no route serves answers 404 and is
remembered in ``unknown``: a test that meets one needs a route here.

Example: ``Rest(world, faults).handle(Request("GET", "/rate_limit", {}, {}, b""))``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import jwt

from tests.github import api_accounts, api_admin, api_issues, api_pulls, api_repos, api_reviews, api_rules
from tests.github.api import Answer, Call, Fault, Route, check_rights, find, not_found
from tests.github.faults import Faults, Trouble
from tests.github.rights import accepted
from tests.github.state import App, Exchange, Repo, Token, World

MODULES = (api_accounts, api_admin, api_issues, api_pulls, api_repos, api_reviews, api_rules)
"""The modules whose routes are served."""
VERSION = "2022-11-28"


@dataclass(frozen=True)
class Request:
    """A call as it came; ``headers`` by lower-case name. A ``quiet`` one is neither counted nor logged."""

    verb: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    quiet: bool = False


@dataclass
class Response:
    """What goes back; None as ``status`` ends the connection without a word."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Dropped(Exception):
    """The connection is to end without an answer."""


class Rest:
    """The REST API of one world."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults
        self.unknown: list[str] = []

    def handle(self, request: Request) -> Response:
        """Answer a call.

        Raises:
            Dropped: a fault says that there is to be no answer.
        """
        found = find(request.verb, request.path)
        token: Token | None = None
        with self._world.lock:
            try:
                token, app = self._who(request)
                self._check(request, token)
                if found is None:
                    self.unknown.append(f"{request.verb} {request.path}")
                    not_found()
                answer = self._answer(request, *found, token, app)
            except Fault as fault:
                answer = Answer(fault.data, fault.status, fault.headers)
            return self._finish(request, found[0] if found else None, token, answer)

    # --- who asks

    def _who(self, request: Request) -> tuple[Token | None, App | None]:
        text = credentials(request.headers.get("authorization", ""))
        if text is None:
            return None, None
        if text.count(".") == 2:
            return None, self._app(text)
        token = self._world.tokens.get(text)
        if token is None or (token.expires is not None and token.expires <= self._world.now()):
            raise Fault(401, "Bad credentials")
        return token, None

    def _app(self, text: str) -> App:
        try:
            issuer: Any = jwt.decode(text, options={"verify_signature": False}).get("iss")
            app = self._world.apps[int(issuer)]
            options: Any = {"verify_exp": False, "verify_iat": False}
            jwt.decode(text, app.public, algorithms=["RS256"], options=options)
        except (jwt.PyJWTError, KeyError, ValueError, TypeError):
            raise Fault(401, "A JSON web token could not be decoded") from None
        return app

    def _check(self, request: Request, token: Token | None) -> None:
        if not request.headers.get("user-agent"):
            raise Fault(
                403,
                "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
            )
        version = request.headers.get("x-github-api-version", VERSION)
        if version != VERSION:
            raise Fault(400, f"{version} is not a supported version of the GitHub API.")
        if token is None:
            return
        now = self._world.now()
        if now.timestamp() >= token.reset:
            token.used, token.reset = 0, int((now + timedelta(hours=1)).timestamp())
        if token.remaining == 0 and request.path != "/rate_limit":
            number = self._world.users[token.login].id
            raise Fault(403, f"API rate limit exceeded for user ID {number}.")

    # --- the answer

    def _answer(
        self, request: Request, route: Route, parameters: dict[str, str], token: Token | None, app: App | None
    ) -> Answer:
        self._trouble(
            self._faults.trouble(request.verb, route.template, done=False) if not request.quiet else None
        )
        call = Call(
            world=self._world,
            verb=request.verb,
            template=route.template,
            path=request.path,
            parameters=parameters,
            query=request.query,
            body=_body(request),
            token=token,
            app=app,
        )
        if "repo" in parameters:
            call.seen = self._seen(request, route, parameters)
            check_rights(call, route)
        if request.verb != "GET":
            self._faults.writes()
        self._missing(request)
        answer = route.handler(call)
        self._created(request, answer)
        if not request.quiet:
            self._trouble(self._faults.trouble(request.verb, route.template, done=True))
        if "x-accepted-github-permissions" not in answer.headers and route.needs and _has_rights(token):
            answer.headers["X-Accepted-GitHub-Permissions"] = accepted(route.needs)
        return answer

    def _seen(self, request: Request, route: Route, parameters: dict[str, str]) -> Repo:
        name = f"{parameters['owner']}/{parameters['repo']}".lower()
        repo = next((one for full, one in self._world.repos.items() if full.lower() == name), None)
        if repo is None:
            not_found()
        return repo if request.quiet else self._faults.seen(request.verb, route.template, repo)

    def _trouble(self, trouble: Trouble | None) -> None:
        if trouble is None:
            return
        if trouble.status == 0:
            raise Dropped
        raise Fault(trouble.status, trouble.message or "Server Error", headers=trouble.headers)

    def _missing(self, request: Request) -> None:
        """Answer that what was just created is not there, as long as the switch says so."""
        path = self._faults.missing_path
        if request.verb == "GET" and path and self._faults.missing > 0 and request.path.startswith(path):
            self._faults.missing -= 1
            not_found()

    def _created(self, request: Request, answer: Answer) -> None:
        if answer.status != 201 or not isinstance(answer.data, dict):
            return
        if self._faults.missing and not self._faults.missing_path and "number" in answer.data:
            self._faults.missing_path = f"{request.path}/{answer.data['number']}"

    # --- the wire

    def _finish(self, request: Request, route: Route | None, token: Token | None, answer: Answer) -> Response:
        text = b"" if answer.data is None else json.dumps(answer.data, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Api-Version-Selected": VERSION,
            **answer.headers,
        }
        status = answer.status
        if request.verb == "GET" and status == 200:
            headers["ETag"] = f'W/"{hashlib.sha256(text).hexdigest()}"'
            headers["Cache-Control"] = "private, max-age=60, s-maxage=60"
            if headers["ETag"] in request.headers.get("if-none-match", ""):
                status, text = 304, b""
        if token is not None and not request.quiet:
            token.used += status != 304 and request.path != "/rate_limit" and token.used < token.limit
        headers |= _limits(token)
        if not request.quiet:
            self._log(request, route, token, answer, status, headers)
        return Response(status, headers, text)

    def _log(
        self,
        request: Request,
        route: Route | None,
        token: Token | None,
        answer: Answer,
        status: int,
        headers: dict[str, str],
    ) -> None:
        template = route.template if route is not None else ""
        self._world.calls[f"{request.verb} {template or request.path}"] += 1
        exchange = Exchange(
            verb=request.verb,
            template=template,
            path=request.path,
            query=request.query,
            body=_body(request) if request.body else None,
            status=status,
            headers=headers,
            answer=answer.data if status != 304 else None,
            who=token.login if token is not None else "",
        )
        self._world.log.append(exchange)


def credentials(header: str) -> str | None:
    """Return the token in an Authorization header: alone, or as the password of basic authentication."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return text.strip() or None
    try:
        return base64.b64decode(text).decode().partition(":")[2] or None
    except ValueError:
        return None


def _body(request: Request) -> Any:
    if not request.body:
        return {}
    try:
        return json.loads(request.body)
    except ValueError:
        raise Fault(400, "Problems parsing JSON") from None


def _has_rights(token: Token | None) -> bool:
    return token is not None and token.kind != "classic"


def _limits(token: Token | None) -> dict[str, str]:
    if token is None:
        return {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "60", "X-RateLimit-Resource": "core"}
    found = {
        "X-RateLimit-Limit": str(token.limit),
        "X-RateLimit-Remaining": str(token.remaining),
        "X-RateLimit-Used": str(token.used),
        "X-RateLimit-Reset": str(token.reset),
        "X-RateLimit-Resource": "core",
    }
    if token.kind == "classic":
        found |= {"X-OAuth-Scopes": ", ".join(token.scopes), "X-Accepted-OAuth-Scopes": "repo"}
    return found
