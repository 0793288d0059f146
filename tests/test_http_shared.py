"""Several servers on one PostgreSQL database, behind a balancer that knows no sessions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from benchmarks.postgres import PostgresServer
from memoryos_mcp.config import Settings
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores
from tests.balancer import balancer
from tests.http_server import INITIALIZE, MCP_HEADERS, Asker, HttpServer, bearer, tool_call
from tests.issuer import AUDIENCE, issuer_server
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


async def test_a_busy_server_opens_few_connections(pair: list[HttpServer], url: str) -> None:
    """`docs/scaling.md` names the number, by which `max_connections` is set."""
    secrets = [token(url, f"user-{number}") for number in range(12)]
    most = 0
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=MCP_HEADERS, timeout=60) as http:

        async def add(number: int) -> int:
            message = tool_call("add_memory", user_input=f"Message {number}", agent_response="")
            headers = bearer(secrets[number % len(secrets)])
            return (await http.post(f"{pair[number % 2].url}/mcp", json=message, headers=headers)).status_code

        calls = asyncio.gather(*(add(number) for number in range(96)))
        with psycopg.connect(url, autocommit=True) as connection:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            while not calls.done():
                row = connection.execute(sql).fetchone()
                most = max(most, row[0] if row else 0)
                await asyncio.sleep(0.001)
        assert set(await calls) == {200}
    assert 4 <= most <= 2 * 13


# Rates ----------------------------------------------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
PER_SECOND = 5.0


@contextmanager
def servers_at(url: str, folder: Path, **settings: object) -> Iterator[list[HttpServer]]:
    """Yield two servers on a database, with other settings than those of the other tests."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                HttpServer(folder / name, SETTINGS | settings, env={"MEMORYOS_DATABASE_URL": url}, name=name)
            )
            for name in ("one", "other")
        ]


def database_seconds(url: str) -> float:
    """Return the time of the database's clock."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)").fetchone()
    assert row is not None
    return float(row[0])


async def test_a_rate_holds_over_all_servers(url: str, tmp_path: Path) -> None:
    burst, reserve = 2 * PER_SECOND, 2  # each server takes one request in advance
    busy, calm = token(url, "busy"), token(url, "calm")
    with servers_at(url, tmp_path, requests_per_second=PER_SECOND) as servers:
        async with (
            asyncio.timeout(LIMIT_S),
            balancer([each.port for each in servers]) as base,
            httpx2.AsyncClient(headers=MCP_HEADERS, timeout=30) as http,
        ):
            began = database_seconds(url)
            admitted = 0
            while admitted < 3 * burst:  # it gets its rate
                answer = await http.post(f"{base}/mcp", json=PING, headers=bearer(busy))
                admitted += answer.status_code == 200
                assert answer.status_code in {200, 429}
                # and no more, however many servers it asks
                assert admitted <= burst + reserve + PER_SECOND * (database_seconds(url) - began)
            calm_answers = [await http.post(f"{base}/mcp", json=PING, headers=bearer(calm)) for _ in range(4)]
        assert [each.status_code for each in calm_answers] == [200] * 4


async def test_a_server_without_its_database_counts_for_itself(tmp_path: Path) -> None:
    """A rate limiter never takes the server down. The issuer's tokens need no database."""
    database = PostgresServer()
    with ExitStack() as stack:
        stack.callback(database.close)
        issuer = stack.enter_context(issuer_server())
        url = database.make("memories")
        limits = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "requests_per_second": 0.01}
        servers = stack.enter_context(servers_at(url, tmp_path, **limits))
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=MCP_HEADERS, timeout=30) as http:

            async def statuses(user: str) -> list[int]:
                headers = bearer(issuer.token(sub=user, azp="claude"))
                return [
                    (await http.post(f"{each.url}/mcp", json=PING, headers=headers)).status_code for each in servers
                ]

            assert await statuses("ada") == [200, 429]  # one request may arrive at once
            assert await statuses("bob") == [200, 429]
            database.kill()
            assert await statuses("eve") == [200, 200]
            assert await statuses("eve") == [429, 429]
            for each in servers:
                assert "the database failed, so this server counts requests by itself" in each.stderr
                assert (await http.get(f"{each.url}/health/live")).status_code == 200
            database.start()
