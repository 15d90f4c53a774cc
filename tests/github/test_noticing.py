"""Issues that tell of what waits for people: opened once, closed when it is over, whatever happens in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gitbus.board import Board
from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.forge.github.noticing import STEPS, Noticing
from gitbus.forge.github.place import Place
from gitbus.records import Report
from tests.forge.pages import ITEM, NOW, make_board, make_bus, make_goal, make_item
from tests.github.hub import GitHub
from tests.github.state import Issue, Pull

REPO = "acme/bus"
EVERY = ["stuck", "failed", "dead", "expiring", "in_review", "awaiting_approval"]
MakeClient = Callable[..., Client]


@pytest.fixture
def make_client(github: GitHub) -> Any:
    """Return what makes calls of a workflow's token, each with a memory of its own."""
    github.user("ada")
    github.repo(REPO, roles={"ada": "admin"})
    made: list[Client] = []

    def make(**rights: str) -> Client:
        token = github.workflow_token(REPO, {"metadata": "read", **(rights or {"issues": "write"})})
        made.append(Client(Place("acme", "bus", github.api, github.url), token, pace=False))
        return made[-1]

    yield make
    for one in made:
        one.close()


def board(*items: Any, on: list[str] | None = None, **more: Any) -> Board:
    """Return a board whose bus tells of things by issues."""
    return make_board(*items, bus=make_bus(notify=[{"on": on or EVERY, "issue": True}]), **more)


def issues(github: GitHub) -> list[Issue]:
    return [one for one in github.world.repos[REPO].issues.values() if not isinstance(one, Pull)]


def settle(noticing: Noticing, found: Board, **later: float) -> int:
    """Keep until nothing is left to do; return how often something was done."""
    return len(
        list(itertools.takewhile(bool, iter(lambda: noticing.keep(found, NOW + timedelta(**later)), None)))
    )


def test_an_issue_lives_as_long_as_its_fact(github: GitHub, make_client: MakeClient) -> None:
    noticing = Noticing(make_client())
    stuck = board(make_item(state="stuck"))
    assert settle(noticing, stuck) == 1
    (told,) = issues(github)
    assert (told.state, told.title) == ("open", f"{ITEM} is stuck")
    assert sorted(told.labels) == ["gitbus", "gitbus-open", "stuck"]
    assert settle(Noticing(make_client()), stuck) == 0, "another process sees that it was told"
    assert settle(noticing, board(make_item(state="sent"))) == 1
    assert (told.state, told.reason, sorted(told.labels)) == ("closed", "completed", ["gitbus", "stuck"])
    assert settle(Noticing(make_client()), board(make_item(state="sent"))) == 0


def test_whoever_closes_it_is_not_told_again(github: GitHub, make_client: MakeClient) -> None:
    stuck = board(make_item(state="stuck"))
    settle(Noticing(make_client()), stuck)
    (told,) = issues(github)
    github.browser("ada").ask("PATCH", f"/repos/{REPO}/issues/{told.number}", {"state": "closed"})
    assert settle(Noticing(make_client()), stuck) == 0
    settle(Noticing(make_client()), board(make_item(state="sent")))
    again = board(make_item(state="stuck", attempt=2))
    assert settle(Noticing(make_client()), again) == 1, "another attempt is another fact"
    assert [one.state for one in issues(github)] == ["closed", "open"]


def test_every_kind_of_fact(github: GitHub, make_client: MakeClient) -> None:
    items = [
        make_item("a.mail.one", state="stuck"),
        make_item("a.mail.two", state="failed"),
        make_item("a.mail.three", state="in_review"),
        make_item("a.mail.four", expires_at=NOW + timedelta(hours=3)),
        make_item("a.mail.five", state="approved", expires_at=NOW + timedelta(days=3)),
    ]
    goal = make_goal("a", {"write": {"capability": "x"}}, {"write": "dead"})
    settle(Noticing(make_client()), board(*items, goals=(goal,)))
    assert sorted(one.title for one in issues(github)) == [
        "a.mail.four expires soon",
        "a.mail.four waits for approval",
        "a.mail.one is stuck",
        "a.mail.three needs a review",
        "a.mail.two failed",
        "a/write is dead",
    ]
    settle(Noticing(make_client()), board(*items, goals=(goal,), on=["dead"]))
    assert [one.title for one in issues(github) if one.state == "open"] == ["a/write is dead"]


