"""GitHub in trouble: late, limited, refusing, answering with errors after it did what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus.errors import Unreachable
from gitbus.forge.github.client import Client
from gitbus.forge.github.place import place_of
from tests.github.hub import GitHub, RefusedCall
from tests.github.office import REPO, Office, git, make_office
from tests.support.world import ITEM

pytestmark = pytest.mark.long

BRANCH = f"gitbus/approve/{ITEM}"
PULLS = "/repos/{owner}/{repo}/pulls"


@pytest.fixture
def office(github: GitHub, tmp_path: Path) -> Office:
    return make_office(github, tmp_path / "office")


def many(number: int) -> bytes:
    """Return a goal of so many items."""
    lines = [b"apiVersion: gitbus/v1\nkind: Goal\nid: many\ntasks:\n"]
    for at in range(number):
        lines.append(
            b"  m%d: {capability: compose, item: {channel: news, to: [a%d@partners.example], "
            b'subject: "No. %d", text: "${m%d.outputs.text}"}}\n' % (at, at, at, at)
        )
    return b"".join(lines)


def test_an_error_after_the_pull_request_was_made_makes_no_second_one(office: Office) -> None:
    office.github.faults.after("POST", PULLS, status=502)
    office.item()
    office.conduct()
    assert len(office.pulls()) == 1
    pull = office.github.pull(REPO, office.number())
    assert {"gitbus", "gitbus-open"} <= set(pull.labels)


def test_an_error_after_the_comment_was_made_makes_no_second_one(office: Office) -> None:
    office.item()
    office.github.faults.after("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", status=502)
    with office.bus("ada") as bus:
        bus.withdraw(ITEM, "not now")
    office.conduct()
    office.conduct()
    pull = office.github.pull(REPO, office.number())
    assert len(pull.comments) == 1
    assert "gitbus-open" not in pull.labels


def test_a_list_that_does_not_show_the_new_pull_request_yet(office: Office) -> None:
    office.item()
    office.github.faults.stale_api(6, lists_only=True)
    office.conduct()
    assert len(office.pulls()) == 1


def test_a_merge_that_the_api_does_not_know_yet(office: Office) -> None:
    office.item()
    office.sending()
    office.github.faults.stale_api(1000)
    office.github.browser("ada").merge(REPO, office.number())
    assert office.conduct() is not None
    assert office.state() == "approved"
    said = office.send()
    assert [one.outcome for one in said] == ["later"]
    office.github.faults.clear()
    assert [one.outcome for one in office.send()] == ["sent"]


def test_git_behind_the_api(office: Office) -> None:
    office.item()
    office.sending()
    number = office.number()
    office.github.faults.stale_git(8)
    office.github.browser("ada").merge(REPO, number)
    office.conduct()
    pull = office.github.pull(REPO, number)
    assert pull.comments == []
    assert "gitbus-open" in pull.labels
    office.github.faults.clear()
    assert [one.outcome for one in office.send()] == ["sent"]


def test_a_secondary_rate_limit_closes_the_door_and_stops_nothing_else(office: Office) -> None:
    office.github.faults.before("POST", PULLS, status=403, message="secondary rate limit", retry_after="60")
    office.item()
    assert office.pulls() == []
    assert office.state() == "awaiting_approval"
    office.conduct()
    assert len(office.pulls()) == 1


def test_the_primary_limit(office: Office) -> None:
    token = office.token("conductor")
    office.github.faults.primary_limit("gitbus-conductor[bot]")
    office.item(token=token)
    assert office.state() == "awaiting_approval"
    assert any("rate limit" in one for one in office.conduct(token))
    assert office.pulls() == []
    office.conduct()
    assert len(office.pulls()) == 1


def test_a_limited_client_asks_nothing_until_the_door_opens(office: Office) -> None:
    now = [1000.0]
    place = place_of(office.github.remote(REPO), {}, certain=True)
    assert place is not None
    client = Client(place, office.token("conductor"), pace=False, clock=lambda: now[0])
    office.github.faults.before("GET", "", status=429, retry_after="60")
    with pytest.raises(Exception, match="rate limit"):
        client.get("/rate_limit")
    asked = office.github.calls.total()
    with pytest.raises(Exception, match="still used up"):
        client.get("/rate_limit")
    assert office.github.calls.total() == asked
    now[0] += 61
    assert client.get("/rate_limit")
    client.close()


@pytest.mark.parametrize("right", ["pull_requests", "issues"])
def test_a_token_without_a_right_says_which(office: Office, right: str) -> None:
    rights = {
        name: "read" if name in (right, "pull_requests") else "write"
        for name in office.apps["conductor"].rights
    }
    token = office.github.installation_token(office.apps["conductor"], rights)
    office.item(token=token)
    troubles = office.conduct(token)
    assert any("the token needs: pull_requests=write" in one for one in troubles), troubles
    assert office.state() == "awaiting_approval"


def test_no_token_at_all_goes_on_without_pull_requests(office: Office) -> None:
    with office.bus("conductor", GH_TOKEN="") as bus:
        conductor = bus.conductor()
        while conductor.tick():
            pass
        assert "no token" in conductor.forge.troubles[0]


def test_without_a_token_nobody_knows_which_bus_is_in_force(office: Office) -> None:
    office.item()
    office.sending()
    office.github.browser("ada").merge(REPO, office.number())
    with office.bus("sender", GH_TOKEN="") as bus:
        assert "only GitHub knows" in bus.bus_problems()[0]["message"] or "no token" in str(
            bus.bus_problems()
        )
        with pytest.raises(Unreachable) as unreachable, bus.sender({}) as sender:
            sender.round()
    assert unreachable.value.rule == "unasked"
    assert office.messages() == []


def test_three_hundred_open_items(office: Office) -> None:
    office.item(many(300))
    assert len([one for one in office.pulls() if one.state == "open"]) == 300
    before = office.github.calls.total()
    office.conduct()
    assert office.github.calls.total() - before <= 60
    assert len(office.pulls()) == 300


def test_two_merged_within_a_second(office: Office) -> None:
    office.item(many(2))
    office.sending()
    ada = office.github.browser("ada")
    for name in ("many.m0.item", "many.m1.item"):
        ada.merge(REPO, office.number(f"gitbus/approve/{name}"))
    assert sorted(one.outcome for one in office.send()) == ["sent", "sent"]
    assert office.findings() == []


def test_a_branch_that_somebody_deleted_is_no_rejection(office: Office) -> None:
    office.item()
    number = office.number()
    office.github.browser("bob").delete_branch(REPO, BRANCH)
    assert office.github.pull(REPO, number).state != "open"
    office.conduct()
    assert office.state() == "awaiting_approval"
    assert office.github.pull(REPO, office.number()).state == "open"
    office.sending()
    office.github.browser("ada").merge(REPO, office.number())
    assert [one.outcome for one in office.send()] == ["sent"]


def test_who_closes_and_tidies_up_afterwards_has_rejected(office: Office) -> None:
    office.item()
    number, ada = office.number(), office.github.browser("ada")
    ada.close(REPO, number)
    office.clock.forward(seconds=20)
    ada.delete_branch(REPO, BRANCH)
    office.conduct()
    assert office.state() == "rejected"
    assert BRANCH not in {one.removeprefix("refs/heads/") for one in office.refs()}


def test_reopened_and_merged(office: Office) -> None:
    office.item()
    office.sending()
    ada, number = office.github.browser("ada"), office.number()
    ada.close(REPO, number)
    ada.reopen(REPO, number)
    office.conduct()
    ada.merge(REPO, number)
    assert [one.outcome for one in office.send()] == ["sent"]


def test_brought_up_to_date_before_it_was_merged(office: Office) -> None:
    office.item()
    office.sending()
    ada, number = office.github.browser("ada"), office.number()
    ada.update_branch(REPO, number)
    office.conduct()
    ada.merge(REPO, number)
    assert [one.outcome for one in office.send()] == ["sent"]
    assert office.findings() == []
    office.conduct()
    assert "**Sent**" in office.github.pull(REPO, number).comments[-1].body


def test_a_branch_that_somebody_pushed_to_is_put_right(office: Office) -> None:
    office.item()
    flip = office.refs()[f"refs/heads/{BRANCH}"]
    place = office.clone("bob", office.token("bob"))
    git(place, "fetch", "-q", "origin", BRANCH)
    git(place, "checkout", "-q", "-B", "work", "FETCH_HEAD")
    (place / "outbox" / ITEM / "approval.yaml").write_text("kind: Approval\n", "utf-8")
    git(place, "commit", "-q", "-a", "--amend", "--no-edit")
    git(place, "push", "-q", "--force", "origin", f"work:{BRANCH}")
    office.conduct()
    assert office.refs()[f"refs/heads/{BRANCH}"] == flip
    assert office.github.pull(REPO, office.number()).head == flip


def test_one_that_conflicts_cannot_be_merged_and_is_closed(office: Office) -> None:
    """It was rejected from a terminal while its pull request was open: the button has nothing to merge."""
    office.item()
    number = office.number()
    with office.bus("ada") as bus:
        bus.reject(ITEM, "too early")
    with pytest.raises(RefusedCall) as refused:
        office.github.browser("ada").merge(REPO, number)
    assert refused.value.status == 405
    office.conduct()
    pull = office.github.pull(REPO, number)
    assert (pull.state, pull.merged) == ("closed", None)
    assert "**Rejected.**" in pull.comments[-1].body
    assert office.state() == "rejected"
    assert office.findings() == []


def test_a_vandalised_page_is_mended(office: Office) -> None:
    office.item()
    number, bob = office.number(), office.github.browser("bob")
    bob.change(REPO, number, title="Merge me quickly", body="Nothing to see")
    office.conduct()
    pull = office.github.pull(REPO, number)
    assert pull.title.startswith("Approve ")
    assert "approval.yaml" in pull.body
