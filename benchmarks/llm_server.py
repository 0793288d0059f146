"""A minimal LLM server: a process that answers our prompts by simple rules, after a given latency.

Run ``python -m benchmarks.llm_server --latency-ms 200``. The first line on stdout is the port, on 127.0.0.1. It ends
when its stdin closes, or on SIGTERM. Benchmarks use `running_llm_server`. Besides ``/v1/chat/completions`` it has
``GET /counts``, ``POST /reset`` and ``POST /mode`` (``{"latency_ms": 0, "hangs": true}``).

HTTP takes 0.16 ms of CPU per call with bare asyncio, and 0.38 ms with uvicorn and Starlette. The rules take about
0.6 ms.
"""

import asyncio
import http.client
import json
import re
import signal
import sys
import time
import zlib
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import click
import psutil

from memoryos_mcp.llm.catalogue import dimensions
from memoryos_mcp.llm.chat import Purpose
from memoryos_mcp.llm.prompts import JUDGE_INSTRUCTIONS, LEARN_INSTRUCTIONS, ORGANISE_INSTRUCTIONS
from memoryos_mcp.model.pages import estimate_tokens
from memoryos_mcp.text.terms import content_words

MODEL = "stub"
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
CALL_TIMEOUT_S = 60.0
# Number of messages in a first request; a repair has more, with the errors of the reply.
MESSAGES = 2
# A page continues the previous one if both are of the same day and share this many words.
COMMON_WORDS = 2
# A page joins a topic of the batch that has this share of its words.
FILED_SHARE = 0.3
# A topic joins a known segment that has this many of its words as keywords.
COMMON_KEYWORDS = 2
KEYWORDS = 6
FACTS = 3
TEXT_MAX_CHARS = 300

_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MAX_TOPICS = re.compile(r"At most (\d+) topics")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|we|our)\b", re.IGNORECASE)


@dataclass(slots=True)
class Counts:
    """The calls for one purpose; tokens are counted by `estimate_tokens`.

    Attributes:
        repairs: Calls that repeat an unusable reply; part of ``calls``.
        prompt_tokens: Tokens of all messages.
        system_tokens: Tokens of the system messages.
        schema_tokens: Tokens of the schemas in ``response_format``.
        completion_tokens: Tokens of the replies.
    """

    calls: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    system_tokens: int = 0
    schema_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class Tally:
    """All counts since the last reset.

    Attributes:
        of: Calls by purpose; a prompt of unknown purpose counts as a check.
        most_at_once: Maximum number of concurrent calls.
    """

    of: dict[Purpose, Counts] = field(default_factory=lambda: {purpose: Counts() for purpose in Purpose})
    most_at_once: int = 0

    @property
    def calls(self) -> int:
        """Number of calls of all purposes."""
        return sum(counts.calls for counts in self.of.values())

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Tally":
        """Return the tally that ``GET /counts`` showed."""
        return cls({Purpose(name): Counts(**counts) for name, counts in found["of"].items()}, found["most_at_once"])


# Rules --------------------------------------------------------------------------------------------------------------


def purpose_of(messages: Sequence[Mapping[str, str]]) -> Purpose:
    """Return the purpose of a call, by its instructions."""
    system = messages[0]["content"]
    if system.startswith(ORGANISE_INSTRUCTIONS):
        return Purpose.ORGANISE
    return Purpose.LEARN if system.startswith((LEARN_INSTRUCTIONS, JUDGE_INSTRUCTIONS)) else Purpose.CHECK


