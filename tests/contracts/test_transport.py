"""What every transport promises, over the real ones, each in its child process."""

from __future__ import annotations

import hashlib
import mailbox
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gitbus.transports.base import Outgoing, Part, Unusable, clock
from gitbus.transports.spawn import ChannelProcess, open_channel
from tests.support.smtpd import HOST, PASSWORD, USER, Authority, Mailbox, real_server

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests" / "transports" / "driver.py"
PROGRAM = ROOT / "tests" / "transports" / "program.py"


@dataclass
class Setting:
    """One transport with a receiver behind it."""

    definition: dict[str, Any]
    delivered: Callable[[], int]
    irreversible: tuple[str, str]  # the effect, and what its detail holds
    first: tuple[str, str]  # an effect before it
    opened: list[ChannelProcess]

    def open(self, *, hook: tuple[str, str, str] | None = None, **more: Any) -> ChannelProcess:
        command = [sys.executable, "-I", str(DRIVER), str(ROOT), *hook] if hook else None
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "NEWS_PASSWORD": PASSWORD,
            "NOT": "given",
        }
        definition = {**self.definition, **more.pop("channel", {})}
        channel = open_channel(
            "news", definition, more.pop("environment", environment), command=command, **more
        )
        self.opened.append(channel)
        return channel


@contextmanager
def maildir(tmp_path: Path) -> Iterator[Setting]:
    path = tmp_path / "preview"

    def count() -> int:
        return len(mailbox.Maildir(path, create=False)) if path.exists() else 0

    yield Setting(
        {"transport": "maildir", "path": str(path)}, count, ("deliver", "new"), ("file-write", "tmp"), []
    )


@contextmanager
def smtp(tmp_path: Path, *, tls: str) -> Iterator[Setting]:
    authority, box = Authority(), Mailbox()
    authority.ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with real_server(authority.server(), box, implicit=tls == "implicit") as port:
        definition = {
            "transport": "smtp",
            "host": HOST,
            "port": port,
            "tls": tls,
            "username": USER,
            "password_env": "NEWS_PASSWORD",
            "from": ["Acme News <news@acme.example>"],
            "ca_file": str(tmp_path / "ca.pem"),
        }
        yield Setting(
            definition, lambda: len(box.letters), ("deliver", "final dot"), ("protocol-line", "DATA"), []
        )


@contextmanager
def program(tmp_path: Path) -> Iterator[Setting]:
    path = tmp_path / "program"
    path.write_text(PROGRAM.read_text().replace("PYTHON", sys.executable))
    path.chmod(0o755)
    folder = tmp_path / "sent"
    folder.mkdir()
    definition = {
        "transport": "exec",
        "command": [str(path), str(folder)],
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "env": ["NEWS_PASSWORD"],
    }
    yield Setting(
        definition,
        lambda: len(list(folder.glob("sent-*"))),
        ("deliver", "send"),
        ("file-write", "program"),
        [],
    )


SETTINGS: dict[str, Callable[[Path], Any]] = {
    "maildir": maildir,
    "smtp-starttls": lambda path: smtp(path, tls="starttls"),
    "smtp-implicit": lambda path: smtp(path, tls="implicit"),
    "exec": program,
}


IMPLICIT = pytest.param("smtp-implicit", marks=pytest.mark.long)  # only the way into TLS differs


@pytest.fixture(params=["maildir", "smtp-starttls", IMPLICIT, "exec"])
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    with SETTINGS[request.param](tmp_path) as made:
        yield made
        for channel in made.opened:
            channel.close()


@pytest.fixture
def outgoing() -> Outgoing:
    message = {
        "from": "Acme News <news@acme.example>",
        "to": ["list@partners.example"],
        "cc": [],
        "bcc": ["eve@partners.example"],
        "reply_to": None,
        "subject": "Grüße",
        "headers": {},
    }
    parts = (
        Part("text", None, "text/plain", b"hello\n.\n"),
        Part("attachment", "ü.bin", "x/y", bytes(range(256))),
    )
    return Outgoing(
        "release-1-0.mail.announce", 1, "sha256:" + "ab" * 32, "2026-11-30T20:05:00Z", message, parts
    )


