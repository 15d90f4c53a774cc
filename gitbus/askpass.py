"""What git asks for a password (``GIT_ASKPASS=gitbus-askpass``): the token in the environment, never on disk.

git starts it with its question as the only argument (gitcredentials(7)). The token is in the
environment of the very step that needs it, so that no other step of a job finds it in a file. It is
given to the GitHub of ``GITHUB_SERVER_URL`` (github.com unless set) and to no other host.

Example: ``GH_TOKEN=… GIT_ASKPASS=gitbus-askpass git fetch``.
"""

from __future__ import annotations

import os
import re
import sys
from urllib.parse import urlsplit

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
USER = "x-access-token"
"""The user name that goes with every kind of GitHub token."""

_QUESTION = re.compile(r"(?P<what>Username|Password) for '(?P<url>[^']+)': ?")


def main() -> int:
    """Answer git's question; where nothing is answered, git says that it may not."""
    asked = _QUESTION.fullmatch(sys.argv[1] if len(sys.argv) > 1 else "")
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
    if asked is None or token is None or not _is_ours(asked["url"]):
        return 1
    sys.stdout.write((USER if asked["what"] == "Username" else token) + "\n")
    return 0


def _is_ours(url: str) -> bool:
    server = urlsplit(os.environ.get("GITHUB_SERVER_URL") or "https://github.com")
    asking = urlsplit(url)
    return (asking.scheme, asking.netloc.rpartition("@")[2]) == (server.scheme, server.netloc)


if __name__ == "__main__":
    sys.exit(main())
