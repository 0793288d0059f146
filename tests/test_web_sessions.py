"""Who may look at the pages: keys, sessions, tokens, forms of strangers, and the headers of every response."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx2
import pytest
from starlette.routing import Route

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.server.http.access import BearerVerifier
from memoryos_mcp.server.http.app import make_app
from memoryos_mcp.server.http.page_server import make_page_app
from memoryos_mcp.server.http.shutdown import Closing
from memoryos_mcp.server.web.guard import ENTER, PREFIX, SIGN_IN, STATIC
from memoryos_mcp.server.web.pages import ADDRESSES
from memoryos_mcp.server.web.sessions import Sessions
from memoryos_mcp.storage.capabilities import IDLE_S, LONGEST_S, SESSIONS_OF_ONE, SignIn
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.fakes import Seconds
from tests.http_server import HttpServer, bearer
from tests.memories import NO_MODEL, USER, Said, memory
from tests.web_client import ORIGIN, Pages, Shown, open_pages

PUBLIC = "https://memory.example.org"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7*7 }}"
PROTECTING = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
}


class Served:
    """An application of ``serve`` in this process, with its tokens."""

    def __init__(self, app: httpx2.ASGITransport, tokens: TokenStore) -> None:
        self.transport = app
        self.tokens = tokens

    def client(self, origin: str = ORIGIN) -> httpx2.AsyncClient:
        """Return a browser without cookies."""
        return httpx2.AsyncClient(transport=self.transport, base_url=origin, headers={"accept": "text/html"})

    async def signed_in(self, token: str) -> httpx2.AsyncClient:
        """Return a browser that is signed in by a token."""
        http = self.client()
        answer = await http.post(SIGN_IN, data={"token": token}, headers={"origin": ORIGIN})
        assert answer.status_code == 303, answer.text
        return http


@asynccontextmanager
async def served(folder: Path, **more: object) -> AsyncIterator[Served]:
    settings = Settings.model_validate({"data_storage_path": folder, "transport": "http", **NO_MODEL, **more})
    tokens = TokenStore(token_file(folder), clock=lambda: datetime.now(UTC))
    try:
        async with MemoryService(settings) as service:
            verifier = BearerVerifier(tokens, None, resource=settings.resource_url)
            app = make_app(service, settings, verifier, Closing())
            yield Served(httpx2.ASGITransport(app, raise_app_exceptions=False), tokens)
    finally:
        tokens.close()


@pytest.fixture
async def pages(data: Path) -> AsyncIterator[Pages]:
    async with memory(data, None) as held, open_pages(held.service) as signed_in:
        await held.add([Said("My cat is called Pixel.")])
        yield signed_in


def assert_is_protected(answer: httpx2.Response) -> None:
    for name, value in PROTECTING.items():
        assert answer.headers.get_list(name) == [value], (answer.request.url, name)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "set-cookie" not in answer.headers or "httponly" in answer.headers["set-cookie"].lower()
    if not answer.request.url.path.startswith(STATIC) or answer.is_error:
        assert answer.headers["cache-control"] == "no-store"


async def test_a_one_time_key_dies_on_first_use(data: Path) -> None:
    sessions = Sessions(Seconds())
    async with MemoryService(Settings(data_storage_path=data, **NO_MODEL)) as service:
        transport = httpx2.ASGITransport(make_page_app(service, sessions))
        key = sessions.one_time_key(Caller(USER, frozenset({Scope.READ})))
        async with (
            httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as first,
            httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as second,
        ):
            assert (await second.get(ENTER, params={"key": f"{key}x"})).status_code == 403
            answer = await first.get(ENTER, params={"key": key})
            assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}/")
            used = await second.get(ENTER, params={"key": key})
            assert used.status_code == 403
            assert "has expired" in Shown(used).text
            assert "set-cookie" not in used.headers
            assert (await second.get(f"{PREFIX}/")).status_code == 303
            assert key not in (await first.get(f"{PREFIX}/")).text


async def test_cookies_are_strict_and_bound_to_the_pages(data: Path) -> None:
    async with served(data, public_url=PUBLIC) as server:
        token = server.tokens.add(USER, {Scope.READ})
        for origin, is_secure in ((ORIGIN, False), (PUBLIC, True)):
            headers = {"origin": origin, "x-forwarded-proto": "https" if is_secure else "http"}
            answer = await server.client(origin).post(SIGN_IN, data={"token": token}, headers=headers)
            assert answer.status_code == 303
            value, *attributes = answer.headers["set-cookie"].split("; ")
            assert {each.lower() for each in attributes} == {"httponly", "path=/ui", "samesite=strict"} | (
                {"secure"} if is_secure else set()
            )
            assert len(value.split("=", 1)[1]) >= 43
            assert token not in answer.headers["set-cookie"]


@pytest.mark.parametrize(("wait_s", "times"), [(IDLE_S + 1, 1), (IDLE_S - 1, int(LONGEST_S // (IDLE_S - 1)) + 1)])
async def test_sessions_end_when_idle_and_after_a_day_of_use(data: Path, wait_s: float, times: int) -> None:
    clock = Seconds()
    async with memory(data, None) as held, open_pages(held.service, clock=clock) as pages:
        for time in range(times):
            assert (await pages.http.get(f"{PREFIX}/", follow_redirects=False)).status_code == 200, time
            clock.now += wait_s
        assert (await pages.http.get(f"{PREFIX}/", follow_redirects=False)).status_code == 303


async def test_signing_out_ends_the_session_for_its_cookie(pages: Pages) -> None:
    assert (await pages.submit("/sign-out")).text.endswith("Your session has ended.")
    again = await pages.get("/")
    assert (again.status, again.path) == (403, "/sign-in?to=%2Fui%2F")
    late = await pages.http.post(f"{PREFIX}/sign-out", data={"form_key": pages.form_key}, headers={"origin": ORIGIN})
    assert "Nothing was changed" in Shown(late).text
    part = await pages.http.get(f"{PREFIX}/timeline", headers={"hx-request": "true"}, follow_redirects=False)
    assert (part.status_code, part.headers["hx-redirect"]) == (401, SIGN_IN)


async def test_one_caller_cannot_end_the_sessions_of_others() -> None:
    clock = Seconds()
    sessions = Sessions(clock)
    first = await sessions.begin(SignIn(Caller("ada", frozenset({Scope.READ}))))
    own = [await sessions.begin(SignIn(Caller("eve", frozenset({Scope.READ})))) for _ in range(SESSIONS_OF_ONE * 20)]
    assert await sessions.find(first.key) == first
    assert await sessions.find(own[0].key) is None
    assert await sessions.find(own[-1].key) == own[-1]


@pytest.mark.parametrize("form_key", ["", "wrong", "\ufffd\x00", None])
async def test_forms_need_the_key_of_their_session(pages: Pages, form_key: str | None) -> None:
    for address in (each for each in ADDRESSES if each.method == "POST"):
        if "{" in address.path:
            continue
        data = {} if form_key is None else {"form_key": form_key}
        answer = await pages.http.post(f"{PREFIX}{address.path}", data=data, headers={"origin": ORIGIN})
        assert answer.status_code == 403, address.path
        assert "Nothing was changed" in Shown(answer).text
    refused = await pages.http.post(f"{PREFIX}/sign-out", data={"form_key": form_key or ""}, headers={"origin": ORIGIN})
    assert refused.status_code == 403
    assert "Nothing was changed" in Shown(refused).text
    assert (await pages.get("/")).status == 200


async def test_the_form_key_of_another_session_is_refused(pages: Pages) -> None:
    async with open_pages(pages.service, user_id="eve", sessions=pages.sessions) as eve:
        assert eve.form_key != pages.form_key
        data = {"form_key": eve.form_key}
        refused = await pages.http.post(f"{PREFIX}/sign-out", data=data, headers={"origin": ORIGIN})
        assert refused.status_code == 403
        assert (await pages.get("/")).status == 200


async def test_another_users_session_shows_nothing_of_the_first(pages: Pages) -> None:
    async with pages.service.user(USER) as engine:
        [page] = (await engine.listed(limit=1)).entries
    async with open_pages(pages.service, user_id="eve", sessions=pages.sessions) as eve:
        seen = await eve.get("/")
        assert "Pixel" in (await pages.get("/")).text
        assert "Pixel" not in seen.html
        assert page.id not in seen.html
        assert USER not in seen.text.split()
        asked = await eve.http.get(f"{PREFIX}/pages/{page.id}", params={"user_id": USER, "user": USER})
        assert asked.status_code == 404
        assert "Pixel" not in asked.text


async def test_readers_see_no_forms_and_change_nothing(data: Path) -> None:
    async with memory(data, None) as held, open_pages(held.service, only_reads=True) as reader:
        await held.add([Said("My cat is called Pixel.")])
        seen = await reader.get("/")
        assert "Pixel" in seen.text
        assert [form.action for form in seen.forms if form.method == "post"] == [f"{PREFIX}/sign-out"]
        writing = [each for each in ADDRESSES if each.method == "POST" and each.writes and "{" not in each.path]
        for address in writing:
            refused = await reader.submit(address.path)
            assert refused.status == 403, address.path
            assert "not change it" in refused.text
        assert (await reader.submit("/sign-out")).status == 200


async def test_looking_makes_no_memory_for_a_reader(data: Path) -> None:
    service = MemoryService(Settings(data_storage_path=data, **NO_MODEL))
    async with service, open_pages(service, only_reads=True) as reader:
        assert (await reader.get("/")).status == 200
        assert not await service.has_memory(USER)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"origin": "http://localhost:8000"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_pages_of_others_reach_nothing(pages: Pages, headers: dict[str, str], status: int) -> None:
    for method, path in (("GET", "/"), ("POST", "/sign-out"), ("GET", "/sign-in")):
        form = {"form_key": pages.form_key} if method == "POST" else None
        answer = await pages.http.request(method, f"{PREFIX}{path}", data=form, headers=headers)
        assert answer.status_code == status
        assert "Pixel" not in answer.text
        assert_is_protected(answer)
        assert Shown(answer).headings == [("h1", "That did not work")]
    assert (await pages.get("/")).status == 200


async def test_a_servers_own_pages_may_send_forms_at_its_public_name(data: Path) -> None:
    async with served(data, public_url=PUBLIC) as server:
        token = server.tokens.add(USER, {Scope.WRITE})
        http = server.client(PUBLIC)
        signed_in = await http.post(SIGN_IN, data={"token": token}, headers={"origin": PUBLIC})
        assert signed_in.status_code == 303
        for origin in ("https://evil.example", "http://memory.example.org.evil.example", f"{PUBLIC}:444"):
            refused = await http.post(SIGN_IN, data={"token": token}, headers={"origin": origin})
            assert refused.status_code == 403
            assert "set-cookie" not in refused.headers
        unaffected = await http.post("/mcp", json={}, headers={"origin": PUBLIC, **bearer(token)})
        assert unaffected.status_code == 403


async def test_every_response_has_the_protecting_headers(pages: Pages) -> None:
    paths = ["", "/", "/sign-in", "/enter", "/enter?key=x", "/nowhere", "/%00", "/static/page.js", "/static/style.css"]
    paths += ["/static/nothing.js", "/static/..%2fpages.py", "/static/%2e%2e/visits.py", "/pages/p_0", "/facts/f999999"]
    paths += [each.path for each in ADDRESSES if each.method == "GET" and "{" not in each.path]
    for path in paths:
        for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"):
            answer = await pages.http.request(method, f"{PREFIX}{path}", follow_redirects=False)
            assert_is_protected(answer)
            assert answer.status_code < 500, (method, path)
            assert "sessions.py" not in answer.text
            assert "def " not in answer.text.split("<html")[0] or path.startswith("/static/")


async def test_wrong_methods_and_missing_pages_are_pages_too(pages: Pages) -> None:
    for path, method, status in (("/nowhere", "GET", 404), ("/sign-out", "GET", 404), ("/", "POST", 405)):
        answer = await pages.http.request(method, f"{PREFIX}{path}", headers={"origin": ORIGIN})
        assert answer.status_code == status
        assert Shown(answer).headings[0][0] == "h1"
    upload = {name: (f"{name}.txt", b"x") for name in ("one", "two")}
    too_many = await pages.submit("/sign-out", files=upload)
    assert too_many.status == 400
    assert "Too many files" in too_many.text


async def test_an_unexpected_error_is_a_page_without_details(data: Path) -> None:
    sessions = Sessions(Seconds())
    async with MemoryService(Settings(data_storage_path=data, **NO_MODEL)) as service:
        app = make_page_app(service, sessions)

        async def broken(_: object) -> None:
            raise RuntimeError(MARKUP)

        app.router.routes.insert(0, Route(f"{PREFIX}/broken", broken))
        app.router.routes.insert(0, Route("/broken", broken))
        key = sessions.one_time_key(Caller(USER, frozenset({Scope.READ})))
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            await http.get(ENTER, params={"key": key})
            answer = await http.get(f"{PREFIX}/broken")
            assert answer.status_code == 500
            assert_is_protected(answer)
            assert Shown(answer).headings == [("h1", "That did not work")]
            assert "alert(1)" not in answer.text
            assert (await http.get("/broken")).text == "Internal Server Error"


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/ui/",
        "https://evil.example/ui/",
        "\\\\evil.example",
        "/\\evil.example",
        "/ui/\\..\\..\\evil.example",
        "/ui/..//evil.example",
        "/ui/../mcp",
        "/ui//evil.example",
        "%2F%2Fevil.example",
        "javascript:alert(1)",
        "/ui/\r\nset-cookie: a=b",
        "/ui/\t/evil.example",
        "/uievil",
        "",
    ],
)
async def test_signing_in_never_leaves_the_pages(data: Path, target: str) -> None:
    async with served(data) as server:
        token = server.tokens.add(USER, {Scope.READ})
        for sent in (target, quote(target, safe="")):
            address = f"{SIGN_IN}?to={quote(sent, safe='')}"
            answer = await server.client().post(address, data={"token": token}, headers={"origin": ORIGIN})
            assert answer.status_code == 303
            assert answer.headers.get_list("set-cookie")[0].startswith("memoryos_session_8000=")
            assert len(answer.headers.get_list("set-cookie")) == 1
            location = urlsplit(answer.headers["location"])
            assert (location.scheme, location.netloc) == ("", "")
            assert location.path.startswith("/ui/")
            assert ".." not in location.path


@pytest.mark.parametrize(
    "address", ["/ui/timeline?text=100%25+%26+more", "/ui/traits/what%3F%2Fwhy%23", "/ui/search?q=https%3A%2F%2Fx"]
)
async def test_signing_in_leads_to_the_address_that_was_asked_for(data: Path, address: str) -> None:
    async with served(data) as server:
        token = server.tokens.add(USER, {Scope.READ})
        http = server.client()
        sent = await http.get(address)
        assert sent.status_code == 303
        answer = await http.post(sent.headers["location"], data={"token": token}, headers={"origin": ORIGIN})
        assert answer.headers["location"] == address


@pytest.mark.parametrize("user_id", [MARKUP, "../../etc/passwd", "\u202egro.live", "javascript:alert(1)", "x" * 9_999])
async def test_hostile_user_ids_are_shown_as_text(data: Path, user_id: str) -> None:
    async with served(data) as server:
        http = await server.signed_in(server.tokens.add(user_id, {Scope.WRITE}))
        answer = await http.get(f"{PREFIX}/")
        page = Shown(answer)
        assert page.status == 200
        assert user_id in page.text
        assert "<script>alert" not in page.html
        assert "<img" not in page.html
        assert not any(name.startswith("on") for _, own in page.elements for name in own)
        assert user_id not in str(answer.headers)


async def test_tokens_are_needed_once_one_exists(data: Path) -> None:
    async with served(data) as server:
        anonymous = server.client()
        opened = await anonymous.get(f"{PREFIX}/")
        assert opened.status_code == 200
        assert (await anonymous.get(f"{PREFIX}/")).headers.get("set-cookie") is None
        token = server.tokens.add(USER, {Scope.READ})
        # The session from before ends too.
        for http in (anonymous, server.client()):
            asked = await http.get(f"{PREFIX}/")
            assert (asked.status_code, asked.headers["location"]) == (303, f"{SIGN_IN}?to=%2Fui%2F")
        assert (await (await server.signed_in(token)).get(f"{PREFIX}/")).status_code == 200


async def test_a_revoked_token_ends_its_sessions(data: Path) -> None:
    async with served(data) as server:
        kept, revoked = server.tokens.add(USER, {Scope.READ}), server.tokens.add(USER, {Scope.READ})
        browsers = [await server.signed_in(token) for token in (kept, revoked, revoked)]
        server.tokens.revoke(revoked.split("_")[1])
        statuses = [(await http.get(f"{PREFIX}/")).status_code for http in browsers]
        assert statuses == [200, 303, 303]
        refused = await server.client().post(SIGN_IN, data={"token": revoked}, headers={"origin": ORIGIN})
        assert refused.status_code == 403
        assert "not valid" in Shown(refused).text
        assert revoked not in refused.text


async def test_signing_in_again_ends_the_earlier_session(data: Path) -> None:
    async with served(data) as server:
        http = await server.signed_in(server.tokens.add("ada", {Scope.READ}))
        [cookie] = http.cookies.jar
        earlier = f"{cookie.name}={cookie.value}"
        other = server.tokens.add("eve", {Scope.READ})
        await http.post(SIGN_IN, data={"token": other}, headers={"origin": ORIGIN})
        assert "eve" in (await http.get(f"{PREFIX}/")).text
        assert (await server.client().get(f"{PREFIX}/", headers={"cookie": earlier})).status_code == 303


@pytest.mark.parametrize("token", ["", " ", "mos_x", "mos_000000000000_" + "A" * 43, "a.b.c", "\x00", "x" * 100_000])
async def test_wrong_tokens_open_nothing(data: Path, token: str) -> None:
    async with served(data) as server:
        server.tokens.add(USER, {Scope.READ})
        http = server.client()
        answer = await http.post(SIGN_IN, data={"token": token}, headers={"origin": ORIGIN})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        header = await http.get(f"{PREFIX}/", headers=bearer(token.strip("\x00 ") or "x"))
        assert header.status_code == 303


async def test_a_token_store_that_fails_shows_a_page(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(data) as server:
        token = server.tokens.add(USER, {Scope.READ})
        http = await server.signed_in(token)

        def fail(_: str) -> None:
            raise StorageError("the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(server.tokens, "find", fail)
            patch.setattr(server.tokens, "find_by_id", fail)
            asked = await http.get(f"{PREFIX}/")
            assert asked.status_code == 503
            assert "at the moment" in asked.text
            assert_is_protected(asked)
            signing_in = await server.client().post(SIGN_IN, data={"token": token}, headers={"origin": ORIGIN})
            assert signing_in.status_code == 503
        assert (await http.get(f"{PREFIX}/")).status_code == 200


async def test_body_and_rate_limits_hold_for_pages(data: Path) -> None:
    async with served(data, max_body_bytes=2_000, requests_per_second=5.0) as server:
        http = await server.signed_in(server.tokens.add(USER, {Scope.WRITE}))
        large = await http.post(f"{PREFIX}/sign-out", data={"text": "x" * 3_000}, headers={"origin": ORIGIN})
        assert large.status_code == 413
        assert "larger than 2000 bytes" in Shown(large).text
        assert_is_protected(large)
        statuses = [(await http.get(f"{PREFIX}/nowhere")).status_code for _ in range(30)]
        assert {404, 429} == set(statuses)
        late = await http.get(f"{PREFIX}/nowhere")
        assert int(late.headers["retry-after"]) >= 1
        assert Shown(late).headings == [("h1", "That did not work")]
        assert (await http.get(f"{STATIC}page.js")).status_code == 200
        guessed = [
            (await server.client().post(SIGN_IN, data={"token": "mos_x"}, headers={"origin": ORIGIN})).status_code
            for _ in range(30)
        ]
        assert {403, 429} == set(guessed)
        assert (await http.get("/health/live")).status_code == 200


async def test_the_body_of_a_request_for_a_page_is_not_read(pages: Pages) -> None:
    upload = b'--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n'
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield upload
        while sent < 50:
            sent += 1
            yield b"x" * 100_000

    headers = {"content-type": "multipart/form-data; boundary=b"}
    answer = await pages.http.request("GET", f"{PREFIX}/", content=endless(), headers=headers)
    assert answer.status_code == 200
    assert sent == 0


def test_a_real_server_keeps_its_pages_and_its_tools_apart(http_server: HttpServer) -> None:
    token = http_server.add_token("paula")
    origin = {"origin": http_server.url}
    with httpx2.Client(base_url=http_server.url, timeout=30) as http:
        assert http.get("/ui").headers["location"] == f"{SIGN_IN}?to=%2Fui"
        assert http.get(f"{PREFIX}/", headers=bearer(token)).status_code == 303
        assert http.post(SIGN_IN, data={"token": token}, headers=origin).status_code == 303
        page = http.get(f"{PREFIX}/")
        assert page.status_code == 200
        assert_is_protected(page)
        # The cookie opens no tools, and a page's headers are on no other answer.
        for path in ("/mcp", "/sse", "/metrics", "/messages", "/ui/../metrics", "//ui/"):
            asked = http.get(path)
            assert asked.status_code == 401, path
            assert "content-security-policy" not in asked.headers
        called = http.post("/mcp", headers=bearer(token) | {"accept": "application/json"}, json={})
        assert called.status_code == 400
        assert http.get("/health/live").json() == {"status": "ok"}
