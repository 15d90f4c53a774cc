"""Commands where they cannot reach what the worker's user can: a sandbox, and another user."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitbus.errors import Refused
from gitbus.runner.base import Answer
from gitbus.runner.command import CommandRunner
from gitbus.runner.isolate import AsUser, Isolation, Sandbox, as_user, sandbox
from tests.runner.jobs import alive, ask, job, now, sh

GUEST = "nobody"


@pytest.fixture
def box() -> Sandbox:
    try:
        return sandbox()
    except Refused as error:
        pytest.skip(f"{error.message}; {error.remedy}")


@pytest.fixture(params=["root", "sudo"])
def guest(request: pytest.FixtureRequest) -> AsUser:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("only root becomes another user by itself")
    try:
        return as_user(GUEST, root=request.param == "root")
    except Refused as error:
        pytest.skip(f"{error.message}; {error.remedy}")


def text(answer: Answer) -> str:
    assert answer.result.status == "ok", answer.result.error
    return str(answer.result.outputs["text"])


# --- sandbox


def test_the_home_is_empty_but_for_what_is_asked_for(box: Sandbox, isolated: Path, tmp_path: Path) -> None:
    for name in (".ssh/id_ed25519", ".gnupg/key", ".config/gh/hosts.yml", ".netrc", "keys/approver"):
        (isolated / name).parent.mkdir(parents=True, exist_ok=True)
        (isolated / name).write_text("secret")
    assert text(ask(sh("ls -A $HOME; echo end", isolation=box))) == "end"
    shown = Sandbox(box.program, read=(isolated / "keys",))
    assert text(ask(sh("cat $HOME/keys/approver; ls -A $HOME", isolation=shown))) == "secretkeys"


def test_the_system_is_read_only_and_the_temporary_folder_private(box: Sandbox) -> None:
    marker = Path(f"/var/tmp/gitbus-{os.getpid()}")
    script = f"touch /etc/x 2>/dev/null || echo no; touch {marker} && echo made; touch $TMPDIR/y && echo made"
    assert text(ask(sh(script, isolation=box))) == "no\nmade\nmade"
    assert not marker.exists()


def test_the_commands_own_folder_works_as_always(box: Sandbox) -> None:
    script = "pwd | grep -c work; cat $GITBUS_INPUTS/a/f; cat > $GITBUS_ARTIFACTS/task.json; echo x > here"
    answer = ask(sh(script, isolation=box), job(inputs={"a": {"f": b"hello\n"}}))
    assert text(answer) == "1\nhello"
    assert b'"id": "write"' in answer.files["task.json"]


def test_a_folder_named_by_cwd_is_there_and_can_be_changed(box: Sandbox, tmp_path: Path) -> None:
    assert text(ask(sh("touch made; pwd", isolation=box, cwd=tmp_path))) == str(tmp_path)
    assert (tmp_path / "made").exists()


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder directly below /tmp, where agents put their sockets."""
    with tempfile.TemporaryDirectory(prefix="agent-", dir="/tmp") as folder:
        yield Path(folder)


def test_sockets_of_the_session_cannot_be_reached(box: Sandbox, shared: Path) -> None:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(shared / "agent.sock"))
        agent.listen()
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({str(shared / 'agent.sock')!r})"
        runner = CommandRunner((sys.executable, "-c", script), now=now)
        assert ask(runner).result.status == "ok"
        boxed = CommandRunner((sys.executable, "-c", script), isolation=box, now=now)
        assert ask(boxed).result.status == "failed"


