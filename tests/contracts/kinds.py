"""The kinds of hub that a promise is tested over; `made` (in conftest.py) makes the hub of a kind."""

from __future__ import annotations

import pytest

from tests.support import sshgit

WORKER = "refs/heads/gitbus/workers/laptop"
PRESENCE = "refs/heads/gitbus/presence/laptop"
KINDS = [
    "direct",
    "path",
    "http",
    pytest.param("file", marks=pytest.mark.long),
    pytest.param(
        "ssh",
        marks=[pytest.mark.long, pytest.mark.skipif(sshgit.SSHD is None, reason="there is no sshd here")],
    ),
]
PUSHED = KINDS[1:]

every = pytest.mark.parametrize("made", KINDS, indirect=True)
pushed = pytest.mark.parametrize("made", PUSHED, indirect=True)
direct = pytest.mark.parametrize("made", ["direct"], indirect=True)
http = pytest.mark.parametrize("made", ["http"], indirect=True)
