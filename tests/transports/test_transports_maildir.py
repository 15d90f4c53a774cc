"""Maildir: what a mail program finds there, and what becomes of a disk that fails."""

from __future__ import annotations

import errno
import mailbox
import os
from pathlib import Path
from typing import Any

import pytest

from gitbus import effects
from gitbus.transports.base import Outgoing, Unusable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "preview"


@pytest.fixture
def channel(path: Path, inside: Any) -> Any:
    return inside({"transport": "maildir", "path": str(path)})


def fail(monkeypatch: pytest.MonkeyPatch, name: str, detail: str, code: int) -> None:
    def hook(seen: str, about: str) -> None:
        if seen == name and detail in about:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(effects, "hook", hook)


def test_a_mail_program_reads_it(channel: Any, path: Path, outgoing: Outgoing) -> None:
    answer = channel.send(outgoing)
    box = mailbox.Maildir(path, create=False)
    (key,) = box.keys()
    message = box[key]
    assert answer.outcome == "sent"
    assert answer.provider_id == key
    assert outgoing.idempotency_key in key
    assert (message["Subject"], message["Bcc"]) == ("Release 1.0", None)
    assert message["Message-ID"] == answer.message_id
    assert message.get_payload(decode=True) == outgoing.parts[0].data
    assert message.get_subdir() == "new"
    assert list((path / "tmp").iterdir()) == []
    assert channel.began == 1


def test_home(inside: Any, outgoing: Outgoing) -> None:
    assert inside({"transport": "maildir", "path": "~/mail"}).send(outgoing).outcome == "sent"
    assert len(list((Path.home() / "mail" / "new").iterdir())) == 1


def test_a_message_that_was_read_does_not_hide_a_second_delivery(
    channel: Any, path: Path, outgoing: Outgoing
) -> None:
    channel.send(outgoing)
    (first,) = (path / "new").iterdir()
    first.rename(path / "cur" / f"{first.name}:2,S")
    assert channel.send(outgoing).outcome == "sent"
    assert len(mailbox.Maildir(path)) == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("step", [("file-write", "tmp"), ("fsync", "tmp")])
def test_a_disk_that_fails_before_the_move(
    step: tuple[str, str],
    code: int,
    channel: Any,
    path: Path,
    outgoing: Outgoing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel.transport.check()
    fail(monkeypatch, *step, code)
    answer = channel.send(outgoing)
    assert (answer.outcome, answer.passing) == ("not_sent", True)
    assert os.strerror(code) in str(answer.reason)
    assert channel.began == 0
    assert not any(one for sub in ("tmp", "new", "cur") for one in (path / sub).iterdir())


def test_folders_that_it_makes_are_flushed(
    channel: Any, path: Path, outgoing: Outgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(effects, "hook", lambda *effect: seen.append(effect))
    channel.send(outgoing)
    flushed = [about for kind, about in seen if kind == "fsync"]
    assert flushed[:2] == [str(path.parent), str(path)]
    assert flushed[3:] == [str(path / "new")]
    seen.clear()
    channel.send(outgoing)
    assert [about for kind, about in seen if kind == "fsync"][1:] == [str(path / "new")]


def test_a_move_that_fails(
    channel: Any, path: Path, outgoing: Outgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.transport.check()

    really = Path.rename

    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def lose(self: Path, target: Path) -> None:
        really(self, target)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "rename", refuse)
    assert channel.send(outgoing).outcome == "not_sent"
    monkeypatch.setattr(Path, "rename", lose)
    assert channel.send(outgoing).outcome == "unknown"
    assert len(list((path / "new").iterdir())) == 1


def test_a_move_that_was_not_flushed_is_unknown(
    channel: Any, path: Path, outgoing: Outgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.transport.check()
    fail(monkeypatch, "fsync", "new", errno.EIO)
    assert channel.send(outgoing).outcome == "unknown"


def test_a_real_file_system_that_is_full(inside: Any, outgoing: Outgoing) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(Unusable) as caught:
        inside({"transport": "maildir", "path": "/dev/full"}).transport.check()
    assert caught.value.rule == "maildir-path"


def test_a_path_that_is_none(inside: Any, tmp_path: Path, outgoing: Outgoing) -> None:
    (tmp_path / "file").write_text("")
    for path, rule in (("", "channel-path"), (str(tmp_path / "file"), "maildir-path")):
        with pytest.raises(Unusable) as caught:
            inside({"transport": "maildir", "path": path}).transport.check()
        assert caught.value.rule == rule
    answer = inside({"transport": "maildir", "path": str(tmp_path / "file")}).send(outgoing)
    assert (answer.outcome, answer.passing) == ("not_sent", True)


def test_no_recipient(channel: Any, outgoing: Outgoing, to: Any) -> None:
    answer = channel.send(to(outgoing, to=[], bcc=[]))
    assert (answer.outcome, answer.passing) == ("not_sent", False)
    assert str(answer.reason).startswith("no-recipient")
