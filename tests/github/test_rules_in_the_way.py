"""Repositories with rules that a bus cannot live under: what is refused then, where, and what still counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus.errors import Refused, Unreachable
from tests.github.hub import GitHub, RefusedCall
from tests.github.office import REPO, Office, make_office
from tests.support.world import MAIL_GOAL

pytestmark = pytest.mark.long


@pytest.fixture
def office(github: GitHub, tmp_path: Path) -> Office:
    """A bus that sends, with one item that waits; the rules come after."""
    office = make_office(github, tmp_path / "office", sending={"hold": "0s"})
    office.sending()
    office.item()
    return office


def rule(office: Office, kind: str) -> None:
    body = {
        "name": kind,
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["refs/heads/main"], "exclude": []}},
        "rules": [{"type": kind}],
    }
    office.github.browser("ada").ask("POST", f"/repos/{REPO}/rulesets", body)


def test_linear_history(office: Office) -> None:
    """Results cannot be absorbed, and the one way to merge what waits is a squash, which counts."""
    rule(office, "required_linear_history")
    with pytest.raises(RefusedCall):
        office.github.browser("ada").merge(REPO, office.number())
    office.github.browser("ada").merge(REPO, office.number(), "squash")
    assert [one.outcome for one in office.send()] == ["sent"]
    with pytest.raises((Refused, Unreachable)):
        office.item(MAIL_GOAL.replace(b"id: release", b"id: another"))
    assert "another" in str(office.gitbus("ada", "goal", "list")), (
        "the goal stands, its results do not come in"
    )


def test_signed_commits(office: Office) -> None:
    """What is put up is not signed, so GitHub merges it by a squash alone; the conductor may not push at all."""
    rule(office, "required_signatures")
    with pytest.raises(RefusedCall):
        office.github.browser("ada").merge(REPO, office.number())
    office.github.browser("ada").merge(REPO, office.number(), "squash")
    with pytest.raises((Refused, Unreachable)):
        office.item(MAIL_GOAL.replace(b"id: release", b"id: another"))
