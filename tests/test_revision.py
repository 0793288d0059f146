import numpy as np
import pytest
from numpy.typing import NDArray

from memoryos_mcp.embedding.revision import known_identity, revision_of

MODELS = 500
DIMENSION = 384


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


def identity(vector: NDArray[np.float32], before: str = "") -> str:
    return f"maker/model:{len(vector)}:{before}{revision_of(vector)}"


def share_taken_for_one_another(cosine: float) -> float:
    """Return the share of random models that are taken for another model whose vector has this cosine to theirs."""
    random = np.random.default_rng(7)
    vectors = unit(random.normal(size=(MODELS, DIMENSION)))
    noise = random.normal(size=vectors.shape)
    noise -= np.einsum("nd,nd->n", noise, vectors)[:, None] * vectors
    others = unit(vectors + unit(noise) * np.tan(np.arccos(cosine)))
    pairs = [(identity(one), identity(other)) for one, other in zip(vectors, others, strict=True)]
    return sum(known_identity(other, [one]) == one for one, other in pairs) / MODELS


def test_a_revision_does_not_depend_on_the_vectors_length() -> None:
    vector = unit(np.random.default_rng(7).normal(size=DIMENSION))
    assert revision_of(vector) == revision_of(vector.copy()) == revision_of(vector * 3)
    assert {len(revision_of(unit(np.ones(dimension)))) for dimension in (1, 3, 7, 256, 1_024, 3_072)} == {32}


def test_half_precision_noise_keeps_the_revision() -> None:
    assert share_taken_for_one_another(1 - 1e-3**2 / 2) == 1.0


def test_other_weights_change_the_revision() -> None:
    assert share_taken_for_one_another(0.0) == 0.0
    assert share_taken_for_one_another(0.9) <= 0.002


def test_common_large_coordinates_do_not_hide_other_weights() -> None:
    random = np.random.default_rng(7)
    for _ in range(100):
        first, second = random.normal(size=(2, 768))
        first[[5, 308]] = second[[5, 308]] = (9.0, -40.0)
        one, other = identity(unit(first)), identity(unit(second))
        assert known_identity(other, [one]) == other


@pytest.mark.parametrize(
    "other", ["maker/model:384:", "maker/model:384:abc.", "maker/other:384:", "maker/model:512:", "bundled:384:1", ""]
)
def test_only_identities_that_differ_in_noise_are_equal(other: str) -> None:
    vector = unit(np.random.default_rng(7).normal(size=DIMENSION))
    ours = identity(vector, "abc.")
    theirs = other + (revision_of(vector) if other.endswith((":", ".")) else "")
    expected = theirs if other == "maker/model:384:abc." else ours
    assert known_identity(ours, [theirs]) == expected