def reply_to(messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the reply to one of our prompts; to any other, an empty object."""
    purpose = purpose_of(messages)
    if purpose is Purpose.CHECK:
        return {}
    lines = [json.loads(line) for line in messages[1]["content"].splitlines()]
    if messages[0]["content"].startswith(JUDGE_INSTRUCTIONS):
        return {"traits": _traits(lines)}
    if purpose is Purpose.LEARN:
        return {"facts": _facts(lines), "traits": _traits(lines)}
    limit = _MAX_TOPICS.search(messages[0]["content"])
    return _organised(lines, int(limit[1]) if limit else 1)


def fact_of(said: str) -> str | None:
    """Return the fact of a page by the rules: its first sentence in the first person; None without one."""
    sentences = _SENTENCE_END.split(" ".join(said.split()))
    return next((sentence[:TEXT_MAX_CHARS] for sentence in sentences if _FIRST_PERSON.search(sentence)), None)


def _organised(lines: Sequence[dict[str, Any]], max_topics: int) -> dict[str, Any]:
    pages = [line for line in lines if "page" in line]
    for page_before, page in pairwise(pages):
        page.setdefault("time", page_before["time"])
    words = [_words(page) for page in pages]
    before = next((line["page_before"] for line in lines if "page_before" in line), None)
    days = [str(page["time"][:10]) for page in pages]
    if before is None:
        days_before, words_before = ["", *days], [set[str](), *words]
    else:
        days_before, words_before = [str(before["time"][:10]), *days], [_words(before), *words]
    follows = [
        days_before[place] == day and len(words_before[place] & words[place]) >= COMMON_WORDS
        for place, day in enumerate(days)
    ]
    topics: list[Counter[str]] = []
    filed: list[int] = []
    for told, is_following in zip(words, follows, strict=True):
        common: list[int] = [len(told.intersection(topic)) for topic in topics]
        if is_following and filed:
            place = filed[-1]
        elif topics and (max(common) >= FILED_SHARE * len(told) or len(topics) == max_topics):
            place = common.index(max(common))
        else:
            place = len(topics)
            topics.append(Counter())
        topics[place].update(told)
        filed.append(place)
    firsts = [
        place
        for place, is_following in enumerate(follows)
        if (place == 0 and is_following) or (not is_following and follows[place + 1 : place + 2] == [True])
    ]
    known = {line["known_segment"]: line["keywords"] for line in lines if "known_segment" in line}
    return {
        "topics": [
            {
                "topic": place + 1,
                "segment": _segment(topic, known),
                "keywords": [word for word, _ in topic.most_common(KEYWORDS)] or ["talk"],
                "summary": _said(pages[filed.index(place)])[:TEXT_MAX_CHARS],
            }
            for place, topic in enumerate(topics)
        ],
        "pages": {
            str(page["page"]): {"continues": is_following, "topic": place + 1}
            for page, is_following, place in zip(pages, follows, filed, strict=True)
        },
        "chains": [{"first": first + 1, "summary": _said(pages[first])[:TEXT_MAX_CHARS]} for first in firsts],
        "facts": _facts(lines),
    }


def _facts(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    pages = [line for line in lines if "page" in line and "source" not in line]
    known = {line["user"]: line["known_fact"] for line in lines if "known_fact" in line and "user" in line}
    told = [(page["page"], fact) for page in pages if (fact := fact_of(page.get("user", ""))) is not None]
    return [
        {
            "action": "confirm" if text in known else "add",
            "fact": known.get(text, 0),
            "about": "user",
            "kind": "statement",
            "slot": "",
            "text": text,
            "since": "",
            "until": "",
            "pages": [number],
        }
        for number, text in told[:FACTS]
    ]


def _traits(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    pages = [line for line in lines if "page" in line]
    said = _said(pages[0])
    dimension = dimensions()[zlib.crc32(said.encode()) % len(dimensions())]
    trait: dict[str, Any] = {
        "dimension": dimension.name,
        "level": "High" if "!" in said else "Medium",
        "reason": said[:TEXT_MAX_CHARS],
        "pages": [pages[0]["page"]],
    }
    return [trait]


def _said(page: Mapping[str, Any]) -> str:
    return str(page.get("user") or page.get("assistant") or "nothing")


def _words(page: Mapping[str, Any]) -> set[str]:
    return set(content_words(f"{page.get('user', '')} {page.get('assistant', '')}"))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _segment(topic: Mapping[str, int], known: Mapping[str, Sequence[str]]) -> str:
    common = {name: sum(word in topic for word in keywords) for name, keywords in known.items()}
    best = max(common, key=common.__getitem__, default="")
    return best if common.get(best, 0) >= COMMON_KEYWORDS else ""


# Server -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Llm:
    """State that all connections share."""

    latency_s: float
    hangs: bool
    tally: Tally = field(default_factory=Tally)
    waiting: int = 0

    def complete(self, asked: Mapping[str, Any]) -> bytes:
        """Return the body of the answer to a chat, and count the call."""
        messages = asked["messages"]
        counts = self.tally.of[purpose_of(messages)]
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema")
        sizes = [estimate_tokens(message["content"]) for message in messages]
        text = json.dumps(reply_to(messages), ensure_ascii=False)
        completion_tokens = estimate_tokens(text)
        counts.calls += 1
        counts.repairs += len(messages) > MESSAGES
        counts.prompt_tokens += sum(sizes)
        counts.system_tokens += sizes[0]
        counts.schema_tokens += estimate_tokens(_compact(schema)) if schema else 0
        counts.completion_tokens += completion_tokens
        return json.dumps(
            {
                "id": f"chatcmpl-{self.tally.calls}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": sum(sizes),
                    "completion_tokens": completion_tokens,
                    "total_tokens": sum(sizes) + completion_tokens,
                },
            }
        ).encode()

    def control(self, path: str, body: bytes) -> bytes | None:
        """Return the answer to a request other than a chat; None for an unknown path."""
        match path:
            case "/v1/models":
                return json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode()
            case "/counts":
                return json.dumps(asdict(self.tally)).encode()
            case "/reset":
                self.tally = Tally()
            case "/mode":
                mode = json.loads(body)
                self.latency_s, self.hangs = mode["latency_ms"] / 1e3, mode["hangs"]
            case _:
                return None
        return b"{}"


class _Connection(asyncio.Protocol):
    """One client; requests come one after another."""

    def __init__(self, llm: _Llm) -> None:
        self._llm = llm
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for answers."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer the complete requests."""
        self._received += data
        for path, body in self._requests():
            self._handle(path, body)

    def _requests(self) -> Iterator[tuple[str, bytes]]:
        while (head_end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:head_end])
            length = _CONTENT_LENGTH.search(head)
            end = head_end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < end:
                return
            body = bytes(self._received[head_end + 4 : end])
            del self._received[:end]
            yield head.split(b" ", 2)[1].decode(), body

    def _handle(self, path: str, body: bytes) -> None:
        if path != "/v1/chat/completions":
            answer = self._llm.control(path, body)
            self._send(200 if answer is not None else 404, answer or b"{}")
            return
        began = time.monotonic()
        answer = self._llm.complete(json.loads(body))
        if self._llm.hangs:
            return
        self._llm.waiting += 1
        self._llm.tally.most_at_once = max(self._llm.tally.most_at_once, self._llm.waiting)
        rest_s = max(0.0, began + self._llm.latency_s - time.monotonic())
        asyncio.get_running_loop().call_later(rest_s, self._complete, answer)

    def _complete(self, answer: bytes) -> None:
        self._llm.waiting -= 1
        self._send(200, answer)

    def _send(self, status: int, body: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)


