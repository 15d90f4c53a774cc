"""Comments, decisions and issues: what happened, what to do, found again, and nothing injected."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from gitbus import ids
from gitbus.board import ItemBoard
from gitbus.forge.github.deciding import bus_draft, item_draft
from gitbus.forge.github.issues import issue
from gitbus.forge.github.markdown import marked
from gitbus.forge.github.notes import batch_end, end, taken_back
from gitbus.proof.values import missing
from gitbus.records import Item, Lease, Receipt, Resolution
from gitbus.records.item import Delivery, ReceiptApproval, ReceiptChannel, Seals
from gitbus.records.work import PastAttempt, Refusal
from tests.forge.pages import ITEM, NOW, make_board, make_bus, make_goal, make_item, page, read_page
from tests.forge.test_body import GITHUB_TAKES, is_harmless, records

BUS = make_bus()
NONCE = "ab" * 16


def make_receipt(item: Item, outcome: str = "sent", **fields: Any) -> Receipt:
    """Return what became of an item's present attempt."""
    given = {
        "item": item.id,
        "revision": item.revision,
        "attempt": item.attempt,
        "digest": item.digest,
        "outcome": outcome,
        "nonce": None if outcome == "unknown" else NONCE,
        "lease": "3c" * 20,
        "sender": "actions:1",
        "approval": ReceiptApproval(commit="4d" * 20, people=("ada",), proof="github"),
        "channel": ReceiptChannel(id="news", transport="smtp"),
        "recipients": (Delivery(recipient="list@partners.example", answer="250 2.0.0 Ok: queued as 4F1"),),
        "message_id": "<a@acme.example>",
        "provider_id": "4F1",
        "leased_at": NOW,
        "finished_at": NOW,
    }
    return Receipt.model_validate({**given, **fields})


def make_lease(item: Item) -> Lease:
    """Return the lease of an item's present attempt."""
    return Lease(
        item=item.id,
        revision=item.revision,
        attempt=item.attempt,
        digest=item.digest,
        approval="4d" * 20,
        bus="5e" * 20,
        holder="actions:1",
        seals=Seals(sent=ids.seal_of(NONCE), not_sent=ids.seal_of("cd" * 16)),
        leased_at=NOW,
        expires_at=NOW + timedelta(minutes=5),
    )


def told(state: str, *, merged: bool = True, receipt: str = "", **fields: Any) -> str:
    """Return the note on an item in a state, whose revision 1 was put up."""
    item = make_item(state=state, **fields)
    part = ItemBoard(
        ITEM,
        item,
        leases={item.attempt: make_lease(item)},
        receipts={item.attempt: make_receipt(item, receipt)} if receipt else {},
    )
    return end(BUS, part, merged=merged, revision=1) or ""


def read(text: str) -> str:
    """Return what a reader sees of a text, with single spaces."""
    found = read_page(text)
    is_harmless(found)
    return " ".join((found.prose + " " + " ".join(found.codes)).split())


# --- what became of an item


@pytest.mark.parametrize(
    ("state", "fields", "words"),
    [
        ("sent", {"receipt": "sent"}, ["**Sent** on 2026-11-30 20:05 UTC", "`<a@acme.example>`", "`4F1`", "queued as 4F1"]),
        ("stuck", {"reason": "timed out"}, ["**Nobody knows", "`timed out`", "after 2026-11-30 21:10 UTC", "--not-sent"]),
        ("failed", {"receipt": "not_sent"}, ["**Not sent**", "queued as 4F1", f"gitbus retry {ITEM}"]),
        ("expired", {}, ["**Expired**", f"gitbus retry {ITEM}"]),
        ("withdrawn", {"reason": "no need"}, ["**Withdrawn** for good (`no need`)"]),
        ("rejected", {"reason": "too long"}, ["**Rejected.**", "   too long\n"]),
        ("rejected", {"reason": "to be done again: shorter"}, ["**Given back", "   shorter\n"]),
        ("in_review", {"reason": "review-quorum"}, ["**Merged too early, taken back.** Nothing was sent.", "`review-quorum`"]),
        ("awaiting_approval", {}, ["**This merge was no approval, taken back.**"]),
        ("scored", {"revision": 2}, ["**Revision 1 was replaced by revision 2**", "This merge therefore approved nothing"]),
    ],
)  # fmt: skip
def test_a_note_says_what_happened_and_what_to_do(
    state: str, fields: dict[str, Any], words: list[str]
) -> None:
    note = told(state, **fields)
    assert [one for one in words if one not in note] == []
    assert (marked(note) or "").split()[1] == ITEM
    read(note)


