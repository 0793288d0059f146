"""The README: short, correct, and complete in a checkout, on the site and on a package index."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.documents import README, ROOT, json_blocks, section, text_of

DEMO_LINE = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/memoryos-mcp demo"
TEST_LINE = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest -n logical"
LINES_AT_MOST = 114


def readme() -> str:
    return text_of(README)


def test_the_first_screen_has_exactly_two_command_lines() -> None:
    lines = [line for line in readme().splitlines() if line.startswith("python3 ")]
    assert lines == [DEMO_LINE, TEST_LINE]
    assert readme().index(TEST_LINE) < readme().index("\n## ")


def test_the_readme_is_short() -> None:
    assert len(readme().splitlines()) <= LINES_AT_MOST


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is bash's")
def test_ci_runs_the_command_lines_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    done = subprocess.run(
        ["bash", script, "--show"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.splitlines() == [DEMO_LINE, TEST_LINE]
    text = script.read_text(encoding="utf-8")
    assert re.search(r'^step .* "\$work/checkout/\.ci/pythons"$', text, re.MULTILINE)
    pythons = (ROOT / ".ci" / "pythons").read_text(encoding="utf-8")
    assert "\nline=$(.ci/run --show | sed -n 1p)\n" in pythons
    assert ' -c "$line")' in pythons
    assert re.search(r'^ +checked "\$work/tests.txt" "\$test_line"$', text, re.MULTILINE)
    assert "(grep -E '^(python3 -m venv|\\.venv/bin/pip install) ' docs/security.md)" in text
    assert re.search(r'^step "the locked packages" locked$', text, re.MULTILINE)


def test_the_client_block_agrees_with_mcp_json() -> None:
    (block,) = json_blocks("Add it to a client")
    shown, shipped = json.loads(block), json.loads((ROOT / "mcp.json").read_text(encoding="utf-8"))
    command = shown["mcpServers"]["memoryos"].pop("command")
    assert command.startswith("/")
    assert Path(command).name == shipped["mcpServers"]["memoryos"].pop("command")
    assert shown == shipped


def test_the_readme_links_to_every_page() -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert set(re.findall(r"\(docs/([\w-]+)\.md\)", section("Documentation"))) == pages


def test_a_package_index_gets_no_relative_links() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatch_fancy_pypi_readme", ROOT / "pyproject.toml"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=60,
        cwd=ROOT,
    )
    tokens = MarkdownIt("commonmark").enable("table").parse(done.stdout)
    inline = [child for token in tokens for child in token.children or []]
    addresses = [child.attrGet("href") or child.attrGet("src") for child in inline if child.attrs]
    assert addresses
    assert all(str(address).startswith("https://") for address in addresses)
    paths = set(re.findall(r"`(docs/[\w-]+\.md)`", done.stdout))
    assert paths == set(re.findall(r"docs/[\w-]+\.md", readme()))
    assert all((ROOT / path).is_file() for path in paths)