class _Stdin(asyncio.Protocol):
    """Reports that stdin is closed."""

    def __init__(self, closed: asyncio.Event) -> None:
        self._closed = closed

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Report the end."""
        self._closed.set()


async def serve(*, latency_s: float, hangs: bool) -> None:
    """Answer until stdin closes, or until SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    llm = _Llm(latency_s=latency_s, hangs=hangs)
    server = await loop.create_server(lambda: _Connection(llm), "127.0.0.1", 0)
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await loop.connect_read_pipe(lambda: _Stdin(ended), sys.stdin)
    click.echo(server.sockets[0].getsockname()[1])
    await ended.wait()
    server.close()


# Client -------------------------------------------------------------------------------------------------------------


class LlmServer:
    """A running server of this module. Create it with `running_llm_server`."""

    def __init__(self, port: int, pid: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.pid = pid
        self._port = port
        self._process = psutil.Process(pid)

    @property
    def cpu_s(self) -> float:
        """CPU seconds since its start."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def tally(self) -> Tally:
        """Return the counts since the last reset."""
        return Tally.from_json(json.loads(await asyncio.to_thread(self._request, "GET", "/counts")))

    async def reset(self) -> None:
        """Reset the counts."""
        await asyncio.to_thread(self._request, "POST", "/reset")

    async def set_mode(self, *, latency_ms: float = 0.0, hangs: bool = False) -> None:
        """Set the latency of further answers, or never answer."""
        await asyncio.to_thread(self._request, "POST", "/mode", {"latency_ms": latency_ms, "hangs": hangs})

    def sequential_call_s(self, calls: int) -> float:
        """Return the mean seconds of a number of sequential calls; blocks."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_TIMEOUT_S)
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hello"}]})
        began = time.perf_counter()
        for _ in range(calls):
            connection.request("POST", "/v1/chat/completions", body)
            connection.getresponse().read()
        took_s = time.perf_counter() - began
        connection.close()
        return took_s / calls

    def _request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CALL_TIMEOUT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return connection.getresponse().read()
        finally:
            connection.close()


@asynccontextmanager
async def running_llm_server(*, latency_ms: float = 0.0, hangs: bool = False) -> AsyncIterator[LlmServer]:
    """Start the server and yield it; at the end its stdin is closed, which stops it."""
    flags = ["--latency-ms", str(latency_ms), *(["--hang"] if hangs else [])]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.llm_server", *flags, stdin=PIPE, stdout=PIPE
    )
    if process.stdin is None or process.stdout is None:
        message = "the pipes of a process were not opened"
        raise RuntimeError(message)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            port = int(await process.stdout.readline())
        yield LlmServer(port, process.pid)
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@click.command()
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Time to an answer.")
@click.option("--hang", "hangs", is_flag=True, help="Never answer a chat.")
def main(latency_ms: float, hangs: bool) -> None:
    """Serve an LLM that follows simple rules."""
    asyncio.run(serve(latency_s=latency_ms / 1e3, hangs=hangs))


if __name__ == "__main__":
    main()
