"""Two dependencies are used beyond their documented interface, in tested versions only."""

import re
import tomllib
from importlib.metadata import version

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoryos_mcp.retrieval import query_time
from tests.documents import ROOT

# Packages with closely bounded versions, and why.
BOUNDED = {
    "uvicorn": "a class of its HTTP/1.1 server is extended by timeouts for slow clients",
    "dateparser": "phrases of time are searched with the data of its languages",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_newest_allowed_version_is_the_installed_one(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bounds,) = [each for each in project["dependencies"] if each.startswith(f"{name}>=")]
    major, minor = map(int, re.search(r"<(\d+)\.(\d+)$", bounds).groups())  # type: ignore[union-attr]
    tried = tuple(map(int, version(name).split(".")[:2]))
    assert tried == (major, minor - 1), BOUNDED[name]


@pytest.mark.parametrize(
    "name", ["connection_made", "data_received", "send_400_response", "connection_lost", "on_response_complete"]
)
def test_uvicorn_calls_what_the_timeouts_extend(name: str) -> None:
    assert callable(getattr(H11Protocol, name))


@pytest.mark.parametrize("language", query_time.LANGUAGES)
def test_dateparser_knows_months_and_days_of_each_language(language: str) -> None:
    data = query_time._data(language)
    assert all(data[month] for month in query_time._MONTHS)
    assert data["relative-type"]
