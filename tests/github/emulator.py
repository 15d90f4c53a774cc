"""A GitHub that nobody here wrote: ``myworld``, a simulator of services, reached at ``api.github.com`` by proxy.

Rules: it is no dependency of gitbus. It is installed at its pinned version into an environment of its own,
once for a machine, when the first test asks for it. Where that fails the tests are skipped; in CI they fail.
Nothing of it touches the user's home. It has repositories, branches, files, pull requests, reviews, labels
and comments; it has no git, no forks, no events, and merges whatever ``sha`` it is given. Pull requests
come without the repositories of their ends, which :func:`hook` fills in: there is one only.

Example::

    with running(program(), folder) as emulator:
        world = emulator.world(["ada", "bob"])
        os.environ |= emulator.environment()
        Github(auth=Auth.Token(world["ada"])).get_repo("acme/bus")
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    import pytest

RELEASE = "0.2.1"
REQUIREMENT = f"myworld[gateway]=={RELEASE}"
REPO = "acme/bus"
PROTECTED = {"main": {"required_approvals": 1}}


class Absent(Exception):
    """It is not here, and cannot be installed."""


# --- installing


def program() -> Path:
    """Return the simulator's program, installed if it was not.

    Raises:
        Absent: it is not here, and cannot be installed.
    """
    own = Path(tempfile.gettempdir()) / f"gitbus-tests-{os.getuid()}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or own)
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if cache.stat().st_uid != os.getuid():
        raise RuntimeError(f"{cache} belongs to somebody else")
    folder = cache / f"gitbus-tests-myworld-{RELEASE}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(folder / "venv")
            (folder / "complete").touch()
    return folder / "venv" / "bin" / "myworld"


def _install(venv: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True, capture_output=True)
    command = [
        str(venv / "bin" / "pip"),
        "install",
        "--quiet",
        "--no-cache-dir",
        "--retries",
        "1",
        REQUIREMENT,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Absent(f"{REQUIREMENT} cannot be installed: {done.stderr.strip()[-500:]}")


# --- running


@dataclass(frozen=True)
class Emulator:
    """A simulator that runs: its own API, and the proxy that answers for ``api.github.com``."""

    control: str
    proxy: str
    authority: Path

    def environment(self) -> dict[str, str]:
        """Return what a process needs in its environment to take it for GitHub."""
        bundle = str(self.authority)
        return {"HTTPS_PROXY": self.proxy, "REQUESTS_CA_BUNDLE": bundle, "SSL_CERT_FILE": bundle}

    def world(self, people: Sequence[str], **repo: Any) -> dict[str, str]:
        """Make a world of its own with ``acme/bus``; return each person's token.

        Args:
            people: logins; the first one owns what there is at the beginning.
            repo: what else the repository has: ``files``, ``branches``, ``protected``.
        """
        seed = {
            "viewer": people[0],
            "users": [{"login": login, "email": f"{login}@acme.example"} for login in people],
            "repos": [{"name": REPO, "private": True, "author": people[0], **repo}],
        }
        spec = {
            "name": "bus",
            "task": "approve",
            "servers": {"github": {"seed": seed}},
            "agents": {login: {"identities": {"github": login}} for login in people},
        }
        answer = _direct("POST", f"{self.control}/envs", {"spec": spec})
        return {login: answer["credentials"][login]["github_token"] for login in people}


@contextmanager
def running(binary: Path, folder: Path) -> Iterator[Emulator]:
    """Run a simulator, with nothing in it, until the context ends.

    Args:
        binary: what :func:`program` gave.
        folder: an empty one, which is its home.
    """
    control, proxy = _free_ports(2)
    command = [str(binary), "serve", "--port", str(control), "--gateway", str(proxy)]
    command += ["--no-passthrough", "--ca-dir", str(folder / "ca"), "--log-level", "warning"]
    clean = {"HOME": str(folder), "PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=clean, cwd=folder, stdout=log, stderr=log)
        try:
            _until_it_answers(process, f"http://127.0.0.1:{control}", folder / "log")
            found = folder / "ca" / "myworld-ca.pem"
            yield Emulator(f"http://127.0.0.1:{control}", f"http://127.0.0.1:{proxy}", found)
        finally:
            process.terminate()
            process.wait(20)


def _until_it_answers(process: subprocess.Popen[bytes], control: str, log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            _direct("GET", f"{control}/openapi.json")
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"myworld does not answer: {log.read_text('utf-8', 'replace')}")


def _free_ports(count: int) -> list[int]:
    open_ones = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in open_ones]
    for one in open_ones:
        one.close()
    return ports


def _direct(verb: str, url: str, body: Any = None) -> Any:
    """Ask without a proxy."""
    with requests.Session() as session:
        session.trust_env = False
        answer = session.request(verb, url, json=body, timeout=30)
    answer.raise_for_status()
    return answer.json()


# --- filling its gap


def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what the simulator says of pull requests name the repositories of their ends."""
    send = requests.Session.send

    def filled(
        session: requests.Session, request: requests.PreparedRequest, **more: Any
    ) -> requests.Response:
        response = send(session, request, **more)
        if re.search(r"/pulls(/\d+)?(\?|$)", request.url or "") and response.ok:
            told = response.json()
            for one in told if isinstance(told, list) else [told]:
                name = one["url"].split("/repos/")[1].rpartition("/pulls/")[0]
                one["head"].setdefault("repo", {"full_name": name})
                one["base"].setdefault("repo", {"full_name": name})
            response._content = json.dumps(told).encode()
        return response

    monkeypatch.setattr(requests.Session, "send", filled)
