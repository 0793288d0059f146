"""The JSON that each client passes to a hook, and the JSON that the hook must return.

This module imports nothing from this package, because the process of a hook must start quickly.
"""

import json
from zlib import adler32, crc32

TRANSCRIPT_BYTES = 1_000_000
KEY_CHARS = 150

# The client's name of each of our events. All clients but Cursor call the context in an answer the same.
EVENTS = {
    "claude-code": {"session-start": "SessionStart", "prompt": "UserPromptSubmit", "stop": "Stop"},
    "codex": {"session-start": "SessionStart", "prompt": "UserPromptSubmit", "stop": "Stop"},
    "gemini": {"session-start": "SessionStart", "prompt": "BeforeAgent", "stop": "AfterAgent"},
    "cursor": {"session-start": "sessionStart", "prompt": "beforeSubmitPrompt", "stop": "afterAgentResponse"},
}
# Cursor has no way to add context to a prompt.
WITHOUT_RECALL = frozenset({"cursor"})


def session_of(given: dict[str, object]) -> str:
    """Return the id of the client's session."""
    return str(given.get("session_id") or given.get("conversation_id") or "")


def turn_of(given: dict[str, object]) -> str:
    """Return the id that the client has assigned to a turn, or an empty string if there is none."""
    return str(given.get("prompt_id") or given.get("turn_id") or given.get("generation_id") or "")


def prompt_of(given: dict[str, object]) -> str:
    """Return the user's prompt, or an empty string if the event does not contain a prompt."""
    prompt = given.get("prompt")
    return prompt.strip() if isinstance(prompt, str) else ""


def answer_of(given: dict[str, object]) -> str:
    """Return the assistant's final text, without tool calls and their results."""
    for name in ("last_assistant_message", "prompt_response", "text"):
        if isinstance(text := given.get(name), str) and text.strip():
            return text.strip()
    return last_exchange(given)[1]


def last_exchange(given: dict[str, object]) -> tuple[str, str, str]:
    """Read the transcript. Return the user's last text, the assistant's reply, and the id of the user's text.

    Missing values are empty strings.
    """
    path = given.get("transcript_path")
    if not isinstance(path, str) or not path:
        return "", "", ""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - TRANSCRIPT_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return "", "", ""
    answer = ""
    for line in reversed(lines):
        try:
            entry = json.loads(line)
            message, kind = entry["message"], entry["type"]
            said = _text(message["content"])
        except (ValueError, KeyError, TypeError):
            continue
        if entry.get("isSidechain") or entry.get("isMeta") or not said:
            continue
        if kind == "assistant" and not answer:
            answer = said
        elif kind == "user":
            return said, answer, str(entry.get("uuid") or "")
    return "", answer, ""


def _text(content: object) -> str:
    """Return the text of a message. Tool calls and their results are left out."""
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else []
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(texts).strip()


def reply(client: str, event: str, context: str) -> str:
    """Return the JSON with which a hook adds the text ``context`` to the assistant's context."""
    if client == "cursor":
        return json.dumps({"additional_context": context})
    output = {"hookEventName": EVENTS[client][event], "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output})


def key_of(client: str, session: str, turn: str) -> str:
    """Return the idempotency key of a turn. It contains no text of the dialogue."""
    key = f"hook {client} {session} {turn}"
    return key if len(key) <= KEY_CHARS else key[: KEY_CHARS - 16] + digest(key)


def digest(text: str) -> str:
    """Return a short checksum that can be part of a path. `hashlib` is not used, because importing it is slow."""
    data = text.encode("utf-8", "surrogatepass")
    return f"{crc32(data):08x}{adler32(data):08x}"
