"""Token vectors with four bits per coordinate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memoryos_mcp.embedding import token_vectors
from memoryos_mcp.embedding.token_vectors import LEVELS, REACH_RMS

COORDINATES = 8
ROWS = arrays(
    np.float32, st.tuples(st.integers(0, 5), st.just(COORDINATES)), elements=st.floats(-1, 1, width=32, allow_nan=False)
)
AXES = np.eye(COORDINATES, dtype=np.float32)


def test_a_code_has_four_bits_per_coordinate() -> None:
    vectors = np.random.default_rng(1).normal(size=(5_000, 80)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes = token_vectors.encode(vectors)
    assert codes.shape == (5_000, 40)
    assert codes.dtype == np.uint8
    found = token_vectors.cosines(codes, vectors[:20])
    assert found.shape == (5_000, 20)
    assert np.abs(found - vectors @ vectors[:20].T).mean() < 0.02
    assert found[range(20), range(20)].min() > 0.9


def test_merged_vectors_have_the_mean_direction_of_their_group() -> None:
    rows = AXES[[0, 1, 2, 2, 3]]
    found = token_vectors.merge(rows, np.array([1, 1, -1, 0, 0]))
    half = np.sqrt(0.5)
    assert found.tolist() == pytest.approx(np.stack([half * (AXES[2] + AXES[3]), half * (AXES[0] + AXES[1])]))
    assert token_vectors.merge(rows[:0], np.array([], dtype=np.int64)).shape == (0, COORDINATES)
    # Opposite vectors have no mean direction.
    assert token_vectors.merge(np.stack([AXES[0], -AXES[0]]), np.array([0, 0])).tolist() == [[0.0] * COORDINATES]


@given(ROWS)
def test_coordinates_are_rounded_to_half_a_level_or_clipped(rows: np.ndarray) -> None:
    reach = REACH_RMS / np.sqrt(COORDINATES)
    kept = token_vectors.cosines(token_vectors.encode(rows), AXES)
    outermost = reach * (LEVELS - 1) / LEVELS
    assert np.abs(kept - np.clip(rows, -outermost, outermost)).max(initial=0) <= reach / LEVELS + 1e-6


@given(ROWS)
def test_encoding_a_decoded_vector_changes_nothing(rows: np.ndarray) -> None:
    codes = token_vectors.encode(rows)
    assert np.array_equal(token_vectors.encode(token_vectors.cosines(codes, AXES)), codes)


def test_cosines_in_blocks_are_those_of_each_code() -> None:
    draw = np.random.default_rng(3)
    codes, vectors = draw.integers(0, 256, (907, 40), dtype=np.uint8), draw.normal(size=(8, 80)).astype(np.float32)
    assert codes.size * len(vectors) > token_vectors.PRODUCT_MAX
    alone = np.concatenate([token_vectors.cosines(codes[[row]], vectors) for row in range(len(codes))])
    np.testing.assert_allclose(token_vectors.cosines(codes, vectors), alone, rtol=1e-4, atol=1e-4)
