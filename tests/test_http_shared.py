"""Several servers on one PostgreSQL database, behind a balancer that knows no sessions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores
from tests.balancer import balancer
from tests.http_server import INITIALIZE, MCP_HEADERS, Asker, HttpServer, bearer, tool_call
from tests.postgres import database_of
from tests.servers import ERAS, Era

pytestmark = pytest.mark.campaign

LIMIT_S = 60
SETTINGS = {"embedding_model_name": "none"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a database of these tests."""
    return database_of(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def pair(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HttpServer]]:
    """Two servers on that database."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        yield [
            stack.enter_context(HttpServer(folder / name, SETTINGS, env={"MEMORYOS_DATABASE_URL": url}, name=name))
            for name in ("one", "other")
        ]


def token(url: str, user: str, *scopes: Scope) -> str:
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    try:
        return stores.tokens.add(user, set(scopes) or {Scope.WRITE})
    finally:
        stores.close()


@asynccontextmanager
async def balanced(pair: list[HttpServer], secret: str, era: Era) -> AsyncIterator[Asker]:
    """Yield the SDK's client, whose requests alternate between the servers."""
    async with (
        balancer([server.port for server in pair]) as base,
        httpx2.AsyncClient(headers=bearer(secret), timeout=60) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=era) as client,
    ):
        yield Asker(client)


@pytest.mark.parametrize("era", ERAS)
async def test_requests_of_one_client_may_reach_any_server(pair: list[HttpServer], url: str, era: Era) -> None:
    async with asyncio.timeout(LIMIT_S), balanced(pair, token(url, f"mia-{era}"), era) as mia:
        assert "add_memory" in await mia.tools()
        ids = [await mia.add(f"I planted cherry tree number {number}.") for number in range(6)]
        for _ in range(4):
            found = await mia.call("retrieve_memory", query="cherry tree", max_results=10)
            pages = [*found["retrieved_pages"], *found["short_term_memory"]]
            assert {page["page_id"] for page in pages} == set(ids)
        assert (await mia.call("get_memory_stats"))["total_pages"] == len(ids)


async def test_a_server_on_a_shared_database_has_no_sessions(pair: list[HttpServer], url: str) -> None:
    headers = MCP_HEADERS | bearer(token(url, "noa"))
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=headers, timeout=30) as http:
        one, other = (f"{server.url}/mcp" for server in pair)
        opened = await http.post(one, json=INITIALIZE)
        assert opened.status_code == 200
        assert "mcp-session-id" not in opened.headers
        # A client whose session was opened before the change of stores goes on.
        message = tool_call("add_memory", user_input="Hello", agent_response="")
        added = await http.post(other, json=message, headers={"mcp-session-id": "of-a-file-server"})
        assert added.json()["result"]["structuredContent"]["stored"] is True
        for method in ("GET", "DELETE"):
            refused = await http.request(method, one)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_a_revoked_token_is_refused_by_every_server(pair: list[HttpServer], url: str) -> None:
    secret = token(url, "eve")
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=MCP_HEADERS | bearer(secret), timeout=30) as http:
        message = tool_call("get_memory_stats")
        assert [(await http.post(f"{each.url}/mcp", json=message)).status_code for each in pair] == [200, 200]
        [entry] = [each for each in stores.tokens.entries() if each.user_id == "eve"]
        stores.tokens.revoke(entry.token_id)
        assert [(await http.post(f"{each.url}/mcp", json=message)).status_code for each in pair] == [401, 401]
    stores.close()


async def test_a_reading_token_adds_no_user_to_the_database(pair: list[HttpServer], url: str) -> None:
    async with asyncio.timeout(LIMIT_S), balanced(pair, token(url, "stranger", Scope.READ), "auto") as stranger:
        assert (await stranger.call("get_memory_stats"))["total_pages"] == 0
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    assert stores.footprint("stranger") is None
    stores.close()
