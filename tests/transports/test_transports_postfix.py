"""A real mail server, Debian's Postfix: what it takes, and what it delivers of what was cut off."""

from __future__ import annotations

import mailbox
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitbus.transports.base import Outgoing, clock
from gitbus.transports.spawn import _ROOT, open_channel
from tests.support.smtpd import Authority

DRIVER = Path(__file__).with_name("driver.py")
DAEMONS = Path("/usr/lib/postfix/sbin")
POSTFIX = shutil.which("postfix") or shutil.which("postfix", path="/usr/sbin")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(POSTFIX is None or not DAEMONS.is_dir(), reason="Debian's postfix is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="postfix's master runs as root only"),
]

MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
command_directory = /usr/sbin
daemon_directory = {daemons}
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.partners.example
mydestination =
virtual_mailbox_domains = partners.example
virtual_mailbox_base = {folder}
virtual_mailbox_maps = static:box/
virtual_uid_maps = static:{user}
virtual_gid_maps = static:{user}
virtual_minimum_uid = 1
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_security_level = encrypt
smtpd_tls_chain_files = {folder}/server.pem
"""

MASTER = """
127.0.0.1:{port} inet n - n - - smtpd
postlog unix-dgram n - n - 1 postlogd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
virtual unix - n n - - virtual
"""


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, Path, Path]]:
    """Run a Postfix of the test's own; give port, CA file and Maildir."""
    import pwd

    # Its daemons are another user, who may not pass pytest's folders.
    folder = Path(tempfile.gettempdir()) / f"gitbus-postfix-{os.getpid()}"
    user = pwd.getpwnam("postfix").pw_uid
    for name in ("conf", "queue", "data"):
        (folder / name).mkdir(parents=True)
    os.chown(folder / "data", user, -1)
    authority = Authority()
    authority.ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        str(folder / "server.pem")
    )
    authority.ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mailbox.Maildir(folder / "box")
    for path in (folder / "box", *(folder / "box").iterdir()):
        os.chown(path, user, user)
    (folder / "conf" / "main.cf").write_text(MAIN.format(folder=folder, user=user, daemons=DAEMONS))
    (folder / "conf" / "master.cf").write_text(MASTER.format(port=port))
    run = [str(POSTFIX), "-c", str(folder / "conf")]
    started = subprocess.run([*run, "start"], capture_output=True, text=True, check=False)
    try:
        assert started.returncode == 0, started.stderr + (folder / "log").read_text()
        yield port, folder / "ca.pem", folder / "box"
    finally:
        subprocess.run([*run, "stop"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def channel(server: tuple[int, Path, Path]) -> Iterator[Callable[..., Any]]:
    port, ca_file, _ = server
    opened: list[Any] = []

    def make(*hook: str, **more: Any) -> Any:
        definition = {
            "transport": "smtp",
            "host": "localhost",
            "port": port,
            "ca_file": str(ca_file),
            "from": ["news@acme.example"],
            **more,
        }
        command = [sys.executable, "-I", str(DRIVER), _ROOT, *hook] if hook else None
        opened.append(open_channel("news", definition, os.environ, command=command))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def delivered(box: Path, item: Outgoing, *, wait: float) -> int:
    """Count an item's deliveries, as soon as there is one or when the seconds have passed."""
    end = time.monotonic() + wait
    while True:
        found = sum(item.idempotency_key in str(one["Message-ID"]) for one in mailbox.Maildir(box))
        if found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def one_of(outgoing: Outgoing, name: str) -> Outgoing:
    message = {**outgoing.message, "from": "news@acme.example", "bcc": []}
    return Outgoing(f"g.t.{name}", 1, outgoing.digest, outgoing.date, message, outgoing.parts)


def test_it_takes_a_batch(server: tuple[int, Path, Path], channel: Any, outgoing: Outgoing) -> None:
    news = channel()
    identity = news.check()
    assert identity.tls_version == "TLSv1.3"
    for number in range(3):
        item = one_of(outgoing, f"batch{number}")
        answer = news.send(item, clock() + 30)
        assert answer.outcome == "sent"
        assert answer.provider_id
        assert delivered(server[2], item, wait=15) == 1


def test_a_stranger_as_recipient(server: tuple[int, Path, Path], channel: Any, outgoing: Outgoing) -> None:
    item = one_of(outgoing, "stranger")
    item = Outgoing(
        item.item, 1, item.digest, item.date, {**item.message, "to": ["x@elsewhere.example"]}, item.parts
    )
    answer = channel().send(item, clock() + 30)
    assert (answer.outcome, answer.passing) == ("not_sent", False)


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA", "text"])
def test_killed_before_the_dot_nothing_is_delivered(
    step: str, server: tuple[int, Path, Path], channel: Any, outgoing: Outgoing
) -> None:
    item = one_of(outgoing, f"before-{step.lower()}")
    assert channel("protocol-line", step, "SIGKILL").send(item, clock() + 30).outcome == "unknown"
    after = one_of(outgoing, f"after-{step.lower()}")
    assert channel().send(after, clock() + 30).outcome == "sent"
    assert delivered(server[2], after, wait=15) == 1  # the queue has passed
    assert delivered(server[2], item, wait=0.5) == 0


def test_killed_with_the_answer_unread_it_is_delivered_once(
    server: tuple[int, Path, Path], channel: Any, outgoing: Outgoing
) -> None:
    item = one_of(outgoing, "unread")
    answer = channel("deliver", "final dot", "unread").send(item, clock() + 30)
    assert answer.outcome == "unknown"
    assert delivered(server[2], item, wait=15) == 1
