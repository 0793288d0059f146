"""What is not to be learned again: digests of facts and traits, each with the newest page that cannot bring it back.

Only digests stand here, so that what was forgotten leaves no word behind.
"""

import hashlib
from collections.abc import Collection

import apsw

from memoryos_mcp.knowledge import About
from memoryos_mcp.storage.rows import folded


def newest_seq(connection: apsw.Connection) -> int:
    """Return the newest page's ``seq``, 0 without pages."""
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM pages").get)


def refuse_fact(connection: apsw.Connection, about: About, owner: str, text: str, until_seq: int) -> None:
    """Have no page up to ``until_seq`` teach a fact of these words again."""
    _refuse(connection, _digest("fact", about, owner, folded(text)), until_seq)


def refuse_trait(connection: apsw.Connection, dimension: str, until_seq: int) -> None:
    """Have no page up to ``until_seq`` teach a trait of this dimension again."""
    _refuse(connection, _digest("trait", dimension.casefold()), until_seq)


def is_refused_fact(
    connection: apsw.Connection, about: About, owner: str, text: str, evidence_seqs: Collection[int]
) -> bool:
    """Whether a fact is not to be learned from these pages."""
    return _is_refused(connection, _digest("fact", about, owner, folded(text)), evidence_seqs)


def is_refused_trait(connection: apsw.Connection, dimension: str, evidence_seqs: Collection[int]) -> bool:
    """Whether a trait is not to be learned from these pages."""
    return _is_refused(connection, _digest("trait", dimension.casefold()), evidence_seqs)


def _refuse(connection: apsw.Connection, digest: bytes, until_seq: int) -> None:
    connection.execute(
        "INSERT INTO refused (digest, until_seq) VALUES (?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET until_seq = max(until_seq, excluded.until_seq)",
        (digest, until_seq),
    )


def _is_refused(connection: apsw.Connection, digest: bytes, evidence_seqs: Collection[int]) -> bool:
    until_seq = connection.execute("SELECT until_seq FROM refused WHERE digest = ?", (digest,)).get
    return until_seq is not None and max(evidence_seqs, default=0) <= until_seq


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode("utf-8"), digest_size=16).digest()