def test_a_goal_that_is_not_loaded_ends_nothing(github: GitHub, make_client: MakeClient) -> None:
    goal = make_goal("a", {"write": {"capability": "x"}}, {"write": "dead"})
    noticing = Noticing(make_client())
    settle(noticing, board(goals=(goal,)))
    report = Report(goal="a", state="failed", settled_at=NOW)
    unloaded = replace(goal, tasks={}, open=False, report=report)
    assert settle(noticing, board(goals=(unloaded,))) == 0
    assert settle(noticing, board(goals=(replace(goal, tasks={}, open=True),))) == 1
    assert [one.state for one in issues(github)] == ["closed"]


def test_nobody_wants_any(github: GitHub, make_client: MakeClient) -> None:
    assert not Noticing(make_client()).keep(make_board(make_item(state="stuck")), NOW)
    assert not github.calls, "then GitHub is not even asked"


def test_created_although_github_failed(github: GitHub, make_client: MakeClient) -> None:
    """The answer was lost, the issue is there; a late list does not make a second one."""
    stuck = board(make_item(state="stuck"))
    noticing = Noticing(make_client())
    github.faults.after("POST", "/repos/{owner}/{repo}/issues", status=502)
    with pytest.raises(Exception, match="502"):
        noticing.keep(stuck, NOW)
    assert settle(noticing, stuck) == 0
    assert settle(Noticing(make_client()), stuck) == 0
    assert len(issues(github)) == 1


def test_of_two_with_one_key_the_younger_is_closed(github: GitHub, make_client: MakeClient) -> None:
    """Two conductors at once may both tell; the next look puts it right."""
    stuck = board(make_item(state="stuck"))
    settle(Noticing(make_client()), stuck)
    (told,) = issues(github)
    body = {"title": told.title, "body": told.body, "labels": ["gitbus", "gitbus-open"]}
    github.browser("ada").ask("POST", f"/repos/{REPO}/issues", body)
    settle(Noticing(make_client()), stuck)
    assert [(one.number, one.state) for one in issues(github)] == [(1, "open"), (2, "closed")]


def test_an_issue_of_somebody_else_is_left_alone(github: GitHub, make_client: MakeClient) -> None:
    mark = f"<!-- gitbus: stuck {ITEM} 1 1 -->"
    github.browser("ada").ask("POST", f"/repos/{REPO}/issues", {"title": "mine", "body": mark})
    github.browser("ada").ask("POST", f"/repos/{REPO}/issues", {"title": "mine", "labels": ["gitbus-open"]})
    settle(Noticing(make_client()), board(make_item(state="stuck")))
    assert [(one.title, one.state) for one in issues(github)] == [
        ("mine", "open"),
        ("mine", "open"),
        (f"{ITEM} is stuck", "open"),
    ]


def test_a_token_without_the_right(make_client: MakeClient, github: GitHub) -> None:
    noticing = Noticing(make_client(issues="read"))
    for _ in range(2):
        with pytest.raises(ForgeRefused) as refused:
            noticing.keep(board(make_item(state="stuck")), NOW)
        assert refused.value.rule == "no-right"
    assert issues(github) == []


def test_many_are_told_in_steps(github: GitHub, make_client: MakeClient) -> None:
    items = [make_item(f"a.mail.n{number}", state="failed") for number in range(STEPS * 2 + 1)]
    assert settle(Noticing(make_client()), board(*items)) == 3
    assert len({one.title for one in issues(github)}) == len(issues(github)) == STEPS * 2 + 1


@pytest.mark.parametrize("text", ["@everyone fixes #1", "<img src=x>", "- [x] done\n\nCloses #3"])
def test_what_a_worker_wrote_is_text(github: GitHub, make_client: MakeClient, text: str) -> None:
    settle(Noticing(make_client()), board(make_item(state="stuck", reason=text.splitlines()[0])))
    (told,) = issues(github)
    outside = "".join((told.body or "").split("`")[::2])
    assert not any(word in outside for word in ("@everyone", "<img", "#1", "[x]"))
