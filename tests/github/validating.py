"""Every call of a test to GitHub, and every answer, is one that GitHub's own description allows.

Rules: a call of this process is checked as it goes over the wire (a hook on ``requests.Session.send``) and
fails right there. Calls of other processes are checked when the test ends, from the log of the server that
answered them. A test that sends nonsense on purpose says so with :meth:`Validating.off`.

Example::

    def test_a_merge_needs_a_number(github: GitHub, ada: Desk, validated: Validating) -> None:
        with validated.off():
            assert ask(github, f"/repos/{REPO}/pulls/x", ada.token).status_code == 404
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from tests.github import state
from tests.github.openapi import Exchange, Problem, api

OWN = "/api/v3"
"""Below what an own server has its API."""
NUMBER = "x-github-request-id"


class Wrong(AssertionError):
    """A call that GitHub would not know, or an answer that it could not give."""


class Validating:
    """Checks what goes over the wire.

    Args:
        answers: check answers too, not only calls.
    """

    def __init__(self, *, answers: bool = True) -> None:
        self.checked = 0
        self.problems: list[Problem] = []
        self._answers = answers
        self._seen: set[str] = set()
        self._on = True

    @contextmanager
    def off(self) -> Iterator[None]:
        """Check nothing meanwhile."""
        self._on = False
        try:
            yield
        finally:
            self._on = True

    def passed(self, request: requests.PreparedRequest, response: requests.Response) -> None:
        """Check a call of this process.

        Raises:
            Wrong: something is wrong with it, or with its answer.
        """
        self._seen.add(response.headers.get(NUMBER, ""))
        if self._on and (exchange := exchange_of(request, response)) is not None:
            self._check(exchange)

    def logged(self, log: Iterable[state.Exchange]) -> None:
        """Check the calls of other processes.

        Raises:
            Wrong: something is wrong with one, or with its answer.
        """
        for one in log:
            headers = {name.lower(): value for name, value in one.headers.items()}
            if headers.get(NUMBER, "") not in self._seen:
                told = (one.verb, one.path, one.query, one.body, None, one.status, headers, one.answer)
                self._check(Exchange(*told))

    def _check(self, exchange: Exchange) -> None:
        self.checked += 1
        found = [one for one in api().problems(exchange) if self._answers or one.side == "the call"]
        self.problems += found
        if found:
            raise Wrong("\n".join(map(str, found)))


def exchange_of(request: requests.PreparedRequest, response: requests.Response) -> Exchange | None:
    """Return a call and its answer, parsed; None where it went to something else than GitHub's API."""
    url = urlsplit(request.url or "")
    if url.hostname != "api.github.com" and not url.path.startswith(f"{OWN}/"):
        return None
    return Exchange(
        verb=request.method or "",
        path=url.path.removeprefix(OWN),
        query=dict(parse_qsl(url.query, keep_blank_values=True)),
        body=_parsed(request.body),
        sent={name.lower(): str(value) for name, value in request.headers.items()},
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        answer=_parsed(response.content),
    )


def hook(monkeypatch: pytest.MonkeyPatch, validating: Validating) -> None:
    """Let all calls of this process pass a check, until the test ends."""
    send = requests.Session.send

    def checked(
        session: requests.Session, request: requests.PreparedRequest, **more: Any
    ) -> requests.Response:
        response = send(session, request, **more)
        validating.passed(request, response)
        return response

    monkeypatch.setattr(requests.Session, "send", checked)


@pytest.fixture(autouse=True)
def validated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Validating]:
    """Check all calls to GitHub and all answers, of this process and of those that it starts."""
    served = request.getfixturevalue("github") if "github" in request.fixturenames else None
    validating = Validating()
    hook(monkeypatch, validating)
    yield validating
    if served is not None:
        validating.logged(served.world.log)
    assert validating.problems == [], "an exception was swallowed that told of these"


def _parsed(data: Any) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return data if isinstance(data, str) else data.decode(errors="replace")
