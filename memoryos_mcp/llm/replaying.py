"""Replies read back from a log: without a network, at no cost, and always the same."""

import logging
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import JsonValue, ValidationError

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Listener, Usage
from memoryos_mcp.llm.log_lines import BatchLine, LoggedCompletion, append_line, reason, request_body, request_key
from memoryos_mcp.model.pages import estimate_tokens

BATCH_URL = "/v1/chat/completions"

logger = logging.getLogger(__name__)


class ReplayChat:
    """A chat model that answers from a file only.

    The file is a log of `RecordingChat`, the output of a batch, or both; of several replies to a request the last one
    counts. It is read on first use and again when it has changed. A request without a reply is written once to
    ``<stem>.missing.jsonl`` in the same folder, as a line of a batch's input. Delete that file when its replies have
    arrived.

    Args:
        path: The file of replies; it need not exist yet.
        model_name: The model for a batch of the missing requests.
    """

    def __init__(self, path: Path, *, model_name: str) -> None:
        self._path = path
        self._missing_path = path.parent / f"{path.stem}.missing.jsonl"
        self._model_name = model_name
        # One thread at a time, so the state below needs no lock.
        self._limiter = anyio.CapacityLimiter(1)
        self._completions: dict[str, LoggedCompletion] = {}
        self._version: tuple[int, ...] | None = None
        self._missing: set[str] = set()
        self._missing_bytes = 0

    @property
    def name(self) -> str:
        """A constant instead of a model's name; a file is not bound to one model."""
        return "replay"

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply in the file; a listener gets it in one piece.

        Raises:
            ModelError: The file has no reply yet, or cannot be read; the text says where the request was written.
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
            msg = f"{self._path} cannot be read ({reason(error)}); make llm_replay_file a readable file of replies"
            raise ModelError(msg) from error
        completion = self._completions.get(key)
        if completion is not None:
            return _chat_reply(request, completion)
        try:
            self._note_missing(key, request)
        except OSError as error:
            msg = (
                f"{self._path} does not answer request {key} yet, and {self._missing_path} cannot be written "
                f"({reason(error)}); make its folder writable for this account"
            )
            raise ModelError(msg) from error
        msg = (
            f"{self._path} does not answer request {key} yet; it was written to {self._missing_path}: "
            "send that as a batch and add the lines of its output to the replay file"
        )
        raise ModelError(msg)

    def _read_changes(self) -> None:
        """Read the file of replies if it has changed since it was last read."""
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
        """Write a request to the file of missing ones, unless it is there already.

        Only the file records what was written, so after its deletion requests are written again.
        """
        version = _version(self._missing_path)
        size = 0 if version is None else version[0]
        if size != self._missing_bytes:
            self._missing, self._missing_bytes = set(_custom_ids(self._missing_path)), size
        if key in self._missing:
            return
        body = request_body(request, model_name=self._model_name)
        line: dict[str, JsonValue] = {"custom_id": key, "method": "POST", "url": BATCH_URL, "body": body}
        # Count what we wrote rather than read the size, so that lines of other processes show as a difference.
        self._missing_bytes += append_line(self._missing_path, line)
        self._missing.add(key)


def _chat_reply(request: ChatRequest, completion: LoggedCompletion) -> ChatReply:
    choice, counted = completion.choices[0], completion.usage
    text = choice.message.content or ""
    if counted is not None:
        usage = Usage(counted.prompt_tokens, counted.completion_tokens)
    else:
        usage = Usage(sum(estimate_tokens(message.content) for message in request.messages), estimate_tokens(text))
    return ChatReply(text, usage, is_cut=choice.finish_reason == "length")


def _version(path: Path) -> tuple[int, ...] | None:
    """Return size, modification time and inode of a file; None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines except blank ones, one in memory at a time; a missing file has none."""
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
