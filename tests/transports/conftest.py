"""Fixtures for transports: an item, an authority, and a way to run a transport without its child."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitbus.transports.base import MARGIN, Opening, Outgoing, Part, Transport, clock, factory
from tests.support.smtpd import HOST, PASSWORD, USER, Authority

MESSAGE = {
    "from": "Acme News <news@acme.example>",
    "to": ["list@partners.example"],
    "cc": [],
    "bcc": ["eve@partners.example"],
    "reply_to": None,
    "subject": "Release 1.0",
    "headers": {},
}


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def ca_file(authority: Authority, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.ca.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def outgoing() -> Outgoing:
    text = Part("text", None, "text/plain", b"Grown up at last.\n.\n..\nFrom here on.\n")
    return Outgoing(
        "release-1-0.mail.announce", 1, "sha256:" + "ab" * 32, "2026-11-30T20:05:00Z", MESSAGE, (text,)
    )


@pytest.fixture
def to() -> Callable[..., Outgoing]:
    """Return a function that changes an item's message."""

    def change(outgoing: Outgoing, **message: Any) -> Outgoing:
        return replace(outgoing, message={**outgoing.message, **message})

    return change


@pytest.fixture
def smtp_channel(ca_file: str) -> Callable[..., dict[str, Any]]:
    """Return a function that makes a channel for a port."""

    def make(port: int, **more: Any) -> dict[str, Any]:
        channel = {
            "transport": "smtp",
            "host": HOST,
            "port": port,
            "tls": "starttls",
            "username": USER,
            "password_env": "NEWS_PASSWORD",
            "from": ["Acme News <news@acme.example>"],
            "ca_file": ca_file,
        }
        return {key: value for key, value in {**channel, **more}.items() if value is not None}

    return make


class Inside:
    """A transport in this process, with what it said about having begun."""

    def __init__(self, channel: dict[str, Any], environment: dict[str, str], seconds: float) -> None:
        self.began = 0
        self.seconds = seconds
        opening = Opening("news", channel, environment, self._begin, lambda: clock() + seconds)
        self.transport: Transport = factory(channel["transport"])(opening)

    def _begin(self) -> None:
        self.began += 1

    def send(self, outgoing: Outgoing) -> Any:
        return self.transport.send(outgoing, clock() + MARGIN + self.seconds)


@pytest.fixture
def inside() -> Any:
    """Return a function that opens a channel in this process; closed at the end."""
    opened: list[Inside] = []

    def make(channel: dict[str, Any], seconds: float = 20.0) -> Inside:
        opened.append(Inside(channel, {"NEWS_PASSWORD": PASSWORD, "PATH": os.environ["PATH"]}, seconds))
        return opened[-1]

    yield make
    for one in opened:
        one.transport.close()
