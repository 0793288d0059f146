"""A local stand-in for Claude's API, so that Claude Code itself runs without a network."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "Noted."


@dataclass
class ClaudeApi:
    """What the stand-in received. ``url`` is its address."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    def texts_with(self, prompt: str) -> list[str]:
        """Return each request whose messages contain a prompt, as text."""
        texts = [json.dumps([each.get("system"), each["messages"]], ensure_ascii=False) for each in self.requests]
        return [text for text in texts if prompt in text]


@contextmanager
def claude_api() -> Iterator[ClaudeApi]:
    """Serve the stand-in on a free port. It answers every message with `ANSWER` and calls no tool."""
    api = ClaudeApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send(b"{}", "application/json")

        def do_HEAD(self) -> None:
            self._send(b"", "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if "count_tokens" in self.path:
                self._send(b'{"input_tokens": 10}', "application/json")
            elif "/messages" not in self.path:
                self._send(b"{}", "application/json")
            else:
                api.requests.append(body)
                if body.get("stream"):
                    self._send(_stream(body), "text/event-stream")
                else:
                    whole = {**_message(body), "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
                    self._send(json.dumps(whole).encode(), "application/json")

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }


def _stream(body: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(body)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
