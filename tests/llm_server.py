"""A real HTTP server in place of an LLM's. Tests set its answers, which may be malformed."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TLS_HANDSHAKE = b"\x16"


@dataclass(frozen=True, slots=True)
class Asked:
    """A received request. Names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. With ``sent_bytes``, the connection is reset after so many bytes of it."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sent_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Drip:
    """An endless answer, a byte at a time, with a pause in seconds after each byte."""

    pause_s: float = 0.01


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer, until the client gives up."""


Answer = Reply | Drip | Hang
Answering = Callable[[Asked], Answer | Awaitable[Answer]]


def completion(
    content: str | None, *, tokens: tuple[int, int] | None = (11, 7), finish_reason: str | None = "stop"
) -> Reply:
    """Return a chat completion. ``tokens`` are those of prompt and reply, and None omits the usage."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}
    body: dict[str, Any] = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return json_reply(body)


def embeddings(vectors: Iterable[Sequence[float | None]]) -> Reply:
    """Return an answer with the vectors of texts, in order."""
    data = [{"object": "embedding", "index": index, "embedding": list(row)} for index, row in enumerate(vectors)]
    return json_reply({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def json_reply(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(json.dumps(body).encode(), status, {"content-type": "application/json", **(headers or {})})


def api_error(
    status: int,
    message: str = "",
    *,
    code: object = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Return an error in OpenAI's format."""
    return json_reply(
        {"error": {"message": message, "type": "an_error", "param": param, "code": code}},
        status=status,
        headers=headers,
    )


def html(text: str, *, status: int = 200) -> Reply:
    return Reply(text.encode(), status, {"content-type": "text/html"})


class LlmServer:
    """A server that records its requests, and how many were running at once."""

    def __init__(self, answering: Answering) -> None:
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self.hung_up = asyncio.Event()
        self.port = 0
        self._answering = answering
        self._at_once = 0
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[Any]:
        return [asked.body for asked in self.asked]

    def answer_with(self, answering: Answering) -> None:
        """Set the answers from now on."""
        self._answering = answering

    async def was_asked(self, times: int) -> None:
        """Wait until ``times`` requests have arrived."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.asked) >= times)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then close the connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve_one(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def end(self) -> None:
        """Drop the connections that are still open."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await _read(reader)
        if asked is None:
            writer.write(_head(400, {}, length=0))
            return
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            async with self._changed:
                self.asked.append(asked)
                self._changed.notify_all()
            answer = self._answering(asked)
            if isinstance(answer, Awaitable):
                answer = await answer
        finally:
            self._at_once -= 1
        await self._send(answer, reader, writer)

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match answer:
            case Hang():
                await reader.read()
                self.hung_up.set()
            case Drip():
                writer.write(_head(200, {"content-type": "application/json"}, length=1_000_000))
                with contextlib.suppress(ConnectionError):
                    while not reader.at_eof():
                        writer.write(b" ")
                        await writer.drain()
                        await asyncio.sleep(answer.pause_s)
                self.hung_up.set()
            case Reply():
                writer.write(_head(answer.status, answer.headers, length=len(answer.body)))
                writer.write(answer.body[: answer.sent_bytes])
                await writer.drain()
                if answer.sent_bytes is not None:
                    _reset(writer)


@contextlib.asynccontextmanager
async def llm_server(answer: Answering | Answer | Sequence[Answer]) -> AsyncIterator[LlmServer]:
    """Serve on a free port of 127.0.0.1.

    ``answer`` is one answer for all requests, or a list of answers of which the last is repeated, or a function of the
    request, which may be async.
    """
    running = LlmServer(answer if callable(answer) else _in_turn([answer] if isinstance(answer, Answer) else answer))
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await running.end()
        await server.wait_closed()


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _in_turn(answers: Sequence[Answer]) -> Answering:
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """Return the request, or None if the client begins with TLS and so gets an answer in plain text."""
    start = await reader.readexactly(1)
    if start == _TLS_HANDSHAKE:
        return None
    head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(first.split(" ")[1], headers, json.loads(body) if body else None)


def _head(status: int, headers: Mapping[str, str], *, length: int) -> bytes:
    fields = {**headers, "content-length": str(length), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} \r\n{lines}\r\n".encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    # With linger 0, closing resets the connection.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
