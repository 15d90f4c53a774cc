"""The text of a pull request: all that is approved, all that a merge does, never too long, nothing injected."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitbus.board import Board, ItemBoard
from gitbus.forge.github.body import LABELS, Draft, draft, is_current
from gitbus.forge.github.drawing import FEW, drawing
from gitbus.records import Item, Message, Review
from gitbus.records.item import Score
from tests.forge.pages import (
    ITEM,
    NOW,
    Read,
    make_board,
    make_bus,
    make_file,
    make_goal,
    make_item,
    make_result,
    page,
    read_page,
    references,
    to_html,
)
from tests.forge.test_markdown import texts

GITHUB_TAKES = 65_536
TAGS = {"p", "br", "strong", "em", "code", "pre", "h3", "ul", "li", "a"}


def put_up(*items: Item, bus: Any = None, result: Any = None, sending: bool = True, **contents: str) -> Draft:
    """Return the draft of these items; the text of each is ``text``."""
    goals = (make_goal(results={"mail": result} if result else {}),)
    board = make_board(*items, bus=bus, goals=goals)
    given = {path.replace("_", "."): text.encode("utf-8", "surrogatepass") for path, text in contents.items()}
    return draft(board, [one.id for one in items], {one.id: given for one in items}, page(), sending=sending)


def seen(made: Draft) -> str:
    """Return all that a reader sees, with single spaces."""
    read = read_page(made.body)
    return " ".join(re.sub(r"<[^>]*>", "", to_html(made.body)).split()) if read else ""


def is_harmless(read: Read) -> None:
    """Check that a page holds only what gitbus writes."""
    assert read.names <= TAGS
    assert references(read.prose) == []
    for href, shown in read.links:
        assert href.startswith("https://github.com/acme/bus/") or href == shown


# --- one item


def test_it_shows_the_message() -> None:
    message = Message.model_validate(
        {
            "from": "Acme News <news@acme.example>",
            "to": ["list@partners.example", "bob@partners.example"],
            "cc": ["cc@acme.example"],
            "bcc": ["bcc@acme.example"],
            "reply_to": "help@acme.example",
            "subject": "Release 1.0",
            "headers": {"X-Campaign": "release"},
        }
    )
    made = put_up(make_item(message=message, send_at=NOW), body_txt="Hello,\nworld\n")
    head, text = read_page(made.body).codes[1:4:2]
    assert head == (
        "Channel:    news (smtp, smtp.acme.example)\n"
        "From:       Acme News <news@acme.example>\n"
        "To:         list@partners.example\n"
        "            bob@partners.example\n"
        "Cc:         cc@acme.example\n"
        "Bcc:        bcc@acme.example\n"
        "Reply-To:   help@acme.example\n"
        "Subject:    Release 1.0\n"
        "X-Campaign: release\n"
        "Not before: 2026-11-30 20:05 UTC\n"
    )
    assert text == "Hello,\nworld\n"
    assert made.title == f"Approve {ITEM}: Release 1.0"
    assert made.labels == {"gitbus"} <= set(LABELS)


def test_it_shows_the_files() -> None:
    html, image = b"<h1>Hi</h1><img src=https://evil.example/x.png>", b"\x89PNG"
    item = make_item(
        payload=(
            make_file("html", "body.html", html, media_type="text/html"),
            make_file("json", "body.json", b'{"a": 1}'),
            make_file("attachment", "attachments/chart.png", image, name="Chart.png", media_type="image/png"),
        )
    )
    made = put_up(item, body_html=html.decode(), body_json='{"a": 1}')
    read = read_page(made.body)
    assert "evil.example" not in made.body
    assert '{"a": 1}\n' in read.codes
    assert f"{len(html)} bytes; it is not drawn here" in seen(made)
    assert item.payload[2].sha256 in read.codes
    at_head = f"https://github.com/acme/bus/blob/{page().head}/outbox/{ITEM}"
    assert (f"{at_head}/body.html", "body.html") in read.links
    assert (f"{at_head}/attachments/chart.png", "attachments/chart.png") in read.links


def test_it_shows_why_somebody_thinks_that_it_should_be_sent() -> None:
    result = make_result(
        evidence=[
            {"id": "e1", "kind": "commit", "ref": "1a2b3c4d"},
            {"id": "e2", "kind": "url", "ref": "https://bugs.acme.example/12"},
            {"id": "e3", "kind": "quote", "ref": "it works", "note": "from the list"},
            {"id": "e4", "kind": "file", "ref": "goals/release-1-0/results/gather.yaml"},
            {"id": "e5", "kind": "url", "ref": "https://github.com/acme/other/issues/1"},
        ],
        claims=[
            {"text": "It is fixed.", "provenance": "FACT", "evidence": ["e1", "e2", "e4", "e5"]},
            {"text": "They like it.", "provenance": "OPINION", "evidence": ["e3"]},
        ],
    )
    scores = (Score(by="producer", value=0.92), Score(by="evidence", value=0.95, note="2 of 2"))
    made = put_up(make_item(scores=scores), result=result)
    shown, links = seen(made), dict(reversed(link) for link in read_page(made.body).links)
    assert "confidence 0.92: producer 0.92, evidence 0.95 (2 of 2)" in shown
    assert "FACT It is fixed. ← commit 1a2b3c4d, url https://bugs.acme.example/12" in shown
    assert "OPINION They like it. ← quote it works (from the list)" in shown
    assert links["1a2b3c4d"] == "https://github.com/acme/bus/commit/1a2b3c4d"
    assert "goals/release-1-0/results/gather.yaml" in links
    assert "https://github.com/acme/other/issues/1" not in links
    assert make_item(scores=scores).digest in shown


def test_it_says_what_happens() -> None:
    item = make_item(send_at=NOW)
    made = put_up(item, bus=make_bus(sending={"hold": "10m"}, approval={"proof": "github", "quorum": 2}))
    shown = seen(made)
    for words in (
        "Merge: it is sent to 1 recipient through news (smtp, smtp.acme.example), not before 2026-11-30 20:05 UTC, "
        "after 10m in which it can be withdrawn.",
        "Close without merging: it is rejected. Your last comment is the reason.",
        "Request changes in a review: the workers do it again, with your words.",
        "Edit body.txt on this branch: it becomes a new revision",
        "Do nothing: it expires on 2026-12-07 20:05 UTC and is not sent.",
        "Sending is on",
        "It takes 2 approvers",
    ):
        assert words in shown
    edit = next(href for href, text in read_page(made.body).links if "/edit/" in href)
    assert edit == f"https://github.com/acme/bus/edit/gitbus/approve/{ITEM}/outbox/{ITEM}/body.txt"
    assert "Sending is off" in seen(put_up(item, sending=False))


def test_a_bus_that_believes_signatures_alone_says_that_a_merge_here_does_nothing() -> None:
    made = put_up(make_item(), bus=make_bus(approval={"proof": "signature"}))
    assert f"Merge here: nothing. This bus counts signed merges only: gitbus approve {ITEM}" in seen(made)


def test_who_stands_behind_the_worker_is_named() -> None:
    bus = make_bus(workers={"laptop": {"person": "rita"}})
    made = put_up(make_item(state="in_review", confidence=0.5), bus=bus)
    assert "Behind the worker that made it stands rita, who therefore does not count." in seen(made)
    assert "Needed from the reviewers (ada)" in seen(made)
    allowed = make_bus(
        workers={"laptop": {"person": "rita"}}, approval={"proof": "github", "allow_producer": True}
    )
    assert "stands rita" not in seen(put_up(make_item(), bus=allowed))


def test_what_needs_a_review_says_so_first() -> None:
    made = put_up(make_item(state="in_review", confidence=0.5))
    assert made.title.startswith(f"Needs review, then approval: {ITEM}")
    assert made.body.splitlines()[0].startswith("**⚠ This needs a review before a merge counts.**")
    assert f"gitbus review {ITEM} --ok" in read_page(made.body).codes
    assert made.labels == {"gitbus", "low-confidence"}
    assert "needs a review" not in put_up(make_item()).body


def test_reviews_are_shown_with_the_revision_that_they_are_of() -> None:
    item = make_item(revision=2)
    given = {
        name: Review(
            item=ITEM,
            revision=revision,
            digest=item.digest,
            person=name,
            verdict="ok",
            note="fine @you",
            at=NOW,
        )
        for name, revision in (("ada", 2), ("rita", 1))
    }
    board = Board(make_bus(), "1f" * 20, {}, {ITEM: ItemBoard(ITEM, item, reviews=given)})
    made = draft(board, [ITEM], {}, page(), sending=True)
    assert "ada said ok: fine @you" in seen(made)
    assert "rita said ok to an older revision: fine @you" in seen(made)


def test_a_long_text_is_cut_with_a_link_to_the_whole() -> None:
    text = "All work and no play.\n" * 5000
    made = put_up(make_item(text=text), body_txt=text)
    assert "Cut here: the whole of it is in body.txt." in seen(made)
    assert GITHUB_TAKES > len(made.body) > 40_000


def test_wrapped_lines_are_said_to_be() -> None:
    assert "as it will arrive (long lines are wrapped here):" in seen(put_up(make_item(), body_txt="a " * 60))
    assert "as it will arrive:" in seen(put_up(make_item(), body_txt="a"))


def test_a_text_that_is_none_is_a_link() -> None:
    made = put_up(make_item(), body_txt="a\x00b")
    assert "Text: body.txt, 6 bytes." in seen(made)


def test_what_is_not_on_the_board_has_no_page() -> None:
    with pytest.raises(ValueError, match="not on the board"):
        draft(make_board(), [ITEM], {}, page(), sending=True)


# --- many items


def batch(number: int, goal: str = "release-1-0", **fields: Any) -> list[Item]:
    """Return items of a loop that are approved together."""
    names = [f"{goal}.mail-{at}.item" for at in range(number)]
    return [make_item(name, together=f"{goal}.mail", **fields) for name in names]


def test_a_batch_has_a_section_for_each_item() -> None:
    items = [*batch(3), make_item("release-1-0.mail-x.item", together="release-1-0.mail", state="in_review")]
    made = put_up(*items, body_txt="Hello\n")
    heads = re.findall(r"^### (\d+)\. `(.*)`( needs a review)?$", made.body, re.MULTILINE)
    assert [name for _, name, _ in heads] == [one.id for one in items]
    assert [low for _, _, low in heads] == ["", "", "", " needs a review"]
    assert made.title == "Needs review (1 of 4), then approval: 4 items of release-1-0.mail"
    assert "1 of these 4 items needs a review before a merge counts." in seen(made)
    assert "4 items are sent to 4 recipients" in seen(made)
    assert "all of them are rejected" in seen(made)


def test_500_items_are_a_list() -> None:
    made = put_up(*batch(500), body_txt="Hello\n" * 1000)
    assert len(made.body) <= GITHUB_TAKES
    assert made.body.count("list@partners.example") == 500
    is_harmless(read_page(made.body))


def test_what_there_is_no_room_for_is_counted() -> None:
    items = [make_item(f"{'g' * 48}.{f't{at}':x<48}.{'n' * 48}", together="a.mail") for at in range(500)]
    made = put_up(*items)
    listed = made.body.count("\n- `gggg")
    assert len(made.body) <= GITHUB_TAKES
    assert f"… and {500 - listed} more, which only the diff shows." in made.body
    assert listed > 100


@pytest.mark.parametrize(
    ("number", "char"),
    [
        *((number, char) for number in (1, 20) for char in ("a", "\n", "\u200b", "🎉", "`", "a\n")),
        pytest.param(200, "🎉", marks=pytest.mark.long),
    ],
)
def test_no_page_is_too_long(number: int, char: str) -> None:
    huge = char * 5000
    message = Message(to=(huge,) * 50, cc=(huge,) * 50, subject=huge, headers={huge + "x": huge})
    claims = [{"text": huge, "provenance": "FACT", "evidence": ["e"]}] * 100
    result = make_result(evidence=[{"id": "e", "kind": "quote", "ref": huge, "note": huge}], claims=claims)
    more = {"message": message, "scores": (Score(by=huge, value=0.1, note=huge),) * 50, "reason": huge}
    items = batch(number, state="in_review", **more)
    goals = (make_goal(states={"mail": "done"}, results={f"mail-{at}": result for at in range(number)}),)
    contents = {one.id: {"body.txt": huge.encode()} for one in items}
    made = draft(make_board(*items, goals=goals), [one.id for one in items], contents, page(), sending=True)
    assert len(made.title) <= 256
    assert len(made.body) + made.body.count("\n") <= GITHUB_TAKES
    assert len(made.body.encode("utf-16-le")) // 2 <= GITHUB_TAKES


# --- nothing that others wrote does anything


records = texts.map(lambda text: text.replace("\ud800", ""))  # no record can hold half a character


@settings(max_examples=40, deadline=None)
@given(records, records, records, st.lists(records, min_size=1, max_size=3))
def test_nothing_that_others_wrote_does_anything(one: str, other: str, text: str, some: list[str]) -> None:
    message = Message.model_validate(
        {"from": one, "to": some, "cc": [other], "reply_to": text, "subject": other, "headers": {one: text}}
    )
    item = make_item(
        state="in_review",
        message=message,
        reason=other,
        scores=(Score(by=one, value=0.5, note=text),),
        payload=(
            make_file("text", "body.txt", b"x"),
            make_file("attachment", "attachments/a", b"x", name=one, media_type=other),
        ),
    )
    kinds = ("commit", "url", "file", "command", "quote")
    result = make_result(
        evidence=[{"id": f"e{at}", "kind": kind, "ref": text, "note": one} for at, kind in enumerate(kinds)],
        claims=[{"text": other, "provenance": "FACT", "evidence": [f"e{at}" for at in range(5)]}],
    )
    made = put_up(item, result=result, body_txt=text)
    is_harmless(read_page(made.body))
    assert references(made.title) == []


# --- the picture


def test_the_picture_shows_tasks_and_items_by_number() -> None:
    board = make_board(make_item(), goals=(make_goal(),))
    drawn = (drawing(board, board.goals["release-1-0"], [ITEM]) or "").splitlines()
    assert drawn[:2] == ["```mermaid", "graph LR"]
    for line in (
        '  n0["gather<br/>done"]:::done',
        '  n4["end<br/>unreleased"]:::unreleased',
        "  n0 --> n1",
        "  n2 -.-> n3",
        '  i0(["announce<br/>awaiting_approval"]):::item',
        "  n3 ==> i0",
    ):
        assert line in drawn


def loop(number: int) -> Board:
    """Return a board with a loop of so many tasks."""
    tasks = {
        "mail": {"capability": "x", "foreach": {"in": list(range(number)), "max": 1000}},
        "after": {"capability": "x", "needs": ["mail"]},
    }
    states = {f"mail-{at}": "done" if at else "ready" for at in range(number)}
    goal = make_goal(tasks=tasks, states=states)
    return make_board(*batch(number), goals=(goal,))


def test_a_large_loop_is_one_node() -> None:
    board = loop(FEW + 1)
    drawn = drawing(board, board.goals["release-1-0"], list(board.items)) or ""
    assert f'["mail × {FEW + 1}<br/>1 ready, {FEW} done"]:::ready' in drawn
    assert f'(["{FEW + 1} items"])' in drawn
    assert drawn.count("==>") == 1


def test_a_small_loop_is_drawn_task_by_task() -> None:
    board = loop(FEW)
    drawn = drawing(board, board.goals["release-1-0"], list(board.items)) or ""
    assert drawn.count("==>") == FEW
    assert drawn.count(" --> ") == FEW


def test_of_a_large_goal_only_what_the_item_rests_on_is_drawn() -> None:
    tasks: dict[str, Any] = {f"t{at}": {"capability": "x"} for at in range(300)}
    tasks["mail"] = {"capability": "x", "needs": ["t1"]}
    board = make_board(make_item(), goals=(make_goal(tasks=tasks, states={}),))
    drawn = drawing(board, board.goals["release-1-0"], [ITEM]) or ""
    assert re.findall(r'"(\S+)<br/>', drawn) == ["t1", "mail", "announce"]
    tasks["mail"]["needs"] = [f"t{at}" for at in range(300)]
    wide = make_board(make_item(), goals=(make_goal(tasks=tasks, states={}),))
    assert drawing(wide, wide.goals["release-1-0"], [ITEM]) == "301 tasks: 301 unreleased."


def test_the_picture_alone_is_no_reason_to_write_anew() -> None:
    item = make_item()
    one = draft(make_board(item, goals=(make_goal(),)), [ITEM], {}, page(), sending=True).body
    later = make_goal(states={"gather": "done", "write": "done", "mail": "done", "end": "assigned"})
    other = draft(make_board(item, goals=(later,)), [ITEM], {}, page(), sending=True).body
    assert one != other
    assert is_current(one.replace("\n", "\r\n"), other)
    assert not is_current(one, draft(make_board(item), [ITEM], {}, page(), sending=False).body)
    assert not is_current(None, one)


def test_expiry_of_a_batch_is_the_first() -> None:
    soon = datetime(2026, 12, 1, tzinfo=UTC)
    items = [make_item(f"a.mail-{at}.item", expires_at=soon + timedelta(days=at)) for at in range(2)]
    assert "the first of them expires on 2026-12-01 00:00 UTC" in seen(put_up(*items))
