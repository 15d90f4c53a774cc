"""The HTTP server in front: REST below ``/api/v3`` (or below ``/``), git below ``/OWNER/NAME.git``.

Example::

    with serve(tmp_path) as github:
        github.user("ada")
        github.repo("acme/bus", roles={"ada": "maintain"})
        requests.get(f"{github.api}/repos/acme/bus", headers={"Authorization": f"token {github.token('ada')}"})
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.github.githttp import PATH, GitHttp
from tests.github.hub import GitHub
from tests.github.rest import Dropped, Request, Response

API = "/api/v3"


class Handler(BaseHTTPRequestHandler):
    """Hands one request to REST or to git."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    github: GitHub
    git: GitHttp

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self._body()
        if parts.path == "/_hook":
            self._give(Response(200, {}, self.git.hook(body.decode()).encode()))
            return
        if parts.path == "/web-flow.gpg":
            self._give(Response(200, {"Content-Type": "text/plain"}, self.github.web_flow_key().encode()))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            self._give(self._handle(Request(self.command, parts.path, query, headers, body)))
        except Dropped:
            self.close_connection = True

    def _handle(self, request: Request) -> Response:
        if PATH.fullmatch(request.path) and not request.path.startswith(API):
            return self.git.handle(request)
        if self.github.faults.seconds:
            time.sleep(self.github.faults.seconds)
        path = request.path.removeprefix(API) or "/"
        return self.github.rest.handle(
            Request(request.verb, path, request.query, request.headers, request.body)
        )

    def _give(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if response.status not in (204, 304):
            self.wfile.write(response.body)


@contextmanager
def serve(folder: Path) -> Iterator[GitHub]:
    """Serve a GitHub with nothing in it; its repositories go into a folder."""
    github = GitHub(folder)
    handler = type("Bound", (Handler,), {"github": github})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    port = server.server_address[1]
    github.world.base = f"http://127.0.0.1:{port}"
    handler.git = github.git = GitHttp(github.world, github.faults, port)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
