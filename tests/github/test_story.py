"""The way of an item on GitHub: through pull requests only, from the goal to the receipt."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitbus import making
from gitbus.errors import Refused
from gitbus.proof.messages import trailers
from tests.github.hub import GitHub
from tests.github.office import REPO, Office, make_office
from tests.journeys.driving import UNKNOWN, send
from tests.support.world import ITEM


@pytest.fixture
def office(github: GitHub, tmp_path: Path) -> Office:
    return make_office(github, tmp_path / "office")


def test_from_goal_to_receipt_through_pull_requests_only(office: Office) -> None:
    office.item()
    pull = office.github.pull(REPO, office.number())
    assert pull.title.startswith(f"Approve {ITEM}: ")
    assert {"gitbus", "gitbus-open"} <= set(pull.labels)
    assert set(pull.reviewers) == {"ada", "bob"}
    assert "merge its pull request" in office.gitbus("ada", "status")
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


def test_closing_rejects_with_the_last_comment_as_the_reason(office: Office) -> None:
    office.item()
    number, ada = office.number(), office.github.browser("ada")
    ada.comment(REPO, number, "Too long.\n@everybody")
    ada.close(REPO, number)
    office.conduct()
    with office.bus("ada") as bus:
        item = bus.board().items[ITEM].item
    assert item is not None
    assert (item.state, item.reason) == (
        "rejected",
        f"ada closed pull request #{number}: Too long. ＠everybody",
    )
    pull = office.github.pull(REPO, number)
    assert "**Rejected.**" in pull.comments[-1].body
    assert "gitbus-open" not in pull.labels
    assert f"refs/heads/gitbus/approve/{ITEM}" not in office.refs()
    assert office.findings() == []


@pytest.mark.long
def test_changes_asked_for_give_the_task_back_with_the_words(office: Office) -> None:
    office.item()
    first = office.number()
    office.github.browser("rita").review(REPO, first, "REQUEST_CHANGES", "Mention the parser.")
    office.conduct()
    with office.bus("ada") as bus:
        task = bus.whole_board().goals["release"].tasks["mail"]
        assert [(one.by, one.text) for one in task.feedback] == [("rita", "Mention the parser.")]
    office.work(text="Hello,\nthe parser is faster.\n")
    second = office.number()
    assert second != first
    assert "the parser is faster" in office.github.pull(REPO, second).body
    assert "**Given back to the workers**" in office.github.pull(REPO, first).comments[-1].body
    office.github.browser("ada").merge(REPO, second)
    office.sending()
    assert [one.outcome for one in office.send()] == ["sent"]
    assert office.findings() == []


@pytest.mark.long
def test_a_strangers_wish_for_changes_is_not_heard(office: Office) -> None:
    office.item()
    office.github.browser("mallory").review(REPO, office.number(), "REQUEST_CHANGES", "Send it to me.")
    office.conduct()
    assert office.state() == "awaiting_approval"


@pytest.mark.long
def test_an_edit_on_the_branch_becomes_a_revision_with_the_same_pull_request(office: Office) -> None:
    office.item()
    number = office.number()
    office.github.browser("ada").edit(
        REPO, f"gitbus/approve/{ITEM}", {f"outbox/{ITEM}/body.txt": "Hello,\nit is out now.\n"}
    )
    office.conduct()
    with office.bus("ada") as bus:
        item = bus.board().items[ITEM].item
        assert item is not None
        assert (item.revision, item.state) == (2, "awaiting_approval")
    pull = office.github.pull(REPO, number)
    assert "it is out now" in pull.body
    office.github.browser("ada").merge(REPO, office.number())
    office.sending()
    assert [one.outcome for one in office.send()] == ["sent"]
    assert b"it is out now" in office.messages()[0]
    assert office.findings() == []


@pytest.mark.long
def test_a_merge_that_came_before_its_review_is_taken_back(office: Office) -> None:
    office.item(confidence=0.5)
    first, ada = office.number(), office.github.browser("ada")
    pull = office.github.pull(REPO, first)
    assert pull.title.startswith("Needs review, then approval:")
    assert "low-confidence" in pull.labels
    assert "needs a review before a merge counts" in pull.body.split("\n")[0]
    assert set(pull.reviewers) == {"ada", "bob", "rita"}
    office.sending()
    ada.merge(REPO, first)
    office.conduct()
    assert office.state() == "in_review"
    assert "**Merged too early, taken back.**" in office.github.pull(REPO, first).comments[-1].body
    second = office.number()
    assert second != first
    assert office.send() == []
    office.github.browser("rita").review(REPO, second, "APPROVE")
    ada.merge(REPO, second)
    assert [one.outcome for one in office.send()] == ["sent"]
    assert office.findings() == []
    assert office.findings(online=True) == []


@pytest.mark.long
def test_the_evidence_in_the_receipt_is_enough_to_audit_without_asking(office: Office) -> None:
    office.item()
    office.sending()
    office.github.browser("ada").merge(REPO, office.number())
    office.send()
    before = office.github.calls.total()
    with office.bus("ada") as bus:
        found = bus.audit()
        assert office.github.calls.total() == before
        receipt = bus.board().items[ITEM].receipts[1]
    assert (found.findings, found.open, found.sent) == ((), (), 1)
    assert (found.proved, found.recorded) == (0, 1)
    assert receipt.approval.proof == "github"
    evidence = [one.evidence for one in receipt.approval.verified if one.assurance == "recorded"]
    assert [one["merged_by"]["login"] for one in evidence] == ["ada", "ada"]
    assert [one["head"] for one in evidence] == [f"gitbus/approve/{ITEM}", "gitbus/decide/bus"]


@pytest.mark.long
def test_a_stuck_item_is_resolved_by_a_pull_request(office: Office) -> None:
    office.item()
    office.sending()
    number = office.number()
    office.github.browser("ada").merge(REPO, number)
    with office.bus("sender") as bus:
        assert [one.outcome for one in send(bus, UNKNOWN)] == ["stuck"]
    office.conduct()
    pull = office.github.pull(REPO, number)
    assert {"stuck", "gitbus-open"} <= set(pull.labels)
    assert "**Nobody knows whether this was sent**" in pull.comments[-1].body
    with office.bus("ada") as bus:
        bus.propose_resolution(ITEM, "sent", "it is in the list's archive")
    office.conduct()
    decision = office.number(f"gitbus/decide/{ITEM}")
    assert "it was sent" in office.github.pull(REPO, decision).body
    office.github.browser("ada").merge(REPO, decision)
    office.conduct()
    assert office.state() == "sent"
    assert "stuck" not in pull.labels
    assert "gitbus-open" not in pull.labels
    assert f"refs/heads/gitbus/decide/{ITEM}" not in office.refs()
    assert office.findings(online=True) == []
    with office.bus("ada") as bus:
        offline = bus.audit()
    assert offline.findings == ()
    assert (ITEM, "unasked") in {(one.subject, one.state) for one in offline.open}


@pytest.mark.long
def test_a_resolution_that_another_person_merges_proves_nothing(office: Office) -> None:
    office.item()
    office.sending()
    office.github.browser("ada").merge(REPO, office.number())
    with office.bus("sender") as bus:
        send(bus, UNKNOWN)
    with office.bus("ada") as bus:
        bus.propose_resolution(ITEM, "sent", "it is in the list's archive")
    office.conduct()
    office.github.browser("rita").merge(REPO, office.number(f"gitbus/decide/{ITEM}"))
    assert any(
        one.startswith(("sent-unproved", "resolution-unproved")) for one in office.findings(online=True)
    )


@pytest.mark.long
def test_who_cannot_review_his_own_pull_request_signs_his_review(office: Office) -> None:
    key = making.make_key(office.folder / "keys" / "ada", "ada@acme.example")
    with office.bus("ada") as bus:
        bus.propose_config("people.0.keys", [key])
    office.conduct()
    office.github.browser("ada").merge(REPO, office.number("gitbus/decide/bus"))
    office.sending()
    office.item(confidence=0.4, token=office.token("ada"))
    making.use_key(
        office.folder / "clones" / "ada", office.folder / "keys" / "ada", "Ada", "ada@acme.example"
    )
    with office.bus("ada") as bus:
        done = bus.review(ITEM, "ok", "read it twice")
        assert done is not None
        assert not bus.approve([ITEM]).signed
    assert office.github.pull(REPO, office.number()).merged_by == "ada"
    assert [one.outcome for one in office.send()] == ["sent"]
    assert office.findings() == []


@pytest.mark.long
def test_the_command_line_merges_at_the_head_that_was_shown(office: Office) -> None:
    office.item()
    office.sending()
    said = office.gitbus("ada", "approve", ITEM, "--yes")
    assert f"approve {ITEM}" in said
    assert "merged on GitHub" in said
    assert office.github.pull(REPO, office.number()).merged_by == "ada"
    assert [one.outcome for one in office.send()] == ["sent"]
    assert "audit ok" in office.gitbus("ada", "audit", "--online")


@pytest.mark.long
def test_a_head_that_moved_since_is_not_merged(office: Office) -> None:
    office.item()
    with office.bus("bob") as bus:
        acting, flip = bus.forge.acting, office.refs()[f"refs/heads/gitbus/approve/{ITEM}"]
        assert acting is not None
        office.github.browser("ada").edit(
            REPO, f"gitbus/approve/{ITEM}", {f"outbox/{ITEM}/body.txt": "Another text\n"}
        )
        with pytest.raises(Refused) as refused:
            acting.merge(f"refs/heads/gitbus/approve/{ITEM}", flip)
        assert refused.value.rule == "head-moved"
        with pytest.raises(Refused) as stale:
            bus.approve([ITEM])
        assert stale.value.rule == "stale-branch"


@pytest.mark.long
def test_a_merge_whose_message_repeats_the_page_says_nothing_by_it(office: Office) -> None:
    """What a worker wrote comes into the message, as the repository is set; it is no trailer there."""
    office.github.browser("acme").ask("PATCH", f"/repos/{REPO}", {"merge_commit_message": "PR_BODY"})
    office.item(text=f"Hello.\n\nGitbus-Verb: resolve\nGitbus-Item: {ITEM}\n")
    office.sending()
    merged = office.github.browser("ada").merge(REPO, office.number())
    office.conduct()
    assert [(one.item, one.outcome) for one in office.send()] == [(ITEM, "sent")]
    with office.bus("ada") as bus:
        bus.board()
        message = bus.hub.store.commit(merged).message
    assert "Gitbus-Verb: resolve" in message
    assert trailers(message, "Gitbus-Verb") == trailers(message, "Gitbus-Item") == ()
    assert office.findings() == []
