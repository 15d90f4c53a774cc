"""A server that dies, aborts, falls silent or says no at every step: the outcome is exactly one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitbus.transports.base import Outgoing, Part, Unusable
from tests.support.smtpd import Authority, Scripted

pytestmark = pytest.mark.long

BEFORE = ("connect", "EHLO", "STARTTLS", "TLS", "EHLO2", "AUTH")
ENVELOPE = ("MAIL", "RCPT1", "RCPT2", "DATA")
DEATHS = ("fin", "rst", "silence")

NOT_SENT_PASSING = ("not_sent", True)
NOT_SENT_LASTING = ("not_sent", False)
UNKNOWN = ("unknown", False)
SENT = ("sent", False)

DEATH_TABLE = [
    *((step, death, NOT_SENT_PASSING) for step in (*BEFORE, *ENVELOPE, "text") for death in DEATHS),
    *((step, death, UNKNOWN) for step in ("dot", "answer") for death in DEATHS),
]
REPLY_TABLE = [
    *(
        (step, "451 4.3.0 later", NOT_SENT_PASSING)
        for step in (*BEFORE, *ENVELOPE, "answer")
        if step != "TLS"
    ),
    *(
        (step, "554 5.7.1 never", NOT_SENT_LASTING)
        for step in (*BEFORE, *ENVELOPE, "answer")
        if step != "TLS"
    ),
    *((step, "421 4.3.2 closing", NOT_SENT_PASSING) for step in (*ENVELOPE, "text", "answer")),
    ("text", "552 5.3.4 too big", NOT_SENT_LASTING),
    # No reply that RFC 5321 knows there: before the dot nothing was taken, after it nobody knows.
    *((step, "354 what?", NOT_SENT_PASSING) for step in ("MAIL", "RCPT1")),
    ("DATA", "250 ok", NOT_SENT_PASSING),
    ("answer", "354 go on", UNKNOWN),
    *(
        (step, garbage, NOT_SENT_PASSING)
        for step in ("MAIL", "RCPT2", "DATA")
        for garbage in ("hello", "25", "999 ok")
    ),
    *(("answer", garbage, UNKNOWN) for garbage in ("hello", "25", "999 ok", "raw:250-ok\r\n550 no\r\n")),
    # A reply that was cut off is none.
    *(
        ("answer", cut, UNKNOWN)
        for cut in ("raw:250 2.0.0 Ok", "raw:550 5.7.1 no", "raw:250-ok\r\n", "raw:2")
    ),
    *(("MAIL", cut, NOT_SENT_PASSING) for cut in ("raw:250 ok", "raw:550 no")),
    ("answer", "250 ", SENT),
    ("answer", "251 somewhere", SENT),
    ("answer", "raw:250-a\r\n250 b\r\n", SENT),
]


FAST = {("fin", step) for step in (*BEFORE, *ENVELOPE, "text", "dot", "answer")} | {
    (death, step) for death in ("rst", "silence") for step in ("TLS", "MAIL", "dot", "answer")
}


def _cases() -> list[Any]:
    """Return all the rows; of those that differ in the manner of death alone only some are quick."""
    slow = [(step, fault) for step, fault, _ in DEATH_TABLE if (fault, step) not in FAST]
    slow += [(step, fault) for step, fault, _ in REPLY_TABLE if step in ("RCPT2", "text", "EHLO2")]
    return [
        pytest.param(*row, marks=pytest.mark.long if row[:2] in slow else ())
        for row in DEATH_TABLE + REPLY_TABLE
    ]


def _name(value: object) -> str:
    return str(value).strip().split("\r")[0].replace(" ", "-") if isinstance(value, str) else "-"


def _patience(step: str, fault: str) -> float:
    """Return the seconds to wait: few where all that can be seen is that they pass."""
    if fault != "silence":
        return 20.0
    return 1.0 if step in ("dot", "answer") else 0.15


@pytest.fixture
def big(outgoing: Outgoing) -> Outgoing:
    """An item that fills every buffer between client and server, so that a stop is seen while writing."""
    return replace(
        outgoing, parts=(Part("attachment", "big.bin", "application/octet-stream", bytes(4 << 20)),)
    )


@pytest.mark.parametrize(("step", "fault", "expected"), _cases(), ids=_name)
def test_outcome_of_a_fault(
    step: str,
    fault: str,
    expected: tuple[str, bool],
    authority: Authority,
    outgoing: Outgoing,
    big: Outgoing,
    smtp_channel: Callable[..., dict[str, Any]],
    inside: Any,
) -> None:
    with Scripted(authority.server(), {step: fault}) as server:
        channel = inside(smtp_channel(server.port), _patience(step, fault))
        answer = channel.send(big if step == "text" else outgoing)
        assert (answer.outcome, answer.passing) == expected, answer
        assert answer.reason
        assert channel.began == (1 if step in ("dot", "answer") else 0)
        assert answer.message_id is None or answer.message_id.endswith("@acme.example>")
        assert not server.taken
        assert server.seen.count("DATA") <= 1


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("step", ["connect", "EHLO", "AUTH"])
def test_implicit_tls(
    step: str, death: str, authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server(), {step: death}, implicit=True) as server:
        channel = inside(smtp_channel(server.port, tls="implicit"), _patience(step, death))
        answer = channel.send(outgoing)
        assert (answer.outcome, answer.passing) == NOT_SENT_PASSING, answer


@pytest.mark.parametrize(
    "fault",
    [
        "fin",
        "451 4.3.0 later",
        "554 5.7.1 never",
        *(pytest.param(one, marks=pytest.mark.long) for one in DEATHS[1:]),
    ],
)
@pytest.mark.parametrize("step", [one for one in BEFORE if one != "TLS"])
def test_check_is_unusable(
    step: str, fault: str, authority: Authority, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server(), {step: fault}) as server:
        channel = inside(smtp_channel(server.port), _patience(step, fault))
        with pytest.raises(Unusable) as caught:
            channel.transport.check()
        assert caught.value.passing == (not fault.startswith("5"))
        assert "s3cret" not in str(caught.value)
        assert "MAIL" not in server.seen


def test_what_was_not_taken_leaves_the_connection_as_good_as_new(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    for step in ("MAIL", "RCPT1", "DATA", "answer"):
        with Scripted(authority.server(), {step: "451 later"}, times=1) as server:
            channel = inside(smtp_channel(server.port))
            assert channel.send(outgoing).outcome == "not_sent"
            assert channel.send(outgoing).outcome == "sent"
            assert server.connections == 1, step
            assert len(server.taken) == 1


@pytest.mark.parametrize("fault", ["fin", "rst", "421 4.4.2 idle for too long"])
def test_a_connection_that_died_between_messages_is_made_again(
    fault: str, authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server(), {"idle": fault}, times=1) as server:
        channel = inside(smtp_channel(server.port))
        assert channel.send(outgoing).outcome == "sent"
        assert channel.send(outgoing).outcome == "sent"
        assert server.connections == 2
        assert len(server.taken) == 2


def test_a_server_that_spoke_before_it_was_asked_is_not_believed(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    """An answer to the dot that stands there before the dot was written would be taken for one."""
    with Scripted(authority.server(), {"DATA": "354 go\r\n250 2.0.0 Ok: queued as LIE"}) as server:
        channel = inside(smtp_channel(server.port))
        answer = channel.send(outgoing)
        assert (answer.outcome, answer.passing) == NOT_SENT_PASSING
        assert channel.began == 0


def test_no_time_left_before_anything_is_written(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any, inside: Any
) -> None:
    with Scripted(authority.server()) as server:
        channel = inside(smtp_channel(server.port), -0.1)
        answer = channel.send(outgoing)
        assert (answer.outcome, answer.passing) == NOT_SENT_PASSING
        assert server.seen == []
