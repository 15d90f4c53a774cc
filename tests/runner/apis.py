"""A stand-in for the APIs that agent command lines talk to.

Anthropic's Messages (claude), OpenAI's Responses (codex) and Chat Completions (llm).

It answers with a fixed text, or with an error, and remembers what it was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERRORS = {
    "rate": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "auth": (401, "authentication_error", "invalid x-api-key"),
    "bad": (400, "invalid_request_error", "the model does not exist"),
}


class Api(ThreadingHTTPServer):
    """The server: ``mode`` says how it answers, ``answer`` with what, ``asked`` what came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = "ok"
        self.answer: Any = "Hello from the stand-in."
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving() -> Iterator[Api]:
    api = Api()
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.shutdown()
        api.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        self._send(200, "application/json", b'{"data": [], "models": []}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        path = self.path.partition("?")[0]
        answers = {
            "/v1/messages": self._messages,
            "/v1/responses": self._responses,
            "/v1/chat/completions": self._completions,
        }
        if path not in answers:
            self._send(200, "application/json", b'{"input_tokens": 10}')
            return
        self.server.asked.append(asked)
        if self.server.mode in ERRORS:
            self._refuse(*ERRORS[self.server.mode])
        else:
            answers[path](asked)

    def _refuse(self, status: int, kind: str, message: str) -> None:
        error: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message, "code": kind}}
        self._send(
            status,
            "application/json",
            json.dumps(error).encode(),
            {"retry-after": "0", "x-should-retry": "false"},
        )

    def _send(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: list[dict[str, Any]]) -> None:
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _messages(self, asked: dict[str, Any]) -> None:
        usage = {"input_tokens": 12, "output_tokens": 1}
        tools = [tool["name"] for tool in asked.get("tools", ())]
        done = any(
            block.get("type") == "tool_result"
            for message in asked.get("messages", ())
            for block in message["content"]
            if isinstance(block, dict)
        )
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": str(self.server.answer)}
        stop = "end_turn"
        if "StructuredOutput" in tools and not done:
            block = {"type": "tool_use", "id": "toolu_1", "name": "StructuredOutput", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(self.server.answer)}
            stop = "tool_use"
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", "stand-in"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        if not asked.get("stream"):
            final = {**message, "content": [{**block, "text": str(self.server.answer)}], "stop_reason": stop}
            self._send(200, "application/json", json.dumps(final).encode())
            return
        self._stream(
            [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 7},
                },
                {"type": "message_stop"},
            ]
        )

    def _text(self) -> str:
        return self.server.answer if isinstance(self.server.answer, str) else json.dumps(self.server.answer)

    def _completions(self, asked: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": self._text()}
        done = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": asked.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
        }
        self._send(200, "application/json", json.dumps(done).encode())

    def _responses(self, asked: dict[str, Any]) -> None:
        text = self._text()
        item = {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        usage = {
            "input_tokens": 120,
            "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 10},
            "total_tokens": 150,
        }
        response = {
            "id": "resp_1",
            "object": "response",
            "model": asked.get("model"),
            "output": [item],
            "usage": usage,
        }
        self._stream(
            [
                {"type": "response.created", "response": {"id": "resp_1"}},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": {**response, "status": "completed"}},
            ]
        )