def _in(seconds: float) -> float:
    return clock() + seconds


def test_a_batch_over_one_child(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open()
    identity = channel.check()
    assert (identity.channel, identity.transport) == ("news", setting.definition["transport"])
    answers = [channel.send(replace(outgoing, item=f"g.t.i{number}"), _in(30)) for number in range(3)]
    assert [one.outcome for one in answers] == ["sent"] * 3
    assert setting.delivered() == 3
    assert all(set(one.recipients) == {"list@partners.example", "eve@partners.example"} for one in answers)
    assert len({one.message_id for one in answers}) == 3
    assert all(one.provider_id and one.reason and not one.passing for one in answers)
    assert channel.check() == identity


def test_the_same_content_has_the_same_name_and_is_delivered_each_time(
    setting: Setting, outgoing: Outgoing
) -> None:
    channel = setting.open()
    first, second = channel.send(outgoing, _in(30)), channel.send(outgoing, _in(30))
    assert first.outcome == second.outcome == "sent"
    assert first.message_id == second.message_id == f"<{outgoing.idempotency_key}@acme.example>"
    assert setting.delivered() == 2


def test_no_time_left_is_not_sent(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open()
    for seconds in (-1.0, 0.0, 0.2):
        answer = channel.send(outgoing, _in(seconds))
        assert answer.outcome in ("not_sent", "unknown")  # unknown: the child was ended before it could say
        if seconds <= 0:
            assert (answer.outcome, answer.passing) == ("not_sent", True)
    assert setting.delivered() == 0


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"from": ["other@acme.example"]}, "sender-not-allowed"),
        ({"from": ["Other <news@acme.example>"]}, "sender-not-allowed"),
        ({"recipients": ["*@acme.example", "list@partners.example"]}, "recipient-not-allowed"),
    ],
)
def test_what_the_channel_does_not_allow_is_refused_for_good(
    limits: dict[str, Any], rule: str, setting: Setting, outgoing: Outgoing
) -> None:
    answer = setting.open(channel=limits).send(outgoing, _in(30))
    assert (answer.outcome, answer.passing) == ("not_sent", False)
    assert answer.reason is not None
    assert answer.reason.startswith(rule)
    assert setting.delivered() == 0


def test_a_child_killed_before_the_irreversible_effect_delivers_nothing(
    setting: Setting, outgoing: Outgoing
) -> None:
    for effect in (setting.first, setting.irreversible):
        channel = setting.open(hook=(*effect, "SIGKILL"))
        answer = channel.send(outgoing, _in(30))
        assert answer.outcome == "unknown"  # only the child's own word could say more
        assert answer.reason is not None
        assert "signal 9" in answer.reason
        assert ("after it said" if effect == setting.irreversible else "before it said") in answer.reason
        assert setting.delivered() == 0