def test_a_program_below_the_home_is_found_with_its_links_and_interpreter(
    box: Sandbox, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, bin_folder = isolated / ".local/lib/agent", isolated / ".local/bin"
    for folder in (package, bin_folder, isolated / "tools/bin"):
        folder.mkdir(parents=True)
    (isolated / "tools/bin/my-sh").symlink_to("/bin/sh")
    (package / "main").write_text("#!/usr/bin/env my-sh\ncat $(dirname $(readlink -f $0))/data\n")
    (package / "main").chmod(0o755)
    (package / "data").write_text("found")
    (bin_folder / "agent").symlink_to("../lib/agent/main")
    monkeypatch.setenv("PATH", f"{bin_folder}:{isolated}/tools/bin:{os.environ['PATH']}")
    assert text(ask(CommandRunner(("agent",), isolation=box, now=now))) == "found"


def test_a_script_named_by_a_word_is_shown_and_its_neighbours_are_not(box: Sandbox, isolated: Path) -> None:
    (isolated / "worker.sh").write_text("ls -A $HOME\n")
    (isolated / "other").touch()
    assert (
        text(ask(CommandRunner(("sh", str(isolated / "worker.sh")), isolation=box, now=now))) == "worker.sh"
    )


def test_nothing_of_it_is_left_at_the_deadline(box: Sandbox, tmp_path: Path) -> None:
    away, here = f"601.{os.getpid()}", f"602.{os.getpid()}"
    script = f"trap '' TERM; (setsid sleep {away} &) ; exec sleep {here}"
    assert ask(sh(script, isolation=box), job(seconds=0.5)).result.status == "failed"
    assert not _running("sleep", away)
    assert not _running("sleep", here)


def _running(*words: str) -> bool:
    wanted = b"\0".join(word.encode() for word in words)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(wanted) and alive(int(folder.name)):
                return True
        except OSError:
            continue
    return False


# --- another user


def test_it_is_the_other_user_with_the_environment_that_was_named(
    guest: AsUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRICKY", 'it\'s "$HOME" \\ `id`')
    monkeypatch.setenv("UNNAMED", "x")
    script = 'id -un; printf "%s\\n" "$TRICKY" "$UNNAMED" "$USER"; id -G'
    said = text(ask(sh(script, isolation=guest, env=("TRICKY",)))).splitlines()
    assert said[:4] == [GUEST, 'it\'s "$HOME" \\ `id`', "", GUEST]
    assert "0" not in said[4].split()


def test_it_reads_the_task_and_leaves_files_and_all_is_gone_afterwards(guest: AsUser) -> None:
    script = "cat > $GITBUS_ARTIFACTS/task.json; cat $GITBUS_INPUTS/a/f; mkdir -m 0 closed"
    answer = ask(sh(script, isolation=guest), job(inputs={"a": {"f": b"hello"}}))
    assert text(answer) == "hello"
    assert b'"id": "write"' in answer.files["task.json"]
    failed = ask(sh("mkdir -m 0 closed; echo $PWD >&2; exit 1", isolation=guest)).result
    assert failed.error is not None
    assert failed.error.detail is not None
    folder = Path(failed.error.detail.strip())
    assert folder.name == "work"
    assert not folder.parent.parent.exists()


def test_it_cannot_read_what_is_the_workers_alone(guest: AsUser, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    assert ask(sh(f"cat {secret}", isolation=guest)).result.status == "failed"


def test_a_file_of_another_owner_is_no_artifact(guest: AsUser) -> None:
    """A hard link could name what the worker may read and the other user may not."""
    result = ask(_Planted(guest)).result
    assert result.error is not None
    assert result.error.message.startswith("forbidden-kind: ")


class _Planted(CommandRunner):
    """A runner in whose artifacts folder a file of the worker's own stands."""

    def __init__(self, isolation: Isolation) -> None:
        super().__init__(("true",), isolation=isolation, now=now)

    def _answer(self, job, place, ended, span):  # type: ignore[no-untyped-def]
        (place.folder / "artifacts" / "planted").write_text("x")
        return super()._answer(job, place, ended, span)


def test_nothing_of_the_other_user_is_left_at_the_deadline(guest: AsUser) -> None:
    away, here = f"601.{os.getpid()}", f"602.{os.getpid()}"
    script = f"trap '' TERM; (setsid sleep {away} &) ; exec sleep {here}"
    assert ask(sh(script, isolation=guest), job(seconds=0.5)).result.status == "failed"
    assert not _running("sleep", away)
    assert not _running("sleep", here)


# --- refused with what would help


def test_no_such_user_and_the_same_user_are_refused() -> None:
    with pytest.raises(Refused, match="no user") as caught:
        as_user("no-such-user-here")
    assert caught.value.remedy is not None
    with pytest.raises(Refused) as caught:
        as_user("root")
    assert caught.value.rule == "same-user"


def test_without_the_tools_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused) as caught:
        sandbox()
    assert caught.value.rule == "no-sandbox"
    with pytest.raises(Refused) as caught:
        as_user(GUEST, root=False)
    assert caught.value.rule == "no-sudo"
    for name in ("bwrap", "sudo"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    for make in (sandbox, lambda: as_user(GUEST, root=False)):
        with pytest.raises(Refused) as caught:
            make()
        assert caught.value.remedy is not None
