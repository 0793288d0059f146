"""Token codes keep directions in four bits a coordinate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memoryos_mcp.embedding import token_codes

ROWS = arrays(np.float32, st.tuples(st.integers(0, 5), st.just(8)), elements=st.floats(-1, 1, width=32))


def test_a_code_takes_half_a_byte_a_coordinate_and_keeps_the_direction() -> None:
    vectors = np.random.default_rng(1).normal(size=(200, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes = token_codes.encode(vectors)
    assert codes.shape == (200, 48)
    assert codes.dtype == np.uint8
    assert (token_codes.decode(codes) * vectors).sum(axis=1).min() > 0.98


@given(ROWS)
def test_any_rows_come_back_with_unit_length_or_none(rows: np.ndarray) -> None:
    decoded = token_codes.decode(token_codes.encode(rows))
    assert decoded.shape == rows.shape
    assert np.isfinite(decoded).all()
    lengths = np.linalg.norm(decoded, axis=1)
    assert ((np.abs(lengths - 1) < 1e-5) | (lengths == 0)).all()


@given(ROWS)
def test_encoding_what_was_decoded_changes_nothing(rows: np.ndarray) -> None:
    codes = token_codes.encode(rows)
    assert np.array_equal(token_codes.encode(token_codes.decode(codes)), codes)


def test_the_sign_of_each_coordinate_is_kept() -> None:
    [row] = token_codes.decode(token_codes.encode(np.array([[0.5, -0.5, 0.0, 0.25]], dtype=np.float32)))
    assert np.sign(row).tolist() == [1, -1, 0, 1]
    assert row[3] == pytest.approx(row[0] / 2, rel=0.15)