def test_a_stopped_child_is_dead_at_the_deadline(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open(hook=(*setting.irreversible, "SIGSTOP"))
    channel.check()
    begun = clock()
    answer = channel.send(outgoing, _in(1.3))
    assert answer.outcome == "unknown"
    assert clock() - begun < 5.0
    assert setting.delivered() == 0


def test_a_bug_becomes_an_outcome(setting: Setting, outgoing: Outgoing) -> None:
    first = setting.open(hook=(*setting.first, "raise")).send(outgoing, _in(30))
    last = setting.open(hook=(*setting.irreversible, "raise")).send(outgoing, _in(30))
    assert (first.outcome, last.outcome) == ("not_sent", "unknown")
    assert not first.passing
    assert "RuntimeError" in str(last.reason)
    assert setting.delivered() == 0


def test_what_a_library_prints_is_no_answer(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open(hook=(*setting.first, "print"))
    assert channel.send(outgoing, _in(30)).outcome == "sent"
    assert setting.delivered() == 1


def test_a_child_that_died_between_two_items_is_started_again(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open()
    channel.check()
    assert channel._pipe is not None
    os.kill(channel._pipe._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, channel._pipe._process.pid, os.WEXITED | os.WNOWAIT)
    assert channel.send(outgoing, _in(30)).outcome == "sent"
    assert setting.delivered() == 1


def test_closing_leaves_nothing(setting: Setting, outgoing: Outgoing) -> None:
    channel = setting.open()
    channel.check()
    assert channel._pipe is not None
    pipe, scratch = channel._pipe, Path(channel._pipe._scratch.name)
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    channel.close()
    channel.close()
    assert pipe._process.returncode is not None
    assert not scratch.exists()
    assert channel.send(outgoing, _in(30)).outcome == "sent"  # it opens again when it is used again


def test_every_effect_is_announced(setting: Setting, outgoing: Outgoing, tmp_path: Path) -> None:
    log = tmp_path / "effects"
    channel = setting.open(hook=("", str(log), "log"))
    assert channel.send(outgoing, _in(30)).outcome == "sent"
    rows = [row.split(" ", 1) for row in log.read_text().splitlines()]
    kinds = [kind for kind, _ in rows]
    assert kinds.count("deliver") == 1
    assert {kind for kind, _ in rows} <= {"connect", "protocol-line", "deliver", "file-write", "fsync"}
    assert PASSWORD not in log.read_text()


def test_a_missing_secret_is_named_and_nothing_starts(setting: Setting, outgoing: Outgoing) -> None:
    if setting.definition["transport"] == "maildir":
        setting.definition["token_env"] = "NEWS_PASSWORD"  # it needs none by itself
    for environment in ({}, {"NEWS_PASSWORD": ""}):
        channel = setting.open(environment={"PATH": os.environ["PATH"], **environment})
        with pytest.raises(Unusable, match="NEWS_PASSWORD") as caught:
            channel.check()
        assert (caught.value.rule, caught.value.exit_code) == ("missing-secret", 3)
        answer = channel.send(outgoing, _in(30))
        assert (answer.outcome, answer.passing) == ("not_sent", True)
        assert channel._pipe is None


def test_the_child_knows_what_it_needs_and_nothing_else(setting: Setting, tmp_path: Path) -> None:
    channel = setting.open()
    channel.check()
    assert channel._pipe is not None
    proc = Path("/proc") / str(channel._pipe._process.pid)
    if not proc.exists():
        pytest.skip("there is no /proc here")
    names = {row.split("=", 1)[0] for row in (proc / "environ").read_text().split("\0") if row}
    secret = set() if setting.definition["transport"] == "maildir" else {"NEWS_PASSWORD"}
    assert names == {"PATH", "HOME", "TMPDIR", *secret}
    assert PASSWORD not in (proc / "cmdline").read_text()


def test_a_line_that_is_no_answer_is_unknown(outgoing: Outgoing, tmp_path: Path) -> None:
    script = tmp_path / "garbage.py"
    for text, expected in [
        ('{"answer": {"outcome": "sent", "passing": true}}', "unknown"),
        ('{"answer": {"outcome": "sent", "surely": 1}}', "unknown"),
        ('{"answer": {"outcome": "sent"}, "identity": {}}', "unknown"),
        ('{"answer": {"outcome": "not_sent", "outcome": "sent"}}', "unknown"),
        ('{"answer": {}}', "unknown"),
        ("[]", "unknown"),
        ("sent", "unknown"),
        ("", "unknown"),
        ('{"answer": {"outcome": "not_sent", "passing": true}}', "not_sent"),
        ('{"began": true}\\n{"began": true}\\n{"answer": {"outcome": "sent"}}', "unknown"),
    ]:
        script.write_text(f"import sys\nsys.stdin.readline()\nprint('''{text}''')\n")
        channel = open_channel(
            "news", {"transport": "maildir"}, {}, command=[sys.executable, "-I", str(script)]
        )
        assert channel.send(outgoing, _in(30)).outcome == expected, text
        channel.close()


def test_the_clock_counts_seconds() -> None:
    before = clock()
    time.sleep(0.01)
    assert 0.009 < clock() - before < 5
