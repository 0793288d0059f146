"""One request for a web page: the signed-in person, the person's memory, and the response."""

import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.imports import Imports
from memoryos_mcp.engine.service import Memories, MemoryService
from memoryos_mcp.errors import ArgumentError, ConfigError, MemoryOSError, StorageError
from memoryos_mcp.model.ids import Kind, numbered_id, read_id, trait_id
from memoryos_mcp.model.knowledge import LEARNED_BY_RULES, LEARNED_BY_USER, Fact
from memoryos_mcp.model.pages import page_marks
from memoryos_mcp.retrieval import query_time
from memoryos_mcp.retrieval.budget import matches
from memoryos_mcp.retrieval.rendering import period
from memoryos_mcp.server.web import notes
from memoryos_mcp.server.web.guard import PREFIX, SIGN_IN, STATIC, session_of
from memoryos_mcp.server.web.sessions import Session
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import plain, topic_text

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent
STATIC_FOLDER = _FOLDER / "static"
_FOLDERS = {Kind.PAGE: "pages", Kind.SEGMENT: "topics", Kind.CHAIN: "chains", Kind.FACT: "facts", Kind.TRAIT: "traits"}
# A form that uploads a file has a single file. Other fields are texts of this length at most.
FORM_TEXT_BYTES = 2_000_000
# The views in the order of the menu: address, title.
MENU = (
    ("/", "Now"),
    ("/search", "Search"),
    ("/timeline", "Timeline"),
    ("/topics", "Topics"),
    ("/profile", "Profile and facts"),
    ("/forget", "Forget"),
    ("/chat", "Chat"),
    ("/exchange", "Import and export"),
    ("/status", "Status"),
)


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """The machine of the user who runs the command ``ui``, which serves the web pages to this user alone.

    Attributes:
        clients: Returns the name of each MCP client on the machine, and whether the client uses this program.
    """

    clients: Callable[[], Sequence[tuple[str, str]]]


@dataclass(slots=True)
class Visit:
    """A signed-in person's request for a web page.

    Attributes:
        memories: Access to memories with the person's rights.
        engine: The person's memory.
        form: The fields of a submitted form; empty if none was submitted.
        imports: The imports of uploaded files.
        machine: The person's machine if the command ``ui`` serves the web pages there; otherwise None.
        is_shared: Whether the next request may reach another server.
    """

    request: Request
    session: Session
    memories: Memories
    engine: MemoryEngine
    form: FormData
    imports: Imports
    machine: OwnMachine | None
    is_shared: bool

    @property
    def may_write(self) -> bool:
        """Whether the person may change the memory."""
        return self.session.caller.may_write

    @property
    def is_part(self) -> bool:
        """Whether a script requests only a part of a web page, to add this part to the page in the browser."""
        return "hx-request" in self.request.headers

    def asked(self, name: str, default: str = "") -> str:
        """Return a parameter of the address; ``default`` if it is missing."""
        return self.request.query_params.get(name, default)

    def given(self, name: str) -> str:
        """Return a text field of the form; empty if it is missing."""
        value = self.form.get(name)
        return value if isinstance(value, str) else ""

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a web page, or a part of a web page, made from a template; see `shown`."""
        found = [] if self.is_part else notes.shown(self.request, self.session)
        response = shown(template, self.request, status, visit=self, session=self.session, notes=found, **values)
        if not self.is_part:
            notes.drop(response, self.request)
        return response

    def go(self, path: str, note: str = "") -> Response:
        """Send the browser to another web page, where ``note`` is shown once. ``path`` is relative to `PREFIX`."""
        response = RedirectResponse(f"{PREFIX}{path}", status_code=303)
        if note:
            notes.put(response, self.request, self.session, note)
        return response


Handler = Callable[[Visit], Awaitable[Response]]


class _Endpoint:
    """The ASGI application of one address. The memory stays open until the response has been sent."""

    def __init__(self, service: MemoryService, address: "Address", machine: OwnMachine | None) -> None:
        self._service = service
        self._address = address
        self._machine = machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = session_of(scope)
        if session is None:
            await RedirectResponse(SIGN_IN, status_code=303)(scope, receive, send)
            return
        memories = self._service.as_seen_by(session.caller)
        response: Response
        try:
            async with (
                memories.user(session.caller.user_id) as engine,
                self._form(request) as form,
            ):
                imports, is_shared = self._service.imports, self._service.is_shared
                visit = Visit(request, session, memories, engine, form, imports, self._machine, is_shared)
                response = self._refused(visit) or await self._address.handler(visit)
                await response(scope, receive, send)
        except MemoryOSError as error:
            await _problem(request, session, error)(scope, receive, send)

    def _form(self, request: Request) -> AbstractAsyncContextManager[FormData]:
        # Only the size of submitted forms is limited.
        if self._address.method == "GET":
            return nullcontext(FormData())
        return request.form(max_files=1, max_part_size=FORM_TEXT_BYTES)

    def _refused(self, visit: Visit) -> Response | None:
        if self._address.method == "GET":
            return None
        given = visit.given("form_key") or visit.request.headers.get("x-form-key", "")
        if not secrets.compare_digest(given.encode(errors="replace"), visit.session.form_key.encode()):
            problem = (
                "This form is out of date, because you have signed in again. Nothing was changed. Open the page again "
                "and submit the form once more."
            )
            return visit.page("problem.html", 403, title="Please try again", problem=problem)
        if self._address.writes and not visit.may_write:
            problem = (
                "You may read this memory, but not change it. Nothing was changed. To change the memory, sign in "
                "with write access."
            )
            return visit.page("problem.html", 403, title="Only for reading", problem=problem)
        return None


def get(path: str, handler: Handler) -> "Address":
    """Return an address for GET requests, which change nothing."""
    return Address(path, handler, method="GET", writes=False)


def post(path: str, handler: Handler, *, writes: bool = True) -> "Address":
    """Return an address to which a form is submitted. If ``writes`` is true, the person needs write access."""
    return Address(path, handler, method="POST", writes=writes)


@dataclass(frozen=True, slots=True)
class Address:
    """An address, relative to `PREFIX`, and the function that answers requests for it."""

    path: str
    handler: Handler
    method: str
    writes: bool

    def route(self, service: MemoryService, machine: OwnMachine | None) -> Route:
        """Return the route of this address."""
        return Route(f"{PREFIX}{self.path}", _Endpoint(service, self, machine), methods=[self.method])


def number(text: str, argument: str) -> int:
    """Convert a text of one to nine digits to a number; raise ArgumentError about ``argument`` for other text."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ArgumentError(argument=argument, problem="is not a valid number; use at most nine digits")
    return int(text)


