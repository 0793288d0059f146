"""Driving a peer: what the benchmark asks of it, at the pipe of its process."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.client import Reply, ServerError
from benchmarks.datasets import Page
from benchmarks.pipe import Pipe


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call returns for a question.

    Attributes:
        took_s: Time from writing the request until the reply is read.
        text: What a model would read.
    """

    took_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pages that a call returns for a question; pages have the names of the data set.

    Attributes:
        pages: Best first.
        beside: Pages that it returns in addition to those it found, such as the newest.
    """

    pages: Sequence[str]
    beside: Sequence[str] = ()


class Driver(ABC):
    """A client of a running peer.

    Args:
        pipe: The pipe of its process.
    """

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    @abstractmethod
    async def add(self, page: Page) -> float:
        """Add a page, and return the time of the call, seconds."""

    async def settle(self) -> None:  # noqa: B027 - most have nothing to wait for
        """Wait until all pages can be found, and are on disk."""

    @abstractmethod
    async def ask(self, question: str) -> Answer:
        """Return the answer of a call that names only the question."""

    @abstractmethod
    async def rank(self, question: str, limit: int) -> Ranking:
        """Return at most ``limit`` found pages."""


class LibraryClient(Driver):
    """The client of a library, which `benchmarks.peers.library` serves."""

    async def add(self, page: Page) -> float:
        """Add a page."""
        timestamp = page.timestamp.isoformat()
        given = {"user_input": page.user_input, "agent_response": page.agent_response, "timestamp": timestamp}
        return (await self.pipe.call("add", page_id=page.page_id, **given)).took_s

    async def settle(self) -> None:
        """Have everything written to disk."""
        await self.pipe.call("settle")

    async def ask(self, question: str) -> Answer:
        """Return the texts for a question."""
        reply = await self.pipe.call("ask", question=question)
        return Answer(reply.took_s, "\n\n".join(reply.content["texts"]))

    async def rank(self, question: str, limit: int) -> Ranking:
        """Return the pages for a question."""
        reply = await self.pipe.call("rank", question=question, limit=limit)
        return Ranking(reply.content["pages"], reply.content["beside"])


async def called(pipe: Pipe, tool: str, **arguments: object) -> Reply:
    """Return the whole result of a tool as content, and its text for a model.

    Raises:
        ServerError: The tool returned an error.
    """
    reply = await pipe.request("tools/call", {"name": tool, "arguments": arguments})
    text = "\n".join(block.get("text", "") for block in reply.content["content"])
    if reply.content.get("isError"):
        message = f"{tool} failed: {text}"
        raise ServerError(message)
    return Reply(content=reply.content, took_s=reply.took_s, text=text)
