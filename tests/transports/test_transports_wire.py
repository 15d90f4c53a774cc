"""The lines: what was written is read back, and nothing else is."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.transports.base import ROLES, Answer, Identity, Outgoing, Part, idempotency_key, message_id
from gitbus.transports.wire import (
    Garbage,
    answer_json,
    identity_json,
    line,
    outgoing_json,
    parse,
    read_answer,
    read_identity,
    read_outgoing,
    read_unusable,
    scrubber,
)

maybe = st.none() | st.text(max_size=20)
identities = st.builds(Identity, st.text(max_size=9), maybe, maybe, maybe, maybe, maybe, maybe)
answers = st.builds(
    Answer,
    outcome=st.just("not_sent"),
    reason=maybe,
    passing=st.booleans(),
    recipients=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    message_id=maybe,
    provider_id=maybe,
    identity=st.none() | identities,
) | st.builds(Answer, st.sampled_from(["sent", "unknown"]), maybe)
parts = st.builds(Part, st.sampled_from(ROLES), maybe, st.text(max_size=9), st.binary(max_size=50))
items = st.builds(
    Outgoing,
    st.text(max_size=20),
    st.integers(1, 99),
    st.text(max_size=20),
    st.text(max_size=20),
    st.fixed_dictionaries({"to": st.lists(st.text(max_size=9), max_size=2), "subject": maybe}),
    st.lists(parts, max_size=3).map(tuple),
)


@given(answers)
def test_answers_come_back(answer: Answer) -> None:
    row = line(answer_json(answer))
    assert row.count(b"\n") == 1
    assert read_answer(parse(row)["answer"]) == answer


@given(identities)
def test_identities_come_back(identity: Identity) -> None:
    assert read_identity(parse(line(identity_json(identity)))["identity"]) == identity


@given(items)
def test_items_come_back(item: Outgoing) -> None:
    assert read_outgoing(parse(line(outgoing_json(item)))) == item


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "sent",
        {},
        {"outcome": "SENT"},
        {"outcome": ["sent"]},
        {"outcome": "sent", "passing": 1},
        {"outcome": "sent", "passing": None},
        {"outcome": "unknown", "passing": True},
        {"outcome": "sent", "reason": 5},
        {"outcome": "sent", "recipients": ["a"]},
        {"outcome": "sent", "recipients": {"a": None}},
        {"outcome": "sent", "identity": {"host": "x"}},
        {"outcome": "sent", "more": 1},
    ],
)
def test_what_is_no_answer(value: Any) -> None:
    with pytest.raises(Garbage):
        read_answer(value)


@pytest.mark.parametrize(
    "row",
    [
        b"",
        b"[]",
        b"1",
        b"{",
        b'{"a":1,"a":2}',
        b"\xff",
        b"[" * 100_000,
        b'{"a":1}x',
        rb'{"a":"\ud800"}',
        rb'{"\udc00":1}',
    ],
)
def test_what_is_no_line(row: bytes) -> None:
    with pytest.raises(Garbage):
        parse(row)


@pytest.mark.parametrize(
    "change", [{"idempotency_key": "0" * 32}, {"revision": True}, {"parts": [{}]}, {"more": 1}]
)
def test_what_is_no_item(change: dict[str, Any]) -> None:
    value = outgoing_json(Outgoing("g.t.i", 1, "d", "2026-11-30T20:05:00Z", {}, ()))
    read_outgoing(value)
    with pytest.raises(Garbage):
        read_outgoing({**value, **change})


def test_unusable_has_a_rule_of_its_own() -> None:
    assert read_unusable({"message": "no"}).rule == "channel-unusable"
    with pytest.raises(Garbage):
        read_unusable({"rule": "x"})


@given(
    st.text(st.characters(codec="utf-8"), min_size=4, max_size=30), st.text(max_size=12), st.text(max_size=12)
)
def test_no_secret_comes_out(secret: str, before: str, after: str) -> None:
    scrub = scrubber({"KEY": secret})
    shown = scrub({"reason": f"{before}{secret}{after}", "more": [secret], "outcome": "sent"})
    assert shown["more"] == ["<KEY>"]
    assert shown["outcome"] == "sent"
    assert secret not in shown["reason"] or secret in "<KEY>" + before + after + "<KEY>"


@given(st.binary(max_size=9), st.text("abcdefgh0123456789", min_size=8, max_size=30), st.binary(max_size=9))
def test_no_secret_comes_out_as_sasl_sends_it(before: bytes, secret: str, after: bytes) -> None:
    sent = base64.b64encode(before + b"\0" + secret.encode() + b"\0" + after).decode()
    assert scrubber({"KEY": secret})(f"AUTH PLAIN {sent} no") == "AUTH PLAIN <KEY> no"


def test_a_short_secret_does_not_break_the_protocol() -> None:
    assert scrubber({"A": "sent", "B": "e"})({"outcome": "sent", "reason": "sent"}) == {
        "outcome": "sent",
        "reason": "sent",
    }


def test_names_depend_on_item_and_digest_alone() -> None:
    first = idempotency_key("g.t.i", "sha256:aa")
    assert first == Outgoing("g.t.i", 7, "sha256:aa", "later", {"subject": "x"}).idempotency_key
    assert len({first, idempotency_key("g.t.j", "sha256:aa"), idempotency_key("g.t.i", "sha256:ab")}) == 3
    assert message_id("g.t.i", "sha256:aa", "acme.example") == f"<{first}@acme.example>"
