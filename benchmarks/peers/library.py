"""A library as a server on stdio, so that libraries and MCP servers are measured at the same place: the pipe.

It runs in the environment of a peer and uses only the standard library. It answers ``initialize``, ``tools/list``, and
``tools/call`` with the tools ``add``, ``settle``, ``ask`` and ``rank``.
"""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple


class Page(NamedTuple):
    """One turn of each side; either may be empty.

    Attributes:
        timestamp: ISO 8601 with a zone.
    """

    page_id: str
    user_input: str
    agent_response: str
    timestamp: str

    @property
    def text(self) -> str:
        """Both sides, joined by a line end."""
        return "\n".join(side for side in (self.user_input, self.agent_response) if side)


class Found(NamedTuple):
    """An answer.

    Attributes:
        pages: Ids of pages, best first.
        texts: The texts that it hands over.
        beside: Ids of pages that it hands over in addition to those it found.
    """

    pages: Sequence[str]
    texts: Sequence[str]
    beside: Sequence[str] = ()


class Library(ABC):
    """An opened memory of a peer."""

    @abstractmethod
    def add(self, page: Page) -> None:
        """Add a page, so that it can be found."""

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Write to disk what is not there yet."""

    @abstractmethod
    def find(self, question: str, limit: int | None) -> Found:
        """Return an answer with at most ``limit`` pages; None leaves the number to the peer."""


def serve(opened: Callable[[Path], Library]) -> None:
    """Answer requests until stdin closes.

    Args:
        opened: Opens the memory in a folder, which is the process's only argument.
    """
    # Whatever a library prints goes to stderr.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        library = opened(Path(sys.argv[1]))
        for line in sys.stdin:
            request = json.loads(line)
            if "id" in request:
                reply = {"jsonrpc": "2.0", "id": request["id"], **_answer(library, request)}
                output.write(json.dumps(reply) + "\n")
                output.flush()
        output.flush()
    # Some libraries leave threads behind.
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(0)


def _answer(library: Library, request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] != "tools/call":
        return {"result": {}}
    tool, arguments = request["params"]["name"], request["params"]["arguments"]
    try:
        return {"result": {"structuredContent": _called(library, tool, arguments)}}
    except Exception as error:  # noqa: BLE001 - the benchmark names it
        return {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}


def _called(library: Library, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool in {"ask", "rank"}:
        return library.find(arguments["question"], arguments.get("limit"))._asdict()
    if tool == "add":
        library.add(Page(**arguments))
    else:
        library.settle()
    return {}
