"""Messages for the next web page, such as "The fact is corrected.".

A message is stored in a cookie, because another server with the same database may send the next web page. The message
is signed with a secret of the session, so that only these servers can put a message on the page.
"""

import base64
from hmac import compare_digest

from starlette.requests import Request
from starlette.responses import Response

from memoryos_mcp.server.web.guard import add_cookie, cookie_name
from memoryos_mcp.server.web.sessions import Session

COOKIE = "memoryos_note"
KEPT_S = 60


def put(response: Response, request: Request, session: Session, note: str) -> None:
    """Add a cookie to ``response`` that lets the next web page show ``note``."""
    text = base64.urlsafe_b64encode(note.encode()).decode().rstrip("=")
    add_cookie(response.headers, request, COOKIE, f"{text}.{session.seal(f'note {text}')}", KEPT_S)


def shown(request: Request, session: Session) -> list[str]:
    """Return a list with the message to show on this web page; [] if there is none."""
    text, _, seal = request.cookies.get(cookie_name(request, COOKIE), "").partition(".")
    if not text or not compare_digest(seal.encode(), session.seal(f"note {text}").encode()):
        return []
    return [base64.urlsafe_b64decode(f"{text}===").decode()]


def drop(response: Response, request: Request) -> None:
    """Remove the cookie of the message that was shown, if there is one."""
    if cookie_name(request, COOKIE) in request.cookies:
        add_cookie(response.headers, request, COOKIE, "", 0)
