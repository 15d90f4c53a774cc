"""One SMTP connection, driven step by step, so that it is known at each step what was written.

Rules: before every write there is a look at the clock and at the server (what it said unasked, or
that it hung up, is taken before anything is written); a reply is complete, well-formed and of one
code, or the connection counts as lost; the final dot is a write of its own, and ``dotted`` says
whether it was begun. The kernel is told not to go on sending for a dead process: SO_LINGER 0 until
the answer is there, and a TCP user time-out on Linux.

Example: ``wire.command("MAIL", "MAIL FROM:<a@acme.example>")`` returns the reply, raises
:class:`Said` for one that is not 2yz, and :class:`Lost` where there is none.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from gitbus.effects import effect
from gitbus.transports.base import clock, plain

_REPLY = re.compile(rb"([2-5]\d\d)(?:([ -])([^\r\n]*))?\r?\n")
_MAX_LINES = 100
_MAX_BUFFER = 64 << 10
_CHUNK = 64 << 10
_NAME = "[127.0.0.1]"  # an address literal (RFC 5321, 4.1.3) that tells nothing of this machine


class Reply(NamedTuple):
    """A server's answer."""

    code: int
    text: str

    @property
    def passing(self) -> bool:
        """Whether it says that it may go well later (4yz)."""
        return 400 <= self.code < 500

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


class Lost(Exception):
    """There is no answer: the connection broke, time ran out, or the answer is none."""


class Said(Exception):
    """The server's answer is not the one that the step needs."""

    def __init__(self, reply: Reply, step: str) -> None:
        super().__init__(f"{step}: {reply}")
        self.reply = reply
        self.step = step


