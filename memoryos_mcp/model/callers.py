"""Callers of the server: their identity, their scopes and their tokens."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

TOKEN_PREFIX = "mos_"  # noqa: S105 - the prefix of every token
TOKEN_FORM = re.compile(TOKEN_PREFIX + "([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """A permission of a token. Each scope except `ACT_AS` includes the previous ones."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    ACT_AS = "act-as"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        user_id: The user whose memory is used.
        token_id: Public id of the token; empty without one.
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
        """Whether the caller may name another user in each call."""
        return Scope.ACT_AS in self.scopes


class TokenState(StrEnum):
    """Whether a token is accepted."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token as it is stored, without its secret.

    Attributes:
        token_id: Public id, 12 hexadecimal digits.
        user_id: The user whose memory it gives access to.
        expires_at: When it stops being accepted; None for never.
        revoked_at: None if it is not revoked.
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
        """Return whether the token is accepted at the time ``now``."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.VALID


def token_id_of(text: str) -> str:
    """Return the public id of a token; any other text, such as an id, is returned unchanged."""
    found = TOKEN_FORM.fullmatch(text)
    return found[1] if found else text
