"""Invented memories in the formats of other systems, as far as these are known."""

import json
import random
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

BEGAN = datetime(2026, 1, 5, 9, 0, 0)  # noqa: DTZ001 - the reference writes local times without a zone
LLM_ERROR = "Error: Could not get response from LLM."


@dataclass
class Reference:
    """A memory of the reference: pages in one to three topics each, the newest still short-term."""

    pages: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    short_term: list[dict[str, Any]] = field(default_factory=list)

    @property
    def turns(self) -> list[tuple[str, str, str]]:
        return [(page["user_input"], page["agent_response"], page["timestamp"]) for page in self.pages]


def make_reference(pages: int = 60, topics: int = 7, seed: int = 7) -> Reference:
    """Return a memory whose pages are in order, several of them in the same second."""
    chance = random.Random(seed)  # noqa: S311 - data to read, no secret
    memory = Reference(topics={f"session_{number}": [] for number in range(topics)})
    for number in range(pages):
        said = BEGAN + timedelta(seconds=number // 3)
        memory.pages.append(
            {
                "page_id": f"page_{chance.getrandbits(40):010x}",
                "user_input": f"user says {number} ümlaut 漢字",
                "agent_response": f"assistant answers {number}",
                "timestamp": said.strftime("%Y-%m-%d %H:%M:%S"),
            }
        )
    mid_term, memory.short_term = memory.pages[:-5], [dict(page) for page in memory.pages[-5:]]
    for page in memory.short_term:
        del page["page_id"]
    for number, page in enumerate(mid_term):
        names = chance.sample(sorted(memory.topics), chance.randint(1, 3))
        for place, name in enumerate(names):
            linked = place == 0
            memory.topics[name].append(
                page
                | {
                    "preloaded": False,
                    "analyzed": not linked,
                    "pre_page": mid_term[number - 1]["page_id"] if linked and number else None,
                    "next_page": mid_term[number + 1]["page_id"] if linked and number + 1 < len(mid_term) else None,
                    "meta_info": f"chain {number // 10}" if linked else None,
                    "page_embedding": [chance.random() for _ in range(8)],
                    "page_keywords": ["word"],
                }
            )
    for topic in memory.topics.values():
        chance.shuffle(topic)
    return memory


def write_json(file: Path, value: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False, indent=2), encoding="utf-8")
    return file


def long_term(
    facts: Sequence[object] = (), about_assistant: Sequence[object] = (), profile: str = ""
) -> dict[str, Any]:
    def entries(texts: Sequence[object]) -> list[dict[str, Any]]:
        at = "2026-01-06 10:00:00"
        return [{"knowledge": text, "timestamp": at, "knowledge_embedding": [0.5, 0.25]} for text in texts]

    return {
        "user_profiles": {"ada": {"data": profile, "last_updated": "2026-01-07 08:00:00"}} if profile else {},
        "knowledge_base": entries(facts),
        "assistant_knowledge": entries(about_assistant),
    }


