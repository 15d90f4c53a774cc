"""A program as a transport: the pin, the strict answer, and death at the deadline."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitbus.transports.base import Outgoing, Unusable, clock
from gitbus.transports.spawn import ChannelProcess, open_channel

PROGRAM = Path(__file__).with_name("program.py")
SECRET = "s3cret-word"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "slack.py"
    path.write_text(PROGRAM.read_text().replace("PYTHON", sys.executable))
    path.chmod(0o755)
    (tmp_path / "sent").mkdir()
    return path


@pytest.fixture
def opened(program: Path, tmp_path: Path) -> Iterator[Callable[..., ChannelProcess]]:
    channels: list[ChannelProcess] = []

    def make(**more: Any) -> ChannelProcess:
        channel = {
            "transport": "exec",
            "command": ["./slack.py", str(tmp_path / "sent")],
            "sha256": hashlib.sha256(program.read_bytes()).hexdigest(),
            "env": ["NEWS_PASSWORD"],
            **more,
        }
        environment = {**os.environ, "NEWS_PASSWORD": SECRET, "OTHER": "secret"}
        channels.append(open_channel("slack", channel, environment, folder=tmp_path, patience=20))
        return channels[-1]

    yield make
    for one in channels:
        one.close()


@pytest.fixture
def mode(tmp_path: Path, program: Path) -> Callable[[str], None]:
    def say(text: str) -> None:
        (tmp_path / "sent" / "mode").write_text(text)

    return say


def _sent(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "sent").glob("sent-*"))


def _in(seconds: float) -> float:
    return clock() + seconds


def test_what_the_program_is_given(opened: Any, outgoing: Outgoing, tmp_path: Path) -> None:
    channel = opened()
    identity = channel.check()
    assert (identity.channel, identity.transport, identity.host) == ("slack", "exec", "folder")
    assert channel.send(outgoing, _in(30)).outcome == "sent"
    given = json.loads(_sent(tmp_path)[0].read_text())
    assert given["message"] == dict(outgoing.message)
    assert given["idempotency_key"] == outgoing.idempotency_key
    names = set(json.loads((tmp_path / "sent" / "environment").read_text()))
    assert "NEWS_PASSWORD" in names
    assert names <= {
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "USER",
        "TMPDIR",
        "NEWS_PASSWORD",
        "LC_ALL",
        "LC_CTYPE",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    } | {name for name in os.environ if name.startswith("LC_")}


def test_a_changed_program_does_not_run(
    opened: Any, outgoing: Outgoing, program: Path, tmp_path: Path
) -> None:
    channel = opened()
    channel.check()
    program.write_text(program.read_text() + "\n")
    answer = channel.send(outgoing, _in(30))
    assert (answer.outcome, answer.passing) == ("not_sent", True)
    assert "not the program that was pinned" in str(answer.reason)
    with pytest.raises(Unusable) as caught:
        channel.check()
    assert caught.value.rule == "exec-changed"
    assert _sent(tmp_path) == []


def test_the_bytes_that_were_hashed_are_the_bytes_that_run(
    opened: Any, outgoing: Outgoing, program: Path, mode: Any, tmp_path: Path
) -> None:
    """A program that is swapped while it runs: the copy, not the file, is what the interpreter reads."""
    mode(
        "run "
        + f"open({str(tmp_path / 'where')!r}, 'w').write(__file__); open({str(program)!r}, 'w').write('evil')"
    )
    opened().send(outgoing, _in(30))
    ran = Path((tmp_path / "where").read_text())
    assert ran != program
    assert not ran.exists()
    assert program.read_text() == "evil"


def test_a_file_that_the_hash_does_not_hold(opened: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    sha = hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()
    for words in ([sys.executable, str(script)], [sys.executable, f"--config={script}"]):
        with pytest.raises(Unusable) as caught:
            opened(command=words, sha256=sha).check()
        assert caught.value.rule == "exec-unpinned"


@pytest.mark.parametrize("words", [[], ["./none.py"], ["./sent"]])
def test_no_program(words: list[str], opened: Any, outgoing: Outgoing) -> None:
    channel = opened(command=words)
    with pytest.raises(Unusable) as caught:
        channel.check()
    assert caught.value.rule == "exec-program"
    answer = channel.send(outgoing, _in(30))
    assert (answer.outcome, answer.passing) == ("not_sent", True)


def test_a_program_that_cannot_be_started(opened: Any, outgoing: Outgoing, program: Path) -> None:
    program.write_text("#!/nonexistent/interpreter\n")
    channel = opened()
    answer = channel.send(outgoing, _in(30))
    assert (answer.outcome, answer.passing) == ("not_sent", True)
    with pytest.raises(Unusable):
        channel.check()


def _said(**answer: Any) -> str:
    return f"run print({json.dumps({'answer': answer})!r})"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (_said(outcome="sent"), "sent"),
        (_said(outcome="not_sent", passing=True, reason="rate limit"), "not_sent"),
        (_said(outcome="unknown"), "unknown"),
        (_said(outcome="sent", passing=True), "unknown"),
        (_said(outcome="Sent"), "unknown"),
        (_said(outcome="sent", recipients={"a": 1}), "unknown"),
        (_said(outcome="sent", reason=3), "unknown"),
        (_said(outcome="sent", further=1), "unknown"),
        (_said(outcome=" sent"), "unknown"),
        (_said(outcome="sent", reason="\ud800"), "unknown"),
        (_said(outcome="sent", identity={"channel": "slack", "certificate_sha256": "none"}), "unknown"),
        (_said(outcome="sent", recipients={str(n): "ok" for n in range(30_000)}), "unknown"),
        (_said(outcome="sent") + "; print('{}')", "unknown"),
        (_said(outcome="not_sent") + "; sys.exit(1)", "unknown"),
        (_said(outcome="sent") + "; os.kill(os.getpid(), 9)", "unknown"),
        ('run print(\'{"identity": {"channel": "slack"}}\')', "unknown"),
        ('run print(\'{"unusable": {"message": "no"}}\')', "unknown"),
        ("run pass", "unknown"),
        ("run print('sent')", "unknown"),
        ("run raise ValueError(os.environ['NEWS_PASSWORD'])", "unknown"),
        ("run sys.stdout.buffer.write(b'\\xff' * 100)", "unknown"),
    ],
)
def test_only_a_valid_answer_counts(
    script: str, expected: str, opened: Any, outgoing: Outgoing, mode: Any
) -> None:
    mode(script)
    answer = opened().send(outgoing, _in(30))
    assert answer.outcome == expected
    assert SECRET not in str(answer)


def test_what_it_says_is_plain_and_of_itself(opened: Any, outgoing: Outgoing, mode: Any) -> None:
    identity = {
        "channel": "bank",
        "transport": "smtp",
        "host": "a\x1b[2J\nb",
        "certificate_sha256": "ab" * 32,
    }
    mode(_said(outcome="sent", reason="a\r\nb\0", recipients={"x\ny": "o\u202ek"}, identity=identity))
    answer = opened().send(outgoing, _in(30))
    assert (answer.outcome, answer.reason, answer.recipients) == ("sent", "a b", {"x y": "o k"})
    assert (answer.identity.channel, answer.identity.transport) == ("slack", "exec")
    assert (answer.identity.host, answer.identity.certificate_sha256) == ("a [2J b", "ab" * 32)


def test_a_secret_in_what_it_says_is_taken_out(opened: Any, mode: Any) -> None:
    mode("unusable")
    with pytest.raises(Unusable, match="<NEWS_PASSWORD>"):
        opened().check()


def test_another_protocol(opened: Any, program: Path) -> None:
    program.write_text(program.read_text().replace('"protocol": 1', '"protocol": 2'))
    with pytest.raises(Unusable) as caught:
        opened().check()
    assert caught.value.rule == "exec-answer"


def _dead(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def _until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


HANG = """run import subprocess, time
helper = subprocess.Popen(["sleep", "60"])
(folder / "pids").write_text(f"{os.getpid()} {helper.pid}")
time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_at_the_deadline_all_of_it_is_dead(
    opened: Any, outgoing: Outgoing, mode: Any, tmp_path: Path
) -> None:
    mode(HANG)
    begun = clock()
    answer = opened().send(outgoing, _in(1.5))
    assert answer.outcome == "unknown"
    assert clock() - begun < 4.0
    pids = [int(one) for one in (tmp_path / "sent" / "pids").read_text().split()]
    assert _until(lambda: all(_dead(pid) for pid in pids))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_program_dies_even_if_the_child_cannot_end_it(
    how: int, opened: Any, outgoing: Outgoing, mode: Any, tmp_path: Path
) -> None:
    mode(f"run os.kill(os.getppid(), {int(how)})\n" + HANG[4:])
    answer = opened().send(outgoing, _in(1.5))
    assert answer.outcome == "unknown"
    pids = tmp_path / "sent" / "pids"
    assert _until(lambda: not pids.exists() or all(_dead(int(one)) for one in pids.read_text().split()))