class Wire(smtplib.SMTP):
    """A connection; made by the constructor up to the server's greeting.

    Args:
        host: the server's name, which its certificate must hold.
        port: the server's port.
        until: on :func:`~gitbus.transports.base.clock`, when to give up; changed for each message.
        context: what TLS must verify.
        implicit: whether TLS comes before the greeting (RFC 8314).

    Raises:
        Lost: no connection, no TLS, no greeting.
        Said: a greeting that is not 220.
        ssl.SSLCertVerificationError: the certificate is not one of this host.
    """

    def __init__(
        self, host: str, port: int, until: float, context: ssl.SSLContext, *, implicit: bool
    ) -> None:
        self.until = until
        self.step = "connect"
        self.dotted = False
        self._heard = b""
        self._context = context
        self._implicit = implicit
        super().__init__(local_hostname=_NAME)
        self._host = host
        code, text = self.connect(host, port)
        if code != 220:
            self.close()
            raise Said(Reply(code, plain(text.decode())), "connect")

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002 - smtplib's
        effect("connect", f"{host}:{port}")
        try:
            sock = socket.create_connection((host, port), timeout=self.left())
        except OSError as error:
            raise Lost(f"cannot connect: {_why(error)}") from None
        linger(sock, on=True)
        return self._wrapped(sock) if self._implicit else sock

    def _wrapped(self, sock: socket.socket) -> ssl.SSLSocket:
        try:
            sock.settimeout(self.left())
            sock.getpeername()  # wrap_socket skips the handshake on a socket that is no longer connected
            wrapped = self._context.wrap_socket(sock, server_hostname=self._host)
        except (Lost, ssl.SSLCertVerificationError):
            sock.close()
            raise
        except OSError as error:
            sock.close()
            raise Lost(f"{self.step}: TLS failed: {_why(error)}") from None
        if wrapped.version() is None:
            wrapped.close()
            raise Lost(f"{self.step}: TLS failed: the server hung up")
        return wrapped

    @property
    def open_socket(self) -> socket.socket:
        """The socket.

        Raises:
            Lost: it is closed.
        """
        if self.sock is None:
            raise Lost(f"{self.step}: the connection is closed")
        return self.sock

    def upgrade(self) -> None:
        """Begin TLS (RFC 3207), and forget all that was said before it."""
        self.step = "STARTTLS"
        if not self.has_extn("starttls"):
            raise Said(Reply(502, "the server offers no STARTTLS"), "STARTTLS")
        self.command("STARTTLS", "STARTTLS")
        if self._heard:
            raise self.lost("the server spoke between STARTTLS and TLS")
        plain_sock, self.sock = self.open_socket, None
        self.sock = self._wrapped(plain_sock)
        self.ehlo_resp, self.esmtp_features, self.does_esmtp = None, {}, False

    def hello(self) -> None:
        """Say EHLO and learn what the server can do."""
        self.step = "EHLO"
        code, text = self.ehlo()
        if code != 250:
            raise Said(Reply(code, plain(text.decode())), "EHLO")

    def command(self, step: str, text: str, *, wanted: Callable[[int], bool] | None = None) -> Reply:
        """Write one command and return its reply.

        Args:
            step: its name, for errors and effects.
            text: the line, without its end.
            wanted: which codes are welcome; 2yz where it is not given.
        """
        self.step = step
        code, said = self.docmd(text)
        reply = Reply(code, plain(said.decode()))
        if not (wanted(code) if wanted else 200 <= code < 300):
            raise Said(reply, step)
        return reply

    def write_text(self, data: bytes) -> None:
        """Write a message's text, dots doubled (RFC 5321, 4.5.2), all but the final dot."""
        self.step = "text"
        text = re.sub(rb"(?m)^\.", b"..", data if data.endswith(b"\r\n") else data + b"\r\n")
        for start in range(0, len(text), _CHUNK):
            self.send(text[start : start + _CHUNK])

    def finish(self, began: Callable[[], None]) -> Reply:
        """Write the final dot and return what the server says to it."""
        self.step = "final dot"
        self.look()
        began()
        self.look()
        effect("deliver", "final dot")
        self.dotted = True
        self._put(b".\r\n")
        code, said = self.getreply()
        linger(self.open_socket, on=False)
        return Reply(code, plain(said.decode()))

    def look(self) -> None:
        """See that there is time left and that the server neither spoke nor hung up."""
        self.left()
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            self._hear(0.0)
        if self._heard:
            code, text = self.getreply()
            self.close()
            raise Said(Reply(code, plain(text.decode())), self.step)

    def send(self, s: bytes | str) -> None:  # type: ignore[override]
        """Write; every byte goes through here but the final dot."""
        self.look()
        effect("protocol-line", self.step)
        self._put(s.encode(self.command_encoding) if isinstance(s, str) else s)

    def _put(self, data: bytes) -> None:
        left, sock = self.left(), self.open_socket
        try:
            sock.settimeout(left)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(left * 1000)))
            sock.sendall(data)
        except OSError as error:
            raise self.lost(_why(error)) from None

    def getreply(self) -> tuple[int, bytes]:
        """Read one whole reply: every line ended, every line of the same code."""
        lines: list[bytes] = []
        codes: set[bytes] = set()
        while True:
            match = _REPLY.fullmatch(self._line())
            codes.add(match[1] if match else b"")
            if match is None or len(codes) > 1 or len(lines) >= _MAX_LINES:
                raise self.lost("what the server says is no SMTP reply")
            lines.append((match[3] or b"").strip().decode("utf-8", "replace").encode())
            if match[2] != b"-":
                return int(match[1]), b"\n".join(lines)

    def _line(self) -> bytes:
        while b"\n" not in self._heard:
            if len(self._heard) > _MAX_BUFFER:
                raise self.lost("the server's line does not end")
            self._hear(self.left())
        row, _, self._heard = self._heard.partition(b"\n")
        return row + b"\n"

    def _hear(self, seconds: float) -> None:
        sock = self.open_socket
        try:
            sock.settimeout(seconds)
            data = sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError):
            raise
        except OSError as error:
            raise self.lost(_why(error)) from None
        if not data:
            raise self.lost("the server hung up")
        self._heard += data

    def left(self) -> float:
        """Return how many seconds are left.

        Raises:
            Lost: none.
        """
        left = self.until - clock()
        if left <= 0:
            raise self.lost("there is no time left")
        return left

    def lost(self, why: str) -> Lost:
        """Drop the connection and return the error that says so."""
        self.close()
        return Lost(f"{self.step}: {why}")


def linger(sock: socket.socket, *, on: bool) -> None:
    """Say what the kernel does with unsent bytes when the socket goes: drop them (on), or send them."""
    with suppress(OSError):  # macOS refuses it for a connection that is already broken
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(on), 0))


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return plain(error.strerror or type(error).__name__)
