"""Importers of chat services' exports, with files of any size and hostile contents."""

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.model.pages import IDEMPOTENCY_KEY_MAX_CHARS, NewTurn, Source
from memoryos_mcp.transfer.importers import chatgpt, claude, recognise
from memoryos_mcp.transfer.importers.turns import Chat, Message, pages
from memoryos_mcp.transfer.interface import Item, Skipped
from memoryos_mcp.transfer.json_entries import NOT_JSON, TOO_DEEP, TOO_LONG
from memoryos_mcp.transfer.splitting import split
from tests.foreign_memories import (
    chatgpt_conversation,
    chatgpt_dialogue,
    chatgpt_node,
    claude_conversation,
    claude_message,
    write_archive,
    write_json,
    write_long_list,
)

MEMORY_LIMIT_MB = 100


def read(reader: ModuleType, path: Path) -> tuple[list[NewTurn], list[Skipped]]:
    found: list[Item] = list(reader.read(path, lambda _: None))
    return [each for each in found if isinstance(each, NewTurn)], [each for each in found if isinstance(each, Skipped)]


def read_chatgpt(folder: Path, *conversations: object) -> tuple[list[NewTurn], list[Skipped]]:
    return read(chatgpt, write_json(folder / "conversations.json", list(conversations)))


def read_claude(folder: Path, *conversations: object) -> tuple[list[NewTurn], list[Skipped]]:
    return read(claude, write_json(folder / "conversations.json", list(conversations)))


def sides(pages: list[NewTurn]) -> list[tuple[str, str]]:
    return [(page.user_input, page.agent_response) for page in pages]


def reasons(skipped: list[Skipped]) -> list[str]:
    return [each.reason for each in skipped]


def test_a_chatgpt_conversation_becomes_a_page_for_each_exchange(tmp_path: Path) -> None:
    pages, skipped = read_chatgpt(tmp_path, chatgpt_dialogue(3))
    assert sides(pages) == [("user 3.0 ", "assistant 3.0 "), ("user 3.1 ", "assistant 3.1 ")]
    assert [page.idempotency_key for page in pages] == [f"chatgpt:conversation-3:3-assistant-{turn}" for turn in (0, 1)]
    assert [page.timestamp for page in pages] == [
        datetime.fromtimestamp(1_767_600_000 + 60 * turn, UTC) for turn in (0, 1)
    ]
    assert pages[0].meta_data == {"conversation": "conversation-3", "title": "Title 3"}
    assert skipped == []


def test_messages_of_one_side_in_a_row_are_joined(tmp_path: Path) -> None:
    nodes = [
        chatgpt_node("0", None, "assistant", "Welcome."),
        chatgpt_node("1", "0", "user", "One,", at=1.7e9),
        chatgpt_node("2", "1", "user", "two."),
        chatgpt_node("3", "2", "assistant", "Three,"),
        chatgpt_node("4", "3", "assistant", "four."),
        chatgpt_node("5", "4", "user", "Not answered."),
    ]
    pages, _ = read_chatgpt(tmp_path, chatgpt_conversation(1, nodes))
    assert sides(pages) == [("", "Welcome."), ("One,\n\ntwo.", "Three,\n\nfour."), ("Not answered.", "")]


def test_only_the_branch_that_the_user_saw_last_is_read(tmp_path: Path) -> None:
    nodes = [
        chatgpt_node("root", None, None),
        chatgpt_node("q", "root", "user", "Question"),
        chatgpt_node("old", "q", "assistant", "Old answer"),
        chatgpt_node("new", "q", "assistant", "New answer"),
        chatgpt_node("edited", "root", "user", "Edited question"),
    ]
    pages, skipped = read_chatgpt(tmp_path, chatgpt_conversation(1, nodes, current_node="new"))
    assert sides(pages) == [("Question", "New answer")]
    assert reasons(skipped) == ["a branch that was replaced by an edit or a new answer"] * 2


