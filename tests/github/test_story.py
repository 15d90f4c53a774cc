"""The way of an item on GitHub: through pull requests only, from the goal to the receipt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.github.hub import GitHub
from tests.github.office import REPO, Office, make_office
from tests.support.world import ITEM


@pytest.fixture
def office(github: GitHub, tmp_path: Path) -> Office:
    return make_office(github, tmp_path / "office")


Make = Callable[..., Office]


def test_from_goal_to_receipt_through_pull_requests_only(office: Office) -> None:
    office.item()
    pull = office.github.pull(REPO, office.number())
    assert pull.title.startswith(f"Approve {ITEM}: ")
    assert {"gitbus", "gitbus-open"} <= {label for label in pull.labels}
    assert set(pull.reviewers) == {"ada", "bob"}
    office.sending()
    assert office.send() == []
    office.github.browser("ada").merge(REPO, pull.number)
    office.conduct()
    assert office.state() == "approved"
    assert [(one.item, one.outcome) for one in office.send()] == [(ITEM, "sent")]
    assert len(office.messages()) == 1
    office.conduct()
    assert office.state() == "sent"
    comments = [comment.body for comment in pull.comments]
    assert len(comments) == 1
    assert "**Sent**" in comments[0]
    assert "gitbus-open" not in pull.labels
    assert office.findings() == []
