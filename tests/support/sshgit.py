"""A git host over ssh: a user-mode ``sshd`` with a key of its own, on loopback.

Example::

    with serve(folder) as (url, command):
        ...  # f"{url}{folder}/acme.git", with GIT_SSH_COMMAND=command
"""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SSHD = shutil.which("sshd") or (path if (path := "/usr/sbin/sshd") and Path(path).exists() else None)


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve ssh from a folder of keys; give the URL without a path, and the ssh command to use."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    port = _free_port()
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n"
    )
    command = [str(SSHD), "-D", "-E", str(folder / "log"), "-f", str(folder / "config")]
    process = subprocess.Popen(command)
    try:
        _until_it_listens(port)
        command = (
            f"ssh -F none -i {folder}/user -o IdentitiesOnly=yes -o UserKnownHostsFile=/dev/null "
            "-o StrictHostKeyChecking=no -o LogLevel=ERROR"
        )
        yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}", command
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until_it_listens(port: int) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
