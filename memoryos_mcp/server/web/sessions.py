"""The sessions of signed-in people, and the one-time keys with which the command ``ui`` signs a person in.

If several servers share a database, sessions that began with an access token are stored in it. Any server can then
answer the browser. All other sessions are in RAM, and are lost when the process ends.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import anyio.to_thread

from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.storage.capabilities import IDLE_S, LONGEST_S, SESSIONS_AT_MOST, SESSIONS_OF_ONE, SignIn, SignIns

T = TypeVar("T")

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """One signed-in browser.

    Attributes:
        key: The value of the cookie.
    """

    key: str = field(repr=False)
    sign_in: SignIn

    @property
    def caller(self) -> Caller:
        """The signed-in person and their rights."""
        return self.sign_in.caller

    @property
    def form_key(self) -> str:
        """A secret that every form contains, so that other websites cannot submit forms."""
        return self.seal("form")

    def seal(self, text: str) -> str:
        """Return a proof that ``text`` was written by a server for this session."""
        return hmac.new(self.key.encode(), text.encode(), hashlib.sha256).hexdigest()


async def always(_: SignIn) -> bool:
    """Return True, so that every sign-in stays valid."""
    return True


class Sessions:
    """The sessions of signed-in people.

    Args:
        clock: Monotonic clock in seconds, for the sessions in RAM.
        shared: The sign-ins by token that all servers share; None if there is only this server.
        is_valid: Returns whether a sign-in is still valid, for example because its token was not revoked.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        shared: SignIns | None = None,
        is_valid: Callable[[SignIn], Awaitable[bool]] = always,
    ) -> None:
        self._own = OwnSignIns(clock)
        self._shared = shared
        self._is_valid = is_valid
        self._threads = anyio.CapacityLimiter(1)  # a look-up takes much less time than a page
        self._one_time_keys: dict[str, Caller] = {}

    async def begin(self, sign_in: SignIn) -> Session:
        """Return a new session.

        Raises:
            StorageError: The session could not be stored.
        """
        session = Session(secrets.token_urlsafe(KEY_BYTES), sign_in)
        shared = self._shared if sign_in.has_token else None
        if shared is None or not await self._in_thread(lambda: shared.begin(session.key, sign_in)):
            self._own.begin(session.key, sign_in)
        return session

    async def find(self, key: str) -> Session | None:
        """Return the session whose key is ``key``. Return None if there is no such session, or if it has ended.

        A session also ends when its access token is no longer valid.

        Raises:
            MemoryOSError: The session or its token could not be checked.
        """
        found, shared = self._own.find(key), self._shared
        if found is None and shared is not None:
            found = await self._in_thread(lambda: shared.find(key))
        if found is None:
            return None
        session = Session(key, found)
        if not await self._is_valid(found):
            with suppress(StorageError):  # it is refused in any case
                await self.end(session)
            return None
        return session

    async def end(self, session: Session) -> None:
        """End a session.

        Raises:
            StorageError: The session could not be ended.
        """
        shared = self._shared
        if not self._own.end(session.key) and shared is not None:
            await self._in_thread(lambda: shared.end(session.key))

    def one_time_key(self, caller: Caller) -> str:
        """Return a key with which ``caller`` can sign in once."""
        key = secrets.token_urlsafe(KEY_BYTES)
        self._one_time_keys[key] = caller
        return key

    async def redeem(self, one_time_key: str) -> Session | None:
        """Return a new session for a one-time key; None if the key is wrong or was already used."""
        caller = self._one_time_keys.pop(one_time_key, None)
        return None if caller is None else await self.begin(SignIn(caller))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(call, limiter=self._threads)


@dataclass(slots=True, eq=False)
class _Own:
    sign_in: SignIn
    began_s: float
    used_s: float


class OwnSignIns:
    """Keeps sign-ins in the RAM of one process. Implements `SignIns`; the methods do not block.

    Args:
        clock: Monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Own] = OrderedDict()  # the least recently used one comes first

    def begin(self, key: str, sign_in: SignIn) -> bool:
        """Add a sign-in, and return True; see `SignIns.begin`."""
        own = [each for each, known in self._known.items() if known.sign_in.caller == sign_in.caller]
        if len(own) >= SESSIONS_OF_ONE:
            self.end(own[0])
        now = self._clock()
        self._known[key] = _Own(sign_in, began_s=now, used_s=now)
        if len(self._known) > SESSIONS_AT_MOST:
            self._known.popitem(last=False)
        return True

    def find(self, key: str) -> SignIn | None:
        """Return a sign-in, or None if it does not exist or has ended; see `SignIns.find`."""
        known = self._known.get(key)
        if known is None:
            return None
        now = self._clock()
        if now - known.used_s > IDLE_S or now - known.began_s > LONGEST_S:
            self.end(key)
            return None
        known.used_s = now
        self._known.move_to_end(key)
        return known.sign_in

    def end(self, key: str) -> bool:
        """Remove a sign-in, and return whether it existed."""
        return self._known.pop(key, None) is not None
