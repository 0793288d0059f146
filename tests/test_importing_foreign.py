"""The command `import` with memories of other systems."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.secret_keys import checked_token
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.importers import READERS
from tests.commands import run_on
from tests.documents import table
from tests.foreign_memories import (
    chatgpt_dialogue,
    claude_conversation,
    claude_message,
    long_term,
    make_reference,
    write_archive,
    write_chroma,
    write_json,
    write_reference,
)
from tests.memories import NO_MODEL
from tests.servers import USER, PipeServer, wait_until
from tests.stores import is_stored, rows, value
from tests.taking_along import check_whole, count
from tests.taking_along import imported as imported_by_a_process

pytestmark = pytest.mark.both_stores(in_campaign=True)


def imported(data: Path, path: Path, *arguments: object) -> dict[str, Any]:
    """Import, and return the command's report."""
    report: dict[str, Any] = json.loads(run_on(data, "import", path, "--json", *arguments).stdout)
    return report


def stored(data: Path) -> list[tuple[Any, ...]]:
    return rows(data, "SELECT user_input, agent_response FROM pages ORDER BY seq", USER)


def test_a_reference_folder_is_imported_completely_and_once(tmp_path: Path, data: Path) -> None:
    memory = make_reference(pages=90)
    folder = tmp_path / "reference"
    write_reference(folder, memory, users_facts=long_term(["Likes tea", "None."], ["Speaks Italian"]))
    report = imported_by_a_process(data, folder)
    assert stored(data) == [(user, assistant) for user, assistant, _ in memory.turns]
    assert count(data, "facts") == 2
    assert report["format"] == "memoryos-folder"
    imported(data, folder)
    write_chroma(tmp_path / "chroma", memory)
    imported(data, tmp_path / "chroma")
    assert (count(data), count(data, "facts")) == (90, 2)
    check_whole(data)


def test_a_time_without_a_zone_is_in_the_users_zone(tmp_path: Path, data: Path) -> None:
    memory = make_reference(pages=6)
    write_reference(tmp_path, memory)
    run_on(data, "import", tmp_path, "--timezone", "Asia/Kolkata")
    at = value(data, "SELECT min(occurred_us) FROM pages", USER)
    assert at == datetime.fromisoformat(f"{memory.turns[0][2]}+05:30").timestamp() * 1_000_000


@pytest.mark.parametrize("service", ["chatgpt", "claude"])
def test_importing_a_chat_archive_again_adds_nothing(tmp_path: Path, data: Path, service: str) -> None:
    message = claude_message(1, "human", "Hello")
    conversation = chatgpt_dialogue(1, turns=1) if service == "chatgpt" else claude_conversation(1, [message])
    content = json.dumps([conversation]).encode()
    archive = write_archive(tmp_path / "export.zip", {"user.json": b"{}", "conversations.json": content})
    assert imported(data, archive)["format"] == service
    imported(data, archive)
    assert count(data) == 1


def test_importing_a_split_page_again_adds_nothing(tmp_path: Path, data: Path) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    file = write_json(tmp_path / "chats.json", {"conversations": [{"user_input": text, "agent_response": "Yes."}]})
    for _ in range(2):
        run_on(data, "import", file, "--max-page-chars", "200")
    pages = stored(data)
    assert len(pages) > 3
    assert "".join(user for user, _ in pages) == text
    assert pages[-1] == ("", "Yes.")


def test_a_folder_of_several_users_is_not_imported(tmp_path: Path, data: Path) -> None:
    for user in ("ada", "bob"):
        write_reference(tmp_path, make_reference(pages=6), user=user)
    done = run_on(data, "import", tmp_path, code=1)
    assert "import one folder in users/" in done.stderr
    assert not is_stored(data, USER)


def test_redacted_secrets_are_counted(tmp_path: Path, data: Path) -> None:
    token = checked_token("ghp", random.Random(1))  # noqa: S311 - made-up
    conversation = claude_conversation(1, [claude_message(1, "human", f"My token is {token}.")])
    file = tmp_path / "conversations.json"
    write_json(file, [conversation])
    assert imported(data, file)["redacted"] == {"github token": 1}
    assert stored(data)[0][0] == "My token is [redacted: github token]."
    export = tmp_path / "export.jsonl"
    run_on(data, "export", export)
    assert imported(tmp_path / "other", export)["redacted"] == {}


def test_the_oldest_of_many_facts_is_found_by_word_and_meaning(tmp_path: Path, data: Path) -> None:
    texts = ["Allergic to penicillin", *(f"Has read {number} pages of the book {number}" for number in range(1, 151))]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    memories = [
        {"memory": text, "created_at": (start + timedelta(hours=number)).isoformat()}
        for number, text in enumerate(texts)
    ]
    file = write_json(tmp_path / "mem0.json", {"results": memories})
    report = imported(data, file, "--long-term-knowledge-capacity", 100)
    assert (report["new"], report["archived_facts"]) == ({"fact": 151}, 51)
    by_word = json.loads(run_on(data, "search", "penicillin", "--json").stdout)
    assert by_word["retrieved_user_knowledge"][0]["knowledge"] == texts[0]
    with PipeServer(data, {"long_term_knowledge_capacity": 100}) as server:
        wait_until(lambda: server.stats()["is_settled"], "every fact is embedded")
        wait_until(lambda: server.stats()["search_mode"] == "hybrid", "meaning is compared")
        otherwise = server.call("retrieve_memory", query="which antibiotic must the doctor never give me")
        assert otherwise["retrieved_user_knowledge"][0]["knowledge"] == texts[0]
        profile = server.call("get_user_profile")
        assert (len(profile["user_knowledge"]), profile["user_knowledge_count"]) == (100, 100)
        listed = server.call("list_memories", tier="knowledge", state="archived", limit=60)
        assert len(listed["memories"]) == 51


def test_a_profile_shows_the_newest_facts_and_counts_the_rest(tmp_path: Path, data: Path) -> None:
    memories = [{"memory": f"Has read the book {number}"} for number in range(1, 111)]
    report = imported(data, write_json(tmp_path / "mem0.json", memories))
    assert (report["new"], report["archived_facts"]) == ({"fact": 110}, 0)
    with PipeServer(data, NO_MODEL) as server:
        reply = server.reply(server.send("tools/call", {"name": "get_user_profile", "arguments": {}}))["result"]
    assert len(reply["structuredContent"]["user_knowledge"]) == 100
    assert reply["structuredContent"]["user_knowledge_count"] == 110
    assert "(10 older facts about the user: list_memories" in reply["content"][0]["text"]


def test_an_import_reports_facts_beyond_the_capacity(tmp_path: Path, data: Path) -> None:
    file = write_json(tmp_path / "mem0.json", [{"memory": f"Has read the book {number}"} for number in range(9)])
    said = run_on(data, "import", file, "--long-term-knowledge-capacity", "4").stdout
    assert "Archived: 5 facts, because the memory reached long_term_knowledge_capacity" in said


def test_format_names_are_unique() -> None:
    names = [export_format.NAME, *(reader.NAME for reader in READERS)]
    assert len(set(names)) == len(names)


def test_every_format_is_documented() -> None:
    described = [row[0].strip("`") for row in table("Memories of other systems")[1:]]  # the table's head is code too
    assert sorted(described) == sorted(reader.NAME for reader in READERS)
