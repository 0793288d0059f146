"""Importer for the conversations of the LoCoMo benchmark. The first of the two speakers is imported as the user."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memoryos_mcp.model.pages import NewTurn
from memoryos_mcp.transfer.importers.json_files import file_entries, outlines
from memoryos_mcp.transfer.importers.keys import digest, key, name_of
from memoryos_mcp.transfer.importers.turns import meta_data
from memoryos_mcp.transfer.interface import Item, Progress, Skipped

NAME = "locomo"

_SESSION = re.compile(r"session_(\d{1,6})")
_TIME = "%I:%M %p on %d %B, %Y"
# The pages of a session get different times, so that they stay in order.
_PAGE_INTERVAL = timedelta(seconds=10)


def recognises(path: Path) -> bool:
    """Return whether a file contains a list of LoCoMo conversations."""
    return path.is_file() and any(
        "conversation" in found.inner and found.inner & {"qa", "sample_id"} for found in outlines(path)
    )


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield the pages of each conversation. The benchmark's questions are ignored."""
    for entry in file_entries(path, progress):
        where = f"conversation {entry.number}"
        conversation = entry.value.get("conversation") if isinstance(entry.value, Mapping) else None
        if entry.problem or not isinstance(conversation, Mapping):
            yield Skipped(entry.problem or "not a conversation", where)
        else:
            # Turns are numbered from 1 in every conversation, so conversations without an id need different names.
            unnamed = f"#{entry.number}" if entry.number > 1 else ""
            yield from _conversation(name_of(entry.value.get("sample_id")) or unnamed, conversation, where)


def speakers(path: Path) -> tuple[str, ...]:
    """Return the names of all people who speak in the conversations, sorted."""
    found: set[str] = set()
    for entry in file_entries(path, lambda _: None):
        conversation = entry.value.get("conversation") if isinstance(entry.value, Mapping) else None
        if isinstance(conversation, Mapping):
            names = (conversation.get("speaker_a"), conversation.get("speaker_b"))
            found.update(name for name in names if isinstance(name, str))
    return tuple(sorted(found))


def _conversation(name: str, conversation: Mapping[str, Any], where: str) -> Iterator[Item]:
    first = conversation.get("speaker_a")
    for number in sorted(int(match[1]) for part in conversation if (match := _SESSION.fullmatch(part))):
        turns, began = conversation.get(f"session_{number}"), _time(conversation.get(f"session_{number}_date_time"))
        place = f"{where}, session {number}"
        if not isinstance(turns, list) or began is None:
            yield Skipped("a damaged session", place)
            continue
        whole = [turn for turn in turns if isinstance(turn, Mapping) and isinstance(turn.get("text"), str)]
        for _ in range(len(turns) - len(whole)):
            yield Skipped("a damaged turn", place)
        for index, sides in enumerate(_pairs(whole, first)):
            user, assistant = (_text(sides.get(is_users)) for is_users in (True, False))
            turn_id = name_of(next(iter(sides.values())).get("dia_id"))
            yield NewTurn(
                user_input=user,
                agent_response=assistant,
                timestamp=began + index * _PAGE_INTERVAL,
                idempotency_key=key(NAME, name, turn_id or f"{number}-{index}-{digest(user, assistant)}"),
                meta_data=meta_data(conversation=name),
            )


def _pairs(turns: list[Mapping[str, Any]], first: object) -> list[dict[bool, Mapping[str, Any]]]:
    """Return the pages of a session: each turn of the first speaker with the other speaker's turn that follows it.

    A page maps True to the first speaker's turn, and False to the other speaker's turn. One of the two can be missing.
    """
    pages: list[dict[bool, Mapping[str, Any]]] = []
    for turn in turns:
        is_first = turn.get("speaker") == first
        if not is_first and pages and False not in pages[-1]:
            pages[-1][False] = turn
        else:
            pages.append({is_first: turn})
    return pages


def _text(turn: Mapping[str, Any] | None) -> str:
    if turn is None:
        return ""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [image: {caption}]" if isinstance(caption, str) and caption else str(turn["text"])


def _time(text: object) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), _TIME) if isinstance(text, str) else None  # noqa: DTZ007 - no zone
    except ValueError:
        return None
