"""A test suite for vector indexes. It needs no test framework.

Each function in `RULES` checks one rule of `retrieval.index.interface.VectorIndex`, and raises `AssertionError` if an
index breaks the rule. With pytest and pytest-asyncio::

    @pytest.mark.parametrize("rule", RULES)
    async def test_my_index(rule, tmp_path):
        await rule(lambda user_id: MyIndex(tmp_path, user_id, dimension=DIMENSION))
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.index.interface import VectorIndex
from memoryos_mcp.storage.values import PageVectors

DIMENSION = 32
# Share of the nearest windows that a search must find.
RECALL = 0.95
# Indexes may store vectors with half precision.
TOLERANCE = 2e-3

Make: TypeAlias = Callable[[str], VectorIndex]
"""Returns the index of a user, for vectors of length `DIMENSION`.

Indexes of different users are empty at first. A second call for the same user opens the same index again.
"""


async def a_new_index_is_empty(make: Make) -> None:
    """A new index contains no vectors, `mark` returns None, and searches find nothing."""
    index = make("empty")
    _check(await index.size() == 0, "a new index has windows")
    _check(await index.mark() is None, "a new index has a mark")
    _check(len((await index.search(_vectors(1)[0], 10)).seqs) == 0, "a search in an empty index has a result")


async def the_nearest_windows_are_found(make: Make) -> None:
    """A search finds nearly all of the nearest vectors, nearest first, with their cosines."""
    index, vectors = make("nearest"), _vectors(1_000)
    await _fill(index, _pages(vectors))
    found_share = []
    for query in _vectors(20, seed=9):
        hits = await index.search(query, 60)
        _check(len(hits.seqs) == len(hits.parts) == len(hits.cosines) == 60, "the result does not have k windows")
        _check(bool((np.diff(hits.cosines) <= TOLERANCE).all()), "the result is not sorted, nearest window first")
        cosines = vectors @ query
        rows = (hits.seqs - 1) * 2 + hits.parts
        _check(np.allclose(hits.cosines, cosines[rows], atol=TOLERANCE), "the cosines are wrong")
        _check(len(np.unique(rows)) == 60, "a window occurs twice")
        found_share.append(len(np.intersect1d(rows, np.argsort(-cosines)[:60])) / 60)
    _check(float(np.mean(found_share)) >= RECALL, f"fewer than {RECALL:.0%} of the nearest windows are found")


async def a_large_k_returns_every_window(make: Make) -> None:
    """A search for more vectors than the index contains returns all of them."""
    index, vectors = make("few"), _vectors(6)
    await _fill(index, _pages(vectors))
    hits = await index.search(vectors[0], 50)
    expected = {(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)}
    _check(set(zip(hits.seqs.tolist(), hits.parts.tolist(), strict=True)) == expected, "windows are missing")


async def replacing_a_page_removes_its_old_windows(make: Make) -> None:
    """After a page is replaced, the index contains only the new vectors of the page, if there are any."""
    index, vectors = make("replaced"), _vectors(6)
    await _fill(index, _pages(vectors))
    new = _vectors(1, seed=5)
    await index.replace([1, 3, 77], PageVectors(np.array([1], dtype=np.int64), new))
    _check(await index.size() == 3, "the number of windows is wrong after pages were replaced")
    hits = await index.search(new[0], 10)
    found = set(zip(hits.seqs.tolist(), hits.parts.tolist(), strict=True))
    _check(found == {(1, 0), (2, 0), (2, 1)}, "replaced or removed windows are still found")
    _check((int(hits.seqs[0]), int(hits.parts[0])) == (1, 0), "the new vector of a page is not used")


async def the_same_replacement_can_be_repeated(make: Make) -> None:
    """If a replacement is repeated with the same vectors, for instance after a crash, nothing changes."""
    index, vectors = make("repeated"), _vectors(20)
    for _ in range(2):
        await _fill(index, _pages(vectors))
    _check(await index.size() == 20, "a repeated replacement adds windows")


async def cosines_are_of_the_given_pages(make: Make) -> None:
    """The cosines of the given pages are sorted by page, and exact to half precision. Unknown pages are omitted.

    An index may also return None instead of cosines.
    """
    index, vectors = make("cosines"), _vectors(20)
    await _fill(index, _pages(vectors))
    hits = await index.cosines(vectors[3], [7, 2, 99])
    if hits is None:
        return
    _check(hits.seqs.tolist() == [2, 2, 7, 7] and hits.parts.tolist() == [0, 1, 0, 1], "the windows are wrong")
    _check(np.allclose(hits.cosines, vectors[[2, 3, 12, 13]] @ vectors[3], atol=TOLERANCE), "the cosines are wrong")


async def a_cleared_index_is_empty(make: Make) -> None:
    """After `clear`, the index contains no vectors, `mark` returns None, and the index can be filled again."""
    index, vectors = make("cleared"), _vectors(10)
    await _fill(index, _pages(vectors))
    await index.set_mark("9/10")
    await index.clear()
    _check(await index.size() == 0, "a cleared index has windows")
    _check(await index.mark() is None, "a cleared index has a mark")
    await _fill(index, _pages(vectors))
    _check(await index.size() == 10, "a cleared index cannot be filled again")


async def users_are_separate(make: Make) -> None:
    """The index of one user contains no vectors of another user."""
    vectors = _vectors(10)
    ada, bob = make("ada"), make("bob")
    await _fill(ada, _pages(vectors))
    await _fill(bob, {1: vectors[:1]})
    _check(await bob.size() == 1, "the size of an index includes another user's windows")
    _check(len((await bob.search(vectors[5], 10)).seqs) == 1, "a search finds another user's windows")
    await bob.clear()
    _check(await ada.size() == 10, "clearing an index removes another user's windows")


async def a_mark_outlives_only_with_its_windows(make: Make) -> None:
    """After an index is reopened, `mark` returns None unless all vectors and the last mark are still there."""
    index, vectors = make("kept"), _vectors(10)
    await _fill(index, _pages(vectors))
    await index.set_mark("41/10")
    await index.set_mark("42/10")
    again = make("kept")
    mark = await again.mark()
    if mark is None:
        return
    _check(mark == "42/10", "the mark is not the one that was stored last")
    _check(await again.size() == 10, "windows are lost although the mark is kept")
    hits = await again.search(vectors[4], 1)
    _check((int(hits.seqs[0]), int(hits.parts[0])) == (3, 0), "the windows of an index that is opened again are wrong")


async def searches_continue_during_changes(make: Make) -> None:
    """Searches find the right vectors while pages are being replaced."""
    index, vectors = make("busy"), _vectors(40)
    await _fill(index, {1: vectors[:1]})

    async def search() -> None:
        for _ in range(20):
            hits = await index.search(vectors[0], 5)
            _check(int(hits.seqs[0]) == 1, "a search during a change misses a window")
            await asyncio.sleep(0)

    async def change() -> None:
        for seq in range(2, 22):
            await _fill(index, {seq: vectors[seq : seq + 1]})

    await asyncio.gather(search(), search(), change())
    _check(await index.size() == 21, "windows are lost in concurrent changes")


async def settling_keeps_every_window(make: Make) -> None:
    """After `settle`, the index still contains every vector."""
    index, vectors = make("settled"), _vectors(50)
    await _fill(index, _pages(vectors))
    await index.settle()
    _check(index.is_settled, "the index is not settled after `settle`")
    _check(await index.size() == 50, "`settle` loses windows")


RULES: tuple[Callable[[Make], Awaitable[None]], ...] = (
    a_new_index_is_empty,
    the_nearest_windows_are_found,
    a_large_k_returns_every_window,
    replacing_a_page_removes_its_old_windows,
    the_same_replacement_can_be_repeated,
    cosines_are_of_the_given_pages,
    a_cleared_index_is_empty,
    users_are_separate,
    a_mark_outlives_only_with_its_windows,
    searches_continue_during_changes,
    settling_keeps_every_window,
)


def _check(is_kept: bool, problem: str) -> None:
    if not is_kept:
        raise AssertionError(problem)


def _vectors(count: int, seed: int = 1) -> NDArray[np.float32]:
    """Return unit-length vectors, shape ``(count, DIMENSION)``, float32."""
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _pages(vectors: NDArray[np.float32]) -> dict[int, NDArray[np.float32]]:
    """Return the vectors grouped into pages of two vectors each. The pages are numbered from 1."""
    return {1 + first // 2: vectors[first : first + 2] for first in range(0, len(vectors), 2)}


async def _fill(index: VectorIndex, pages: Mapping[int, NDArray[np.float32]]) -> None:
    seqs = np.repeat(np.array([*pages], dtype=np.int64), [len(each) for each in pages.values()])
    await index.replace([*pages], PageVectors(seqs, np.concatenate([*pages.values()])))
