"""The exact index, compared with NumPy."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from memoryos_mcp.retrieval.index import flat
from memoryos_mcp.retrieval.index.flat import FlatIndex

DIMENSION = 16
ROW_NUMBERS = st.integers(-(2**63), 2**63 - 1)


def unit_rows(count: int, seed: int = 0, dimension: int = DIMENSION) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def numbers(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def filled(count: int, seed: int = 0) -> tuple[FlatIndex, NDArray[np.float32]]:
    index, vectors = FlatIndex(DIMENSION), unit_rows(count, seed)
    index.add(np.arange(count), vectors)
    return index, vectors


def assert_agrees(index: FlatIndex, truth: dict[int, NDArray[np.float32]], query: NDArray[np.float32], k: int) -> None:
    rows, cosines = index.search(query, k)
    expected = {row: float(vector @ query) for row, vector in truth.items()}
    best = sorted(expected.values(), reverse=True)[:k]
    assert rows.dtype == np.int64
    assert cosines.dtype == np.float32
    assert len(set(rows.tolist())) == len(rows) == min(k, len(truth))
    assert cosines == pytest.approx(best, abs=1e-5)
    assert cosines == pytest.approx([expected[row] for row in rows.tolist()], abs=1e-5)
    assert index.cosines(query, np.array(list(truth), dtype=np.int64)) == pytest.approx(
        list(expected.values()), abs=1e-5
    )


def test_an_empty_index_answers_with_empty_arrays() -> None:
    index = FlatIndex(DIMENSION)
    rows, cosines = index.search(unit_rows(1)[0], 5)
    assert rows.dtype == np.int64
    assert cosines.dtype == np.float32
    assert (len(index), rows.shape, cosines.shape) == (0, (0,), (0,))
    assert np.isnan(index.cosines(unit_rows(1)[0], numbers(3, 4))).all()


@settings(deadline=None)
@given(
    rows=st.lists(ROW_NUMBERS, unique=True, max_size=80),
    k=st.integers(1, 100),
    seed=st.integers(0, 2**32 - 1),
)
def test_search_and_cosines_agree_with_numpy_for_any_row_numbers(rows: list[int], k: int, seed: int) -> None:
    index, vectors = FlatIndex(DIMENSION), unit_rows(len(rows), seed)
    index.add(np.array(rows, dtype=np.int64), vectors)
    assert_agrees(index, dict(zip(rows, vectors, strict=True)), unit_rows(1, seed + 1)[0], k)


def test_search_over_several_chunks_agrees_with_numpy() -> None:
    count = 2 * flat.CHUNK_ROWS + 777
    index, vectors = FlatIndex(DIMENSION), unit_rows(count)
    for start in range(0, count, 10_000):
        index.add(np.arange(start, min(count, start + 10_000)) * 3, vectors[start : start + 10_000])
    truth = {row * 3: vector for row, vector in enumerate(vectors)}
    assert len(index) == count
    for k in (1, 50, 300):
        assert_agrees(index, truth, unit_rows(1, seed=k)[0], k)


def test_a_row_is_its_own_nearest() -> None:
    index, vectors = filled(1000)
    for row in (0, 255, 256, 999):
        rows, cosines = index.search(vectors[row], 1)
        assert rows.tolist() == [row]
        assert cosines == pytest.approx([1], abs=1e-5)


def test_cosines_keep_the_order_with_nan_for_unknown_rows() -> None:
    index, vectors = filled(600)
    query = unit_rows(1, seed=5)[0]
    found = index.cosines(query, numbers(599, -1, 3, 600, 3))
    expected = [float(vectors[599] @ query), np.nan, float(vectors[3] @ query), np.nan, float(vectors[3] @ query)]
    assert found == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert index.cosines(query, numbers()).shape == (0,)


@pytest.mark.parametrize("k", [0, -1])
def test_a_search_for_no_rows_returns_none(k: int) -> None:
    index, vectors = filled(10)
    assert index.search(vectors[0], k)[0].shape == (0,)


def test_the_index_copies_added_vectors() -> None:
    index, vectors = FlatIndex(DIMENSION), unit_rows(5)
    original = vectors.copy()
    index.add(np.arange(5), vectors)
    vectors[:] = 0
    assert index.search(original[2], 1)[0].tolist() == [2]


def test_a_known_row_is_rejected_and_nothing_is_added() -> None:
    index, vectors = filled(10)
    with pytest.raises(ValueError, match="already"):
        index.add(numbers(50, 3), unit_rows(2, seed=1))
    with pytest.raises(ValueError, match="twice"):
        index.add(numbers(50, 50), unit_rows(2, seed=1))
    assert len(index) == 10
    assert np.isnan(index.cosines(vectors[0], numbers(50))).all()
    assert index.cosines(vectors[3], numbers(3)) == pytest.approx([1], abs=1e-5)


def test_vectors_of_another_shape_are_rejected() -> None:
    index = FlatIndex(DIMENSION)
    with pytest.raises(ValueError, match="pass shapes"):
        index.add(numbers(1), unit_rows(1, dimension=8))
    with pytest.raises(ValueError, match="pass shapes"):
        index.add(numbers(1, 2), unit_rows(1))
    assert len(index) == 0


def test_a_removed_row_can_be_added_again() -> None:
    index, vectors = filled(1000)
    index.remove(numbers(7, 999, 5000))
    assert len(index) == 998
    assert index.search(vectors[7], 1)[0].tolist() != [7]
    assert np.isnan(index.cosines(vectors[7], numbers(7, 999))).all()
    index.add(numbers(7), vectors[7:8])
    assert index.search(vectors[7], 1)[0].tolist() == [7]


def test_an_emptied_index_can_be_filled_again() -> None:
    index, vectors = filled(300)
    index.remove(np.arange(300))
    assert len(index) == 0
    assert index.search(vectors[0], 3)[0].shape == (0,)
    index.add(np.arange(300), vectors)
    assert index.search(vectors[299], 1)[0].tolist() == [299]


class IndexAgainstADict(RuleBasedStateMachine):
    """Adds and removals in any order, with chunks so small that they are split and merged."""

    index: FlatIndex
    truth: dict[int, NDArray[np.float32]]

    @initialize()
    def start(self) -> None:
        self.index, self.truth, self.seed = FlatIndex(DIMENSION), {}, 0

    @rule(rows=st.sets(st.integers(0, 60), max_size=25))
    def add(self, rows: set[int]) -> None:
        fresh = sorted(rows - self.truth.keys())
        self.seed += 1
        vectors = unit_rows(len(fresh), self.seed)
        self.index.add(np.array(fresh, dtype=np.int64), vectors)
        self.truth.update(zip(fresh, vectors, strict=True))

    @precondition(lambda self: self.truth)
    @rule(rows=st.sets(st.integers(0, 60), max_size=40))
    def remove(self, rows: set[int]) -> None:
        self.index.remove(np.array(sorted(rows), dtype=np.int64))
        for row in rows:
            self.truth.pop(row, None)

    @invariant()
    def agrees_with_numpy(self) -> None:
        assert len(self.index) == len(self.truth)
        assert_agrees(self.index, self.truth, unit_rows(1, seed=99)[0], 10)


def test_any_order_of_adds_and_removes_agrees_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "CHUNK_ROWS", 8)
    monkeypatch.setattr(flat, "FIRST_CHUNK_ROWS", 2)
    run_state_machine_as_test(IndexAgainstADict, settings=settings(deadline=None, max_examples=60))


def test_concurrent_searches_see_only_whole_rows() -> None:
    count = 4000
    vectors = unit_rows(count)
    index = FlatIndex(DIMENSION)
    index.add(np.arange(100), vectors[:100])
    done = threading.Event()

    def read(seed: int) -> int:
        query, searches = unit_rows(1, seed)[0], 0
        while not done.is_set() or not searches:
            rows, cosines = index.search(query, 20)
            assert len(set(rows.tolist())) == 20
            assert cosines == pytest.approx(vectors[rows] @ query, abs=1e-5)
            again = index.cosines(query, rows)
            gone = np.isnan(again)
            assert again[~gone] == pytest.approx(cosines[~gone], abs=1e-5)
            searches += 1
        return searches

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, seed) for seed in range(3)]
        try:
            for start in range(100, count, 7):
                index.add(np.arange(start, min(count, start + 7)), vectors[start : start + 7])
                if start % 5 == 0:
                    index.remove(np.arange(start - 3, start))
        finally:
            done.set()
        assert all(reader.result(timeout=60) > 0 for reader in readers)


def test_importing_the_module_does_not_load_faiss() -> None:
    program = "import sys, memoryos_mcp.retrieval.index.flat; sys.exit('faiss' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_filling_it_needs_little_more_memory_than_the_vectors() -> None:
    program = (
        "import numpy as np, resource\n"
        "from memoryos_mcp.retrieval.index.flat import FlatIndex\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "index = FlatIndex(384)\n"
        "step = np.ones((10_000, 384), dtype=np.float32)\n"
        "index.add(np.arange(-1, 0), step[:1]); index.search(step[0], 1)\n"
        "before = peak()\n"
        "for start in range(0, 100_000, 10_000): index.add(np.arange(start, start + 10_000), step)\n"
        "assert len(index) == 100_001\n"
        "print((peak() - before) / (100_000 * 384 * 4))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    assert float(result.stdout) < 1.3