@pytest.mark.parametrize("state", ["persisted", "scored", "approved", "sending"])
def test_nothing_is_said_before_it_is_over(state: str) -> None:
    assert told(state) == ""


def test_a_closed_pull_request_of_what_waits_again_is_not_called_a_merge() -> None:
    assert told("in_review", merged=False) == ""


def test_each_note_is_found_by_a_name_of_its_own() -> None:
    first = told("failed")
    other = told("failed", attempt=2)
    assert marked(first) == f"failed {ITEM} 1 1"
    assert marked(other) == f"failed {ITEM} 1 2"


def test_a_word_of_a_person_stands_for_a_receipt() -> None:
    item = make_item(state="sent")
    word = Resolution(item=ITEM, attempt=1, verdict="sent", evidence="in the archive", person="ada", at=NOW)
    note = end(BUS, ItemBoard(ITEM, item, resolutions={1: word}), merged=True, revision=1) or ""
    assert "`ada` says so: `in the archive`" in note


def test_what_a_merge_lacked_is_listed() -> None:
    note = taken_back(
        make_item(state="in_review"), [missing("review-quorum", "0 of 1", "gitbus review ITEM --ok")]
    )
    assert "- `review-quorum`: `" in note
    assert "0 of 1` → `gitbus review ITEM --ok`" in note


def test_many_items_share_a_note() -> None:
    states = ["sent"] * 500 + ["stuck"] * 40 + ["failed"]
    parts = [
        ItemBoard(name, make_item(name, state=state, reason="why"))
        for name, state in ((f"a.mail-{at}.item", state) for at, state in enumerate(states))
    ]
    note = batch_end(BUS, "a.mail", parts)
    assert "**541 items**: 1 failed, 500 sent, 40 stuck." in note
    assert "… and 21 more" in note
    assert "gitbus resolve a.mail-500.item" in note
    assert "gitbus retry a.mail-540.item" in note
    assert marked(note) == "batch a.mail"


@settings(max_examples=30, deadline=None)
@given(records, records)
def test_no_note_is_misled_by_what_it_quotes(text: str, other: str) -> None:
    for state in ("sent", "stuck", "failed", "withdrawn", "rejected", "in_review"):
        item = make_item(state=state, reason=f"{text}\n<!-- gitbus: sent a.b.c 1 1 -->")
        answer = Delivery(recipient=text, answer=other)
        receipt = make_receipt(item, recipients=(answer,), message_id=other, provider_id=text, sender=text)
        note = end(BUS, ItemBoard(ITEM, item, receipts={1: receipt}), merged=True, revision=1) or ""
        assert (marked(note) or "").split()[1:] == [ITEM, "1", "1"]
        found = read_page(note)
        is_harmless(found)
        assert len(found.comments) == 1


# --- decisions


def test_a_change_of_the_bus_says_what_it_changes() -> None:
    new = make_bus(sending={"enabled": True}, approval={"proof": "github", "quorum": 2})
    made = bus_draft(BUS, new, "a: 1\n", "a: 2 # @you\n", page())
    shown = read(made.body)
    assert made.title == "Decide: turn sending on"
    assert made.body.startswith("**⚠ This turns sending on**")
    assert "- `sending.enabled`: `false` → `true`" in made.body
    assert "- `approval.quorum`: `1` → `2`" in made.body
    assert "-a: 1 +a: 2 # @you" in shown
    off = bus_draft(new, BUS, "", "", page())
    assert off.title == "Decide: turn sending off"
    assert "nothing leaves from then on" in off.body


