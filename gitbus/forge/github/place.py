"""Which repository on which GitHub a hub is, and the token that this process was given for it.

Rules: the repository comes from the hub's URL, never from a record; the API's address from
``GITHUB_API_URL`` where the URL's host is that of ``GITHUB_SERVER_URL`` (as in Actions), else from
the host. A token never goes over plain HTTP, except on this very machine.

Example: ``place_of("git@github.com:acme/bus.git", {})`` is ``Place("acme", "bus", "https://api.github.com",
"https://github.com")``.
"""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from gitbus.errors import Refused

_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/:][^:]*)")
_NAMES = re.compile(r"/?(?P<owner>[A-Za-z0-9_.-]+)/(?P<name>[A-Za-z0-9_.-]+?)(?:\.git)?/?")
TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
"""The environment variables that may hold a token, the first one found counts."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository on a GitHub: owner and name, and the addresses of the API and of the pages."""

    owner: str
    name: str
    api: str
    web: str

    @property
    def full_name(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"

    @property
    def path(self) -> str:
        """The repository's path in the API."""
        return f"/repos/{self.owner}/{self.name}"

    def file(self, commit: str, path: str) -> str:
        """Return the address of the page that shows a file at a commit."""
        return f"{self.web}/{self.full_name}/blob/{commit}/{path}"

    def commit(self, commit: str) -> str:
        """Return the address of the page that shows a commit."""
        return f"{self.web}/{self.full_name}/commit/{commit}"


def place_of(url: str, environment: Mapping[str, str], *, certain: bool = False) -> Place | None:
    """Return which repository on which GitHub a hub's URL names; None where it names none.

    Args:
        url: the hub's URL, in any form that git takes.
        environment: where ``GITHUB_SERVER_URL`` and ``GITHUB_API_URL`` may stand.
        certain: the bus says that it lives on a GitHub, so that any host may be one.
    """
    found = _parts(url)
    if found is None:
        return None
    scheme, host, names = found
    server = environment.get("GITHUB_SERVER_URL", "").rstrip("/")
    if server and urlsplit(server).netloc.lower() == host:
        api = environment.get("GITHUB_API_URL", "").rstrip("/") or _api(scheme, host)
        return Place(*names, api, server)
    if host in ("github.com", "ssh.github.com", "ssh.github.com:443"):
        return Place(*names, "https://api.github.com", "https://github.com")
    if not certain and not host.endswith(".ghe.com"):
        return None
    return Place(*names, _api(scheme, host), f"{scheme}://{host}")


def _parts(url: str) -> tuple[str, str, tuple[str, str]] | None:
    """Return scheme for pages, host (with its port for HTTP) and the repository's names."""
    parts = urlsplit(url) if "://" in url else None
    if parts is not None and parts.scheme in ("http", "https"):
        scheme, host, path = parts.scheme, parts.netloc.rpartition("@")[2], parts.path
    elif parts is not None and parts.scheme in ("ssh", "git+ssh", "ssh+git") and parts.hostname:
        scheme, host, path = "https", parts.hostname, parts.path
    elif parts is None and (scp := _SCP.fullmatch(url)):
        scheme, host, path = "https", scp["host"], scp["path"]
    else:
        return None
    names = _NAMES.fullmatch(path)
    return (scheme, host.lower(), (names["owner"], names["name"])) if names else None


def _api(scheme: str, host: str) -> str:
    if host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"{scheme}://{host}/api/v3"


def token_of(place: Place, environment: Mapping[str, str]) -> str | None:
    """Return the token for a GitHub: from the environment, else from the ``gh`` command where it is there.

    Raises:
        Refused: it would go over the network in the clear (rule ``plain-http``).
    """
    token = next((environment[name] for name in TOKENS if environment.get(name)), None)
    if token is None and (gh := shutil.which("gh", path=environment.get("PATH"))):
        asked = subprocess.run(
            [gh, "auth", "token", "--hostname", urlsplit(place.web).netloc],
            capture_output=True,
            text=True,
            check=False,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            timeout=20,
        )
        token = asked.stdout.strip() if asked.returncode == 0 else None
    if token and urlsplit(place.api).scheme != "https" and not _is_here(urlsplit(place.api).hostname or ""):
        raise Refused(
            f"the token would go to {place.api} in the clear", rule="plain-http", remedy="use https"
        )
    return token or None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