def test_without_a_current_node_the_newest_branch_is_read(tmp_path: Path) -> None:
    nodes = [
        chatgpt_node("q", None, "user", "Question", at=1.7e9),
        chatgpt_node("new", "q", "assistant", "New answer", at=1.7e9 + 2),
        chatgpt_node("old", "q", "assistant", "Old answer", at=1.7e9 + 1),
    ]
    unknown: list[object] = [None, "gone", 7, {}]
    for last in unknown:
        pages, _ = read_chatgpt(tmp_path, chatgpt_conversation(1, nodes, current_node=last))
        assert sides(pages) == [("Question", "New answer")]


def test_messages_that_nobody_said_are_skipped_with_a_reason(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    spoken = {"content_type": "audio_transcription", "text": "said aloud"}
    nodes = [
        chatgpt_node("0", None, "system", "Be brief."),
        chatgpt_node("1", "0", "user", "", content={"content_type": "user_editable_context", "user_profile": "x"}),
        chatgpt_node("2", "1", "user", "Look:", picture, spoken),
        chatgpt_node("3", "2", "assistant", "", content={"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
        chatgpt_node("4", "3", "assistant", "", content={"content_type": "code", "text": "f()"}, recipient="python"),
        chatgpt_node("5", "4", "tool", "a result"),
        chatgpt_node("6", "5", "assistant", "", content={"content_type": "code", "text": "print()"}),
        chatgpt_node("7", "6", "assistant", None, "  ", ""),
    ]
    pages, skipped = read_chatgpt(tmp_path, chatgpt_conversation(1, nodes))
    assert sides(pages) == [("Look:\nsaid aloud", "print()")]
    assert [(each.reason, each.where) for each in skipped] == [
        ("a system message", "conversations.json, conversation 1, message 1"),
        ("settings or reasoning, which nobody said", "conversations.json, conversation 1, message 2"),
        ("an image, a sound or a file", "conversations.json, conversation 1, message 3"),
        ("settings or reasoning, which nobody said", "conversations.json, conversation 1, message 4"),
        ("a message to a tool", "conversations.json, conversation 1, message 5"),
        ("a tool's message", "conversations.json, conversation 1, message 6"),
    ]


def test_damaged_messages_do_not_affect_others(tmp_path: Path) -> None:
    nodes: list[Any] = [
        chatgpt_node("0", None, "user", "kept"),
        {"id": "1", "parent": "0", "message": 7},
        {"id": "2", "parent": "1", "message": {"author": {"role": "user"}}},
        {"id": "3", "parent": "2", "message": {"author": {"role": ["x"]}, "content": {"parts": ["x"]}}},
        chatgpt_node("4", "3", "assistant", 7, "kept too", at=float("nan")),
        chatgpt_node("5", "4", "user", "last", at=1e300),
    ]
    pages, skipped = read_chatgpt(
        tmp_path, 7, None, {"mapping": []}, {"mapping": {"a": None}}, chatgpt_conversation(1, nodes), {"mapping": {}}
    )
    assert sides(pages) == [("kept", "kept too"), ("last", "")]
    assert reasons(skipped) == ["not a conversation"] * 3 + ["a damaged message"] * 5


def test_a_tree_with_a_cycle_is_read(tmp_path: Path) -> None:
    nodes = [chatgpt_node("a", "b", "user", "one"), chatgpt_node("b", "a", "assistant", "two")]
    pages, _ = read_chatgpt(tmp_path, chatgpt_conversation(1, nodes))
    assert sides(pages) == [("one", "two")]


def test_a_claude_conversation_becomes_a_page_for_each_exchange(tmp_path: Path) -> None:
    messages = [
        claude_message(1, "human", "Hello"),
        claude_message(2, "assistant", "Hi"),
        claude_message(3, "human", "Older form", content=[]),
        claude_message(4, "assistant", "Answer"),
    ]
    pages, skipped = read_claude(tmp_path, claude_conversation(9, messages))
    assert sides(pages) == [("Hello", "Hi"), ("Older form", "Answer")]
    assert pages[0].idempotency_key == "claude:conversation-9:message-2"
    assert pages[0].timestamp == datetime(2026, 2, 3, 4, 5, 1, 123456, UTC)
    assert pages[0].meta_data == {"conversation": "conversation-9", "title": "Name 9"}
    assert skipped == []


def test_attached_texts_are_documents_and_other_blocks_skipped(tmp_path: Path) -> None:
    fallback = "This block is not supported on your current device yet."
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "input": {}},
        {"type": "text", "text": "Answer"},
        {"type": "image"},
        {"type": "text", "text": 7},
        7,
    ]
    attached = [{"file_name": "notes.txt", "extracted_content": "the notes"}, {"file_name": "empty"}, 7]
    messages: list[Any] = [
        claude_message(1, "human", "Look", attachments=attached, files=[{"file_name": "photo.jpg"}]),
        claude_message(2, "assistant", fallback, content=blocks),
        claude_message(3, "assistant", fallback, content=[{"type": "tool_result"}]),
        7,
        {"sender": "nobody"},
    ]
    found, skipped = read_claude(tmp_path, claude_conversation(1, messages))
    document, page = found
    assert (page.user_input, page.agent_response) == ("Look", "Answer")
    assert (document.user_input, document.source) == ("the notes", Source.DOCUMENT)
    assert document.meta_data is not None
    assert document.meta_data["file"] == "notes.txt"
    assert page.source is Source.CONVERSATION
    file, tool, broken = "an image, a sound or a file", "a tool's message", "a damaged message"
    settings = "settings or reasoning, which nobody said"
    assert reasons(skipped) == [file, file, file, settings, tool, file, broken, broken, tool, broken, broken]


def test_entries_without_claude_messages_are_skipped(tmp_path: Path) -> None:
    pages, skipped = read_claude(tmp_path, 7, {"chat_messages": {}}, claude_conversation(1, []))
    assert (pages, reasons(skipped)) == ([], ["not a conversation"] * 2)


def test_keys_are_unique_and_the_same_at_every_import(tmp_path: Path) -> None:
    conversations = [chatgpt_dialogue(number, turns=5) for number in range(20)]
    first, second = (read_chatgpt(tmp_path, *conversations)[0] for _ in range(2))
    keys = [page.idempotency_key for page in first]
    assert keys == [page.idempotency_key for page in second]
    assert len(set(keys)) == len(keys) == 100


def test_keys_of_pages_without_ids_are_made_from_the_text() -> None:
    messages = [Message(is_users=number % 2 == 0, text=f"text {number % 4}", at=None, name="") for number in range(8)]
    chat = Chat(system="claude", name="", title="", at=None)
    keys = [page.idempotency_key for page in pages(chat, messages)]
    assert len(set(keys)) == 4
    assert keys == [page.idempotency_key for page in pages(chat, messages)]


@given(
    names=st.lists(st.sampled_from(["", "a", "b", "x" * 300]), max_size=12),
    title=st.text(),
    conversation=st.sampled_from(["", "c", "\ud800", "c" * 1000]),
)
def test_every_message_is_on_one_page_with_a_unique_key(names: list[str], title: str, conversation: str) -> None:
    chat = Chat(system="chatgpt", name=conversation, title=title, at=None)
    messages = [
        Message(is_users=number % 3 == 0, text=f"t{number}", at=None, name=name) for number, name in enumerate(names)
    ]
    found = list(pages(chat, messages))
    said = [text for page in found for side in (page.user_input, page.agent_response) for text in side.split()]
    assert said == [message.text for message in messages]
    assert len({page.idempotency_key for page in found}) == len(found)
    assert all(len(page.idempotency_key or "") < IDEMPOTENCY_KEY_MAX_CHARS for page in found)


@pytest.mark.parametrize(
    ("reader", "conversation"),
    [
        (chatgpt, chatgpt_dialogue(1)),
        (claude, claude_conversation(1, [claude_message(1, "human", "Hello")])),
    ],
)
def test_an_export_is_recognised_as_file_folder_and_archive(
    tmp_path: Path, reader: ModuleType, conversation: object
) -> None:
    data = json.dumps([conversation]).encode()
    folder = tmp_path / "folder"
    file = write_json(folder / "conversations.json", [conversation])
    write_json(folder / "user.json", {"id": "user"})
    archive = write_archive(tmp_path / "export.zip", {"export/user.json": b"{}", "export/conversations.json": data})
    for path in (file, folder, archive):
        assert recognise(path) is reader
        assert sides(read(reader, path)[0]) == sides(read(reader, file)[0])


def test_all_files_of_a_large_export_are_read(tmp_path: Path) -> None:
    members = {f"conversations-{n:03d}.json": json.dumps([chatgpt_dialogue(n, turns=1)]).encode() for n in range(3)}
    archive = write_archive(tmp_path / "export.zip", members)
    assert recognise(archive) is chatgpt
    assert [page.user_input for page in read(chatgpt, archive)[0]] == ["user 0.0 ", "user 1.0 ", "user 2.0 "]


@pytest.mark.parametrize("name", ["nothing.json", "empty.json", "folder", "text.txt", "other.json", "archive.zip"])
def test_an_unknown_format_is_not_recognised(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text('she said "mapping": {', encoding="utf-8")
    write_json(tmp_path / "other.json", [{"title": 'a "mapping": and "chat_messages": in a text', "memories": []}])
    write_archive(tmp_path / "archive.zip", {"picture.png": b"x"})
    assert recognise(tmp_path / name) is None


def test_names_in_an_archive_do_not_reach_the_file_system(tmp_path: Path) -> None:
    data = json.dumps([chatgpt_dialogue(1)]).encode()
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    archive = write_archive(folder / "export.zip", {"../../conversations.json": data, "/conversations.json": data})
    before = sorted(tmp_path.rglob("*"))
    assert len(read(chatgpt, archive)[0]) == 4
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_bomb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    bomb = b"[" + b" " * (80 << 20) + b"]"
    archive = write_archive(tmp_path / "bomb.zip", {"conversations.json": bomb})
    assert archive.stat().st_size < 1 << 20
    assert recognise(archive) is None
    with pytest.raises(ImportFormatError, match="would unpack to more than 100 times its size"):
        read(chatgpt, archive)


def test_a_damaged_or_unusual_archive_is_refused(tmp_path: Path) -> None:
    data = json.dumps([chatgpt_dialogue(n) for n in range(50)]).encode()
    archive = write_archive(tmp_path / "export.zip", {"conversations.json": data})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportFormatError, match="archive cannot be read: the archive is damaged"):
        read(chatgpt, archive)
    at = len(whole) // 2
    archive.write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])
    with pytest.raises(ImportFormatError):
        read(chatgpt, archive)
    write_archive(archive, {"conversations.json": data}, method=zipfile.ZIP_LZMA)
    with pytest.raises(ImportFormatError, match="compressed with an unsupported method"):
        read(chatgpt, archive)
    locked = bytearray(whole)
    locked[6] |= 1
    locked[locked.rindex(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(locked)
    with pytest.raises(ImportFormatError, match="protected by a password"):
        read(chatgpt, archive)


def test_the_error_for_a_missing_file_has_only_its_name(tmp_path: Path) -> None:
    with pytest.raises(ImportFormatError, match=r"^gone\.json cannot be read: No such file"):
        read(chatgpt, tmp_path / "gone.json")
    assert recognise(tmp_path / "gone.json") is None


def test_pages_before_a_cut_are_read(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt_dialogue(1, turns=1), chatgpt_dialogue(2)])[:-50], encoding="utf-8")
    found = []
    with pytest.raises(ImportFormatError, match="cut off"):
        for each in chatgpt.read(file, lambda _: None):
            found.append(each)  # noqa: PERF402 - items before the error count
    assert [each.user_input for each in found if isinstance(each, NewTurn)] == ["user 1.0 "]


