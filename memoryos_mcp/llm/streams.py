"""Parsing of streamed replies, which arrive as server-sent events.

The format of a chunk is described at https://platform.openai.com/docs/api-reference/chat-streaming. Many servers also
send other events, which are ignored.
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field, ValidationError

_FIELD = b"data:"
_DONE = b"[DONE]"
# Maximum length of a line, and of a body that is not an event stream. No valid reply is longer.
BODY_MAX_BYTES = 10_000_000


class _Delta(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    delta: _Delta = Field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """The fields of a chunk that this client uses. A chunk is one event of a streamed reply."""

    choices: list[_Choice] = []
    usage: Any = None


class Stream:
    """Parser of a streamed response. Call ``feed`` with each part of the response.

    Args:
        on_text: Called with each piece of the reply's text.

    Attributes:
        is_event_stream: Whether the response is an event stream.
        is_complete: Whether the server has marked the end of the reply.
        is_cut: Whether the reply ended at a token limit.
        usage: The token counts sent by the server; None if it has sent none.
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._pieces: list[str] = []
        self._body = bytearray()
        self._open_line = b""
        self.is_event_stream = False
        self.is_complete = False
        self.is_cut = False
        self.usage: Any = None

    @property
    def text(self) -> str:
        """The part of the reply's text that has arrived so far."""
        return "".join(self._pieces)

    @property
    def body(self) -> bytes:
        """The body of a response that is not an event stream; empty for an event stream."""
        return bytes(self._body)

    def feed(self, part: bytes) -> None:
        """Parse the next part of the response. A part may end in the middle of a line."""
        if not self.is_event_stream and len(self._body) < BODY_MAX_BYTES:
            self._body += part
        *lines, self._open_line = (self._open_line + part).split(b"\n")
        if len(self._open_line) > BODY_MAX_BYTES:
            self._open_line = b""
        for line in lines:
            if line.startswith(_FIELD):
                self.is_event_stream = True
                self._body.clear()
                self._read(line.removeprefix(_FIELD).strip())

    def _read(self, event: bytes) -> None:
        if event == _DONE:
            self.is_complete = True
            return
        try:
            chunk = _Chunk.model_validate_json(event)
        except ValidationError:
            return
        if chunk.usage is not None:
            self.usage = chunk.usage
        for choice in chunk.choices[:1]:
            if choice.finish_reason is not None:
                self.is_complete = True
                self.is_cut = choice.finish_reason == "length"
            if choice.delta.content:
                self._pieces.append(choice.delta.content)
                self._on_text(choice.delta.content)
