"""Asking: a request, a reply that is read, and one more round in which the model is told what was wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from anyio import to_thread

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Message, ReplyForm
from memoryos_mcp.llm.replies import json_object

T = TypeVar("T")

SHOWN_BACK_MAX_CHARS = 8_000
# Longer replies may take long to mend.
READ_AT_ONCE_MAX_CHARS = 10_000


async def ask(chat: ChatModel, request: ChatRequest, read: Callable[[dict[str, Any], bool], T]) -> T:
    """Return what a reply says.

    Args:
        chat: Who is asked.
        request: What is asked.
        read: Turns the reply's JSON into a value or raises ReplyFormatError; the second argument tells that there will
            be no further round, so that what is usable should be used.

    Raises:
        ReplyFormatError: Neither the first nor the repaired reply was in the asked form.
        ModelError: There was no reply.
    """
    reply = await chat.complete(request)
    try:
        return await _read(reply, read, is_last=False)
    except ReplyFormatError as error:
        problem = str(error)
    repair = replace(request, messages=(*request.messages, *_told(reply, problem, request.form)))
    try:
        return await _read(await chat.complete(repair), read, is_last=True)
    except ReplyFormatError as error:
        msg = f"the LLM's reply could not be used, nor its second one: {error}"
        raise ReplyFormatError(msg) from None


async def _read(reply: ChatReply, read: Callable[[dict[str, Any], bool], T], *, is_last: bool) -> T:
    """Read a reply; one that may take long is read in a thread."""
    if len(reply.text) <= READ_AT_ONCE_MAX_CHARS:
        return read(json_object(reply), is_last)
    return await to_thread.run_sync(lambda: read(json_object(reply), is_last))


def _told(reply: ChatReply, problem: str, form: ReplyForm) -> list[Message]:
    like = f", in this form: {form.sketch}" if form.sketch and not _is_formed(reply, form) else ""
    asked = Message("user", f"Your reply can't be used: {problem}. Send the whole JSON object again, corrected{like}")
    shown = reply.text[:SHOWN_BACK_MAX_CHARS]
    return [Message("assistant", shown), asked] if shown.strip() else [asked]


def _is_formed(reply: ChatReply, form: ReplyForm) -> bool:
    """Whether a reply is of the form and only its content is wrong: a sketch would be copied, dots and all."""
    try:
        found = json_object(reply)
    except ReplyFormatError:
        return False
    properties = form.schema["properties"]
    return isinstance(properties, dict) and found.keys() >= properties.keys()
