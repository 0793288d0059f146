"""Who is signed in at the pages of several servers on one PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres import OWNER, PostgresServer
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.server.web.guard import PREFIX, SIGN_IN
from memoryos_mcp.server.web.sessions import Session, Sessions
from memoryos_mcp.storage.capabilities import IDLE_S, LONGEST_S, SESSIONS_AT_MOST, SESSIONS_OF_ONE, SignIn
from memoryos_mcp.storage.postgres.sign_ins import NOTED_EVERY_S
from memoryos_mcp.storage.postgres.stores import PostgresStores
from tests.fakes import Clock, Seconds
from tests.http_server import HttpServer
from tests.issuer import AUDIENCE, Issuer, issuer_server
from tests.memories import UNFILED, USER, Said, memory
from tests.postgres import server
from tests.web_client import ORIGIN, Shown

LIMIT_S = 60
DATABASE, SERVED = "sign_ins", "sign_ins_served"
BOTH = frozenset({Scope.READ, Scope.WRITE})
ADA, EVE = SignIn(Caller("ada", BOTH, "1")), SignIn(Caller("eve", BOTH, "2"))
ISSUED = SignIn(Caller("zoë", BOTH, "program"), "https://login.example.com", datetime(2030, 1, 1, tzinfo=UTC))


def run_sql(statement: str, database: str = DATABASE) -> list[tuple[object, ...]]:
    with psycopg.connect(server().url(database, OWNER), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def let_pass(seconds: float, column: str, database: str = DATABASE) -> None:
    """Move the times of all sign-ins back, as if this time had passed."""
    run_sql(f"UPDATE memoryos.sign_ins SET {column} = {column} - interval '{seconds} s'", database)  # noqa: S608


# The table ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stores() -> Iterator[PostgresStores]:
    """Stores of a database in which nobody is signed in."""
    with closing(PostgresStores(server().make(DATABASE), Clock(), threads=1, tokenize=str.split)) as opened:
        assert opened.engine
        run_sql("DELETE FROM memoryos.sign_ins")
        yield opened


@pytest.mark.parametrize("sign_in", [ADA, ISSUED])
def test_a_sign_in_is_found_by_its_key_alone(stores: PostgresStores, sign_in: SignIn) -> None:
    assert stores.sign_ins.begin("key", sign_in) is True
    other = PostgresStores(server().url(DATABASE), Clock(), threads=1, tokenize=str.split)
    with closing(other):
        assert other.sign_ins.find("key") == sign_in
        assert other.sign_ins.find("") is other.sign_ins.find("key ") is None
        assert other.sign_ins.end("other") is False
        assert other.sign_ins.end("key") is True
    assert stores.sign_ins.find("key") is None


def test_the_database_does_not_contain_the_key(stores: PostgresStores) -> None:
    stores.sign_ins.begin("secret-key", ADA)
    [(row,)] = run_sql("SELECT CAST(sign_ins AS text) FROM memoryos.sign_ins")
    assert "ada" in str(row)
    assert "secret-key" not in str(row)
    assert b"secret-key".hex() not in str(row)


@pytest.mark.parametrize(("column", "limit_s"), [("used_at", IDLE_S), ("began_at", LONGEST_S)])
def test_a_sign_in_ends_by_the_databases_clock(stores: PostgresStores, column: str, limit_s: float) -> None:
    stores.sign_ins.begin("key", ADA)
    let_pass(limit_s - 30, column)
    assert stores.sign_ins.find("key") == ADA
    let_pass(limit_s if column == "used_at" else 60, column)
    assert stores.sign_ins.find("key") is None
    stores.sign_ins.begin("next", EVE)
    assert run_sql("SELECT user_id FROM memoryos.sign_ins") == [("eve",)]


def test_the_use_is_written_at_most_once_a_minute(stores: PostgresStores) -> None:
    stores.sign_ins.begin("key", ADA)
    let_pass(NOTED_EVERY_S - 30, "used_at")
    [before] = run_sql("SELECT used_at, xmin FROM memoryos.sign_ins")
    assert stores.sign_ins.find("key") == ADA
    assert run_sql("SELECT used_at, xmin FROM memoryos.sign_ins") == [before]
    let_pass(31, "used_at")
    assert stores.sign_ins.find("key") == ADA
    assert run_sql("SELECT used_at > clock_timestamp() - interval '20 s' FROM memoryos.sign_ins") == [(True,)]


def test_one_caller_ends_only_own_sign_ins(stores: PostgresStores) -> None:
    stores.sign_ins.begin("first", ADA)
    for number in range(SESSIONS_OF_ONE + 5):
        stores.sign_ins.begin(f"eve {number}", EVE)
    assert stores.sign_ins.find("first") == ADA
    found = [stores.sign_ins.find(f"eve {number}") for number in range(SESSIONS_OF_ONE + 5)]
    assert found == [None] * 5 + [EVE] * SESSIONS_OF_ONE


def test_there_is_a_limit_for_all_callers_together(stores: PostgresStores) -> None:
    run_sql(
        "INSERT INTO memoryos.sign_ins "  # noqa: S608 - a number
        "SELECT sha256(CAST(CAST(n AS text) AS bytea)), 'u' || n, 'read', n, NULL, NULL, "
        f"clock_timestamp(), clock_timestamp() - n * interval '1 s' FROM generate_series(1, {SESSIONS_AT_MOST}) AS n"
    )
    stores.sign_ins.begin("key", ADA)
    assert run_sql("SELECT count(*) FROM memoryos.sign_ins") == [(SESSIONS_AT_MOST,)]
    assert run_sql(f"SELECT 1 FROM memoryos.sign_ins WHERE user_id = 'u{SESSIONS_AT_MOST}'") == []  # noqa: S608
    assert stores.sign_ins.find("key") == ADA
    assert stores.sign_ins.find("1") is not None


async def test_without_a_token_nothing_is_stored(stores: PostgresStores) -> None:
    sessions = Sessions(Seconds(), stores.sign_ins)
    session = await sessions.begin(SignIn(Caller(USER, frozenset({Scope.ADMIN}))))
    assert await sessions.find(session.key) == session
    assert run_sql("SELECT count(*) FROM memoryos.sign_ins") == [(0,)]
    await sessions.end(session)
    assert await sessions.find(session.key) is None


async def test_a_read_only_database_keeps_sessions_in_memory(
    stores: PostgresStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await Sessions(Seconds(), stores.sign_ins).begin(ADA)
    let_pass(NOTED_EVERY_S + 1, "used_at")
    monkeypatch.setattr(stores._deployment(), "only_reads_because", "it is a replica")
    monkeypatch.setattr(type(stores._deployment()), "look_again", lambda _: "it is a replica")
    sessions = Sessions(Seconds(), stores.sign_ins)
    own = await sessions.begin(EVE)
    assert run_sql("SELECT user_id FROM memoryos.sign_ins") == [("ada",)]
    assert await sessions.find(begun.key) == begun
    with pytest.raises(StorageError, match="replica"):
        await sessions.end(begun)
    await sessions.end(own)
    assert await sessions.find(own.key) is None


async def test_a_session_whose_token_ended_is_removed(stores: PostgresStores) -> None:
    valid = [True]

    async def is_valid(sign_in: SignIn) -> bool:
        return sign_in == ADA and valid[0]

    sessions = Sessions(Seconds(), stores.sign_ins, is_valid)
    session = await sessions.begin(ADA)
    assert await sessions.find(session.key) == session
    valid[0] = False
    assert await sessions.find(session.key) is None
    assert run_sql("SELECT count(*) FROM memoryos.sign_ins") == [(0,)]


def test_a_missing_table_raises_a_storage_error(stores: PostgresStores) -> None:
    run_sql("ALTER TABLE memoryos.sign_ins RENAME TO gone")
    try:
        for call in (lambda: stores.sign_ins.begin("key", ADA), lambda: stores.sign_ins.find("key")):
            with pytest.raises(StorageError):
                call()
    finally:
        run_sql("ALTER TABLE memoryos.gone RENAME TO sign_ins")


def test_keys_of_forms_and_seals_differ() -> None:
    one, other = Session("one", ADA), Session("other", ADA)
    assert one.form_key == Session("one", EVE).form_key != other.form_key
    assert len({one.key, one.form_key, one.seal("note"), other.seal("note")}) == 4
    assert "other" not in repr(other)


# Two servers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def issuer_and_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Issuer, list[HttpServer]]]:
    """Two servers on a database, and the issuer whose tokens they accept too."""
    folder = tmp_path_factory.mktemp("servers")
    url = server().make(SERVED)
    with ExitStack() as stack:
        issuer = stack.enter_context(issuer_server())
        settings = {"embedding_model_name": "none", "oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
        env = {"MEMORYOS_DATABASE_URL": url}
        yield (
            issuer,
            [stack.enter_context(HttpServer(folder / name, settings, env=env, name=name)) for name in ("one", "other")],
        )


@pytest.fixture
def pair(issuer_and_pair: tuple[Issuer, list[HttpServer]]) -> list[str]:
    """The addresses of both servers."""
    return [each.url for each in issuer_and_pair[1]]


class Browser:
    """A browser that sees both servers under one address, as behind a balancer."""

    def __init__(self) -> None:
        headers = {"host": ORIGIN.removeprefix("http://"), "origin": ORIGIN, "accept": "text/html"}
        self.http = httpx2.AsyncClient(headers=headers, timeout=30)

    async def sign_in(self, url: str, token: str) -> None:
        answer = await self.http.post(f"{url}{SIGN_IN}", data={"token": token})
        assert answer.status_code == 303, answer.text

    async def get(self, url: str, path: str = "/") -> Shown:
        return Shown(await self.http.get(f"{url}{PREFIX}{path}"))

    async def post(self, url: str, path: str, **fields: str) -> httpx2.Response:
        return await self.http.post(f"{url}{PREFIX}{path}", data=fields)

    async def statuses(self, pair: list[str]) -> list[int]:
        return [(await self.http.get(f"{url}{PREFIX}/nowhere")).status_code for url in pair]


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    found = Browser()
    yield found
    await found.http.aclose()


SIGNED_IN, SIGNED_OUT = [404, 404], [303, 303]


def new_token(user_id: str = USER, scope: Scope = Scope.WRITE) -> str:
    with closing(PostgresStores(server().url(SERVED), utc_now, threads=1, tokenize=str.split)) as stores:
        return stores.tokens.add(user_id, {scope})


@pytest.mark.campaign
async def test_a_form_of_one_server_is_accepted_by_the_other(pair: list[str], browser: Browser, data: Path) -> None:
    one, other = pair
    url = SecretStr(server().url(SERVED))
    async with memory(data, None, database_url=url, **UNFILED) as held:
        await held.add([Said("I live in Oslo."), Said("Nice weather.")])
        await held.settled()
    async with asyncio.timeout(LIMIT_S):
        await browser.sign_in(one, new_token())
        seen = await browser.get(one, "/facts/k1")
        assert "I live in Oslo" in seen.text
        form = next(each.fields for each in seen.forms if "shown" in each.fields)
        changed = form | {"change": "text", "text": "I live in Bergen."}
        preview = Shown(await browser.post(other, "/facts/k1", **changed))
        fields = preview.form("/facts/k1").fields
        sent = await browser.post(one, "/facts/k1", **(fields | {"confirmed": "yes"}))
        assert sent.status_code == 303, sent.text
        path = sent.headers["location"].removeprefix(PREFIX)
        # Another person's browser does not show the note, even with its cookie.
        eve = Browser()
        await eve.sign_in(other, new_token("eve"))
        [note] = [each for each in browser.http.cookies.jar if "note" in each.name]
        eve.http.cookies.set(note.name, note.value or "", domain=note.domain, path=note.path)
        assert (await eve.get(other)).notes == []
        shown = await browser.get(other, path)
        assert len(shown.notes) == 1
        assert "Bergen" in shown.text
        assert (await browser.get(one, path)).notes == []
        assert "Only the server that received a file knows its import" in (await browser.get(one, "/exchange")).text
        await eve.http.aclose()


@pytest.mark.campaign
async def test_signing_out_at_one_server_ends_the_other_too(pair: list[str], browser: Browser) -> None:
    async with asyncio.timeout(LIMIT_S):
        await browser.sign_in(pair[0], new_token())
        assert await browser.statuses(pair) == SIGNED_IN
        form_key = (await browser.get(pair[0])).form("/sign-out").fields["form_key"]
        assert (await browser.post(pair[1], "/sign-out", form_key="x")).status_code == 403
        assert await browser.statuses(pair) == SIGNED_IN
        assert (await browser.post(pair[1], "/sign-out", form_key=form_key)).status_code == 200
        assert await browser.statuses(pair) == SIGNED_OUT


@pytest.mark.campaign
async def test_a_revoked_token_ends_its_sessions_everywhere(pair: list[str], browser: Browser) -> None:
    async with asyncio.timeout(LIMIT_S):
        token = new_token()
        await browser.sign_in(pair[0], token)
        assert await browser.statuses(pair) == SIGNED_IN
        with closing(PostgresStores(server().url(SERVED), utc_now, threads=1, tokenize=str.split)) as stores:
            stores.tokens.revoke(token.split("_")[1])
        assert await browser.statuses(pair) == SIGNED_OUT


@pytest.mark.campaign
@pytest.mark.parametrize("change", ["expires_us = created_us", "scopes = 'read'"])
async def test_expired_and_reduced_tokens_end_their_sessions(pair: list[str], browser: Browser, change: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        token = new_token()
        await browser.sign_in(pair[0], token)
        run_sql(f"UPDATE memoryos.tokens SET {change} WHERE token_id = '{token.split('_')[1]}'", SERVED)  # noqa: S608
        assert await browser.statuses(pair) == SIGNED_OUT


@pytest.mark.campaign
async def test_an_idle_session_ends_at_both_servers(pair: list[str], browser: Browser) -> None:
    async with asyncio.timeout(LIMIT_S):
        await browser.sign_in(pair[0], new_token())
        let_pass(IDLE_S - 60, "used_at", SERVED)
        assert await browser.statuses(pair) == SIGNED_IN
        let_pass(IDLE_S + 1, "used_at", SERVED)
        assert await browser.statuses(pair) == SIGNED_OUT


@pytest.mark.campaign
async def test_a_session_by_the_issuer_ends_with_its_token(
    issuer_and_pair: tuple[Issuer, list[HttpServer]], pair: list[str], browser: Browser
) -> None:
    issuer = issuer_and_pair[0]
    async with asyncio.timeout(LIMIT_S):
        await browser.sign_in(pair[0], issuer.token(sub="zoe", azp="claude"))
        assert await browser.statuses(pair) == SIGNED_IN
        past = int((utc_now() - timedelta(seconds=20)).timestamp()) * 1_000_000
        run_sql(f"UPDATE memoryos.sign_ins SET expires_us = {past} WHERE user_id = 'zoe'", SERVED)  # noqa: S608
        assert await browser.statuses(pair) == SIGNED_OUT


@pytest.mark.campaign
async def test_without_the_database_nobody_is_signed_out(tmp_path: Path, browser: Browser) -> None:
    database = PostgresServer()
    with ExitStack() as stack:
        stack.callback(database.close)
        url = database.make("memories")
        with closing(PostgresStores(url, utc_now, threads=1, tokenize=str.split)) as stores:
            token = stores.tokens.add(USER, {Scope.READ})
        settings, env = {"embedding_model_name": "none"}, {"MEMORYOS_DATABASE_URL": url}
        one = stack.enter_context(HttpServer(tmp_path / "one", settings, env=env))
        async with asyncio.timeout(LIMIT_S * 2):
            browser.http.timeout = httpx2.Timeout(LIMIT_S)
            await browser.sign_in(one.url, token)
            database.kill()
            signing_in = httpx2.AsyncClient(headers={"origin": one.url}, timeout=LIMIT_S)
            failed, refused = await asyncio.gather(
                browser.statuses([one.url]), signing_in.post(f"{one.url}{SIGN_IN}", data={"token": token})
            )
            await signing_in.aclose()
            assert (failed, refused.status_code) == ([503], 503)
            database.start()
            while (found := await browser.statuses([one.url])) == [503]:  # each answer takes its time
                pass
            assert found == [404]
