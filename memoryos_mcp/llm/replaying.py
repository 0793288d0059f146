"""A chat model that replays recorded replies. It needs no network, costs nothing, and always gives the same replies."""

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
    """A chat model that takes its replies from a file.

    The file contains lines of a `RecordingChat` log, output lines of an OpenAI batch job, or both. If there are several
    replies to a request, the last one is used. The file is read on first use, and again whenever it has changed.

    Requests without a reply are written to ``<stem>.missing.jsonl`` in the same folder, as input lines of a batch job.
    Each request is written only once. The user runs the batch job, adds its output lines to the file of replies, and
    deletes the ``.missing.jsonl`` file.

    Args:
        path: The file with the replies. It need not exist yet.
        model_name: Name of the model in the lines of the ``.missing.jsonl`` file.
    """

    def __init__(self, path: Path, *, model_name: str) -> None:
        self._path = path
        self._missing_path = path.parent / f"{path.stem}.missing.jsonl"
        self._model_name = model_name
        # Only one thread at a time uses the state below, so it needs no lock.
        self._limiter = anyio.CapacityLimiter(1)
        self._completions: dict[str, LoggedCompletion] = {}
        self._version: tuple[int, ...] | None = None
        self._missing: set[str] = set()
        self._missing_bytes = 0

    @property
    def name(self) -> str:
        """Always "replay", because the file may contain replies of several models."""
        return "replay"

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply that the replay file contains for a request. A listener receives the reply in one piece.

        Raises:
            ModelError: The replay file cannot be read, or contains no reply to the request. In the second case, the
                request is added to the ``.missing.jsonl`` file, which the message names.
        """
        reply = await anyio.to_thread.run_sync(self._reply, request, limiter=self._limiter)
        if listener is not None:
            listener(reply.text)
        return reply

    async def aclose(self) -> None:
        """Do nothing, because no file is kept open."""

    def _reply(self, request: ChatRequest) -> ChatReply:
        key = request_key(request)
        try:
            self._read_changes()
        except OSError as error:
            msg = f"{self._path} cannot be read ({reason(error)}); set llm_replay_file to a readable file"
            raise ModelError(msg) from error
        completion = self._completions.get(key)
        if completion is not None:
            return _chat_reply(request, completion)
        try:
            self._note_missing(key, request)
        except OSError as error:
            msg = (
                f"{self._path} contains no reply to request {key}. The request cannot be added to "
                f"{self._missing_path} ({reason(error)}); make the folder writable by this account, then try again"
            )
            raise ModelError(msg) from error
        msg = (
            f"{self._path} contains no reply to request {key}. The request is now in {self._missing_path}; "
            "send this file to a batch API, and add the output lines to the replay file"
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
            logger.warning(
                "%s contains invalid lines, which are ignored (number of lines: %d); correct or delete them",
                self._path,
                unreadable,
            )

    def _note_missing(self, key: str, request: ChatRequest) -> None:
        """Write a request to the ``.missing.jsonl`` file, unless the file already contains it."""
        version = _version(self._missing_path)
        size = 0 if version is None else version[0]
        if size != self._missing_bytes:
            self._missing, self._missing_bytes = set(_custom_ids(self._missing_path)), size
        if key in self._missing:
            return
        body = request_body(request, model_name=self._model_name)
        line: dict[str, JsonValue] = {"custom_id": key, "method": "POST", "url": BATCH_URL, "body": body}
        # The written bytes are counted. If another process also writes to the file, the size of the file differs from
        # the count, and the file is read again.
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
    """Return the size, modification time and inode number of a file; None if the file does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file one by one, except blank lines. A missing file has no lines."""
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
            continue  # the line is incomplete, because the disk was full; its request will be written again
