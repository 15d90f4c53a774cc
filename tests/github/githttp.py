"""Git over smart HTTP, as GitHub serves it: whose token may fetch and push, and what rules refuse.

Rules: git itself (``git http-backend``) reads and writes; before it moves a ref, a hook asks this server,
which knows the rules, whether it may. What follows from a push happens before the push is answered.
Pushes are one after another.

Example: ``GitHttp(world, faults, rest).handle(request)`` with the path ``/acme/bus.git/info/refs``.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.github.bare import ZERO
from tests.github.faults import Faults
from tests.github.moving import moved
from tests.github.rest import Request, Response, credentials
from tests.github.rights import allowed, sees
from tests.github.rules import Actor, actor_of, refused_push
from tests.github.state import Push, Repo, Token, World

PATH = re.compile(
    r"/(?P<owner>[^/]+)/(?P<name>[^/]+?)(?:\.git)?/(?P<rest>info/refs|git-upload-pack|git-receive-pack)"
)
HOOK = r"""#!/bin/bash
export LC_ALL=C
test -n "$GH_SESSION" || exit 0
said="$GH_SESSION $1 $2 $3"
exec 3<>"/dev/tcp/127.0.0.1/$GH_PORT" || exit 1
printf 'POST /_hook HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "${#said}" "$said" >&3
while IFS= read -r line <&3 && test -n "${line%$'\r'}"; do :; done
answer=$(cat <&3)
test -z "$answer" && exit 0
printf '%s\n' "$answer" >&2
exit 1
"""


def write_hook(repo: Repo) -> None:
    """Have git ask before it moves a ref."""
    path = repo.git.path / "hooks" / "update"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HOOK)
    path.chmod(0o755)


@dataclass(frozen=True)
class Session:
    """A push that is going on."""

    repo: Repo
    actor: Actor
    token: Token


class GitHttp:
    """Git over HTTP of one world."""

    def __init__(self, world: World, faults: Faults, port: int) -> None:
        self._world = world
        self._faults = faults
        self._port = port
        self._sessions: dict[str, Session] = {}

    def handle(self, request: Request) -> Response:
        """Answer one request of a fetch or a push."""
        found = PATH.fullmatch(request.path)
        assert found
        name = f"{found['owner']}/{found['name']}".lower()
        repo = next((one for full, one in self._world.repos.items() if full.lower() == name), None)
        text = credentials(request.headers.get("authorization", ""))
        token = self._world.tokens.get(text or "")
        if repo is None or not sees(self._world, token, repo):
            return _challenge() if token is None else Response(404, {}, b"Repository not found.")
        pushes = "git-receive-pack" in (found["rest"], request.query.get("service"))
        if not pushes:
            begins = found["rest"] == "info/refs"
            if not allowed(self._world, token, repo, "contents", "read"):
                return Response(403, {}, b"Write access to repository not granted.")
            return self._backend(request, self._faults.fetch(repo, begins=begins), found["rest"])
        if token is None:
            return _challenge()
        if not allowed(self._world, token, repo, "contents", "write"):
            return Response(403, {}, b"Write access to repository not granted.")
        return self._push(request, repo, token, found["rest"])

    def _push(self, request: Request, repo: Repo, token: Token, rest: str) -> Response:
        if rest == "info/refs" or request.body == b"0000":
            return self._backend(request, repo.git.path, rest)
        session = secrets.token_hex(8)
        with self._world.lock:
            self._sessions[session] = Session(repo, actor_of(token), token)
            self._faults.writes()
            asks = repo.rulesets or repo.protection or not self._has_workflows(repo, token)
            env = {
                "GH_SESSION": session if asks else "",
                "GH_PORT": str(self._port),
                "REMOTE_USER": token.login,
            }
            response = self._backend(request, repo.git.path, rest, **env)
            self.absorb(repo, actor_of(token))
            del self._sessions[session]
        return response

    def absorb(self, repo: Repo, actor: Actor) -> None:
        """Do what follows from refs that moved in git since the API last saw them."""
        now = repo.git.refs()
        changes = {
            ref: (repo.refs.get(ref, ZERO), now.get(ref, ZERO))
            for ref in sorted(repo.refs.keys() | now.keys())
            if repo.refs.get(ref) != now.get(ref)
        }
        self._world.pushes.append(Push(repo.full_name, actor.login, changes))
        moved(self._world, repo, actor, changes)

    def hook(self, text: str) -> str:
        """Return why a ref may not be moved; nothing where it may. The push holds the lock meanwhile."""
        name, ref, old, new = text.split(" ")
        session = self._sessions[name]
        refused = refused_push(self._world, session.repo, session.actor, ref, old, new)
        return refused or self._workflows(session, new) or ""

    def _has_workflows(self, repo: Repo, token: Token) -> bool:
        return allowed(self._world, token, repo, "workflows", "write")

    def _workflows(self, session: Session, new: str) -> str | None:
        """Return why workflow files may not be pushed, if the token may not."""
        repo, token = session.repo, session.token
        if new == ZERO or self._has_workflows(repo, token):
            return None
        ask = (
            "log",
            "-1",
            "-m",
            "--format=",
            "--name-only",
            new,
            "--not",
            "--all",
            "--",
            ".github/workflows",
        )
        touched = repo.git.lines(*ask)
        if not touched:
            return None
        kind = "a GitHub App" if token.kind in ("installation", "actions") else "a Personal Access Token"
        return f"refusing to allow {kind} to create or update workflow `{touched[0]}` without `workflows` permission"

    def _backend(self, request: Request, path: Path, rest: str, **more: str) -> Response:
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(path.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH_INFO": f"/{path.name}/{rest}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": request.verb,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "REMOTE_USER": "git",
            "REMOTE_ADDR": "127.0.0.1",
            **more,
        }
        done = subprocess.run(
            ["git", "http-backend"], input=request.body, env=env, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        return Response(status, headers, content)


def _challenge() -> Response:
    return Response(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"")
