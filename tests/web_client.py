"""A signed-in client of the pages, without a browser.

`open_pages` serves a real memory by the real ASGI application and yields `Pages`::

    async with memory(data, None) as held, open_pages(held.service) as pages:
        await held.add([Said("I live in Oslo.")])
        page = await pages.get("/")
        assert "I live in Oslo." in page.text
        done = await pages.submit("/facts/f1/correct", text="I live in Bergen.")
        assert done.path == "/facts/f1" and done.notes == ["The fact is corrected."]
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, cast

import httpx2

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.server.http.page_server import make_page_app
from memoryos_mcp.server.web.guard import ENTER, PREFIX
from memoryos_mcp.server.web.sessions import Sessions
from memoryos_mcp.server.web.visits import OwnMachine
from tests.memories import USER

ORIGIN = "http://127.0.0.1:8000"
# What a browser shows nothing of.
_UNSEEN = frozenset({"head", "script", "style", "template"})
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr", "source", "col"})


@dataclass(slots=True)
class Form:
    """A form of a page. ``fields`` has the values that a browser would submit without further input."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Shown(HTMLParser):
    """A page as a reader gets it. A page with unclosed or misplaced elements fails.

    Attributes:
        status: The HTTP status.
        path: The address after all redirects, without the prefix.
        html: The source.
        headings: The texts of the headings, with their level: ``("h1", "Search")``.
        notes: The messages of what was just done.
        links: The addresses of all links, as written.
        forms: The forms, in order.
        elements: Names and attributes of all elements, in order.
    """

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.response = response
        self.status = response.status_code
        self.path = response.request.url.raw_path.decode().removeprefix(PREFIX)
        self.html = response.text
        self.headings: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._open: list[tuple[str, str, list[str]]] = []  # name, role and texts of each open element
        self._words: list[str] = []
        self._select = ""
        self.feed(self.html)
        self.close()
        assert not self._open, f"not closed: {self._open[-1][0]}"

    @property
    def text(self) -> str:
        """The text that a reader sees, with single spaces."""
        return " ".join("".join(self._words).split())

    def form(self, action: str) -> Form:
        """Return the form that is submitted to an address, which is relative to the prefix."""
        [found] = [form for form in self.forms if form.action.removeprefix(PREFIX) == action]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.elements.append((tag, own))
        self._words.append(" ")
        if tag == "a" and "href" in own:
            self.links.append(own["href"])
        if tag == "form":
            self.forms.append(Form(own.get("method", "get"), own.get("action", f"{PREFIX}{self.path}")))
        if self.forms and any(name == "form" for name, _, _ in self._open):
            self._add_field(tag, own)
        if tag not in _VOID:
            self._open.append((tag, own.get("role", ""), []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        name, role, words = self._open.pop()
        assert name == tag, f"</{tag}> closes <{name}>"
        text = " ".join("".join(words).split())
        if role == "status":
            self.notes.append(text)
        if tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.headings.append((tag, text))
        if tag == "textarea" and self.forms:
            self.forms[-1].fields[self._select] = "".join(words).removeprefix("\n")
        self._words.append(" ")

    def handle_data(self, data: str) -> None:
        for _, _, words in self._open:
            words.append(data)
        if not any(name in _UNSEEN for name, _, _ in self._open):
            self._words.append(data)

    def _add_field(self, tag: str, own: dict[str, str]) -> None:
        fields, name = self.forms[-1].fields, own.get("name", "")
        if tag == "input" and name:
            if own.get("type") not in {"checkbox", "radio"}:
                fields[name] = own.get("value", "")
            elif "checked" in own:
                fields[name] = own.get("value", "on")
        elif tag in {"select", "textarea"}:
            self._select = name
        elif tag == "option" and ("selected" in own or self._select not in fields):
            fields[self._select] = own.get("value", "")


@dataclass(frozen=True, slots=True)
class Pages:
    """A client that is signed in as one user. Addresses are relative to the prefix.

    Attributes:
        http: The client itself, with the cookie of the session, for requests that the methods do not make.
        form_key: The secret of the session's forms.
        sessions: The server's sessions.
    """

    http: httpx2.AsyncClient
    service: MemoryService
    sessions: Sessions
    user_id: str
    form_key: str

    async def get(self, path: str, **parameters: str) -> Shown:
        """Open an address, follow redirects, and return the page. Check that it is valid HTML."""
        return Shown(await self.http.get(f"{PREFIX}{path}", params=parameters or None))

    async def part(self, path: str, **parameters: str) -> str:
        """Return the part of a page that htmx loads."""
        headers = {"hx-request": "true"}
        return (await self.http.get(f"{PREFIX}{path}", params=parameters or None, headers=headers)).text

    async def submit(
        self,
        path: str,
        fields: Mapping[str, str | list[str]] | None = None,
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        **more: str,
    ) -> Shown:
        """Submit a form with the session's form key, follow the redirect, and return the page."""
        data: dict[str, Any] = {"form_key": self.form_key, **(fields or {}), **more}
        headers = {"origin": ORIGIN}
        return Shown(await self.http.post(f"{PREFIX}{path}", data=data, files=cast(Any, files), headers=headers))


@asynccontextmanager
async def open_pages(
    source: Settings | MemoryService,
    *,
    user_id: str = USER,
    only_reads: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sessions: Sessions | None = None,
    machine: OwnMachine | None = None,
) -> AsyncIterator[Pages]:
    """Yield a client of the pages that is signed in as ``user_id`` by a link of one use, like that of ``ui``.

    Args:
        source: The memories, or settings with which they are opened.
        user_id: Who is signed in.
        only_reads: Whether the person may only read.
        clock: The clock of the sessions, in seconds.
        sessions: The sessions of another client, so that both are served by one server.
        machine: The machine of the person, as `ui` passes it.
    """
    scopes = {Scope.READ} if only_reads else {Scope.READ, Scope.WRITE}
    signed_in = sessions or Sessions(clock)
    async with AsyncExitStack() as stack:
        if isinstance(source, Settings):
            source = await stack.enter_async_context(MemoryService(source))
        transport = httpx2.ASGITransport(make_page_app(source, signed_in, machine))
        http = await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url=ORIGIN, follow_redirects=True, timeout=30)
        )
        key = signed_in.one_time_key(Caller(user_id, frozenset(scopes)))
        opened = await http.get(ENTER, params={"key": key})
        assert opened.status_code == 200, opened.text
        form_key = Shown(opened).form("/sign-out").fields["form_key"]
        yield Pages(http, source, signed_in, user_id, form_key)
