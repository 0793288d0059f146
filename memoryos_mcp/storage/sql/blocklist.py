"""The blocklist: facts and traits that must not be learned again from existing pages.

A fact or trait on the blocklist is called "refused". The blocklist contains only a salted digest of it, which does not
reveal the text. Each memory has its own salt. The caller of these functions must open the transaction.
"""

import hashlib
import secrets
from collections.abc import Sequence

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.text.terms import stem, words

_SALT = "refusal_salt"
_SALT_BYTES = 16


def refuse_fact(connection: Connection, about: str, owner: str, text: str, until_seq: int) -> None:
    """Prevent a fact from being learned again from pages with a ``seq`` up to ``until_seq``.

    ``about`` is ``user`` or ``assistant``. ``owner`` is the assistant's id, or empty for a fact about the user.
    """
    _refuse(connection, _fact_digest(connection, about, owner, text), until_seq)


def refuse_trait(connection: Connection, dimension: str, until_seq: int) -> None:
    """Prevent a trait from being learned again from pages with a ``seq`` up to ``until_seq``."""
    _refuse(connection, _trait_digest(connection, dimension), until_seq)


def allow_fact(connection: Connection, about: str, owner: str, text: str) -> None:
    """Remove a fact from the blocklist, so that it may be learned again."""
    connection.execute("DELETE FROM refused WHERE digest = ?", (_fact_digest(connection, about, owner, text),))


def allow_trait(connection: Connection, dimension: str) -> None:
    """Remove a trait from the blocklist, so that it may be learned again."""
    connection.execute("DELETE FROM refused WHERE digest = ?", (_trait_digest(connection, dimension),))


def is_refused_fact(connection: Connection, about: str, owner: str, text: str, evidence_seqs: Sequence[int]) -> bool:
    """Return whether a fact must not be learned from the pages ``evidence_seqs``.

    This is the case if the fact is on the blocklist, and all of these pages were added before the fact was refused.
    """
    return _has_any(connection) and _is_refused(connection, _fact_digest(connection, about, owner, text), evidence_seqs)


def is_refused_trait(connection: Connection, dimension: str, evidence_seqs: Sequence[int]) -> bool:
    """Return whether a trait must not be learned from the pages ``evidence_seqs``.

    This is the case if the trait is on the blocklist, and all of these pages were added before the trait was refused.
    """
    return _has_any(connection) and _is_refused(connection, _trait_digest(connection, dimension), evidence_seqs)


def drop_needless(connection: Connection) -> None:
    """Remove the blocklist entries that apply only to deleted pages."""
    connection.execute("DELETE FROM refused WHERE until_seq < coalesce((SELECT min(seq) FROM pages), until_seq + 1)")


def _refuse(connection: Connection, digest: bytes, until_seq: int) -> None:
    connection.execute(
        "INSERT INTO refused (digest, until_seq) VALUES (?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET until_seq = excluded.until_seq "
        "WHERE refused.until_seq < excluded.until_seq",
        (digest, until_seq),
    )


def _has_any(connection: Connection) -> bool:
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM refused)").get)


def _is_refused(connection: Connection, digest: bytes, evidence_seqs: Sequence[int]) -> bool:
    until_seq = connection.execute("SELECT until_seq FROM refused WHERE digest = ?", (digest,)).get
    return until_seq is not None and max(evidence_seqs, default=0) <= until_seq


def _fact_digest(connection: Connection, about: str, owner: str, text: str) -> bytes:
    # The digest is that of the word stems, so that it does not depend on the inflected forms of the words.
    stems = " ".join(map(stem, words(text))) or text.casefold()
    return _digest(connection, "fact", about, owner, stems)


def _trait_digest(connection: Connection, dimension: str) -> bytes:
    return _digest(connection, "trait", dimension.casefold())


def _digest(connection: Connection, *parts: str) -> bytes:
    salt: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (_SALT,)).get
    if salt is None:
        salt = secrets.token_hex(_SALT_BYTES)
        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (_SALT, salt))
    return hashlib.sha256("\0".join([salt, *parts]).encode()).digest()
