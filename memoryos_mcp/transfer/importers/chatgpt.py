"""Importer for ChatGPT exports: ``conversations.json``, ``conversations-000.json`` etc., or their ZIP archive.

Each conversation is a tree of messages, because questions can be edited and answers regenerated. Only the branch that
the user saw last is imported.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.transfer.importers.chat_exports import (
    ATTACHED,
    DAMAGED,
    NOT_SAID,
    SYSTEM,
    TOOL,
    has_conversations,
    read_conversations,
)
from memoryos_mcp.transfer.importers.keys import name_of
from memoryos_mcp.transfer.importers.turns import Chat, Message, from_unix, pages
from memoryos_mcp.transfer.interface import Item, Progress, Skipped

NAME = "chatgpt"

_TO_TOOL = "a message to a tool"
_OTHER_BRANCH = "a branch that was replaced by an edit or a new answer"
_NOT_SAID_TYPES = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})


def recognises(path: Path) -> bool:
    """Return whether a file, folder or archive contains conversations that are trees of messages."""
    return has_conversations(path, "mapping")


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield the turns of each conversation, and notes about data that is not imported."""
    return read_conversations(path, "mapping", Mapping, _conversation, progress)


def _conversation(where: str, value: Mapping[str, Any]) -> Iterator[Item]:
    nodes = value["mapping"]
    branch = _branch(nodes, name_of(value.get("current_node")))
    messages: list[Message] = []
    for number, name in enumerate(branch, 1):
        message, reasons = _message(name, nodes[name])
        messages += [message] if message else []
        for reason in reasons:
            yield Skipped(reason, f"{where}, message {number}")
    on_branch = set(branch)
    for name, node in nodes.items():
        if name not in on_branch and _message(name, node)[0]:
            yield Skipped(_OTHER_BRANCH, where)
    title = value.get("title")
    chat = Chat(
        system=NAME,
        name=name_of(value.get("conversation_id")) or name_of(value.get("id")),
        title=title if isinstance(title, str) else "",
        at=from_unix(value.get("create_time")),
    )
    yield from pages(chat, messages)


def _branch(nodes: Mapping[str, Any], last: str) -> list[str]:
    """Return the names of the nodes on the path from the root to the node ``last``.

    If there is no node ``last``, the path ends at the newest node.
    """
    if last not in nodes:
        last = max(nodes, key=lambda name: _time(nodes[name]), default="")
    # A dict keeps the order of the names, and detects a cycle.
    passed: dict[str, None] = {}
    while last in nodes and last not in passed:
        passed[last] = None
        node = nodes[last]
        last = name_of(node.get("parent")) if isinstance(node, Mapping) else ""
    return list(reversed(passed))


def _time(node: object) -> float:
    message = node.get("message") if isinstance(node, Mapping) else None
    at = from_unix(message.get("create_time")) if isinstance(message, Mapping) else None
    return at.timestamp() if at else 0.0


def _message(name: str, node: object) -> tuple[Message | None, list[str]]:
    """Return a pair: the message of a node, and a reason for each skipped part.

    If the node contains no message of the dialogue, the message is None.
    """
    if not isinstance(node, Mapping):
        return None, [DAMAGED]
    message = node.get("message")
    if message is None:
        return None, []
    author, content = (message.get("author"), message.get("content")) if isinstance(message, Mapping) else (None, None)
    if not isinstance(author, Mapping) or not isinstance(content, Mapping):
        return None, [DAMAGED]
    text, left = _text(content)
    if reason := _not_dialogue(author.get("role"), message, content):
        return None, [reason] if text or left else []
    if not text:
        return None, left
    is_users = author["role"] == "user"
    return Message(is_users=is_users, text=text, at=from_unix(message.get("create_time")), name=name), left


def _not_dialogue(role: object, message: Mapping[str, Any], content: Mapping[str, Any]) -> str | None:
    metadata = message.get("metadata")
    is_hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation") is True
    if role == "tool":
        return TOOL
    if role == "system":
        return SYSTEM
    if role not in ("user", "assistant"):
        return DAMAGED
    if is_hidden or content.get("content_type") in _NOT_SAID_TYPES:
        return NOT_SAID
    return None if message.get("recipient") in (None, "all") else _TO_TOOL


def _text(content: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the text of a message, and a reason for each skipped part. Parts without text are skipped."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        parts = [content.get(name) for name in ("text", "content") if isinstance(content.get(name), str)]
        if not parts and content.get("content_type") in _NOT_SAID_TYPES:
            return "", [NOT_SAID]
    words, left = [], []
    for part in parts:
        # A spoken part contains its transcript.
        said = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(said, str):
            words += [said] if said.strip() else []
        elif part is not None:
            left.append(ATTACHED if isinstance(part, Mapping) else DAMAGED)
    return "\n".join(words), left
