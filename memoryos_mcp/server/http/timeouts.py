"""Patience: how long a connection may take to send the head of a request, or to read an answer. uvicorn waits for ever.

It waits for ever too for the rest of a body after the answer, which a refusal does not wait for itself: the first byte
that comes then ends its keep-alive limit.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the first request after connecting, for the rest of a head once its first byte is there, and for what is left of
# a body that was answered already.
HEAD_TIMEOUT_S = 15.0
# An answer waits in memory until it is read: of one that is waited for, at least so much has to be taken in this time.
READ_TIMEOUT_S = 30.0
READ_AT_LEAST_BYTES = 256 * 1024


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on who is too slow.

    That is who does not send a whole head, or the rest of an answered request, in time, or does not read an answer.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; while a head or an answered body is not whole, what came does not prolong the wait."""
        super().data_received(data)
        if self._is_owed():
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to watch whether what waits is read."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """Go on once it was read."""
        self._stop_watching()
        super().resume_writing()

    def _is_owed(self) -> bool:
        """Whether the client owes the rest of a head or of a body that was answered, and nobody else waits for it.

        `BodyGuard` waits for other bodies. When nothing has come since an answer, the server's keep-alive limit holds;
        whatever comes ends that.
        """
        import h11

        if self.conn.their_state is h11.IDLE:
            return True
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _wait(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self) -> None:
        self._head_timer = None
        cast(Any, self.transport).close()

    def _watch_reading(self) -> None:
        unread = cast(Any, self.transport).get_write_buffer_size()
        self._read_timer = self.loop.call_later(READ_TIMEOUT_S, self._check_reading, unread)

    def _check_reading(self, unread_before: int) -> None:
        transport = cast(Any, self.transport)
        if unread_before - transport.get_write_buffer_size() < READ_AT_LEAST_BYTES:
            transport.abort()
        else:
            self._watch_reading()

    def _stop_watching(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
