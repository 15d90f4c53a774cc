"""Real processes and their ends: the deadline, the request to stop, grandchildren, a dead worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus import effects
from gitbus.runner.keeper import descendants
from gitbus.runner.process import Ended, Start, run
from tests.runner.jobs import alive, ask, job, python, quote, sh

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a subreaper")

FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import os, signal, sys, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(600)"
out = open(sys.argv[1] + ".part", "a")
same = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
away = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True, env={})
out.write(f"{os.getpid()} {same.stdout.readline().strip()} {away.stdout.readline().strip()}")
out.close()
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""
"""Starts one child in its session and one out of it, with an empty environment; all ignore SIGTERM."""


def start(*argv: str, stdin: bytes = b"", **env: str) -> Start:
    return Start(argv, stdin, {"PATH": os.environ["PATH"], **env}, Path("/"))


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def family(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()]


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("then", ["", "time.sleep(600)"])
def test_nothing_is_left_when_it_ends_or_at_the_deadline(then: str, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    begun = time.monotonic()
    ended = run(
        start(sys.executable, "-c", FAMILY + then, str(file)),
        keep=10,
        seconds=2.0,
        cancelled=threading.Event(),
    )
    assert time.monotonic() - begun < 5
    assert ended.stopped == ("deadline" if then else None)
    assert ended.code == (-signal.SIGKILL if then else 0)
    assert not ended.left
    assert len(family(file)) == 3
    assert not any(map(alive, family(file)))


@LINUX
def test_nothing_is_left_when_the_worker_is_asked_to_stop(tmp_path: Path) -> None:
    file, cancelled, ended = tmp_path / "pids", threading.Event(), []
    given = start(sys.executable, "-c", FAMILY + "time.sleep(600)", str(file))
    thread = threading.Thread(
        target=lambda: ended.append(run(given, keep=10, seconds=3, cancelled=cancelled))
    )
    thread.start()
    wait_until(file.exists)
    cancelled.set()
    thread.join()
    assert ended[0].stopped == "cancelled"
    assert not any(map(alive, family(file)))


@pytest.mark.long
@LINUX
def test_nothing_is_left_when_the_worker_itself_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = (
        "import sys, threading; from pathlib import Path; from gitbus.runner.process import Start, run;"
        "run(Start(sys.argv[1:], b'', {}, Path('/')), keep=10, seconds=None, cancelled=threading.Event())"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, sys.executable, "-c", FAMILY + "time.sleep(600)", str(file)]
    )
    wait_until(file.exists)
    worker.kill()
    worker.wait()
    wait_until(lambda: not any(map(alive, family(file))))


@LINUX
def test_a_command_that_kills_its_keeper_is_ended_too(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"echo $$ > {quote(file)}; kill -KILL $PPID; exec sleep 600"
    ended = run(start("sh", "-c", script), keep=10, seconds=20, cancelled=threading.Event())
    assert ended.code == -signal.SIGKILL
    assert ended.left
    wait_until(lambda: not alive(int(file.read_text())))


def test_sigterm_comes_first_and_leaves_time_to_tidy_up() -> None:
    script = "trap 'echo tidied; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    ended = run(start("sh", "-c", script), keep=100, seconds=2, cancelled=threading.Event())
    assert (ended.stopped, ended.code, ended.stdout) == ("deadline", 7, b"ready\ntidied\n")


def test_a_deadline_in_the_past_starts_nothing(tmp_path: Path) -> None:
    ended = run(start("touch", str(tmp_path / "ran")), keep=10, seconds=0, cancelled=threading.Event())
    assert ended.stopped == "deadline"
    assert not (tmp_path / "ran").exists()


def test_past_the_deadline_it_is_a_failure_that_says_so() -> None:
    result = ask(sh("echo so far >&2; exec sleep 600"), job(seconds=0.5)).result
    assert result.status == "failed"
    assert result.error is not None
    assert "deadline" in result.error.message
    assert result.error.detail == "so far\n"


def test_asked_to_stop_it_is_a_retry() -> None:
    cancelled = threading.Event()
    cancelled.set()
    assert ask(sh("exec sleep 600"), job(seconds=20), cancelled).result.status == "retry"


def test_output_past_what_is_kept_is_read_and_dropped() -> None:
    script = (
        "import sys; [sys.stdout.write('x' * 1000) and sys.stderr.write('y' * 1000) for _ in range(2000)]"
    )
    ended = run(start(sys.executable, "-c", script), keep=5000, seconds=30, cancelled=threading.Event())
    assert (ended.code, len(ended.stdout), ended.cut) == (0, 5000, True)
    assert 0 < len(ended.stderr) <= 16 << 10


def test_exactly_what_is_kept_is_not_cut() -> None:
    ended = run(start("printf", "12345"), keep=5, seconds=30, cancelled=threading.Event())
    assert (ended.stdout, ended.cut) == (b"12345", False)


def test_stdin_is_what_was_given_and_nothing_is_shared_with_the_command() -> None:
    script = "import os, signal, sys; print(sys.stdin.read(), sorted(os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else '', signal.getsignal(signal.SIGCHLD), os.getsid(0) == os.getpid())"
    ended = run(
        start(sys.executable, "-c", script, stdin=b"hello"), keep=500, seconds=30, cancelled=threading.Event()
    )
    words = ended.stdout.decode()
    assert words.startswith("hello ")
    assert words.endswith("True\n")
    if sys.platform == "linux":
        assert "['0', '1', '2', '3']" in words  # 3 is the listing itself


def test_two_at_once_do_not_end_each_other() -> None:
    found: list[Ended] = []

    def one(seconds: str) -> None:
        found.append(
            run(
                start("sh", "-c", f"sleep {seconds}; echo {seconds}"),
                keep=9,
                seconds=20,
                cancelled=threading.Event(),
            )
        )

    threads = [threading.Thread(target=one, args=(seconds,)) for seconds in ("0.05", "0.3")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(ended.stdout for ended in found) == [b"0.05\n", b"0.3\n"]


@LINUX
def test_no_descriptor_and_no_child_is_left_behind() -> None:
    before = descriptors(), descendants()
    for script in ("true", "exit 1", "exec sleep 600"):
        run(
            start("sh", "-c", script),
            keep=1,
            seconds=0.3 if "sleep" in script else 20,
            cancelled=threading.Event(),
        )
    assert (descriptors(), descendants()) == before


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_cannot_be_started_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(Start(("true",), b"", {}, tmp_path / "gone"), keep=1, seconds=1, cancelled=threading.Event())
    assert run(start("/etc"), keep=1, seconds=9, cancelled=threading.Event()).errno is not None


def test_starting_passes_the_door_of_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(effects, "hook", lambda name, _detail: seen.append(name))
    ask(python("print(1)"))
    assert seen == ["file-write", "process"]
