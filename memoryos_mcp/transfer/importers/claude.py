"""Importer for Claude exports: ``conversations.json``, or the ZIP archive that contains it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.model.pages import NewTurn, Source
from memoryos_mcp.transfer.importers.chat_exports import (
    ATTACHED,
    DAMAGED,
    NOT_SAID,
    TOOL,
    has_conversations,
    read_conversations,
)
from memoryos_mcp.transfer.importers.keys import digest, key, name_of
from memoryos_mcp.transfer.importers.turns import Chat, Message, from_iso, meta_data, pages
from memoryos_mcp.transfer.interface import Item, Progress, Skipped

NAME = "claude"

_REASONS = {"tool_use": TOOL, "tool_result": TOOL, "thinking": NOT_SAID, "token_budget": NOT_SAID}


def recognises(path: Path) -> bool:
    """Return whether a file, folder or archive contains conversations with the key ``chat_messages``."""
    return has_conversations(path, "chat_messages")


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield the turns of each conversation, and notes about data that is not imported.

    The text of an attached file becomes a separate page with the source ``DOCUMENT``, because nobody said the text.
    """
    return read_conversations(path, "chat_messages", list, _conversation, progress)


def _conversation(where: str, value: Mapping[str, Any]) -> Iterator[Item]:
    title = value.get("name")
    chat = Chat(
        system=NAME,
        name=name_of(value.get("uuid")),
        title=title if isinstance(title, str) else "",
        at=from_iso(value.get("created_at")),
    )
    messages: list[Message] = []
    for number, raw in enumerate(value["chat_messages"], 1):
        place = f"{where}, message {number}"
        if not isinstance(raw, Mapping) or raw.get("sender") not in ("human", "assistant"):
            yield Skipped(DAMAGED, place)
            continue
        text, left = _text(raw)
        at, name = from_iso(raw.get("created_at")), name_of(raw.get("uuid"))
        if text:
            messages.append(Message(is_users=raw["sender"] == "human", text=text, at=at, name=name))
        for reason in left:
            yield Skipped(reason, place)
        yield from _attachments(raw, chat, Message(is_users=True, text="", at=at or chat.at, name=name), place)
    yield from pages(chat, messages)


def _text(raw: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the text of a message, and a reason for each skipped block. Content blocks without text are skipped.

    In older exports, a message has no blocks, and its text is under the key ``text``. In a message with blocks, that
    key only contains placeholders for the blocks.
    """
    words, left = [], []
    content = raw.get("content")
    for block in content if isinstance(content, list) else []:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text" and isinstance(block.get("text"), str):
            words += [block["text"]] if block["text"].strip() else []
        else:
            left.append(_REASONS.get(kind, ATTACHED) if isinstance(kind, str) and kind != "text" else DAMAGED)
    text = raw.get("text")
    if not words and not left and isinstance(text, str) and text.strip():
        words = [text]
    return "\n".join(words), left


def _attachments(raw: Mapping[str, Any], chat: Chat, message: Message, where: str) -> Iterator[Item]:
    attached = raw.get("attachments")
    for file in attached if isinstance(attached, list) else []:
        text = file.get("extracted_content") if isinstance(file, Mapping) else None
        if not isinstance(text, str) or not text.strip():
            yield Skipped(ATTACHED, where)
            continue
        name = file.get("file_name")
        yield NewTurn(
            user_input=text,
            agent_response="",
            timestamp=message.at,
            idempotency_key=key(NAME, chat.name, message.name, f"file-{digest(text)}"),
            meta_data=meta_data(conversation=chat.name, title=chat.title, file=name if isinstance(name, str) else ""),
            source=Source.DOCUMENT,
        )
    files = raw.get("files")
    for _ in files if isinstance(files, list) else []:
        yield Skipped(ATTACHED, where)
