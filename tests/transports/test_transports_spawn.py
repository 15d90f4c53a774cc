"""The child by itself: death that a SIGCONT delivers, what it imports, and what it lets nobody see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitbus.transports.base import Outgoing, Part, Unusable, clock
from gitbus.transports.spawn import _ROOT, Broken, Pipe, open_channel
from gitbus.transports.wire import Garbage, line, request
from tests.support.smtpd import PASSWORD, Authority, Mailbox, Scripted, real_server

pytestmark = pytest.mark.long

DRIVER = Path(__file__).with_name("driver.py")


def start(*hook: str) -> subprocess.Popen[bytes]:
    """Start a child that nobody watches: its parent is as good as dead."""
    return subprocess.Popen(
        [sys.executable, "-I", str(DRIVER), _ROOT, *hook],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "NEWS_PASSWORD": PASSWORD},
        start_new_session=True,
    )


def wait_until_stopped(child: subprocess.Popen[bytes]) -> None:
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)


def after(deadline: float) -> None:
    while clock() <= deadline:
        os.sched_yield()


@pytest.mark.parametrize("kind", ["smtp", "maildir"])
def test_a_child_that_slept_through_its_deadline_dies_before_it_does_anything(
    kind: str, authority: Authority, outgoing: Outgoing, smtp_channel: Any, tmp_path: Path
) -> None:
    box = Mailbox()
    with real_server(authority.server(), box) as port:
        maildir = {"transport": "maildir", "path": str(tmp_path / "mail")}
        channel = smtp_channel(port) if kind == "smtp" else maildir
        with start("deliver", "", "SIGSTOP") as child:
            assert child.stdin is not None
            deadline = clock() + 1.5
            child.stdin.write(line(request("send", "news", channel, deadline, outgoing)))
            child.stdin.flush()
            wait_until_stopped(child)
            after(deadline)
            os.kill(child.pid, signal.SIGCONT)
            assert child.wait(10) == -signal.SIGALRM
            assert child.stdout is not None
            assert child.stdout.read() == b'{"began":true}\n'
    assert box.letters == []
    assert kind == "smtp" or not list((tmp_path / "mail" / "new").iterdir())


def test_the_end_of_a_whole_service_does_not_cut_a_transmission_off(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any
) -> None:
    box = Mailbox()
    with real_server(authority.server(), box) as port:
        command = [sys.executable, "-I", str(DRIVER), _ROOT, "deliver", "final dot", "SIGTERM"]
        environment = {**os.environ, "NEWS_PASSWORD": PASSWORD}
        channel = open_channel("news", smtp_channel(port), environment, command=command)
        assert channel.send(outgoing, clock() + 20).outcome == "sent"
        channel.close()
    assert len(box.letters) == 1


def test_a_child_whose_parent_died_does_not_begin(
    authority: Authority, outgoing: Outgoing, smtp_channel: Any
) -> None:
    """The word that it begins reaches nobody, so nobody could journal what became of it."""
    box = Mailbox()
    with real_server(authority.server(), box) as port, start("protocol-line", "DATA", "SIGSTOP") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(line(request("send", "news", smtp_channel(port), clock() + 20, outgoing)))
        child.stdin.flush()
        wait_until_stopped(child)
        child.stdout.close()
        child.stdin.close()
        os.kill(child.pid, signal.SIGCONT)
        assert child.wait(10) != 0
    assert box.letters == []


def test_a_child_whose_parent_died_leaves_nothing(tmp_path: Path) -> None:
    for name, left in (("gitbus-channel-x", False), ("somebody-elses", True)):
        (tmp_path / name).mkdir()
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / name)}
        command = [sys.executable, "-m", "gitbus.transports.child"]
        subprocess.run(command, stdin=subprocess.DEVNULL, cwd=_ROOT, env=environment, check=True)
        assert (tmp_path / name).exists() is left


def test_half_a_line_is_no_request(tmp_path: Path, outgoing: Outgoing) -> None:
    channel = {"transport": "maildir", "path": str(tmp_path / "mail")}
    asked = line(request("send", "news", channel, clock() + 20, outgoing))
    with start("", "", "") as child:
        out, _ = child.communicate(asked[:-1], timeout=20)
    assert (out, child.returncode) == (b"", 0)
    assert not (tmp_path / "mail").exists()


def test_a_request_that_was_not_taken_whole_is_not_sent(tmp_path: Path, outgoing: Outgoing) -> None:
    """A process that reads nothing: the pipe is full before the line has its end."""
    big = Outgoing(
        "g.t.i", 1, "d", outgoing.date, outgoing.message, (Part("text", None, "text/plain", bytes(1 << 20)),)
    )
    for script in ("import time; time.sleep(60)", "pass"):
        channel = open_channel(
            "news", {"transport": "maildir"}, {}, command=[sys.executable, "-I", "-c", script]
        )
        answer = channel.send(big, clock() + 1.0)
        assert (answer.outcome, answer.passing) == ("not_sent", True)
        channel.close()


@pytest.mark.parametrize(
    ("transport", "absent"),
    [
        ("maildir", {"ssl", "smtplib", "subprocess", "pydantic", "idna", "ruamel", "git"}),
        ("exec", {"ssl", "smtplib", "email", "pydantic", "idna", "git"}),
        ("smtp", {"pydantic", "idna", "ruamel", "git", "asyncio", "subprocess"}),
    ],
)
def test_a_child_imports_what_it_needs(transport: str, absent: set[str]) -> None:
    script = (
        f"import sys; sys.path.append({_ROOT!r}); import gitbus.transports.child; import gitbus.transports.rules;"
        f"from gitbus.transports.base import factory; factory({transport!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert absent & set(done.stdout.split()) == set()


def test_modules_in_the_working_folder_are_not_imported(tmp_path: Path, outgoing: Outgoing) -> None:
    for name in ("gitbus.py", "json.py", "ssl.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('hijacked')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    channel = open_channel(
        "news", {"transport": "maildir", "path": str(tmp_path / "mail")}, environment, folder=tmp_path
    )
    assert channel.send(outgoing, clock() + 20).outcome == "sent"
    channel.close()


@pytest.mark.parametrize("transport", ["pigeon", ""])
def test_no_such_transport(transport: str, outgoing: Outgoing) -> None:
    channel = open_channel("news", {"transport": transport}, os.environ)
    with pytest.raises(Unusable) as caught:
        channel.check()
    assert caught.value.rule == "no-transport"
    assert channel.send(outgoing, clock() + 20).outcome == "not_sent"
    channel.close()


def test_a_check_that_gets_no_answer(authority: Authority, smtp_channel: Any) -> None:
    with Scripted(authority.server(), {"EHLO": "silence"}) as server:
        channel = open_channel("news", smtp_channel(server.port), {"NEWS_PASSWORD": PASSWORD}, patience=1.2)
        with pytest.raises(Unusable, match="timed out"):
            channel.check()
        channel.close()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("raise SystemExit(3)", "ended with status 3"),
        ("import os; os.kill(os.getpid(), 15)", "killed by signal 15"),
        ("import sys; sys.exit('no ' + sys.argv[0])", "ended with status 1: no -c"),
    ],
)
def test_a_child_that_ends_says_why(script: str, words: str) -> None:
    command = [sys.executable, "-I", "-c", f"import sys; sys.stdin.readline(); {script}"]
    channel = open_channel("news", {"transport": "maildir"}, {}, command=command)
    with pytest.raises(Unusable, match=words):
        channel.check()
    channel.close()


def test_what_cannot_be_started() -> None:
    channel = open_channel("news", {"transport": "maildir"}, {}, command=["/nonexistent/python"])
    with pytest.raises(Unusable, match="cannot be started"):
        channel.check()
    channel.close()


def test_a_line_that_does_not_end() -> None:
    script = "import sys; sys.stdin.readline(); print('x' * (5 << 20)); sys.stdin.read()"
    pipe = Pipe([sys.executable, "-I", "-c", script], {}, None, {})
    pipe.write(b"{}\n", clock() + 20)
    with pytest.raises(Garbage, match="does not end"):
        pipe.read(clock() + 20)
    pipe.kill()


def test_stderr_is_shown_without_secrets(tmp_path: Path) -> None:
    script = "import os, sys; sys.stdin.readline(); sys.exit('key ' + os.environ['KEY'] + chr(27) + '[31m')"
    pipe = Pipe([sys.executable, "-I", "-c", script], {"KEY": "hunter2222"}, None, {"KEY": "hunter2222"})
    pipe.write(b"{}\n", clock() + 20)
    with pytest.raises(Broken) as caught:
        pipe.read(clock() + 20)
    assert "key <KEY> [31m" in str(caught.value)


def test_the_module_runs_as_a_program(tmp_path: Path) -> None:
    def ask(*rows: bytes) -> list[Any]:
        done = subprocess.run(
            [sys.executable, "-m", "gitbus.transports.child"],
            input=b"".join(rows),
            capture_output=True,
            cwd=_ROOT,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
        return [json.loads(row) for row in done.stdout.splitlines()]

    channel = {"transport": "maildir", "path": str(tmp_path / "mail")}
    rows = [line(request(verb, "news", channel, clock() + 20)) for verb in ("describe", "check")]
    described, checked, closed = ask(*rows, line({"verb": "close"}))
    assert described == {"description": {"protocol": 1, "transport": "maildir"}}
    assert checked["identity"]["channel"] == "news"
    assert closed == {"closed": True}


def test_a_verb_that_is_none_ends_the_child(tmp_path: Path) -> None:
    with start("", "", "") as child:
        channel: dict[str, Any] = {"transport": "maildir"}
        out, _ = child.communicate(line(request("dance", "news", channel, clock() + 20)), timeout=20)
    assert out == b""
    assert child.returncode == 1


def test_secrets_are_looked_up_when_they_are_needed(tmp_path: Path, outgoing: Outgoing) -> None:
    environment: dict[str, str] = {}
    definition = {"transport": "maildir", "path": str(tmp_path / "mail"), "secret_env": "KEY"}
    channel = open_channel("news", definition, environment)
    with pytest.raises(Unusable, match="KEY"):
        channel.check()
    environment["KEY"] = "there now"
    assert channel.check().channel == "news"
    channel.close()
