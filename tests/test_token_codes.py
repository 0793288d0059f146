"""Token codes keep directions in four bits a coordinate."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memoryos_mcp.embedding import token_codes

ROWS = arrays(np.float32, st.tuples(st.integers(0, 5), st.just(8)), elements=st.floats(-1, 1, width=32))


def test_a_code_takes_half_a_byte_a_coordinate_and_keeps_the_direction() -> None:
    vectors = np.random.default_rng(1).normal(size=(5_000, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes = token_codes.encode(vectors)
    assert codes.shape == (5_000, 48)
    assert codes.dtype == np.uint8
    found = token_codes.cosines(codes, vectors[:20])
    assert found.shape == (5_000, 20)
    assert np.abs(found - vectors @ vectors[:20].T).max() < 0.1
    assert found[range(20), range(20)].min() > 0.98


@given(ROWS)
def test_a_code_has_a_cosine_of_1_with_what_it_stands_for_or_0_without_a_direction(rows: np.ndarray) -> None:
    codes = token_codes.encode(rows)
    coordinates = token_codes.cosines(codes, np.eye(8, dtype=np.float32))
    lengths = np.linalg.norm(coordinates, axis=1)
    assert ((np.abs(lengths - 1) < 1e-5) | (lengths == 0)).all()
    assert ((lengths == 0) == (np.abs(rows).max(axis=1, initial=0) == 0)).all()


@given(ROWS)
def test_encoding_what_a_code_stands_for_changes_nothing(rows: np.ndarray) -> None:
    codes = token_codes.encode(rows)
    assert np.array_equal(token_codes.encode(token_codes.cosines(codes, np.eye(8, dtype=np.float32))), codes)
