"""Limits the time that a client may take to send request headers and to read an answer. uvicorn has no such limits.

A request may be answered before its whole body has arrived. uvicorn then starts its keep-alive timer, but stops the
timer when more of the body arrives. Without another limit, uvicorn would wait forever for the rest. The remaining body
therefore has a time limit too.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

# Time limit for three things: the headers of the first request on a connection, the headers of a later request after
# their first byte, and the remaining body of a request that was already answered.
HEAD_TIMEOUT_S = 15.0
# A client has to read at least this much of an answer within this time, because unread answers stay in memory.
READ_TIMEOUT_S = 30.0
READ_AT_LEAST_BYTES = 256 * 1024


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with time limits. Clients that are too slow are disconnected."""

    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the request headers."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Process the data that has arrived, then start or stop the timer of the time limit.

        If the client still has to send data (see `_is_incomplete`), the timer is started. A timer that is already
        running continues. Otherwise, the timer is stopped.
        """
        super().data_received(data)
        if self._is_incomplete():
            self._wait()
        else:
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, and drop the application's answer, which can no longer be sent."""
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to check how fast the client reads the answer, because much of the answer is unsent."""
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        """Stop checking how fast the client reads the answer, because most of it was sent."""
        self._stop_watching()
        super().resume_writing()

    def _is_incomplete(self) -> bool:
        """Return whether the client still has to send data for which this class has a time limit.

        The data may be the headers of a request, or the remaining body of a request that was already answered.
        `BodyGuard` limits all other bodies. Between requests, the keep-alive limit applies until data arrives.
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