def test_hostile_conversations_are_skipped_without_a_quote(tmp_path: Path) -> None:
    good = json.dumps(chatgpt_dialogue(1, turns=1))
    deep = '{"secret": ' * 5000 + "1" + "}" * 5000
    file = tmp_path / "conversations.json"
    file.write_text(f'[{deep}, {{"secret": secret}}, {good}]', encoding="utf-8")
    pages, skipped = read(chatgpt, file)
    assert len(pages) == 1
    assert reasons(skipped) == [TOO_DEEP, NOT_JSON]
    assert not any("secret" in text for each in skipped for text in (each.reason, each.where))


@given(
    text=st.text(alphabet="ab \n.é漢", max_size=300),
    answer=st.text(alphabet="ab .", max_size=300),
    limit=st.integers(1, 80),
)
def test_splitting_a_page_loses_no_character(text: str, answer: str, limit: int) -> None:
    page = NewTurn(text, answer, None, "key")
    parts = list(split(page, limit))
    assert "".join(part.user_input for part in parts) == text
    assert "".join(part.agent_response for part in parts) == answer
    assert all(len(part.user_input) + len(part.agent_response) <= limit for part in parts)
    assert [part.idempotency_key for part in parts] == [
        "key",
        *(f"key#{number}" for number in range(2, len(parts) + 1)),
    ]


