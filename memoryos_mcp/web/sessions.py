"""The sessions of signed-in people, and the one-time keys with which the command ``ui`` signs a person in.

Both are only in RAM, and are lost when the process ends.
"""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from memoryos_mcp.model.callers import Caller

# A session ends after this time without a request, and after this time in any case.
IDLE_S, LONGEST_S = 2 * 3600.0, 12 * 3600.0
# If there are more sessions, or more of one caller, the one that was used least recently ends.
SESSIONS_AT_MOST, SESSIONS_OF_ONE = 1_000, 100
KEY_BYTES = 32


@dataclass(slots=True, eq=False)
class Session:
    """One signed-in browser.

    Attributes:
        key: The value of the cookie.
        is_valid: A function that returns whether the session may still be used. It returns False, for instance, after
            the person's access token was revoked.
        form_key: A secret that every form contains, so that other websites cannot submit forms.
        began_s: When the session began, by the monotonic clock.
        used_s: When the session was last used.
        notes: Messages for the next page.
    """

    caller: Caller
    is_valid: Callable[[], Awaitable[bool]]
    began_s: float
    used_s: float
    key: str = field(default_factory=lambda: secrets.token_urlsafe(KEY_BYTES), repr=False)
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(KEY_BYTES), repr=False)
    notes: list[str] = field(default_factory=list, repr=False)


async def always() -> bool:
    """Return True, for sessions without an access token, because such a session has no token to be revoked."""
    return True


class Sessions:
    """The sessions of one process.

    Args:
        clock: Monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()  # the least recently used one comes first
        self._one_time_keys: dict[str, Caller] = {}

    def begin(self, caller: Caller, is_valid: Callable[[], Awaitable[bool]] = always) -> Session:
        """Return a new session."""
        now = self._clock()
        own = [each for each in self._sessions.values() if each.caller == caller]
        if len(own) >= SESSIONS_OF_ONE:
            self.end(own[0])
        session = Session(caller, is_valid, began_s=now, used_s=now)
        self._sessions[session.key] = session
        if len(self._sessions) > SESSIONS_AT_MOST:
            self._sessions.popitem(last=False)
        return session

    async def find(self, key: str) -> Session | None:
        """Return the session of a cookie; None if it is unknown or has ended, or if its token was revoked."""
        session = self._sessions.get(key)
        if session is None:
            return None
        now = self._clock()
        if now - session.used_s > IDLE_S or now - session.began_s > LONGEST_S or not await session.is_valid():
            self.end(session)
            return None
        session.used_s = now
        if key in self._sessions:
            self._sessions.move_to_end(key)
        return session

    def end(self, session: Session) -> None:
        """End a session."""
        self._sessions.pop(session.key, None)

    def one_time_key(self, caller: Caller) -> str:
        """Return a key with which one session can be opened."""
        key = secrets.token_urlsafe(KEY_BYTES)
        self._one_time_keys[key] = caller
        return key

    def redeem(self, one_time_key: str) -> Session | None:
        """Return a new session for a one-time key. None if the key is wrong, or was used before."""
        caller = self._one_time_keys.pop(one_time_key, None)
        return None if caller is None else self.begin(caller)
