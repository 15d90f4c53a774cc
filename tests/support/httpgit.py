"""A git host over smart HTTP: basic authentication around ``git http-backend``.

Example::

    with serve(folder, user="ada", password="secret") as url:
        ...  # f"{url}/acme.git", with the credentials in it
"""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Hands one request to git, and what git answers back."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    folder: Path
    login: str
    drop = threading.Event()
    """While it is set, the answer to a push is taken from git and never given."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _serve(self, body: bytes) -> None:
        if self.headers.get("Authorization") != f"Basic {self.login}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": base64.b64decode(self.login).decode().split(":")[0],
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        if self.drop.is_set() and path.endswith("git-receive-pack") and self.command == "POST":
            self.close_connection = True
            return
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((value for name, value in headers if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve(
    folder: Path,
    user: str = "ada",
    password: str = "secret",
) -> Iterator[tuple[str, threading.Event]]:
    """Serve the repositories in a folder; give the URL with its login, and the event that drops answers."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    drop = threading.Event()
    handler = type("Bound", (Handler,), {"folder": folder, "login": login, "drop": drop})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://{user}:{password}@127.0.0.1:{server.server_address[1]}", drop
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
