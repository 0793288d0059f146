"""Conversations and questions of many users, spread at random over several servers."""

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import SecretStr

from benchmarks.client import Reply
from benchmarks.fleet import Server, Spread
from benchmarks.scale_audit import Sent
from benchmarks.synthetic import Grammar
from memoryos_mcp.config import Settings
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores

CLIENTS = 12
# Pages of one conversation, at most.
CONVERSATION_PAGES = 4
# One of so many acknowledged pages is searched for at once, by another server.
SEARCHED_IN = 4
_MARKED = re.compile(r"I am (user-\d+) with remark(\d+)x\.")


@dataclass(frozen=True, slots=True)
class Written:
    """A page that a server has acknowledged."""

    user: str
    marker: str
    server: Server


@dataclass(slots=True)
class Load:
    """Adds and questions of random users, spread at random over the servers, until `is_over` is set.

    Attributes:
        foreign: Number of pages in answers that are another user's.
        searched: Number of pages that were searched for by another server, directly after they were acknowledged.
        unfound: How many of these were not in its answer.
    """

    servers: list[Server]
    tokens: dict[str, str]
    seed: int
    sent: Sent = field(default_factory=Sent)
    written: list[Written] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    answers: int = 0
    foreign: int = 0
    searched: int = 0
    unfound: int = 0
    repeated: int = 0
    is_over: bool = False
    _pages: int = 0

    async def run(self) -> None:
        """Run `CLIENTS` clients."""
        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._client(random.Random(f"{self.seed}/{number}")))  # noqa: S311 - made-up data

    async def _client(self, draw: random.Random) -> None:
        spread, grammar, users = Spread(self.servers, draw), Grammar(draw), sorted(self.tokens)
        try:
            while not self.is_over:
                user = draw.choice(users)
                for _ in range(draw.randint(1, CONVERSATION_PAGES)):
                    await self._add(spread, user, grammar, draw)
                await self._ask(spread, user, grammar.question())
        finally:
            await spread.close()

    async def _add(self, spread: Spread, user: str, grammar: Grammar, draw: random.Random) -> None:
        """Add a page. With a key, the call is repeated on any server until it is acknowledged."""
        self._pages += 1
        marker, turn, has_key = str(self._pages), grammar.turn(utc_now()), bool(draw.randrange(2))
        arguments = {
            "user_input": f"I am {user} with remark{marker}x. {turn.user_input}",
            "agent_response": turn.agent_response,
        }
        if has_key:
            arguments["idempotency_key"] = marker
            reply = await spread.until_answered(self.tokens[user], "add_memory", arguments)
            self.repeated += not reply.content["is_new"]
        else:
            answer = await spread.once(self.tokens[user], "add_memory", arguments)
            if answer is None:
                self.sent.unknown.add(marker)
                return
            reply = answer
        self.sent.acknowledged[marker] = reply.content["page_id"]
        self.took_s.append(reply.took_s)
        self.written.append(page := Written(user, marker, spread.last))
        if draw.randrange(SEARCHED_IN) == 0:
            self.searched += 1
            self.unfound += not await self._finds(spread, page, others(self.servers, page.server))

    async def _ask(
        self, spread: Spread, user: str, query: str, servers: Sequence[Server] = ()
    ) -> list[tuple[str, str]]:
        """Ask a question, and return the markers of the answer. Every page of it must be the user's."""
        reply = await spread.until_answered(self.tokens[user], "retrieve_memory", {"query": query}, servers)
        markers = shown(reply)
        self.foreign += sum(owner not in {user, ""} for owner, _ in markers)
        self.answers += 1
        self.took_s.append(reply.took_s)
        return markers

    async def _finds(self, spread: Spread, page: Written, servers: Sequence[Server]) -> bool:
        """Return whether one of some servers finds a page by its rare word."""
        query = f"remark{page.marker}x"
        return (page.user, page.marker) in await self._ask(spread, page.user, query, servers)

    async def unread(self, pages: int) -> int:
        """Search for random pages on each server that has not written them; return how many were not found."""
        draw = random.Random(self.seed)  # noqa: S311 - made-up data
        spread = Spread(self.servers, draw)
        try:
            return sum(
                [
                    not await self._finds(spread, page, [server])
                    for page in draw.sample(self.written, min(pages, len(self.written)))
                    for server in others(self.servers, page.server)
                ]
            )
        finally:
            await spread.close()


def others(servers: Sequence[Server], server: Server) -> list[Server]:
    """Return all servers but one."""
    return [each for each in servers if each is not server]


def shown(reply: Reply) -> list[tuple[str, str]]:
    """Return the user and the marker of each page in an answer."""
    pages = [*reply.content["retrieved_pages"], *reply.content["short_term_memory"]]
    return [marker_of(page["user_input"]) for page in pages]


def marker_of(text: str) -> tuple[str, str]:
    """Return the user and the marker in a page; empty texts if an excerpt does not contain them."""
    found = _MARKED.search(text)
    return (found[1], found[2]) if found else ("", "")


def make_tokens(url: str, users: list[str]) -> dict[str, str]:
    """Make a token for each user."""
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    try:
        return {user: stores.tokens.add(user, {Scope.WRITE}) for user in users}
    finally:
        stores.close()
