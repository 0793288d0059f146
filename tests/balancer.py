"""A balancer that sends each HTTP request to the next of several servers."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nconnection: [^\r]*", re.IGNORECASE)


@asynccontextmanager
async def balancer(ports: Sequence[int]) -> AsyncIterator[str]:
    """Yield the URL of a balancer for servers on loopback. Each connection carries one request."""
    turns, serving = cycle(ports), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = _LENGTH.search(head)
            body = await reader.readexactly(int(found[1])) if found else b""
            source, sink = await asyncio.open_connection("127.0.0.1", next(turns))
            try:
                sink.write(_CONNECTION.sub(b"", head).replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
                while part := await source.read(65_536):
                    writer.write(part)
            finally:
                sink.close()
        except asyncio.IncompleteReadError:
            pass  # the client has closed the connection
        finally:
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()
