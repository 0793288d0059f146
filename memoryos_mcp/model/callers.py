"""Callers: who asks, what they may do, and the tokens that say so."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

TOKEN_PREFIX = "mos_"  # noqa: S105 - what every token begins with
TOKEN_FORM = re.compile(TOKEN_PREFIX + "([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """What a token is good for; each but `ACT_AS` includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    ACT_AS = "act-as"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        user_id: Whose memory it is about.
        scopes: What they may do.
        token_id: The public id of the token that was shown; empty without one.
    """

    user_id: str
    scopes: frozenset[Scope]
    token_id: str = ""

    @property
    def may_write(self) -> bool:
        """Whether they may change the memory."""
        return bool(self.scopes & {Scope.WRITE, Scope.ADMIN})

    @property
    def is_admin(self) -> bool:
        """Whether they may see the server itself: its settings and metrics."""
        return Scope.ADMIN in self.scopes

    @property
    def may_act_as(self) -> bool:
        """Whether they may name another user in each call."""
        return Scope.ACT_AS in self.scopes


class TokenState(StrEnum):
    """Whether a token opens the door."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token as the file knows it, without its secret.

    Attributes:
        token_id: Its public id, 12 hexadecimal digits.
        user_id: Whose memory it opens.
        scopes: What it is good for.
        created_at: When it was added.
        expires_at: From when on it is not accepted; None for never.
        revoked_at: When it was revoked; None if it was not.
    """

    token_id: str
    user_id: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @property
    def caller(self) -> Caller:
        """Who shows this token."""
        return Caller(self.user_id, self.scopes, self.token_id)

    def state(self, now: datetime) -> TokenState:
        """Return whether it opens the door at this time."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.VALID


def token_id_of(text: str) -> str:
    """Return the public id of a token; a text that is no token, such as an id, as it is."""
    found = TOKEN_FORM.fullmatch(text)
    return found[1] if found else text
