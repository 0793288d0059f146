"""Requests a reply that is a JSON object. If the reply is invalid, the model is asked once to correct it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Message, ReplyForm
from memoryos_mcp.llm.replies import json_object

T = TypeVar("T")

SHOWN_BACK_MAX_CHARS = 8_000


async def ask(
    chat: ChatModel, request: ChatRequest, read: Callable[[dict[str, Any], bool], T], limiter: CapacityLimiter
) -> T:
    """Send a request, and return the reply as converted by ``read``.

    If the reply is invalid, the model is asked once to correct it.

    Args:
        chat: The chat model.
        request: A request whose ``form`` is set.
        read: Converts the reply's JSON object to a value, or raises ReplyFormatError. The second argument of ``read``
            is True for the corrected reply. In that case, ``read`` should use the valid parts and ignore the others.
        limiter: Limits the number of threads that parse replies. Repairing invalid JSON may take seconds.

    Raises:
        ReplyFormatError: Neither the first reply nor the corrected reply could be used.
        ModelError: There was no reply.
    """
    found: dict[str, Any] = {}

    def read_reply(reply: ChatReply, is_last: bool) -> T:
        nonlocal found
        found = json_object(reply)
        return read(found, is_last)

    reply = await chat.complete(request)
    try:
        return await to_thread.run_sync(read_reply, reply, False, limiter=limiter)
    except ReplyFormatError as error:
        problem = str(error)
    sketch = _sketch(request.form, found)
    repair = replace(request, messages=(*request.messages, *_repair_messages(reply, problem, sketch)))
    second = await chat.complete(repair)
    try:
        return await to_thread.run_sync(read_reply, second, True, limiter=limiter)
    except ReplyFormatError as error:
        msg = (
            "the LLM sent two replies that could not be used; if this happens often, choose another llm_model. "
            f"Problem of the second reply: {error}"
        )
        raise ReplyFormatError(msg) from None


def _sketch(form: ReplyForm | None, found: dict[str, Any]) -> str:
    """Return the example reply to show to the model when it is asked to correct its first reply.

    The result is empty if ``found``, the JSON object in the first reply, has all fields of ``form``. In that case,
    the model needs no example, and might copy the example's placeholders ("...").
    """
    if form is None:
        return ""
    properties = form.schema["properties"]
    is_formed = isinstance(properties, dict) and found.keys() >= properties.keys()
    return "" if is_formed else form.sketch


def _repair_messages(reply: ChatReply, problem: str, sketch: str) -> list[Message]:
    like = f", in this form: {sketch}" if sketch else ""
    asked = Message("user", f"Your reply can't be used: {problem}. Send the whole JSON object again, corrected{like}")
    shown = reply.text[:SHOWN_BACK_MAX_CHARS]
    return [Message("assistant", shown), asked] if shown.strip() else [asked]
