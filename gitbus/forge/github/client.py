"""The one door to GitHub's REST API: PyGithub's connection, with calls that are counted and bounded.

Rules: what reads is conditional (an unchanged answer costs no rate limit) and may be asked again by
the library; what has an effect is sent once and never again by itself: whoever wants to know whether
it happened reads. A limit that was reached closes the door until GitHub opens it again; nobody sleeps.

Example::

    client = Client(place, token)
    for pull in client.pages(f"{place.path}/pulls", state="open"):
        print(pull["number"], pull["title"])
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import requests
import urllib3
from github import Auth, Github

from gitbus.change import plain
from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable
from gitbus.forge.github.place import Place

API_VERSION = "2022-11-28"
"""The REST version that is asked for: the one whose pull requests have ``merge_commit_sha``."""

PAGE = 100
KEPT = 512
"""How many answers are remembered with their ETag."""

_READ_AGAIN = urllib3.Retry(
    total=2,
    allowed_methods=frozenset({"GET"}),
    status_forcelist=(500, 502, 503, 504),
    backoff_factor=0.2,
    raise_on_status=False,
    respect_retry_after_header=False,
)
_SEGMENT = re.compile(r"/(?:[0-9a-f]{40}|\d+)(?=/|$)")


class ForgeRefused(Refused):
    """GitHub refused a call; ``status`` is its HTTP status."""

    def __init__(self, message: str, *, status: int, rule: str, remedy: str | None = None) -> None:
        """Keep the status beside the message."""
        super().__init__(message, rule=rule, remedy=remedy)
        self.status = status


class Limited(Unreachable):
    """A rate limit was reached; ``until`` is when the door opens again, in seconds of the epoch."""

    def __init__(self, message: str, until: float) -> None:
        """Keep the time beside the message."""
        super().__init__(message, rule="rate-limit", remedy="it goes on by itself")
        self.until = until


@dataclass(frozen=True, slots=True)
class _Kept:
    etag: str
    data: Any
    more: bool


class Client:
    """Calls of one token to one GitHub.

    Args:
        place: the repository, and where the API is.
        token: a personal, an installation or a workflow token.
        pace: wait between calls as GitHub advises (a second between those that change something).
        clock: seconds of the epoch, against which rate limits are read.
    """

    def __init__(
        self, place: Place, token: str, *, pace: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        self.place = place
        self.calls: Counter[str] = Counter()
        self.closed_until = 0.0
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._github = Github(
            auth=Auth.Token(token),
            base_url=place.api,
            user_agent="gitbus",
            retry=_READ_AGAIN,
            seconds_between_requests=None,
            seconds_between_writes=1.0 if pace else None,
            api_version=API_VERSION,
        )

    def close(self) -> None:
        """End the connections."""
        self._github.close()

    def get(self, path: str, **parameters: str | int) -> Any:
        """Return what a path holds.

        Args:
            path: the path in the API, such as ``/repos/acme/bus/pulls/7``.
            parameters: the query.

        Raises:
            ForgeRefused: GitHub does not show it (rules ``not-found``, ``no-right`` …).
            Unreachable: it could not be asked.
        """
        return self._get(path, parameters).data

    def pages(self, path: str, *, key: str = "", most: int = 10_000, **parameters: str | int) -> list[Any]:
        """Return all elements of a list, page by page.

        Args:
            path: the path in the API.
            key: where in an answer the list stands, if it is not the answer itself.
            most: how many elements are wanted at most.
            parameters: the query.

        Raises:
            ForgeRefused: GitHub does not show it.
            Unreachable: it could not be asked.
        """
        found: list[Any] = []
        for page in range(1, 1 + -(-most // PAGE)):
            answer = self._get(path, {**parameters, "per_page": PAGE, "page": page})
            found += answer.data[key] if key else answer.data
            if not answer.more:
                break
        return found[:most]

    def send(self, verb: str, path: str, body: Any = None) -> Any:
        """Change something, once.

        Args:
            verb: ``POST``, ``PATCH``, ``PUT`` or ``DELETE``.
            path: the path in the API.
            body: what is sent as JSON.

        Raises:
            ForgeRefused: GitHub refused it; nothing happened.
            Unreachable: there was no answer, or none to rely on: it may have happened.
        """
        effect("forge", f"{verb} {path}")
        _, _, data = self._call(verb, path, {}, {}, body)
        return data

    def _get(self, path: str, parameters: dict[str, str | int]) -> _Kept:
        key = (path, json.dumps(parameters, sort_keys=True))
        known = self._kept.get(key)
        condition = {"If-None-Match": known.etag} if known else {}
        status, headers, data = self._call("GET", path, dict(parameters), condition)
        if status == HTTPStatus.NOT_MODIFIED and known is not None:
            self._kept.move_to_end(key)
            return known
        found = _Kept(headers.get("etag", ""), data, 'rel="next"' in headers.get("link", ""))
        if found.etag:
            self._kept[key] = found
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _call(
        self, verb: str, path: str, parameters: dict[str, Any], headers: dict[str, str], body: Any = None
    ) -> tuple[int, dict[str, str], Any]:
        if self._clock() < self.closed_until:
            raise Limited("GitHub's rate limit is still used up", self.closed_until)
        self.calls[f"{verb} {_SEGMENT.sub('/{}', path.removeprefix(self.place.path))}"] += 1
        try:
            status, got, text = self._github.requester.requestJson(verb, path, parameters, headers, body)
        except (requests.RequestException, OSError, RuntimeError) as error:
            raise Unreachable(
                f"GitHub at {self.place.api} did not answer: {plain(str(error), 200)}",
                rule="forge",
                remedy="try again; nothing is done twice",
            ) from error
        data = _parsed(text)
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._error(verb, path, status, got, data)
        return status, got, data

    def _error(self, verb: str, path: str, status: int, headers: dict[str, str], data: Any) -> Exception:
        said = _message(data)
        call = f"{verb} {path}"
        until = self._limit(status, headers, said)
        if until is not None:
            self.closed_until = until
            return Limited(f"GitHub's rate limit is used up ({call})", until)
        if status == HTTPStatus.UNAUTHORIZED:
            return Unreachable(
                f"GitHub does not take the token: {said}",
                rule="forge-login",
                remedy="set GH_TOKEN to a token that is valid for this repository",
            )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unreachable(f"GitHub answered {status} to {call}", rule="forge", remedy="try again")
        return ForgeRefused(
            f"GitHub refused {call}: {said or status}",
            status=status,
            rule=_RULES.get(status, "forge-refused"),
            remedy=_remedy(status, headers),
        )

    def _limit(self, status: int, headers: dict[str, str], said: str) -> float | None:
        """Return until when calls are of no use; None where no limit was reached."""
        if status not in (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS):
            return None
        now = self._clock()
        if (after := headers.get("retry-after", "")).isdigit():
            return now + int(after)
        if headers.get("x-ratelimit-remaining") == "0":
            return max(now + 1, float(headers.get("x-ratelimit-reset", now + 60)))
        limited = status == HTTPStatus.TOO_MANY_REQUESTS or "rate limit" in said.lower()
        return now + 60 if limited else None


_RULES: dict[int, str] = {
    HTTPStatus.FORBIDDEN: "no-right",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.GONE: "not-found",
    HTTPStatus.CONFLICT: "forge-conflict",
}


def _parsed(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _message(data: Any) -> str:
    """Return what GitHub says is wrong, as one line."""
    if not isinstance(data, dict):
        return plain(str(data or ""), 200)
    errors = [
        str(one.get("message") or one.get("code") or "") if isinstance(one, dict) else str(one)
        for one in data.get("errors") or ()
    ]
    return plain(": ".join([str(data.get("message", "")), *filter(None, errors)]), 400)


def _remedy(status: int, headers: dict[str, str]) -> str | None:
    rights = headers.get("x-accepted-github-permissions") or headers.get("x-accepted-oauth-scopes")
    if status == HTTPStatus.FORBIDDEN:
        return f"the token needs: {plain(rights, 200)}" if rights else "give the token the right to do this"
    if status == HTTPStatus.NOT_FOUND:
        return "see that it is there, and that the token may read this repository"
    return None
