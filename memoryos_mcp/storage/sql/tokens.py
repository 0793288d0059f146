"""Static access tokens for HTTP, in a table of a SQL database.

A token consists of a public id and a secret of 256 random bits. The table contains only the SHA-256 hash of the secret.
A slow hash function is not needed, because the secret cannot be guessed. Every call reads the table again, so that
changes by other processes take effect at once.
"""

import hashlib
import hmac
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Set
from datetime import datetime
from typing import Any

from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.model.callers import TOKEN_FORM, TOKEN_PREFIX, Scope, TokenEntry, TokenState
from memoryos_mcp.storage.capabilities import Tokens
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.text.user_ids import user_folder_name

_ID_BYTES, _SECRET_BYTES = 6, 32
_NO_DIGEST = bytes(32)
_ENTRY = "SELECT token_id, user_id, scopes, created_us, expires_us, revoked_us"


class SqlTokens(ABC):
    """The table of static tokens. Implements the methods of `Tokens` that all SQL databases share."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    @abstractmethod
    def is_needed(self) -> bool: ...

    @abstractmethod
    def _read(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a query, and return all rows. If the table does not exist yet, return an empty list."""

    @abstractmethod
    def _write(self, sql: str, *parameters: Any) -> int:
        """Run an SQL statement that changes rows, and return the number of changed rows."""

    @abstractmethod
    def _invalid(self, what: str) -> StorageError:
        """Return the error for a stored token that is not valid; ``what`` describes the problem."""

    def add(self, user_id: str, scopes: Set[Scope], expires_at: datetime | None = None) -> str:
        user_folder_name(user_id)
        if not scopes:
            raise ArgumentError(argument="scopes", problem="is empty; choose at least one scope")
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise ArgumentError(argument="expires_at", problem="is in the past; choose a time in the future")
        token_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        self._write(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, NULL)",
            token_id,
            _digest(secret),
            user_id,
            " ".join(sorted(scopes)),
            to_us(now),
            None if expires_at is None else to_us(expires_at),
        )
        return f"{TOKEN_PREFIX}{token_id}_{secret}"

    def entries(self) -> list[TokenEntry]:
        return [self._entry(row) for row in self._read(f"{_ENTRY} FROM tokens ORDER BY created_us, token_id")]

    def revoke(self, token_id: str) -> bool:
        if not self._read("SELECT 1 FROM tokens WHERE token_id = ?", token_id):
            raise ArgumentError(argument="token_id", problem="no token has this id; list the tokens to find the id")
        now = to_us(self._clock())
        return bool(
            self._write("UPDATE tokens SET revoked_us = ? WHERE token_id = ? AND revoked_us IS NULL", now, token_id)
        )

    def find(self, token: str) -> TokenEntry | None:
        parts = TOKEN_FORM.fullmatch(token)
        if parts is None:
            return None
        rows = self._read(f"{_ENTRY}, digest FROM tokens WHERE token_id = ?", parts[1])
        # The same comparison is made for an unknown id, so that the response time does not reveal whether an id exists.
        digest = rows[0][-1] if rows else _NO_DIGEST
        is_same = hmac.compare_digest(_digest(parts[2]), digest)
        if not rows or not is_same:
            return None
        return self._valid(rows[0][:-1])

    def find_by_id(self, token_id: str) -> TokenEntry | None:
        rows = self._read(f"{_ENTRY} FROM tokens WHERE token_id = ?", token_id)
        return self._valid(rows[0]) if rows else None

    def copy_to(self, target: Tokens, user_ids: Collection[str] | None) -> int:
        assert isinstance(target, SqlTokens)  # noqa: S101 - every implementation is an `SqlTokens`
        rows = self._read("SELECT token_id, digest, user_id, scopes, created_us, expires_us, revoked_us FROM tokens")
        chosen = [row for row in rows if user_ids is None or row[2] in user_ids]
        for row in chosen:
            if not target._read("SELECT 1 FROM tokens WHERE token_id = ?", row[0]):
                target._write("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
            elif row[-1] is not None:
                sql = "UPDATE tokens SET revoked_us = ? WHERE token_id = ? AND revoked_us IS NULL"
                target._write(sql, row[-1], row[0])
        return len(chosen)

    def _valid(self, row: tuple[Any, ...]) -> TokenEntry | None:
        entry = self._entry(row)
        return entry if entry.state(self._clock()) is TokenState.VALID else None

    def _entry(self, row: tuple[Any, ...]) -> TokenEntry:
        token_id, user_id, scopes, created_us, expires_us, revoked_us = row
        try:
            return TokenEntry(
                token_id=token_id,
                user_id=user_id,
                scopes=frozenset(Scope(name) for name in scopes.split()),
                created_at=from_us(created_us),
                expires_at=None if expires_us is None else from_us(expires_us),
                revoked_at=None if revoked_us is None else from_us(revoked_us),
            )
        except (ValueError, OverflowError) as error:
            what = "a token has an invalid scope or time"
            raise self._invalid(what) from error


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