def shown(template: str, request: Request, status: int = 200, **values: Any) -> Response:
    """Return the response to a request: a template in ``templates/``, filled with ``values``."""
    context = {"visit": None, "session": None, "notes": []} | values
    text = _templates().get_template(template).render(request=request, **context)
    return HTMLResponse(text, status)


def _problem(request: Request, session: Session, error: MemoryOSError) -> Response:
    """Return an error page with the problem and what to do."""
    status, title = 500, "That did not work"
    match error:
        case ArgumentError():
            status, title = (404, "Not found") if request.path_params else (400, "That is not possible")
        case StorageError() | ConfigError():
            status, title = 503, "The memory cannot be used at the moment"
    if status >= 500:
        logger.warning("a page could not be shown: %s", type(error).__name__)
    return shown("problem.html", request, status, session=session, title=title, problem=str(error))


def prepare_views() -> None:
    """Compile all templates and what Search needs, so that the first visit of a view is as fast as later ones."""
    environment = _templates()
    for name in environment.list_templates():
        environment.get_template(name)
    query_time.load()


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"PREFIX": PREFIX, "MENU": MENU, "static": _static, "Kind": Kind}
    environment.filters |= {"day": _day, "minute": _minute, "amount": amount, "period": period, "marks": _marks}
    environment.filters |= {"plain": plain, "pieces": _pieces, "topic_text": topic_text}
    environment.filters |= {"learner": _learner, "memory_path": memory_path, "fact_path": fact_path}
    return environment


@cache
def _static(name: str) -> str:
    """Return the address of a static file. It contains a digest, so that browsers load a changed file again."""
    digest = hashlib.sha256((STATIC_FOLDER / name).read_bytes()).hexdigest()[:12]
    return f"{STATIC}{name}?{digest}"


def memory_path(memory_id: str) -> str:
    """Return the address of the web page that shows a memory."""
    if memory_id.startswith(trait_id("")):  # the name may be any text, even one that is not a valid id
        name = " ".join(memory_id.removeprefix(trait_id("")).split())
        return f"{PREFIX}/{_FOLDERS[Kind.TRAIT]}/{quote(name, safe='')}"
    return f"{PREFIX}/{_FOLDERS[read_id(memory_id).kind]}/{memory_id}"


def fact_path(fact: Fact) -> str:
    """Return the address of the web page that shows a fact."""
    return memory_path(numbered_id(Kind.FACT, fact.fact))


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _learner(name: str | None) -> str:
    """Return who learned a fact or trait, in words."""
    if name == LEARNED_BY_USER:
        return "you, by a correction"
    return "fixed rules, without an LLM" if name == LEARNED_BY_RULES else name or "unknown"


def _marks(page: Any, *, is_excerpt: bool = False) -> list[str]:
    return page_marks(page, is_excerpt=is_excerpt)


def _pieces(text: str, found: frozenset[str]) -> list[tuple[str, bool]]:
    """Divide a text into pieces, so that found words can be highlighted.

    Each piece has a flag that is true if the piece matches one of the word roots in ``found``.
    """
    pieces, begin = [], 0
    for start, end in sorted({*matches(text, found)}):
        if start >= begin:
            pieces += [(text[begin:start], False), (text[start:end], True)]
            begin = end
    return [*pieces, (text[begin:], False)]
