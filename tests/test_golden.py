"""The public interfaces agree with the files in ``tests/golden``: tools, commands, settings, methods and files.

After an intended change, run the tests with ``MEMORYOS_GOLDEN=write`` and read the diff.
"""

import difflib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import memoryos_mcp
from memoryos_mcp import MemoryEngine, Memoryos, MemoryService, Settings, errors
from tests.commands import run_here
from tests.servers import PipeServer, open_store, wait_until

GOLDEN = Path(__file__).parent / "golden"
WRITES = os.environ.get("MEMORYOS_GOLDEN") == "write"
SETTINGS = {
    "embedding_model_name": "none",
    "consolidation_idle_s": 3600,
    "consolidation_batch_pages": 4,
    "short_term_capacity": 2,
    "timezone": "UTC",
}
PAGES = (
    ("2026-01-04T09:00:00+00:00", "Hi! I'm Nadia and I work as a carpenter in Leeds.", "Welcome, Nadia."),
    ("2026-01-04T09:05:00+00:00", "Remember that my answers should be short.", "I will keep them short."),
    ("2026-01-05T18:00:00+00:00", "I'm allergic to walnuts.", "Noted: no walnuts."),
    ("2026-01-06T18:00:00+00:00", "My dog Biscuit is a beagle.\n## He howls", "A beagle, how nice."),
    ("2026-02-01T08:00:00+00:00", "Which oil is best for an oak table?", "Hard wax oil: two thin coats."),
    ("2026-02-01T08:10:00+00:00", "And for a beech bench outside?", "Decking oil, once a year."),
)
# Values that differ between runs or machines.
VOLATILE = (
    (re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[+-]\d\d:\d\d|Z)?"), "time"),
    (re.compile(r"\bp_[0-9a-f]{16}\b"), "page"),
    (re.compile(r"\bf_[0-9A-Za-z_-]{6,}"), "receipt"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "sha256"),
)
SAID = {time for time, _, _ in PAGES} | {time[:16].replace("T", " ") for time, _, _ in PAGES}


