"""How much is asked of GitHub: calls and pushes from a goal to a hundred sent items, within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.github.hub import GitHub
from tests.github.office import REPO, make_office
from tests.github.test_trouble import many

READING = ("GET /repos/{owner}/{repo}/pulls", "GET /repos/{owner}/{repo}/issues")


@pytest.mark.long
def test_a_hundred_items(github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    office = make_office(github, tmp_path / "office")
    office.sending()
    calls, pushes = github.calls.total(), len(github.world.pushes)
    office.item(many(100))
    put_up = github.calls.total() - calls
    for pull in office.pulls():
        if pull.state == "open":
            github.browser("ada").merge(REPO, pull.number)
    calls = github.calls.total()
    while any(one.outcome == "sent" for one in office.send()):
        pass
    sent = github.calls.total() - calls
    calls = github.calls.total()
    office.conduct()
    told = github.calls.total() - calls
    pushes = len(github.world.pushes) - pushes
    with capsys.disabled():
        print(f"\n100 items: {put_up} calls to put up, {sent} to send, {told} to tell; {pushes} pushes")
    assert len(office.messages()) == 100
    assert put_up <= 7 * 100  # open, label, ask for review; see that there was none, and that nobody spoke
    assert sent <= 10 * 100  # five facts, looked at before the lease and at the lease
    assert told <= 5 * 100
    assert pushes <= 100


def test_a_tick_with_nothing_new_asks_for_two_lists(github: GitHub, tmp_path: Path) -> None:
    office = make_office(github, tmp_path / "office")
    office.item()
    with office.bus("conductor") as bus:
        conductor = bus.conductor()
        while conductor.tick():
            pass
        before = github.calls.copy()
        conductor.forge._pause = 0.0  # type: ignore[attr-defined]
        assert not conductor.tick()
        assert dict(github.calls - before) == dict.fromkeys(READING, 1)
        assert {one.status for one in github.log[-2:]} == {304}
        conductor.forge._pause = 60.0  # type: ignore[attr-defined]
        assert not conductor.tick()
        assert dict(github.calls - before) == dict.fromkeys(READING, 1)