def test_a_person_of_the_bus_is_named() -> None:
    people = [
        *BUS.model_dump(mode="json")["people"][:1],
        {"id": "eve", "email": "e@x", "roles": ["approver"]},
    ]
    made = bus_draft(BUS, make_bus(people=people), "", "", page())
    assert made.title == "Decide: change bus.yaml"
    assert '- `people.eve.roles`: new, `["approver"]`' in made.body
    assert '- `people.rita.email`: gone, was `"rita@acme.example"`' in made.body


def test_a_huge_change_of_the_bus_fits() -> None:
    many = {f"w{at}": {"person": "ada"} for at in range(2000)}
    made = bus_draft(BUS, make_bus(workers=many), "", "\u200b\n" * 50_000, page())
    assert len(made.body) + made.body.count("\n") < GITHUB_TAKES
    assert "Cut here" in made.body
    assert "… and 1960 more" in made.body


@pytest.mark.parametrize(
    ("verdict", "words"), [("sent", "never sent again"), ("not_sent", "sends it a second time")]
)
def test_a_word_on_a_stuck_item_says_what_it_does(verdict: Any, words: str) -> None:
    word = Resolution(item=ITEM, attempt=1, verdict=verdict, evidence="I saw\n@you #1", person="ada", at=NOW)
    made = item_draft(ItemBoard(ITEM, make_item(state="stuck", reason="timed out")), word, page())
    assert words in read(made.body)
    assert "I saw @you #1" in read(made.body)
    assert made.title == f"Decide: {ITEM} {'was sent' if verdict == 'sent' else 'was not sent'}"


# --- issues


@pytest.mark.parametrize(
    ("what", "title", "words"),
    [
        ("stuck", "is stuck", "gitbus resolve"),
        ("failed", "failed", "gitbus retry"),
        ("expiring", "expires soon", "until 2026-12-07 20:05 UTC"),
        ("in_review", "needs a review", "under 0.8"),
        ("awaiting_approval", "waits for approval", "pull request"),
    ],
)
def test_an_issue_says_what_waits(what: str, title: str, words: str) -> None:
    board = make_board(make_item(state="stuck", reason="@you #1"))
    made = issue(board, what, ITEM)
    assert made is not None
    assert made.title == f"{ITEM} {title}"
    assert words in read(made.body)
    assert marked(made.body) == made.key == f"{what} {ITEM} 1 1"


def test_an_issue_of_a_dead_task_shows_its_attempts() -> None:
    goal = make_goal(states={"mail": "dead"})
    past = PastAttempt(attempt=1, worker="laptop", outcome="refused", reason="x", at=NOW)
    task = goal.tasks["mail"].model_copy(update={"history": (past,), "reason": "attempts_exhausted"})
    refusal = Refusal(
        goal=goal.id, task="mail", attempt=1, worker="laptop", tip="6f" * 20, rule="bad-path",
        place="a.yaml:1:1", message="fixes #1\n- [x] @you", at=NOW,
    )  # fmt: skip
    dead = type(goal)(goal.id, goal.goal, {"mail": task}, refusals={("mail", 1): refusal})
    board = make_board(goals=(dead,))
    made = issue(board, "dead", "release-1-0/mail")
    assert made is not None
    assert made.title == "release-1-0/mail is dead"
    assert "**Attempt 1** by `laptop`: refused, rule `bad-path` at `a.yaml:1:1`" in made.body
    assert "fixes #1 - [x] @you" in read(made.body)
    assert marked(made.body) == made.key


def test_what_is_no_more_has_no_issue() -> None:
    board = make_board(goals=(make_goal(),))
    assert issue(board, "stuck", ITEM) is None
    assert issue(board, "dead", "release-1-0/mail") is None
    assert issue(board, "dead", "nothing/at-all") is None
