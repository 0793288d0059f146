"""docs/developing.md agrees with the import contract and the code."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from tests.documents import DOCS, ROOT

PAGE = (DOCS / "developing.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`((?:[a-z_]+\.)+\w+)`", PAGE)
STOPS = [
    name for name in NAMES if not name.startswith(("benchmarks.", "tests.")) and not name.endswith((".toml", ".lock"))
]
STOPS_AT_MOST = 8


def house() -> str:
    """Return the rooms in the order of the contract, each with the summary of its docstring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("containers") == ["memoryos_mcp"]]
    lines = []
    for layer in contract["layers"]:
        for place, room in enumerate(layer.split(" | ")):
            first_line = (importlib.import_module(f"memoryos_mcp.{room}").__doc__ or "").split("\n")[0]
            told = re.sub(r"^[\w ]+: ", "", first_line).replace("``", "")
            lines.append(f"{'| ' if place else ''}{room}".ljust(16) + told[0].upper() + told[1:])
    return "\n".join(lines)


def test_the_list_of_rooms_agrees_with_the_import_contract() -> None:
    assert house() in PAGE


def test_each_walk_has_at_most_eight_steps() -> None:
    ways = re.findall(r"(?:^\d\. .*\n)+", PAGE, re.MULTILINE)
    assert len(ways) == 3
    assert all(len(way.splitlines()) <= STOPS_AT_MOST for way in ways)


@pytest.mark.parametrize("stop", STOPS)
def test_each_named_place_exists(stop: str) -> None:
    names = stop.split(".")
    for end in range(len(names), 0, -1):
        try:
            found = importlib.import_module(".".join(["memoryos_mcp", *names[:end]]))
        except ModuleNotFoundError:
            continue
        for name in names[end:]:
            found = getattr(found, name)
        return
    pytest.fail(f"{stop} is not there")


def test_the_page_lists_every_campaign_file() -> None:
    marked = {file.stem for file in (ROOT / "tests").glob("test_*.py") if "pytest.mark.campaign" in _code(file)}
    rows = re.findall(r"^\| (`test_.*?`) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == marked


def _code(file: Path) -> str:
    return "" if file == Path(__file__) else file.read_text(encoding="utf-8")
