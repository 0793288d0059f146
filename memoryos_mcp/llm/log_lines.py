"""The format of the log of LLM calls.

Each line has the format of an output line of OpenAI's batch API, with a few additional fields:
https://platform.openai.com/docs/api-reference/batch/request-output
"""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, model_validator

from memoryos_mcp.llm.chat import ChatRequest

# 128 bits; the batch API limits a `custom_id` to 64 characters.
KEY_CHARS = 32
# The log contains dialogue, so only the owner may read it.
FILE_MODE = 0o600


class _Line(BaseModel):
    """Base class for a line of the log of LLM calls, and for each part of a line. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True)


class LoggedMessage(_Line):
    """A message of a request or of a completion; ``content`` is None if the model refused to reply."""

    role: str = "assistant"
    content: str | None = None


class LoggedChoice(_Line):
    """A reply and the reason why it ended: ``stop``, ``length``, or another value chosen by the provider."""

    message: LoggedMessage
    finish_reason: str | None = None


class LoggedUsage(_Line):
    """Token counts of a call."""

    prompt_tokens: int
    completion_tokens: int


class LoggedCompletion(_Line):
    """The body of a successful response."""

    choices: Annotated[list[LoggedChoice], Field(min_length=1)]
    usage: LoggedUsage | None = None


class LoggedResponse(_Line):
    """A server's response. If its status is 200, the body is a completion."""

    status_code: int
    body: Annotated[LoggedCompletion | JsonValue, Field(union_mode="left_to_right")] = None

    @model_validator(mode="after")
    def _success_has_a_completion(self) -> Self:
        if self.status_code == HTTPStatus.OK and not isinstance(self.body, LoggedCompletion):
            msg = "a response with status 200 must contain a chat completion"
            raise ValueError(msg)
        return self


class LoggedError(_Line):
    """The reason why a call got no response."""

    code: str | None = None
    message: str | None = None


class BatchLine(_Line):
    """An output line of an OpenAI batch job. A `LogLine` has the same fields and a few more."""

    custom_id: str
    response: LoggedResponse | None = None
    error: LoggedError | None = None

    @property
    def completion(self) -> LoggedCompletion | None:
        """The body of the response; None if the call failed."""
        if self.response is None or self.response.status_code != HTTPStatus.OK:
            return None
        return self.response.body if isinstance(self.response.body, LoggedCompletion) else None


class LoggedForm(_Line):
    """The requested form of the reply."""

    name: str


class LoggedResponseFormat(_Line):
    """The ``response_format`` of a request."""

    json_schema: LoggedForm


class LoggedRequest(_Line):
    """The body of a request to an LLM."""

    model: str
    messages: list[LoggedMessage]
    response_format: LoggedResponseFormat | None = None


class LogLine(BatchLine):
    """A line of this program's log of LLM calls."""

    at: AwareDatetime
    purpose: str
    took_ms: int
    request: LoggedRequest


def request_key(request: ChatRequest) -> str:
    """Return the key that identifies a request in logs and batch jobs.

    The key is the first 32 hexadecimal digits of the SHA-256 of the purpose, messages and form. It does not depend on
    the model.
    """
    content = {
        "purpose": request.purpose,
        "messages": [[message.role, message.content] for message in request.messages],
        "form": request.form and request.form.name,
        "schema": request.form and dict(request.form.schema),
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:KEY_CHARS]


def request_body(request: ChatRequest, *, model_name: str) -> dict[str, JsonValue]:
    """Return a request as the body of a call to the chat completions API."""
    body: dict[str, JsonValue] = {
        "model": model_name,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    if request.form is not None:
        schema: JsonValue = {"name": request.form.name, "strict": True, "schema": dict(request.form.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def append_line(path: Path, line: Mapping[str, JsonValue]) -> int:
    """Append one line of JSON to a file, and return the number of bytes written.

    The line is written in a single call, so that several processes can append to the same file.

    Raises:
        OSError: The line was not written, or only a part of it was written.
    """
    # Models may return half a surrogate pair, which is not valid UTF-8.
    data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with open(path, "a+b", buffering=0, opener=_open_private) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # the previous line is incomplete, because the disk was full
                data = b"\n" + data
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return len(data)


def reason(error: OSError) -> str:
    """Return the operating system's message for an error, without the name of the file."""
    return error.strerror or type(error).__name__


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