class Names:
    """Replaces values that differ between runs by names; equal values get the same name."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._given: dict[str, str] = {}

    def clean(self, found: Any) -> Any:
        """Return JSON with names for the values that differ between runs."""
        if isinstance(found, dict):
            return {self.clean(key): self.clean(value) for key, value in found.items()}
        if isinstance(found, list):
            return [self.clean(value) for value in found]
        if isinstance(found, float) and not found.is_integer():
            return "<number>"
        return self._text(found) if isinstance(found, str) else found

    def _text(self, text: str) -> str:
        text = text.replace(self._folder, "<folder>").replace(memoryos_mcp.__version__, "<version>")
        for pattern, kind in VOLATILE:
            text = pattern.sub(lambda match, kind=kind: self._named(kind, match[0]), text)  # type: ignore[misc]
        return text

    def _named(self, kind: str, found: str) -> str:
        if kind == "time":
            return found if any(found.startswith(said[:16]) for said in SAID) else "<now>"
        number = 1 + sum(name.startswith(f"<{kind} ") for name in self._given.values())
        return self._given.setdefault(found, f"<{kind} {number}>")


def compare(name: str, found: Any) -> None:
    """Compare a value with a golden file, or write the file. The order of the keys of a JSON object may differ."""
    file = GOLDEN / name
    text = found if isinstance(found, str) else json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    golden = file.read_text(encoding="utf-8") if file.exists() else ""
    is_equal = text == golden if isinstance(found, str) else bool(golden) and json.loads(text) == json.loads(golden)
    if WRITES and not is_equal:
        file.write_text(text, encoding="utf-8")
    difference = difflib.unified_diff(_lines(golden), _lines(text), f"golden {name}", "found", lineterm="", n=2)
    assert WRITES or is_equal, "\n".join(difference)


def _lines(text: str) -> list[str]:
    """Split a text into lines; JSON has its keys in order, so that only changes of values differ."""
    is_json = text.startswith(("{", "["))
    return (json.dumps(json.loads(text), indent=1, sort_keys=True) if is_json else text).splitlines()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipeServer]:
    """Yield a server that all tests share; only one of them changes its memory."""
    with PipeServer(tmp_path_factory.mktemp("golden") / "data", SETTINGS) as running:
        yield running


def filled(server: PipeServer) -> list[str]:
    """Add pages to a server, wait until they are organised and learned from, and return their ids."""
    pages = [server.add(user, agent, timestamp=time) for time, user, agent in PAGES]
    wait_until(lambda: not server.stats()["backlog_pages"], "all pages are organised")
    wait_until_settled(server)
    return pages


def wait_until_settled(server: PipeServer) -> None:
    """Wait until no background work is due, because results show how far it is."""
    wait_until(lambda: bool(server.stats()["is_settled"]), "no work is due")


def test_lists_for_clients_are_unchanged(shared: PipeServer) -> None:
    told = {
        method: shared.reply(shared.send(method)).get("result")
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    }
    told["initialize"] = shared.initialise()
    compare("client.json", Names(shared.folder.parent).clean(told))


def test_results_of_tools_are_unchanged(shared: PipeServer) -> None:
    names = Names(shared.folder.parent)
    pages = filled(shared)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("add_memory", {"user_input": "My password: hunter2hunter2", "agent_response": "", "meta_data": {"a": 1}}),
        ("retrieve_memory", {"query": "walnuts", "explain": True}),
        ("retrieve_memory", {"query": "oak", "max_tokens": 100, "relationship_with_user": "friend"}),
        ("get_user_profile", {"include_assistant_knowledge": True}),
        ("get_memory_stats", {}),
        ("get_memory", {"ids": [pages[3], "s1", "k1"]}),
        *(("list_memories", {"tier": tier, "limit": 3}) for tier in ("pages", "segments", "knowledge", "profile")),
        ("correct_memory", {"id": "k1", "text": "I work as a joiner in York.", "dry_run": True}),
        ("forget_memory", {"ids": [pages[4]]}),
        ("retrieve_memory", {}),
        ("add_memory", {"user_input": "", "agent_response": ""}),
        ("get_memory", {"ids": ["k999"]}),
        ("correct_memory", {"id": "k1"}),
    ]
    said = []
    for tool, arguments in calls:
        wait_until_settled(shared)
        reply = shared.result(shared.send_call(tool, arguments))
        said.append({"tool": tool, "arguments": arguments, "result": reply})
    compare("results.json", names.clean(said))


def test_json_of_commands_is_unchanged(tmp_path: Path) -> None:
    data, names = tmp_path / "data", Names(tmp_path)
    with PipeServer(data, SETTINGS) as server:
        pages = filled(server)
        assert server.close() == 0
    options = ["--data-storage-path", str(data), "--embedding-model-name", "none", "--timezone", "UTC"]

    def run(*arguments: str) -> str:
        done = run_here(*arguments, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    commands = [
        ("stats", "--json"),
        ("search", "walnuts", "--json"),
        ("show", pages[0], "k1", "s1", "--json"),
        ("list", "--limit", "2", "--json"),
        ("list", "facts", "--limit", "1", "--json"),
        ("correct", "k1", "--wrong", "--dry-run", "--json"),
        ("forget", "--id", pages[1], "--json"),
        ("reembed", "--status", "--json"),
        ("export", str(tmp_path / "memory.jsonl"), "--json"),
        ("import", str(tmp_path / "memory.jsonl"), "--dry-run", "--json"),
        ("backup", str(tmp_path / "memory.db"), "--json"),
        ("add", "I like oolong.", "--time", "2026-03-01T10:00:00Z", "--json"),
        ("organise", "--json"),
    ]
    compare(
        "command-line.json",
        {" ".join(names.clean(list(each))): names.clean(json.loads(run(*each))) for each in commands},
    )
    lines = [json.loads(line) for line in (tmp_path / "memory.jsonl").read_text(encoding="utf-8").splitlines()]
    compare("export.json", names.clean(lines))


def test_the_settings_are_unchanged() -> None:
    schema = Settings.model_json_schema()
    schema["properties"].get("data_storage_path", {}).pop("default", None)
    compare("settings.json", schema)


def test_the_schema_of_a_file_is_unchanged(shared: PipeServer) -> None:
    shared.add("I keep bees.")
    connection: apsw.Connection = open_store(shared.folder)
    try:
        tables = connection.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name").fetchall()
        version = connection.pragma("user_version")
    finally:
        connection.close()
    compare("schema.sql", f"-- version {version}\n" + "".join(f"{sql};\n" for (sql,) in tables))


@pytest.mark.parametrize("public", [Memoryos, MemoryEngine, MemoryService])
def test_public_methods_are_unchanged(public: type) -> None:
    methods: dict[str, Callable[..., Any]] = {
        name: value for name, value in inspect.getmembers(public) if callable(value) and not name.startswith("_")
    }
    signatures = {
        "": str(inspect.signature(public)),
        **{name: str(inspect.signature(m)) for name, m in methods.items()},
    }
    properties = [name for name, _ in inspect.getmembers(public, lambda value: isinstance(value, property))]
    # The modules of types are not public.
    compare(
        f"{public.__name__}.json",
        {n: re.sub(r"\bmemoryos_mcp\.[\w.]*\.| at 0x[0-9a-f]+", "", s) for n, s in signatures.items()}
        | {"properties": properties},
    )


def test_the_public_names_and_errors_are_unchanged() -> None:
    raised = {
        name: [base.__name__ for base in error.__mro__[1:-2]]
        for name, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, Exception)
    }
    compare("names.json", {"names": memoryos_mcp.__all__, "errors": raised})
