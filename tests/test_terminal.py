"""stats, search and show: they agree with the tools and change nothing."""

import asyncio
import hashlib
import json
import re
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from memoryos_mcp import Memoryos
from memoryos_mcp.cli.commands.demo_script import CONVERSATION
from memoryos_mcp.cli.commands.search import highlighted, snippet
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import StorageError
from memoryos_mcp.llm import api
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.commands import run_here
from tests.memories import NO_MODEL, UNFILED
from tests.servers import USER, PipeServer, open_store, wait_until
from tests.test_command_line import InTerminal

LIMIT_S = 120
EVIL = "\x1b]0;pwned\x07 said \x1b[2J my \x9b31m evil\u202etxt.exe\u2066 \x08\r twin"
WIDE = "日本語のテキスト 😀 and العربية beside it"
# With these weights only many visits make a topic hot, so nothing is promoted during a test.
COOL = {"consolidation_idle_s": 0.1, "mid_term_heat_threshold": 50.0, "short_term_capacity": 3}


# No server listens at this address.
DEAD_MODEL = ("--embedding-model-name", "x", "--embedding-base-url", "http://127.0.0.1:9/v1")


def run(data: Path, *args: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command on a memory, in this process."""
    return run_here(*args, "--data-storage-path", data, "--user-id", USER, env=env)


def looked(data: Path, *args: object, env: dict[str, str] | None = None) -> str:
    done = run(data, *args, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(data: Path, *args: object) -> Any:
    return json.loads(looked(data, *args, "--json"))


def content(data: Path) -> str:
    """Return a digest of every row of every table."""
    connection = open_store(data)
    try:
        digest = hashlib.sha256()
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"):
            if not name.startswith("page_words"):  # a virtual table and its parts, which are derived from the pages
                rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - a name of its own
                digest.update(repr(rows).encode())
        return digest.hexdigest()
    finally:
        connection.close()


async def _remember(data: Path) -> None:
    settings: dict[str, Any] = {**COOL, "mid_term_heat_threshold": 3.5}
    async with asyncio.timeout(LIMIT_S), MemoryEngine.open(USER, data_storage_path=data, **settings) as engine:
        for turn in CONVERSATION:
            await engine.add(turn.user_input, turn.agent_response)
        await engine.add(WIDE, "Noted.")
        await engine.add(EVIL, WIDE)
        await engine.add("I moved to the harbour.", "Enjoy it.")
        await engine.analyse()
        while not (await engine.stats()).is_settled:  # noqa: ASYNC110 - another task's state
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looked") / "memory"
    asyncio.run(_remember(folder))
    return folder


# What is shown --------------------------------------------------------------------------------------------------------


def test_stats_shows_tiers_topics_profile_facts_and_models(data: Path) -> None:
    shown, told = looked(data, "stats"), as_json(data, "stats")
    stats, profile = told["stats"], told["profile"]
    assert f"{stats['short_term_pages']} of 7 pages" in shown
    assert f"{stats['mid_term_pages']} pages in {stats['segments']} of 200 topics" in shown
    for segment in stats["top_segments"][:8]:
        (line,) = re.findall(rf"^  {segment['segment_id']}  .*$", shown, re.MULTILINE)
        assert f"{segment['heat']:.2f}" in line
        assert segment["title"] in line
    assert profile["traits"]
    for trait in profile["traits"][:8]:
        assert re.search(rf"^  {re.escape(trait['id'])} +{trait['level']} +{len(trait['evidence'])} page", shown, re.M)
    assert all(fact["knowledge"] in shown for fact in profile["user_knowledge"][:10])
    assert f"{stats['total_pages']} of {stats['total_pages']} pages have vectors" in shown
    assert told["file"] == str(database_file(data, USER))
    assert told["file_bytes"] >= Path(told["file"]).stat().st_size
    sizes = open_store(data).execute("SELECT sum(octet_length(user_input || agent_response)) FROM pages").get
    assert sum(told["text_bytes"].values()) == sizes


def test_the_length_of_a_heat_bar_shows_the_heat(data: Path) -> None:
    segments = as_json(data, "stats")["stats"]["top_segments"]
    heat = segments[0]["heat"]
    for threshold, cells in ((heat / 2, 16), (heat * 2, 8)):
        shown = looked(data, "stats", "--mid-term-heat-threshold", threshold)
        (bar,) = re.findall(rf"^  {segments[0]['segment_id']}  ([█░]+)", shown, re.MULTILINE)
        assert len(bar) == 16
        assert bar.count("█") in (cells, cells - 1)  # the heat falls between the two commands


def test_all_shows_what_stats_leaves_out(data: Path) -> None:
    told = as_json(data, "stats", "--all")
    assert len(told["stats"]["top_segments"]) == told["stats"]["segments"]
    whole = looked(data, "stats", "--all")
    assert "--all shows them" not in whole
    assert all(segment["segment_id"] in whole for segment in told["stats"]["top_segments"])


def test_search_finds_what_the_tool_finds(data: Path) -> None:
    question = "Where did I move to, and what about my dog?"
    found = as_json(data, "search", question, "--explain", "--max-results", 5)
    with PipeServer(data, COOL) as server:
        server.initialise()
        server.wait_until_semantic()
        told = server.call("retrieve_memory", query=question, explain=True, max_results=5)
    for result in (found, told):
        result.pop("timestamp")
        for segment in result["segments"]:
            segment.pop("heat")  # falls with time
        for page in result["retrieved_pages"]:
            page["signals"] = {name: round(share, 2) for name, share in page["signals"].items()}
            page["score"] = round(page["score"], 2)
    assert found == told
    assert found["search_mode"] == "hybrid"


def test_search_shows_one_line_per_page_with_marked_words(data: Path) -> None:
    shown = looked(data, "search", "beagles")
    lines = re.findall(r"^  \d{4}-\d\d-\d\d  (p_\w+) .*$", shown, re.MULTILINE)
    found = as_json(data, "search", "beagles")
    assert lines[: len(found["retrieved_pages"])] == [page["page_id"] for page in found["retrieved_pages"]]
    coloured = looked(data, "search", "beagles", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert re.search(r"\x1b\[1;33m[Bb]eagle\x1b\[0m", coloured)


def test_explain_shows_the_parsed_query_and_the_scores(data: Path) -> None:
    shown = looked(data, "search", "biscuit", "--explain")
    assert re.search(r"words +biscuit \(on \d+ pages\)", shown)
    assert re.search(r"^    -?\d+\.\d\d = \w+ [+-]\d\.\d\d", shown, re.MULTILINE)
    assert "= " not in looked(data, "search", "biscuit")


def test_an_empty_result_is_reported_before_recent_pages(tmp_path: Path) -> None:
    with Memoryos(USER, data_storage_path=tmp_path, **NO_MODEL) as memory:
        memory.add_memory("I planted a tree.", "")
    shown = looked(tmp_path, "search", "zebra", "--embedding-model-name", "none").splitlines()
    assert shown[:2] == ["No older page and no fact was found.", ""]
    assert shown[2].startswith("Most recent pages")


def test_full_shows_both_sides_of_each_page(data: Path) -> None:
    shown = looked(data, "search", "harbour", "--full")
    assert re.search(r"^    user: +I moved to the harbour\.$", shown, re.MULTILINE)
    assert re.search(r"^    assistant: +Enjoy it\.$", shown, re.MULTILINE)


def test_search_explains_why_it_uses_only_keywords(data: Path, no_pause: None) -> None:
    assert "found by keywords only" in looked(data, "search", "biscuit", "--embedding-model-name", "none")
    done = run(data, "search", "biscuit", *DEAD_MODEL)
    assert (done.returncode, "found by keywords and meaning" in done.stdout) == (0, True)
    assert done.stderr.startswith("memoryos-mcp: search uses the previous embedding model: ")


def test_show_prints_each_kind_of_memory(data: Path) -> None:
    told = as_json(data, "stats")
    page = as_json(data, "search", "harbour")["short_term_memory"][-1]["page_id"]
    trait, fact = told["profile"]["traits"][0], told["profile"]["user_knowledge"][0]
    shown = looked(data, "show", "s1", "c1", fact["knowledge_id"], trait["id"], page)
    assert re.findall(r"^(\S+)  (segment|chain|fact|trait|page)$", shown, re.MULTILINE) == [
        ("s1", "segment"),
        ("c1", "chain"),
        (fact["knowledge_id"], "fact"),
        (trait["id"], "trait"),
        (page, "page"),
    ]
    assert fact["knowledge"] in shown
    assert fact["evidence"][0] in shown
    kinds = [memory["kind"] for memory in as_json(data, "show", "s1", page)["memories"]]
    assert kinds == ["segment", "page"]


@pytest.mark.parametrize("ids", [["k999"], ["s1", "nonsense"], ["p_00"]], ids=" ".join)
def test_show_of_an_unknown_id_prints_nothing(data: Path, ids: list[str]) -> None:
    done = run(data, "show", *ids)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("memoryos-mcp: ID")


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry calls to a missing model without a pause."""
    monkeypatch.setattr(api, "FIRST_PAUSE_S", 0.0)


def test_stats_shows_the_last_errors_of_a_stopped_server(tmp_path: Path, no_pause: None) -> None:
    data = tmp_path / "memory"
    settings: dict[str, Any] = {"embedding_model_name": "x", "embedding_base_url": "http://127.0.0.1:9/v1"}
    with Memoryos(USER, data_storage_path=data, **settings) as memory:
        memory.add_memory("I planted a tree.", "")
        wait_until(lambda: bool(memory.get_memory_stats()["background"]["embedding"]["failed_attempts"]), "a failure")
        failed = memory.get_memory_stats()["background"]["embedding"]
    wait_until(lambda: "embedding" in as_json(data, "stats")["last_errors"], "it is kept")
    kept = as_json(data, "stats")["last_errors"]["embedding"]
    assert (kept["last_error"], kept["failed_attempts"] >= 1) == (failed["last_error"], True)
    shown = looked(data, "stats")
    assert re.search(r"^  embedding  \d{4}-\d\d-\d\d \d\d:\d\d  failed \d+ times? in a row: \S", shown, re.MULTILINE)


# Looking changes nothing ----------------------------------------------------------------------------------------------

LOOKS = (["stats"], ["stats", "--json"], ["search", "biscuit the dog"], ["show", "s1", "s2"])


def test_read_only_commands_change_no_row(data: Path) -> None:
    before, files = content(data), sorted(each.name for each in data.rglob("*"))
    for args in LOOKS:
        looked(data, *args)
        # Limits below the present use must not move anything.
        looked(data, *args, "--short-term-capacity", 1, "--mid-term-heat-threshold", 0.1, "--retention-days", 1)
    assert content(data) == before
    assert sorted(each.name for each in data.rglob("*")) == files


def test_read_only_commands_count_no_visit_beside_a_server(data: Path) -> None:
    with PipeServer(data, COOL) as server:
        server.initialise()
        server.wait_until_settled()
        before = server.stats()["top_segments"]
        for args in LOOKS:
            looked(data, *args)
        after = server.stats()["top_segments"]
    assert [(each["segment_id"], each["n_visit"]) for each in after] == [
        (each["segment_id"], each["n_visit"]) for each in before
    ]


def test_read_only_commands_do_not_organise_pages(tmp_path: Path, no_pause: None) -> None:
    data = tmp_path / "memory"
    with Memoryos(USER, data_storage_path=data, **UNFILED, **NO_MODEL, short_term_capacity=1) as memory:
        for number in range(4):
            memory.add_memory(f"I planted tree {number}.", "")
    before = content(data)
    shown = looked(data, "stats", "--consolidation-idle-s", 0)
    assert re.search(r"^  3 pages to be organised into topics, the oldest since \d{4}-", shown, re.MULTILINE)
    assert "0 of 4 pages have vectors" in shown
    assert "\n  4 pages without vectors" in shown
    found = as_json(data, "search", "tree", "--consolidation-idle-s", 0)
    assert found["search_mode"] == "lexical"  # no page has vectors, and search creates none
    assert len(found["retrieved_pages"]) == 3
    done = run(data, "search", "tree", *DEAD_MODEL)
    assert (done.returncode, "found by keywords only" in done.stdout) == (0, True)
    assert done.stderr.startswith("memoryos-mcp: search uses only keywords: ")
    assert content(data) == before


def test_read_only_commands_create_no_memory(tmp_path: Path) -> None:
    for args in LOOKS:
        done = run(tmp_path / "none", *args)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"user {USER} has no memory" in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_an_empty_file_is_refused_as_damaged(tmp_path: Path) -> None:
    file = database_file(tmp_path, USER)
    file.parent.mkdir(parents=True)
    file.touch()
    done = run(tmp_path, "stats")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the file is empty" in done.stderr
    assert "not changed" in done.stderr
    assert file.stat().st_size == 0


async def test_sqlite_refuses_a_change_of_a_read_only_memory(data: Path) -> None:
    from memoryos_mcp.config import Settings

    async with asyncio.timeout(LIMIT_S):
        settings = Settings(data_storage_path=data, user_id=USER, embedding_model_name="none")
        async with MemoryService(settings, only_looks=True) as service, service.user(USER) as engine:
            with pytest.raises(StorageError, match="nothing was stored"):
                await engine.add("Not to be kept.", "")
            with pytest.raises(StorageError, match="nothing was created"):
                async with service.user("nobody"):
                    pass


# The terminal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [["stats", "--all"], ["search", "evil twin"], ["search", "evil", "--full"], ["search", "evil", "--json"]]
)
def test_stored_text_cannot_control_the_terminal(data: Path, args: list[str]) -> None:
    shown = looked(data, *args)
    assert not {char for char in shown if unicodedata.category(char) == "Cc" and char not in "\n\t"}
    assert not {char for char in shown if unicodedata.bidirectional(char) in {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI"}}
    if args[0] == "search":
        assert "evil" in shown


def test_the_full_text_of_a_page_cannot_control_the_terminal(data: Path) -> None:
    page = as_json(data, "search", "evil twin")["short_term_memory"][1]
    assert page["user_input"] == EVIL
    shown = looked(data, "show", page["page_id"])
    assert "␛]0;pwned␇" in shown
    assert not set(shown) & set("\x1b\x07\x9b\x08\r\u202e\u2066")


@pytest.mark.parametrize("args", [["stats"], ["search", "日本語 biscuit"]], ids=["stats", "search"])
def test_lines_with_wide_characters_fit_the_terminal(data: Path, args: list[str]) -> None:
    def is_told_whole(line: str) -> bool:
        return "memory.db" in line or str(data)[:20] in line  # the path of the file is not wrapped

    options = ["--data-storage-path", data, "--user-id", USER]
    in_terminal = InTerminal(*args, *options, columns=60, env={"NO_COLOR": "1", "MEMORYOS_LOG_LEVEL": "ERROR"})
    assert in_terminal.ended() == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", in_terminal.shown)
    narrow = [line.rpartition("\r")[2] for line in shown.replace("\r\n", "\n").split("\n")]
    wide = looked(data, *args, env={"COLUMNS": "100"}).split("\n")
    for columns, lines in ((60, narrow), (100, wide)):
        assert max(cell_len(line) for line in lines if not is_told_whole(line)) <= columns
        if args[0] == "search":
            page = next(line for line in lines if "日本語" in line)
            assert page.startswith("  20")


@pytest.mark.parametrize(
    ("env", "is_coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_colour_depends_on_the_terminal(data: Path, env: dict[str, str], is_coloured: bool) -> None:
    in_terminal = InTerminal("show", "s1", "--data-storage-path", data, "--user-id", USER, env=env)
    assert in_terminal.ended() == 0
    assert (re.search(r"\x1b\[[0-9;]*3[0-7]m", in_terminal.shown) is not None) == is_coloured


def test_a_pipe_gets_plain_text_unless_colour_is_forced(data: Path) -> None:
    plain, forced = looked(data, "show", "s1"), looked(data, "show", "s1", env={"FORCE_COLOR": "1"})
    assert "\x1b" not in plain
    assert "\x1b[" in forced
    assert not any(line.endswith(" ") for line in plain.splitlines())


def test_words_are_highlighted_in_every_script() -> None:
    assert [str(span.start) for span in highlighted("Beagles dig; a beagle sleeps", frozenset({"beagl"})).spans] == [
        "0",
        "15",
    ]
    (span,) = highlighted("昨日は東京に行きました", frozenset({"東京"})).spans
    assert (span.start, span.end) == (3, 5)


def test_a_snippet_begins_shortly_before_the_match() -> None:
    line = f"{'so it goes ' * 20}and then a beagle came along {'and on ' * 20}"
    shown = snippet(line, frozenset({"beagl"}), 60).plain
    assert shown.startswith("…")
    assert shown.index("beagle") < 60
    assert snippet("a beagle", frozenset({"beagl"}), 60).plain == "a beagle"
    assert snippet(line, frozenset({"cat"}), 60).plain == line
