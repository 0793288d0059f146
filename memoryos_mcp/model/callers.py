"""Callers of the server: their identity, their scopes and their tokens."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

TOKEN_PREFIX = "mos_"  # noqa: S105 - the prefix of every token
TOKEN_FORM = re.compile(TOKEN_PREFIX + "([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """A permission of a token. Every scope includes `READ`, and `ADMIN` also includes `WRITE`."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    ACT_AS = "act-as"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        user_id: The user whose memory the request uses.
        token_id: Public id of the caller's token; empty if the caller has no token.
    """

    user_id: str
    scopes: frozenset[Scope]
    token_id: str = ""

    @property
    def may_write(self) -> bool:
        """Whether the caller may change the memory."""
        return bool(self.scopes & {Scope.WRITE, Scope.ADMIN})

    @property
    def is_admin(self) -> bool:
        """Whether the caller may see the server's settings and metrics."""
        return Scope.ADMIN in self.scopes

    @property
    def may_act_as(self) -> bool:
        """Whether the caller may use the memories of other users, by passing a user id with each call."""
        return Scope.ACT_AS in self.scopes


class TokenState(StrEnum):
    """The state of a token. Only valid tokens are accepted."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """The stored data of a token. It does not contain the token's secret.

    Attributes:
        token_id: Public id, 12 hexadecimal digits.
        user_id: The user whose memory the token gives access to.
        expires_at: When the token expires; None if it never does.
        revoked_at: When the token was revoked; None if it was not.
    """

    token_id: str
    user_id: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @property
    def caller(self) -> Caller:
        """The caller that uses this token."""
        return Caller(self.user_id, self.scopes, self.token_id)

    def state(self, now: datetime) -> TokenState:
        """Return the token's state at the time ``now``."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.VALID


def token_id_of(text: str) -> str:
    """Return the public id that a token contains. Text that is not a token, such as an id, is returned unchanged."""
    found = TOKEN_FORM.fullmatch(text)
    return found[1] if found else text
