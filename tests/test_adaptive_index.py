"""An index that is exact while it is small, and approximate from a limit on."""

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.retrieval.index.flat import FlatIndex
from memoryos_mcp.retrieval.index.ivf import NEAREST, IvfIndex, recall

DIMENSION = 32
ROWS = 6_000


def text_like(rows: int, seed: int) -> NDArray[np.float32]:
    """Return unit vectors that lie in overlapping clusters, as those of texts do, shape ``(rows, DIMENSION)``."""
    generator = np.random.default_rng(seed)
    topics = np.random.default_rng(0).normal(size=(40, DIMENSION))
    vectors = topics[generator.integers(0, 40, rows)] + 0.8 * generator.normal(size=(rows, DIMENSION))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def numbered(vectors: NDArray[np.float32], first: int = 0) -> NDArray[np.int64]:
    return np.arange(first, first + len(vectors), dtype=np.int64)


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    return text_like(ROWS, seed=1)


@pytest.fixture
def grown(vectors: NDArray[np.float32]) -> AdaptiveIndex:
    index = AdaptiveIndex(DIMENSION, exact_rows=ROWS - 1)
    index.add(numbered(vectors), vectors)
    assert not index.is_settled
    index.settle()
    assert index.is_settled
    assert not index.is_exact
    return index


def test_it_stays_exact_up_to_its_limit(vectors: NDArray[np.float32]) -> None:
    index = AdaptiveIndex(DIMENSION, exact_rows=ROWS)
    index.add(numbered(vectors), vectors)
    assert index.is_settled
    index.settle()
    assert index.is_exact
    assert len(index) == ROWS


def test_above_the_limit_few_lists_give_98_percent_recall(vectors: NDArray[np.float32], grown: AdaptiveIndex) -> None:
    exact = FlatIndex(DIMENSION)
    exact.add(numbered(vectors), vectors)
    questions = text_like(200, seed=2)
    truth = np.array([exact.search(question, NEAREST)[0] for question in questions])
    found = np.array([grown.search(question, NEAREST)[0] for question in questions])
    assert recall(truth, found) >= 0.98
    index = grown._index
    assert isinstance(index, IvfIndex)
    assert index._index.nprobe < 0.7 * index._index.nlist


def test_cosines_have_three_digits_and_nan_for_unknown_rows(vectors: NDArray[np.float32], grown: AdaptiveIndex) -> None:
    rows = np.array([5, 77, ROWS + 3, 4_321])
    cosines = grown.cosines(vectors[5], rows)
    assert np.isnan(cosines[2])
    expected = [1, vectors[5] @ vectors[77], vectors[5] @ vectors[4_321]]
    assert cosines[[0, 1, 3]] == pytest.approx(expected, abs=2e-3)


def test_rows_can_be_added_and_removed_above_the_limit(vectors: NDArray[np.float32], grown: AdaptiveIndex) -> None:
    late = text_like(50, seed=3)
    grown.add(numbered(late, ROWS), late)
    assert grown.search(late[7], 1)[0].tolist() == [ROWS + 7]
    grown.remove(np.array([ROWS + 7, 12, 10**9]))
    assert len(grown) == ROWS + 50 - 2
    assert ROWS + 7 not in grown.search(late[7], NEAREST)[0]
    assert 12 not in grown.search(vectors[12], NEAREST)[0]


def test_changes_during_the_build_are_applied(vectors: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    is_building, may_go_on = threading.Event(), threading.Event()
    calibrate = IvfIndex._calibrate

    def slowly(self: IvfIndex, blocks: object) -> None:
        is_building.set()
        assert may_go_on.wait(30)
        calibrate(self, blocks)  # type: ignore[arg-type]

    monkeypatch.setattr(IvfIndex, "_calibrate", slowly)
    index = AdaptiveIndex(DIMENSION, exact_rows=ROWS - 1)
    index.add(numbered(vectors), vectors)
    settling = threading.Thread(target=index.settle)
    settling.start()
    assert is_building.wait(30)
    late = text_like(3, seed=4)
    index.add(numbered(late, ROWS), late)
    index.remove(np.array([5]))
    assert index.is_exact
    assert index.search(late[0], 1)[0].tolist() == [ROWS]
    may_go_on.set()
    settling.join(30)
    assert not index.is_exact
    assert index.search(late[0], 1)[0].tolist() == [ROWS]
    assert 5 not in index.search(vectors[5], NEAREST)[0]


def test_searches_continue_while_rows_are_added(vectors: NDArray[np.float32], grown: AdaptiveIndex) -> None:
    is_done = threading.Event()
    failures: list[BaseException] = []

    def search() -> None:
        try:
            while not is_done.is_set():
                rows, cosines = grown.search(vectors[9], 10)
                assert rows[0] == 9
                assert (np.diff(cosines) <= 0).all()
        except BaseException as error:  # noqa: BLE001 - told by the assertion below
            failures.append(error)

    readers = [threading.Thread(target=search) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(100):
        late = text_like(5, seed=100 + step)
        grown.add(numbered(late, ROWS + 5 * step), late)
    is_done.set()
    for reader in readers:
        reader.join(30)
    assert not failures
    assert len(grown) == ROWS + 500


def test_a_cancelled_build_leaves_the_exact_index(vectors: NDArray[np.float32]) -> None:
    index = AdaptiveIndex(DIMENSION, exact_rows=ROWS - 1)
    index.add(numbered(vectors), vectors)
    index.settle(is_cancelled=lambda: True)
    assert index.is_exact
    assert not index.is_settled
    index.settle()
    assert index.is_settled
