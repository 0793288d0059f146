"""Revisions of embedding models. A revision identifies a model's weights by the vector that they give for a fixed text.

A name does not identify the weights: a model in a folder may be trained further, and a server may replace its model. A
hash of the vector's bytes does not identify the weights either: the same weights give slightly different vectors on
another device or in another batch. A revision therefore records, for each of many fixed planes, on which side of the
plane the vector lies.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# The text that is embedded as a passage. It has several topics and languages, to reveal differences between weights.
PROBE = "On Tuesday my sister Ana moved to Lisbon; she plays the cello, pays 840 € of rent and fears dogs. 我喜欢喝茶。"

# Number of planes, which is the number of bits in a revision. The probability that a plane separates two vectors is
# their angle divided by 180°. Numeric noise is about a thousandth of the vector's length with half precision, and a
# millionth with 32 bits. Such noise usually changes none of the 128 bits. If different weights give a vector with a
# cosine of 0.9 to the original vector, about 18 bits differ.
PLANES = 128
PLANES_OF_NOISE = 4


def revision_of(vector: NDArray[np.float32]) -> str:
    """Return the revision of a model: 32 hexadecimal digits that identify its weights.

    Because of rounding, the revisions of the same weights may differ in up to four bits between two machines. The
    revisions of different weights differ in more bits.

    Args:
        vector: The vector that the model returns for `PROBE`, shape ``(dimension,)``. It need not have unit length.
    """
    size = len(vector) * PLANES // 8
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"planes").digest(size), dtype=np.uint8))
    planes = bits.reshape(PLANES, len(vector)).astype(np.float32) * 2 - 1
    return np.packbits(planes @ vector > 0).tobytes().hex()


def known_identity(identity: str, known: Iterable[str]) -> str:
    """Return the identity in ``known`` that belongs to the same model as ``identity``, or else ``identity``.

    Two identities belong to the same model if they differ only by numeric noise: at most `PLANES_OF_NOISE` bits of the
    32 hexadecimal digits at the end.

    Args:
        identity: ``name:dimension:revision``. If the revision consists of two parts separated by a full stop, only the
            second part may differ.
        known: Identities of the same form.
    """
    return next((each for each in known if _are_one(identity, each)), identity)


def _are_one(identity: str, other: str) -> bool:
    (name, ours), (other_name, theirs) = _parted(identity), _parted(other)
    if name != other_name or ours is None or theirs is None:
        return identity == other
    return (ours ^ theirs).bit_count() <= PLANES_OF_NOISE


def _parted(identity: str) -> tuple[str, int | None]:
    """Return the text before the revision in a model's identity, and the revision as a number.

    The revision is the last 32 characters, which are hexadecimal digits. If the identity does not end with a revision,
    the number is None, and the text must not be used.
    """
    digits = identity[-PLANES // 4 :]
    try:
        is_revision = identity[-PLANES // 4 - 1] in ":."
        return identity[: -PLANES // 4], int(digits, 16) if is_revision else None
    except (ValueError, IndexError):
        return identity, None
