"""SMTP servers for tests: a real one that behaves, and one that fails at a step of one's choice.

``Scripted`` says what a server says; a *fault* is what it does instead when a step is reached:
``fin`` (it closes), ``rst`` (it aborts), ``silence`` (it never speaks again), ``raw:`` and bytes
after which it closes, or a reply such as ``451 later``. The steps: connect, EHLO, STARTTLS, TLS, EHLO2, AUTH, MAIL, RCPT1, RCPT2, DATA, text
(when 64 KiB of it were read), dot (the dot is there, unread), answer (the dot was read), RSET, idle
(after the first message).
"""

from __future__ import annotations

import gc
import select
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "news@acme.example", "s3cret-word"
HOST = "localhost"


@dataclass(frozen=True)
class Authority:
    """A certificate authority of the test's own, and contexts that it vouches for."""

    ca: trustme.CA = field(default_factory=trustme.CA)
    made: dict[tuple[str, ...], ssl.SSLContext] = field(default_factory=dict)

    def server(self, *names: str, **options: Any) -> ssl.SSLContext:
        """Return a server's context with a certificate for these names."""
        if names in self.made and not options:
            return self.made[names]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        if not options:
            self.made[names] = context
        self.ca.issue_cert(*(names or (HOST,)), **options).configure_cert(context)
        return context


class Mailbox:
    """An aiosmtpd handler that keeps what it takes, in the order of its arrival."""

    def __init__(self, answers: Mapping[str, str] | None = None) -> None:
        self.letters: list[Envelope] = []
        self.peers: set[tuple[str, int]] = set()
        self.users: list[Any] = []
        self.answers = dict(answers or {})

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.letters.append(envelope)
        self.peers.add(session.peer)
        self.users.append(session.auth_data)
        return f"250 2.0.0 Ok: queued as Q{len(self.letters)}"


def _authenticate(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (
        USER.encode(),
        PASSWORD.encode(),
    )
    return AuthResult(success=good, handled=False, auth_data=USER if good else None)


@contextmanager
def real_server(
    context: ssl.SSLContext, mailbox: Mailbox, *, implicit: bool = False, **options: Any
) -> Iterator[int]:
    """Run aiosmtpd with TLS and AUTH, and give its port."""
    tls = (
        {"ssl_context": context, "auth_require_tls": False}
        if implicit
        else {"tls_context": context, "require_starttls": True, "auth_required": True}
    )
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=_free_port(),
        authenticator=_authenticate,
        **tls,
        **options,
    )
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()
        with warnings.catch_warnings():  # it leaves transports of connections that were cut
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Over(Exception):
    """The fault has come; the conversation is over."""


class Scripted:
    """A server for one conversation after another, in a thread, with faults."""

    def __init__(
        self,
        context: ssl.SSLContext,
        faults: Mapping[str, str] | None = None,
        *,
        implicit: bool = False,
        features: tuple[str, ...] = ("STARTTLS", "AUTH PLAIN LOGIN", "SIZE 99999999", "8BITMIME"),
        times: int = 99,
    ) -> None:
        self.context = context
        self.faults = dict(faults or {})
        self.times = times  # how often a fault comes, over all of them
        self.implicit = implicit
        self.features = features
        self.taken: list[bytes] = []  # messages that were answered with 250
        self.seen: list[str] = []  # every command's first word
        self.connections = 0
        self.stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        for sock in self._open:
            sock.close()
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(sock)
            with suppress(Over, OSError):
                Talk(self, sock).run()


class Talk:
    """One conversation."""

    def __init__(self, server: Scripted, sock: socket.socket) -> None:
        self.server = server
        self.sock = sock
        self.heard = b""

    def run(self) -> None:
        if self.server.implicit:
            self.wrap()
        self.say("connect", "220 test ESMTP")
        self.hello("EHLO")
        while True:
            words = self.line().decode("utf-8", "replace").split(" ", 1)
            verb = words[0].upper()
            self.server.seen.append(verb)
            if verb == "STARTTLS":
                if not self.say("STARTTLS", "220 go"):
                    continue
                self.fault("TLS")
                self.wrap()
                self.hello("EHLO2")
            elif verb == "DATA":
                self.data()
            elif verb == "QUIT":
                self.say("QUIT", "221 bye")
                return
            elif verb == "RCPT":
                self.rcpt += 1
                self.say(f"RCPT{self.rcpt}", "250 ok")
            else:
                self.rcpt = 0
                self.say(verb, "235 ok" if verb == "AUTH" else "250 ok")

    rcpt = 0

    def hello(self, step: str) -> None:
        self.line()
        rows = ["test", *(one for one in self.server.features if (step, one) != ("EHLO2", "STARTTLS"))]
        self.say(step, "".join(f"250-{row}\r\n" for row in rows[:-1]) + f"250 {rows[-1]}")

    def data(self) -> None:
        if not self.say("DATA", "354 go"):
            return
        if "text" in self.server.faults:
            self.read_until(lambda: len(self.heard) > 64 << 10)
            self.fault("text")
            self.heard = b""
            while self.sock.recv(1 << 16):  # an early answer was given; the rest is let pass
                pass
            raise Over
        if "dot" in self.server.faults:
            self.read_until(lambda: self.heard.endswith(b"\r\n"))
            select.select([self.sock], [], [], 5)  # the dot came; it stays unread
            self.fault("dot")
        self.read_until(lambda: self.heard.endswith(b"\r\n.\r\n"))
        text, self.heard = self.heard, b""
        with suppress(Answered):
            self.fault("answer")
            self.server.taken.append(text.removesuffix(b".\r\n"))
            self.sock.sendall(b"250 2.0.0 Ok: queued as T1\r\n")
            self.fault("idle")

    def fault(self, step: str) -> None:
        """Do what stands for this step, if anything."""
        what = self.server.faults.get(step)
        if what is None or self.server.times <= 0:
            return
        self.server.times -= 1
        if what == "silence":
            self.server.stopped.wait(30)
            raise Over
        if what in ("fin", "rst"):
            self.hang_up(abort=what == "rst")
            raise Over
        raw = what.startswith("raw:")
        self.sock.sendall(what[4:].encode() if raw else what.encode() + b"\r\n")
        if raw or step in ("idle", "connect", "TLS") or what.startswith("421"):
            self.hang_up(abort=False)
            raise Over
        if step != "text":
            raise Answered

    def hang_up(self, *, abort: bool) -> None:
        if abort:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def say(self, step: str, text: str) -> bool:
        try:
            self.fault(step)
        except Answered:
            return False
        self.sock.sendall(text.encode() + b"\r\n")
        return True

    def wrap(self) -> None:
        self.sock.getpeername()  # wrap_socket leaks a socket that is no longer connected
        self.sock = self.server.context.wrap_socket(self.sock, server_side=True)
        self.server._open.append(self.sock)
        self.heard = b""

    def line(self) -> bytes:
        self.read_until(lambda: b"\n" in self.heard)
        row, _, self.heard = self.heard.partition(b"\n")
        return row.strip()

    def read_until(self, done: Any) -> None:
        while not done():
            data = self.sock.recv(1 << 16)
            if not data:
                raise Over
            self.heard += data


class Answered(Exception):
    """The fault was an answer; the conversation goes on."""
