"""The export for reading: Markdown in one file, or in a folder that Obsidian opens."""

import re
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memoryos_mcp.model.pages import Tier
from memoryos_mcp.model.records import PageRecord, Record
from memoryos_mcp.transfer import markdown
from tests.commands import run_here, run_on

NO_MODEL = ("--embedding-model-name", "none")
HOSTILE = (
    "# Head\n---\n===\n[[x]] <script>alert(1)</script> %%c%% ![a](b)\n1. one\n- two\n```\n| a | b |\n> q\n\n    code"
)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def pages(count: int, text: str = "Hello.") -> Iterator[Record]:
    for number in range(count):
        at = BEGAN + timedelta(minutes=10 * number)
        yield PageRecord(
            kind="page", page_id=f"p_{number:x}", session=1, tier=Tier.SHORT_TERM,
            occurred_at=at, added_at=at, user_input=text,
        )  # fmt: skip


def as_one_file(records: Iterator[Record]) -> str:
    parts: list[bytes] = []
    markdown.write_file(records, parts.append, UTC)
    return b"".join(parts).decode()


@given(st.text() | st.text(alphabet="#-=[]<>*_`|~!()1. \n\t>+:$%&^\\"))
def test_stored_text_has_no_effect_in_markdown(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(markdown.quoted(text))
    assert {token.type for token in tokens} <= {
        "blockquote_open", "blockquote_close", "paragraph_open", "paragraph_close", "inline"
    }  # fmt: skip
    inner = {child.type for token in tokens for child in token.children or ()}
    assert inner <= {"text", "text_special", "hardbreak", "softbreak"}


def test_a_hostile_page_stays_one_section() -> None:
    shown = as_one_file(pages(2, HOSTILE))
    assert re.findall(r"^#.*", shown, re.MULTILINE) == [
        "# Memory", "## 2026-01-01", "### 00:00 p_0", "### 00:10 p_1"
    ]  # fmt: skip
    assert "cannot be imported again" in shown
    assert "[[x]]" not in shown


def test_a_folder_links_facts_and_topics_to_days(tmp_path: Path) -> None:
    data, notes = tmp_path / "data", tmp_path / "notes"
    few = ("--short-term-capacity", "1", "--timezone", "UTC", *NO_MODEL)
    for text in ("I am allergic to walnuts.", "My allergy to walnuts began in school.", HOSTILE):
        run_on(data, "add", text, "--time", "2026-01-08T10:00:00Z", *few)
    run_on(data, "organise", *few)
    told = run_on(data, "export", notes, "--format", "markdown", *few).stderr
    assert "cannot be imported again" in told
    assert "allergic to walnuts. ([[Days/2026-01-08|2026-01-08]])" in (notes / "Facts.md").read_text("utf-8")
    assert "- [[Topics/1|" in (notes / "Memory.md").read_text("utf-8")
    assert "- [[Days/2026-01-08]]" in (notes / "Topics" / "1.md").read_text("utf-8")
    assert "I am allergic to walnuts." in (notes / "Days" / "2026-01-08.md").read_text("utf-8")
    targets = {link for note in notes.rglob("*.md") for link in re.findall(r"\[\[([^|\]]+)", note.read_text("utf-8"))}
    assert all((notes / f"{target}.md").is_file() for target in targets)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "notes"}


def test_a_reading_copy_replaces_nothing_foreign(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "memory.md"
    run_on(data, "add", "I like tea.", *NO_MODEL)
    line = ("export", file, "--format", "markdown", *NO_MODEL)
    run_on(data, *line)
    run_on(data, *line)
    again = run_here("import", file, "--data-storage-path", data)
    assert (again.returncode, "not in a known format" in again.stderr) == (1, True)
    file.write_text("my own notes", encoding="utf-8")
    run_on(data, *line, code=2)
    assert file.read_text("utf-8") == "my own notes"
    (tmp_path / "notes").mkdir()
    run_on(data, "export", tmp_path / "notes", "--format", "markdown", *NO_MODEL, code=2)
    run_on(data, "export", tmp_path / "notes.csv", "--format", "markdown", *NO_MODEL, code=2)


@pytest.mark.parametrize("is_file", [True, False])
def test_ten_thousand_pages_need_little_memory(is_file: bool, tmp_path: Path) -> None:
    text = "word " * 400
    tracemalloc.start()
    try:
        if is_file:
            with (tmp_path / "memory.md").open("wb") as file:
                counts = markdown.write_file(pages(10_000, text), file.write, UTC)
        else:
            counts = markdown.write_folder(pages(10_000, text), tmp_path, UTC)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counts["page"] == 10_000
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.md"))
    assert peak < 8_000_000 < 20_000_000 < written
