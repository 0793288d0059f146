"""A log of what is sent to the LLM, and replies read back from one.

The log shows what left this machine. Replayed, it answers without a network, at no cost and always the same. Its lines
are those that OpenAI's batch API takes and returns, with a few fields more, so that a log, the output of a batch, or
both in one file can be replayed: https://platform.openai.com/docs/api-reference/batch/request-output
"""

import asyncio
import errno
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Self

import anyio
import anyio.to_thread
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener, Usage
from memoryos_mcp.pages import estimate_tokens, utc_now
from memoryos_mcp.reading import Forgettings, Reading

LOG_NAME = "llm-log.jsonl"
BATCH_URL = "/v1/chat/completions"
# 128 bits; a batch's `custom_id` has at most 64 characters.
KEY_CHARS = 32
# It holds dialogue.
FILE_MODE = 0o600

# One thread for the logs of all users of a process; it is begun with the first line.
_WRITER = ThreadPoolExecutor(1, thread_name_prefix="memoryos-llm-log")

logger = logging.getLogger(__name__)


class _Line(BaseModel):
    """A part of a line, read back; what else stands there is ignored."""

    model_config = ConfigDict(frozen=True)


class LoggedMessage(_Line):
    """A message of a request or of a completion; ``content`` is null where a model refuses."""

    role: str = "assistant"
    content: str | None = None


class LoggedChoice(_Line):
    """A reply and what ended it: ``stop``, ``length`` or a word of the provider's own."""

    message: LoggedMessage
    finish_reason: str | None = None


class LoggedUsage(_Line):
    """Tokens of a call."""

    prompt_tokens: int
    completion_tokens: int


class LoggedCompletion(_Line):
    """The body of a successful response."""

    choices: Annotated[list[LoggedChoice], Field(min_length=1)]
    usage: LoggedUsage | None = None


class LoggedResponse(_Line):
    """What a server answered; only a status of 200 makes it a completion."""

    status_code: int
    body: Annotated[LoggedCompletion | JsonValue, Field(union_mode="left_to_right")] = None

    @model_validator(mode="after")
    def _success_has_a_completion(self) -> Self:
        if self.status_code == HTTPStatus.OK and not isinstance(self.body, LoggedCompletion):
            msg = "a response of status 200 must hold a chat completion"
            raise ValueError(msg)
        return self


class LoggedError(_Line):
    """Why there is no response."""

    code: str | None = None
    message: str | None = None


class BatchLine(_Line):
    """A line of a batch's output, or as much of a line of our log."""

    custom_id: str
    response: LoggedResponse | None = None
    error: LoggedError | None = None

    @property
    def completion(self) -> LoggedCompletion | None:
        """What was answered; None for a failed call."""
        if self.response is None or self.response.status_code != HTTPStatus.OK:
            return None
        return self.response.body if isinstance(self.response.body, LoggedCompletion) else None


class LoggedForm(_Line):
    """The form that was asked for."""

    name: str


class LoggedResponseFormat(_Line):
    """The form that was asked for, as the API wraps it."""

    json_schema: LoggedForm


class LoggedRequest(_Line):
    """The body of a request."""

    model: str
    messages: list[LoggedMessage]
    response_format: LoggedResponseFormat | None = None


class LogLine(BatchLine):
    """A line of our log."""

    at: AwareDatetime
    purpose: str
    took_ms: int
    request: LoggedRequest


def request_key(request: ChatRequest) -> str:
    """Return what names a request in logs and batches: equal for equal requests, whichever model they go to.

    It is the SHA-256 of purpose, messages and form, 32 hexadecimal digits of it.
    """
    asked = {
        "purpose": request.purpose,
        "messages": [[message.role, message.content] for message in request.messages],
        "form": request.form and request.form.name,
        "schema": request.form and dict(request.form.schema),
    }
    canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:KEY_CHARS]


