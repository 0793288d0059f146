"""Callers: who asks, and what they may do."""

from dataclasses import dataclass
from enum import StrEnum


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
