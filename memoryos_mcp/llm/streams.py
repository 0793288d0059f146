"""Streamed replies, parsed from server-sent events.

Chunks are described at https://platform.openai.com/docs/api-reference/chat-streaming. Anything else is ignored, since
many servers send events of their own.
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field, ValidationError

_FIELD = b"data:"
_DONE = b"[DONE]"
# Limit for a body that is not an event stream, and for one line; no reply needs more.
BODY_MAX_BYTES = 10_000_000


class _Delta(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    delta: _Delta = Field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """A part of a chat completion, as far as it is needed."""

    choices: list[_Choice] = []
    usage: Any = None


class Stream:
    """An answer, read while it arrives. A body that is not an event stream is kept as it is.

    Args:
        hear: Called with each piece of the reply's text.

    Attributes:
        is_event_stream: Whether the answer is an event stream.
        is_whole: Whether the server marked the end of the reply.
        is_cut: Whether the reply ended at a token limit.
        usage: The server's token counts; None if it sent none.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._pieces: list[str] = []
        self._kept = bytearray()
        self._open_line = b""
        self.is_event_stream = False
        self.is_whole = False
        self.is_cut = False
        self.usage: Any = None

    @property
    def text(self) -> str:
        """The reply's text so far."""
        return "".join(self._pieces)

    @property
    def body(self) -> bytes:
        """The body, if it is not an event stream."""
        return bytes(self._kept)

    def take(self, part: bytes) -> None:
        """Read the next part of the answer, which may end anywhere."""
        if not self.is_event_stream and len(self._kept) < BODY_MAX_BYTES:
            self._kept += part
        *lines, self._open_line = (self._open_line + part).split(b"\n")
        if len(self._open_line) > BODY_MAX_BYTES:
            self._open_line = b""
        for line in lines:
            if line.startswith(_FIELD):
                self.is_event_stream = True
                self._kept.clear()
                self._read(line.removeprefix(_FIELD).strip())

    def _read(self, event: bytes) -> None:
        if event == _DONE:
            self.is_whole = True
            return
        try:
            chunk = _Chunk.model_validate_json(event)
        except ValidationError:
            return
        if chunk.usage is not None:
            self.usage = chunk.usage
        for choice in chunk.choices[:1]:
            if choice.finish_reason is not None:
                self.is_whole = True
                self.is_cut = choice.finish_reason == "length"
            if choice.delta.content:
                self._pieces.append(choice.delta.content)
                self._hear(choice.delta.content)
