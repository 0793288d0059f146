"""Importer for a MemoryOS data folder, or for one user's folder in it.

A user's folder contains one JSON file each for the short-term, mid-term and long-term memory. Vectors, heat and topic
summaries are not read, because they are computed again from the pages.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.importers.json_files import file_entries
from memoryos_mcp.transfer.importers.reference import DAMAGED, Gathering
from memoryos_mcp.transfer.interface import Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import Entry
from memoryos_mcp.transfer.streams import listing

NAME = "memoryos-folder"

SHORT_TERM, MID_TERM, USERS_FACTS = "short_term.json", "mid_term.json", "long_term_user.json"
ASSISTANTS_FACTS = "long_term_assistant.json"
_TIERS = (SHORT_TERM, MID_TERM, USERS_FACTS)
# A topic is one entry, and contains a vector of some kilobytes for each page.
_TOPIC_MAX_BYTES = 1 << 30
_SHOWN_USERS = 5
_ABOUT = {"knowledge_base": About.USER, "assistant_knowledge": About.ASSISTANT}
_KINDS = {"sessions": "topic", "user_profiles": "profile", "knowledge_base": "fact", "assistant_knowledge": "fact"}


def recognises(path: Path) -> bool:
    """Return whether a path is a user's folder or contains users' folders."""
    try:
        return path.is_dir() and (_is_users(path) or bool(_users(path)))
    except ImportFormatError:
        return False


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield one user's pages in order, without duplicates, then the facts.

    Facts about the assistant are read only if ``path`` is a data folder with a single user. Otherwise, they may come
    from other users.
    """
    gathering, before = Gathering(), 0
    for file in _files(path):
        for entry in file_entries(file, partial(_add_progress, progress, before), max_bytes=_TOPIC_MAX_BYTES):
            yield from _take(gathering, file.name, entry)
        before += file.stat().st_size
    yield from gathering.found()


def _add_progress(progress: Progress, before: int, size: int) -> None:
    progress(before + size)


def _files(path: Path) -> list[Path]:
    users = [path] if _is_users(path) else _users(path)
    if not users:
        message = (
            "The folder contains no memory; choose a folder that contains one of these files, "
            f"directly or in a subfolder of users/: {', '.join(_TIERS)}."
        )
        raise ImportFormatError(message)
    if len(users) > 1:
        shown = ", ".join(repr(user.name) for user in users[:_SHOWN_USERS])
        message = f"The folder contains memories of {len(users)} users, such as {shown}; import one folder in users/."
        raise ImportFormatError(message)
    files = [users[0] / name for name in _TIERS]
    if users[0] != path:
        files += sorted((path / "assistants").glob(f"*/{ASSISTANTS_FACTS}"))
    return [file for file in files if file.is_file()]


def _is_users(path: Path) -> bool:
    return any((path / name).is_file() for name in _TIERS)


def _users(path: Path) -> list[Path]:
    folder = path / "users"
    return [user for user in listing(folder) if _is_users(user)] if folder.is_dir() else []


def _take(gathering: Gathering, file: str, entry: Entry) -> Iterator[Skipped]:
    is_page = file == SHORT_TERM and not entry.section
    is_topic = file == MID_TERM and entry.section == "sessions"
    about, is_profile = _ABOUT.get(entry.section), entry.section == "user_profiles"
    if not (is_page or is_topic or about or is_profile):
        return
    where = f"{file}, {_KINDS.get(entry.section, 'page')} {entry.number}"
    if entry.problem:
        yield Skipped(entry.problem, where)
    elif is_page:
        yield from gathering.page(entry.value, where, is_newest=True)
    elif is_topic:
        yield from _topic(gathering, entry.value, where)
    elif about:
        yield from gathering.fact(entry.value, about, where)
    else:
        yield from gathering.profile(entry.value, where)


def _topic(gathering: Gathering, topic: object, where: str) -> Iterator[Skipped]:
    pages = topic.get("details") if isinstance(topic, Mapping) else None
    if not isinstance(pages, list):
        yield Skipped(DAMAGED, where)
        return
    for number, page in enumerate(pages, 1):
        yield from gathering.page(page, f"{where}, page {number}")