def write_reference(
    folder: Path,
    memory: Reference,
    *,
    user: str = "ada",
    users_facts: Mapping[str, Any] | None = None,
    assistants_facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write the reference's data folder and return the user's folder in it."""
    users = folder / "users" / user
    write_json(users / "short_term.json", memory.short_term)
    topics = {
        name: {
            "id": name,
            "summary": "a summary",
            "summary_keywords": ["word"],
            "summary_embedding": [0.5],
            "details": details,
            "L_interaction": len(details),
            "R_recency": 1.0,
            "N_visit": 0,
            "H_segment": 3.5,
            "timestamp": "2026-01-06 10:00:00",
            "last_visit_time": "2026-01-06 10:00:00",
            "access_count_lfu": 0,
        }
        for name, details in memory.topics.items()
    }
    write_json(users / "mid_term.json", {"sessions": topics, "access_frequency": dict.fromkeys(topics, 0)})
    write_json(users / "long_term_user.json", users_facts or long_term())
    write_json(folder / "assistants" / "helper" / "long_term_assistant.json", assistants_facts or long_term())
    return users


# Chroma's tables with names and texts, as far as they are known.
_CHROMA = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT NOT NULL);
CREATE TABLE segments (
    id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT REFERENCES collections(id)
);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL, seq_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (segment_id, embedding_id)
);
CREATE TABLE embedding_metadata (
    id INTEGER REFERENCES embeddings(id), key TEXT NOT NULL, string_value TEXT, int_value INTEGER, float_value REAL,
    bool_value INTEGER, PRIMARY KEY (id, key)
);
"""


def write_chroma(
    folder: Path,
    memory: Reference,
    *,
    users: Sequence[str] = ("ada",),
    facts: Sequence[str] = (),
    about_assistant: Sequence[str] = (),
    profile: str = "",
) -> Path:
    """Write the reference's storage on Chroma. The first page of each topic is only in Chroma."""
    storage = folder / "chroma_storage"
    storage.mkdir(parents=True)
    database = apsw.Connection(str(storage / "chroma.sqlite3"))
    database.execute(_CHROMA)
    with database:
        for user in users:
            pages = [
                ("page", {"type": "page", "session_id": name, "user_id": user} | chosen(page, *_CHROMA_FIELDS))
                for name, details in memory.topics.items()
                for page in details
            ]
            # Pages are stored in the order in which they were said.
            said = {page["page_id"]: number for number, page in enumerate(memory.pages)}
            pages.sort(key=lambda entry: said[entry[1]["page_id"]])
            topics = [("session", {"type": "session_summary", "session_id": n, "summary": "s"}) for n in memory.topics]
            known = [("fact", {"type": "user_knowledge", "timestamp": "2026-01-06 10:00:00", "text": t}) for t in facts]
            learned = [("fact", {"type": "assistant_knowledge", "text": text}) for text in about_assistant]
            _collection(database, f"mid_term_memory_user_{user}", [*topics, *pages])
            _collection(database, f"user_knowledge_{user}", known)
            _collection(database, f"assistant_knowledge_helper_{user}", learned)
            metadata = {
                "mid_term_sessions": {
                    name: {"id": name, "pages_backup": [without(page, "page_embedding") for page in details[1:]]}
                    for name, details in memory.topics.items()
                },
                "access_frequency": {},
                "heap_state": [[-3.5, "session_0"]],
                "short_term_memory": memory.short_term,
                "user_profiles": {user: {"data": profile, "last_updated": "2026-01-07 08:00:00"}} if profile else {},
                "update_times": {},
            }
            write_json(storage / f"metadata_{user}_helper_{user}.json", metadata)
    database.close()
    return storage


_CHROMA_FIELDS = ("page_id", "user_input", "agent_response", "timestamp")


def chosen(page: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: page[name] for name in names}


def without(page: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in page.items() if name not in names}


def _collection(database: apsw.Connection, name: str, values: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    database.execute("INSERT INTO collections VALUES (?, ?, 8, 'default')", (f"c-{name}", name))
    database.execute("INSERT INTO segments VALUES (?, 'vector', 'VECTOR', ?)", (f"v-{name}", f"c-{name}"))
    database.execute("INSERT INTO segments VALUES (?, 'sqlite', 'METADATA', ?)", (f"m-{name}", f"c-{name}"))
    seen = set()
    for number, (kind, entry) in enumerate(values):
        entry_id = f"{kind}_{entry.get('page_id', number)}"
        if entry_id in seen:  # an upsert stores it once
            continue
        seen.add(entry_id)
        database.execute(
            "INSERT INTO embeddings (segment_id, embedding_id, seq_id) VALUES (?, ?, x'00')", (f"m-{name}", entry_id)
        )
        row = database.last_insert_rowid()
        for key, value in entry.items():
            if value is not None:
                database.execute(
                    "INSERT INTO embedding_metadata (id, key, string_value) VALUES (?, ?, ?)", (row, key, str(value))
                )


def chatgpt_node(
    name: str, parent: str | None, role: str | None, *parts: object, at: float | None = None, **changes: Any
) -> dict[str, Any]:
    """Return a node of a conversation's tree. Without a role, it has no message."""
    message: dict[str, Any] = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": "text", "parts": list(parts)},
        "recipient": "all",
        "metadata": {},
    }
    return {"id": name, "message": (message | changes) if role else None, "parent": parent, "children": []}


def chatgpt_conversation(number: int, nodes: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "title": f"Title {number}",
        "create_time": 1_767_600_000.25 + number,
        "update_time": 1_767_700_000.5,
        "mapping": {node["id"]: node for node in nodes},
        "moderation_results": [],
        "current_node": nodes[-1]["id"] if nodes else None,
        "conversation_id": f"conversation-{number}",
        "id": f"conversation-{number}",
    } | changes


def chatgpt_dialogue(number: int, turns: int = 2, chars: int = 0) -> dict[str, Any]:
    """Return a conversation of ``turns`` exchanges, with at least ``chars`` characters on each side."""
    nodes = [chatgpt_node("root", None, None), chatgpt_node("system", "root", "system", "")]
    for turn in range(turns):
        for role in ("user", "assistant"):
            text = f"{role} {number}.{turn} ".ljust(chars, "x")
            at = 1_767_600_000.0 + 60 * turn
            nodes.append(chatgpt_node(f"{number}-{role}-{turn}", nodes[-1]["id"], role, text, at=at))
    return chatgpt_conversation(number, nodes)


def claude_message(number: int, sender: str, text: str, **changes: Any) -> dict[str, Any]:
    return {
        "uuid": f"message-{number}",
        "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": f"2026-02-03T04:05:{number % 60:02d}.123456Z",
        "attachments": [],
        "files": [],
    } | changes


def claude_conversation(number: int, messages: Sequence[Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "uuid": f"conversation-{number}",
        "name": f"Name {number}",
        "summary": "",
        "created_at": "2026-02-03T04:05:06.000000Z",
        "updated_at": "2026-02-03T04:05:06.000000Z",
        "account": {"uuid": "account"},
        "chat_messages": list(messages),
    } | changes


def write_archive(file: Path, members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


def write_long_list(file: Path, entries: Iterator[object]) -> Path:
    """Write a JSON list entry by entry."""
    with file.open("w", encoding="utf-8") as out:
        out.write("[")
        for number, entry in enumerate(entries):
            out.write((",\n" if number else "") + json.dumps(entry))
        out.write("]")
    return file
