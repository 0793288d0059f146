"""The reference's two stages, on a few pages with known segments."""

from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.datasets import Page
from benchmarks.two_stages import PAGES_AT_MOST, SEGMENTS_AT_MOST, TwoStages, rarest_stems, segmented
from tests.fakes import WordEmbedder

NO_WORDS: frozenset[str] = frozenset()


def directions(*degrees: float) -> NDArray[np.float32]:
    """Unit vectors in a plane."""
    turns = np.radians(np.array(degrees))
    return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


def members(vectors: NDArray[np.float32], keywords: list[frozenset[str]] | None = None) -> list[list[int]]:
    """Return the pages of each segment."""
    return [segment.pages for segment in segmented(vectors, keywords or [NO_WORDS] * len(vectors))]


async def two_stages(*texts: str) -> TwoStages:
    embedder = WordEmbedder()
    pages = [Page(f"p{number}", text, "", datetime(2026, 5, 8, tzinfo=UTC)) for number, text in enumerate(texts)]
    return TwoStages(pages, embedder, await embedder.embed([page.text for page in pages]))


def test_keywords_are_the_rarest_stems_then_the_first() -> None:
    texts = ["Rivers, kayaks, boats, the kayak", "A river", "A boat on the river", "Cedar, dune, ember"]
    assert rarest_stems(texts, 2) == [{"kayak", "boat"}, {"river"}, {"boat", "river"}, {"cedar", "dune"}]


def test_a_page_joins_a_segment_at_a_cosine_of_0_6() -> None:
    # cos 53° is 0.602, cos 54° is 0.588.
    assert members(directions(0, 53)) == [[0, 1]]
    assert members(directions(0, 54)) == [[0], [1]]


def test_common_keywords_bring_a_page_into_a_segment() -> None:
    kayak, both = frozenset({"kayak"}), frozenset({"kayak", "river"})
    # cos 80° is 0.17; with half of the keywords in common, the sum is above the minimum.
    assert members(directions(0, 80), [kayak, both]) == [[0, 1]]
    assert members(directions(0, 80), [kayak, frozenset({"river"})]) == [[0], [1]]


def test_a_page_joins_the_nearest_of_several_segments() -> None:
    assert members(directions(0, 90, 50)) == [[0], [1, 2]]


def test_a_segments_vector_is_the_mean_of_its_pages() -> None:
    # 80° is too far from 0°, but not from 25°, the mean of 0° and 50°.
    assert members(directions(0, 50, 75)) == [[0, 1, 2]]
    assert members(directions(0, 75)) == [[0], [1]]


def test_pages_are_filed_in_order_of_arrival() -> None:
    assert members(directions(0, 75, 50)) == [[0], [1, 2]]


def test_without_pages_there_are_no_segments() -> None:
    assert segmented(np.zeros((0, 2), dtype=np.float32), []) == []


async def test_the_best_page_of_the_best_segment_comes_first() -> None:
    search = await two_stages("kayak river paddle", "invoice tax bakery", "kayak river")
    assert (await search.rank("kayak river", 20))[0] == "p2"


async def test_a_page_that_is_far_from_the_query_is_not_found() -> None:
    search = await two_stages("kayak river paddle", "invoice tax bakery")
    assert await search.rank("kayak", 20) == ["p0"]


async def test_at_most_as_many_pages_are_found_as_in_the_reference() -> None:
    search = await two_stages(*["kayak river paddle"] * (PAGES_AT_MOST + 1))
    assert await search.rank("kayak", 20) == [f"p{number}" for number in range(PAGES_AT_MOST)]
    assert await search.rank("kayak", 3) == ["p0", "p1", "p2"]


async def test_pages_beyond_the_best_segments_are_not_found() -> None:
    others = ["apple bread", "cedar dune", "ember fjord", "grape hazel", "iris jade"]
    search = await two_stages(*(f"kayak {other}" for other in others), "kayak lemon mango nectar onyx pearl")
    found = await search.rank("kayak", 20)
    assert len(found) == SEGMENTS_AT_MOST
    assert "p5" not in found


@pytest.mark.parametrize("query", ["zeppelin", "the"])
async def test_a_query_far_from_all_pages_finds_nothing(query: str) -> None:
    search = await two_stages("kayak river paddle", "invoice tax bakery")
    assert await search.rank(query, 20) == []
