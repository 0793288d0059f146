"""Revisions: what tells two embedding models of one name apart, by the vector that each makes of the same text.

A name does not say which weights it stands for: a folder's are trained further, a server gives its model another. The
same weights in turn answer a little differently on another device or in other company, so that a hash over a vector's
bytes would not last. What lasts is on which side of some fixed planes the vector lies, but for a plane or two that it
almost touches.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# What is embedded, as a passage. Several topics and a few languages, so that other weights show.
PROBE = "On Tuesday my sister Ana moved to Lisbon; she plays the cello, pays 840 € of rent and fears dogs. 我喜欢喝茶。"

# A plane parts two vectors in as many of 180 cases as there are degrees between them: of 128, noise of a thousandth of
# the vector's length (half precision; 32 bits make a millionth) crosses none as a rule, and weights whose vector has a
# cosine of 0.9 with the former's cross 18.
PLANES = 128
PLANES_OF_NOISE = 4


def revision_of(vector: NDArray[np.float32]) -> str:
    """Return 32 hexadecimal digits that change with the weights, and by four bits at most with numeric noise.

    Args:
        vector: What the model makes of `PROBE`; its length does not matter, shape ``(dimension,)``.
    """
    size = len(vector) * PLANES // 8
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"planes").digest(size), dtype=np.uint8))
    planes = bits.reshape(PLANES, len(vector)).astype(np.float32) * 2 - 1
    return np.packbits(planes @ vector > 0).tobytes().hex()


def known_identity(identity: str, known: Iterable[str]) -> str:
    """Return which of the known spaces a model's is, but for noise; its own identity if it is none of them.

    Args:
        identity: ``name:dimension:revision``, the revision perhaps after others and a full stop.
        known: Such identities.
    """
    return next((each for each in known if _are_one(identity, each)), identity)


def _are_one(identity: str, other: str) -> bool:
    (name, ours), (other_name, theirs) = _parted(identity), _parted(other)
    if name != other_name or ours is None or theirs is None:
        return identity == other
    return (ours ^ theirs).bit_count() <= PLANES_OF_NOISE


def _parted(identity: str) -> tuple[str, int | None]:
    """Return an identity without its revision, and that as a number; None if it has none of ours."""
    digits = identity[-PLANES // 4 :]
    try:
        is_revision = identity[-PLANES // 4 - 1] in ":."
        return identity[: -PLANES // 4], int(digits, 16) if is_revision else None
    except (ValueError, IndexError):
        return identity, None
