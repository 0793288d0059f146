"""The log of LLM calls. It shows which data was sent to the LLM."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from pydantic import JsonValue

from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, ForgetEpochs, Listener, quotes_forgotten
from memoryos_mcp.llm.log_lines import append_line, reason, request_body, request_key
from memoryos_mcp.model.pages import utc_now

LOG_NAME = "llm-log.jsonl"

# One thread writes the logs of all users of the process. It is started when the first line is written.
_WRITER = ThreadPoolExecutor(1, thread_name_prefix="memoryos-llm-log")

logger = logging.getLogger(__name__)


class RecordingChat:
    """A chat model that logs all calls to another chat model, including failed and cancelled calls. Close it after use.

    If the log cannot be written, the calls still succeed, and one warning is logged. A call is not logged if its
    request may quote something that has been forgotten in the meantime.

    Args:
        chat: The chat model whose calls are logged.
        path: The log file. Its folder is created if missing. Several processes may append to the file.
        clock: Returns the current time.
        memory: The memory that requests quote; None to log calls without a check for forgotten data.
    """

    def __init__(
        self,
        chat: ChatModel,
        path: Path,
        *,
        clock: Callable[[], datetime] = utc_now,
        memory: ForgetEpochs | None = None,
    ) -> None:
        self._chat = chat
        self._path = path
        self._clock = clock
        self._memory = memory
        self._writing: set[asyncio.Future[None]] = set()
        self._has_warned = False

    @property
    def name(self) -> str:
        """Name of the chat model to which calls are passed on."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Pass a request on to the logged chat model and return the reply. The call is logged.

        Raises:
            ModelError: The error of the logged chat model, unchanged.
        """
        at, began = self._clock(), time.perf_counter()
        try:
            reply = await self._chat.complete(request, listener)
        except (Exception, asyncio.CancelledError) as error:
            await self._log(request, at, began, error)
            raise
        await self._log(request, at, began, reply)
        return reply

    async def aclose(self) -> None:
        """Close the chat model to which calls are passed on, and wait until the log is written."""
        await self._chat.aclose()
        if self._writing:
            await asyncio.wait(self._writing)

    async def _log(self, request: ChatRequest, at: datetime, began: float, outcome: ChatReply | BaseException) -> None:
        try:
            if await quotes_forgotten(request, self._memory):
                return
        except StorageError:  # it is unknown whether the request quotes something that was forgotten
            return
        took_ms = round((time.perf_counter() - began) * 1000)
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(_WRITER, self._append, request, at, took_ms, outcome)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        # Shielded, so that a request that has been sent is logged even if its caller is cancelled.
        await asyncio.shield(writing)
        # Forgetting removes the log. If something was forgotten during the write, the line may have been added after
        # that.
        if await quotes_forgotten(request, self._memory):
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
            for folder in (self._path.parent.parent, self._path.parent):  # missing if the store is in a database
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            append_line(self._path, line)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "%s cannot be written (%s), so calls to the LLM are not logged; "
                    "make the file writable, or set llm_log to false",
                    self._path,
                    reason(error),
                )


def remove_log(path: Path) -> None:
    """Remove a log file, if it exists.

    Raises:
        OSError: The log file cannot be removed.
    """
    path.unlink(missing_ok=True)


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
    """Return an error as JSON.

    Only the messages of our own errors are included. Other messages may contain a key or dialogue.
    """
    if isinstance(error, ModelError):
        text = str(error)
    elif isinstance(error, asyncio.CancelledError):
        text = "cancelled before the reply arrived"
    else:
        text = "failed unexpectedly"
    return {"code": type(error).__name__, "message": text}
