"""The benchmark of several servers on one database, with few users and kills."""

import asyncio
from pathlib import Path

import pytest
from rich.progress import Progress

from benchmarks import scale
from benchmarks.scale import Size, database, marker_of, measure_kills

pytestmark = pytest.mark.campaign

LIMIT_S = 240


async def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "ALIVE_S", 3.0)
    async with asyncio.timeout(LIMIT_S):
        with database() as server:
            figures = await measure_kills(server, tmp_path, Size(users=8, kills=2), "none", Progress(disable=True))
    assert [figure.what for figure in figures if not figure.is_reached] == []
    assert int(figures[0].what.split()[0]) > 20


def test_the_marker_of_a_page_names_its_user() -> None:
    assert marker_of("I am user-00007 with remark12x. It rained.") == ("user-00007", "12")
    assert marker_of("It rained.") == ("", "")