def test_a_page_is_split_after_a_sentence() -> None:
    parts = list(split(NewTurn("One sentence is here. Another is there.", "", None, "key"), 23))
    assert [part.user_input for part in parts] == ["One sentence is here. ", "Another is there."]


# Runs in its own process, so that the peak is the importer's alone.
_READ = """
import sys
from pathlib import Path
from memoryos_mcp.transfer.importers import recognise
path = Path(sys.argv[1])
reader = recognise(path)
counts = {}
for found in reader.read(path, lambda at: None):
    name = getattr(found, "reason", type(found).__name__)
    counts[name] = counts.get(name, 0) + 1
status = Path("/proc/self/status").read_text(encoding="ascii")
print(int(status.split("VmHWM:")[1].split()[0]) // 1024, counts)
"""


def read_apart(path: Path) -> tuple[int, str]:
    """Return an importer's peak memory in MB, and the counts that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, check=True, encoding="utf-8", timeout=300
    )
    peak, counts = done.stdout.split(" ", 1)
    return int(peak), counts.strip()


@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_an_export_of_200_mb_is_read_in_little_ram(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - data to read, no secret
    filler = [chance.randbytes(2500).hex() for _ in range(50)]

    def conversations() -> Iterator[object]:
        for number in range(2500):
            conversation = chatgpt_dialogue(number, turns=8)
            for node in conversation["mapping"].values():
                if node["message"]:
                    node["message"]["content"]["parts"].append(chance.choice(filler))
            yield conversation

    file = write_long_list(tmp_path / "conversations.json", conversations())
    assert file.stat().st_size > 200_000_000
    peak_mb, counts = read_apart(file)
    assert counts == "{'a system message': 2500, 'NewTurn': 20000}"
    assert peak_mb < MEMORY_LIMIT_MB


@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_text_of_a_gigabyte_is_skipped_in_little_ram(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    good = json.dumps(chatgpt_dialogue(1, turns=1))
    with file.open("wb") as out:
        out.write(f'[{good}, {{"mapping": "'.encode())
        out.seek(1 << 30, os.SEEK_CUR)  # a hole in the file, which takes no space
        out.write(f'"}}, {good}]'.encode())
    peak_mb, counts = read_apart(file)
    assert counts == str({"NewTurn": 2, TOO_LONG: 1})
    assert peak_mb < MEMORY_LIMIT_MB + 64