def request_body(request: ChatRequest, *, model_name: str) -> dict[str, JsonValue]:
    """Return a request as the body that the chat completions API takes."""
    body: dict[str, JsonValue] = {
        "model": model_name,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    if request.form is not None:
        schema: JsonValue = {"name": request.form.name, "strict": True, "schema": dict(request.form.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


class RecordingChat:
    """A chat model that keeps a log of another's calls, the failed and the cancelled ones too. Close it after use.

    A log that cannot be written is warned of once, and fails no call. A call whose request may quote what was forgotten
    meanwhile is not logged.

    Args:
        chat: The model that answers.
        path: The log; its folder exists. Several processes may append to it.
        clock: Tells when a call began.
        forgettings: Tells of what was forgotten; None if nothing ever is.
    """

    def __init__(
        self,
        chat: ChatModel,
        path: Path,
        *,
        clock: Callable[[], datetime] = utc_now,
        forgettings: Forgettings | None = None,
    ) -> None:
        self._chat = chat
        self._path = path
        self._clock = clock
        self._forgettings = forgettings
        self._writing: set[asyncio.Future[None]] = set()
        self._has_warned = False

    @property
    def name(self) -> str:
        """Name of the model that answers."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the other's reply, after it was logged.

        Raises:
            ModelError: The other's, as it is.
        """
        at, began = self._clock(), time.perf_counter()
        reading = await Reading.begun(self._forgettings)
        try:
            reply = await self._chat.complete(request, listener)
        except (Exception, asyncio.CancelledError) as error:
            await self._log(request, at, began, error, reading)
            raise
        await self._log(request, at, began, reply, reading)
        return reply

    async def aclose(self) -> None:
        """Release the other's connections, and wait until all is written."""
        await self._chat.aclose()
        if self._writing:
            await asyncio.wait(self._writing)

    async def _log(
        self, request: ChatRequest, at: datetime, began: float, outcome: ChatReply | BaseException, reading: Reading
    ) -> None:
        if not await _is_current(reading):
            return
        took_ms = round((time.perf_counter() - began) * 1000)
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(_WRITER, self._append, request, at, took_ms, outcome)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        # Shielded: what was sent is logged, even if nobody waits for the reply any more.
        await asyncio.shield(writing)
        if (
            not await reading.is_current()
        ):  # forgotten in this moment: whether before the line or after it, nobody knows
            await asyncio.shield(loop.run_in_executor(_WRITER, remove_log, self._path))

    def _append(self, request: ChatRequest, at: datetime, took_ms: int, outcome: ChatReply | BaseException) -> None:
        line: dict[str, JsonValue] = {
            "custom_id": request_key(request),
            "at": at.astimezone(UTC).isoformat(),
            "purpose": request.purpose.value,
            "took_ms": took_ms,
            "request": request_body(request, model_name=self.name),
            "response": _response(outcome, self.name) if isinstance(outcome, ChatReply) else None,
            "error": None if isinstance(outcome, ChatReply) else _error(outcome),
        }
        try:
            _append_line(self._path, line)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                logger.warning("%s cannot be written (%s); calls to the LLM go on unlogged", self._path, _reason(error))


def remove_log(path: Path) -> None:
    """Remove a log; there may be none.

    Raises:
        OSError: It cannot be removed.
    """
    path.unlink(missing_ok=True)


class ReplayChat:
    """A chat model that answers from a file, and asks nobody.

    The file is a log of `RecordingChat`, the output of a batch, or both; of several replies to a request the last one
    counts. It is read when first needed and again when it has changed. A request that it does not answer is written to
    ``<stem>.missing.jsonl`` beside it, once, as a line of a batch's input. Delete that file when its answers have come.

    Args:
        path: The file of replies; it need not exist yet.
        model_name: The model that a batch of missing requests is to be sent to.
    """

    def __init__(self, path: Path, *, model_name: str) -> None:
        self._path = path
        self._missing_path = path.parent / f"{path.stem}.missing.jsonl"
        self._model_name = model_name
        # One thread at a time, so what follows needs no lock.
        self._limiter = anyio.CapacityLimiter(1)
        self._completions: dict[str, LoggedCompletion] = {}
        self._version: tuple[int, ...] | None = None
        self._missing: set[str] = set()
        self._missing_bytes = 0

    @property
    def name(self) -> str:
        """What stands for the model's name; a file does not bind itself to one."""
        return "replay"

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply that the file holds; who listens hears it in one piece.

        Raises:
            ModelError: It holds none yet, or cannot be read; says where the request was written.
        """
        reply = await anyio.to_thread.run_sync(self._reply, request, limiter=self._limiter)
        if listener is not None:
            listener(reply.text)
        return reply

    async def aclose(self) -> None:
        """Do nothing: no file is held open."""

    def _reply(self, request: ChatRequest) -> ChatReply:
        key = request_key(request)
        try:
            self._read_changes()
        except OSError as error:
            msg = f"{self._path} cannot be read ({_reason(error)}); make llm_replay_file a readable file of replies"
            raise ModelError(msg) from error
        completion = self._completions.get(key)
        if completion is not None:
            return _chat_reply(request, completion)
        try:
            self._note_missing(key, request)
        except OSError as error:
            msg = (
                f"{self._path} does not answer request {key} yet, and {self._missing_path} cannot be written "
                f"({_reason(error)}); make its folder writable for this account"
            )
            raise ModelError(msg) from error
        msg = (
            f"{self._path} does not answer request {key} yet; it was written to {self._missing_path}: "
            "send that as a batch and add the lines of its output to the replay file"
        )
        raise ModelError(msg)

    def _read_changes(self) -> None:
        """Read the file of replies if it is not the one that was read last."""
        version = _version(self._path)
        if version == self._version:
            return
        completions: dict[str, LoggedCompletion] = {}
        unreadable = 0
        for raw in _lines(self._path):
            try:
                line = BatchLine.model_validate_json(raw)
            except ValidationError:
                unreadable += 1
                continue
            if line.completion is not None and line.completion.choices[0].message.content is not None:
                completions[line.custom_id] = line.completion
        self._completions, self._version = completions, version
        if unreadable:
            logger.warning("%s: lines that cannot be read and are ignored: %d", self._path, unreadable)

    def _note_missing(self, key: str, request: ChatRequest) -> None:
        """Write a request to the file of missing ones, unless it stands there.

        The file is the memory of what was written, so that a deleted one is begun anew.
        """
        version = _version(self._missing_path)
        size = 0 if version is None else version[0]
        if size != self._missing_bytes:
            self._missing, self._missing_bytes = set(_custom_ids(self._missing_path)), size
        if key in self._missing:
            return
        body = request_body(request, model_name=self._model_name)
        line: dict[str, JsonValue] = {"custom_id": key, "method": "POST", "url": BATCH_URL, "body": body}
        # By what we wrote, not by its size now: lines of another process are seen as a difference.
        self._missing_bytes += _append_line(self._missing_path, line)
        self._missing.add(key)


async def _is_current(reading: Reading) -> bool:
    """Whether a call may be logged: not if nobody knows."""
    try:
        return await reading.is_current()
    except StorageError:
        return False


def _response(reply: ChatReply, model_name: str) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "assistant", "content": reply.text}
    finish_reason = "length" if reply.is_cut else "stop"
    prompt_tokens, completion_tokens = reply.usage.prompt_tokens, reply.usage.completion_tokens
    body: dict[str, JsonValue] = {
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
        "model": model_name,
    }
    return {"status_code": HTTPStatus.OK.value, "body": body}


def _error(error: BaseException) -> dict[str, JsonValue]:
    """Return what went wrong; only our own errors' texts are known to hold no key and no dialogue."""
    if isinstance(error, ModelError):
        text = str(error)
    elif isinstance(error, asyncio.CancelledError):
        text = "cancelled before the reply came"
    else:
        text = "failed unexpectedly"
    return {"code": type(error).__name__, "message": text}


def _chat_reply(request: ChatRequest, completion: LoggedCompletion) -> ChatReply:
    choice, counted = completion.choices[0], completion.usage
    text = choice.message.content or ""
    if counted is not None:
        usage = Usage(counted.prompt_tokens, counted.completion_tokens)
    else:
        usage = Usage(sum(estimate_tokens(message.content) for message in request.messages), estimate_tokens(text))
    return ChatReply(text, usage, is_cut=choice.finish_reason == "length")


def _append_line(path: Path, line: Mapping[str, JsonValue]) -> int:
    """Append one line of JSON in one write, so that processes may share the file; return the bytes it took.

    Raises:
        OSError: It was not written, or not whole.
    """
    # Half a surrogate pair, which a model may return, is no UTF-8.
    data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with open(path, "a+b", buffering=0, opener=_open_private) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a full disk cut the line before
                data = b"\n" + data
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return len(data)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def _version(path: Path) -> tuple[int, ...] | None:
    """Return size, time of change and number of a file; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines but the blank ones, one in memory at a time; a missing file has none."""
    try:
        with path.open("rb") as file:
            yield from filter(bytes.strip, file)
    except FileNotFoundError:
        return


def _custom_ids(path: Path) -> Iterator[str]:
    for raw in _lines(path):
        try:
            yield BatchLine.model_validate_json(raw).custom_id
        except ValidationError:
            continue  # cut short by a full disk; its request will be written again
