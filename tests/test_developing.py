"""What docs/developing.md says of the house is what the import contract and the code say."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from tests.documents import DOCS, ROOT

PAGE = (DOCS / "developing.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`((?:[a-z_]+\.)+\w+)`", PAGE)
STOPS = [name for name in NAMES if not name.startswith("benchmarks.") and not name.endswith((".toml", ".lock"))]
STOPS_AT_MOST = 8


def house() -> str:
    """Return the rooms from the top down, as the contract lists them, each with what it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("containers") == ["memoryos_mcp"]]
    lines = []
    for layer in contract["layers"]:
        for place, room in enumerate(layer.split(" | ")):
            told = (importlib.import_module(f"memoryos_mcp.{room}").__doc__ or "").split("\n")[0]
            lines.append(f"{'| ' if place else ''}{room}".ljust(16) + re.sub(r"^[\w ]+: ", "", told).replace("``", ""))
    return "\n".join(lines)


def test_the_house_is_drawn_as_the_import_contract_has_it() -> None:
    assert house() in PAGE


def test_each_way_has_at_most_eight_stops() -> None:
    ways = re.findall(r"(?:^\d\. .*\n)+", PAGE, re.MULTILINE)
    assert len(ways) == 3
    assert all(len(way.splitlines()) <= STOPS_AT_MOST for way in ways)


@pytest.mark.parametrize("stop", STOPS)
def test_each_place_that_is_named_exists(stop: str) -> None:
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


def test_the_campaign_is_told_file_by_file() -> None:
    marked = {file.stem for file in (ROOT / "tests").glob("test_*.py") if "pytest.mark.campaign" in _code(file)}
    rows = re.findall(r"^\| (`test_.*?`) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == marked


def _code(file: Path) -> str:
    return "" if file == Path(__file__) else file.read_text(encoding="utf-8")
