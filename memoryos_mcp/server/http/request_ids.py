"""Request ids. The id of a request appears in its answer and in every log line about it."""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.config.logs import request_id

HEADER = "x-request-id"
# An id that a proxy has set is used, so that the proxy's log and ours can be matched.
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Middleware that gives every request an id.

    A valid id in the request's ``X-Request-Id`` header is used. Otherwise, a new id is created.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add its id to the log and to the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        current = given if _GIVEN.fullmatch(given) else secrets.token_hex(8)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = current
            await send(message)

        token = request_id.set(current)
        try:
            await self._app(scope, receive, named)
        finally:
            request_id.reset(token)
