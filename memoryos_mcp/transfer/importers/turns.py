"""Converts chat messages to pages. A page joins consecutive messages of the user and the answers to them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memoryos_mcp.model.pages import NewTurn
from memoryos_mcp.transfer.importers.keys import digest, key

TITLE_MAX_CHARS = 500
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user or the assistant.

    Attributes:
        name: The message's id in the export, or empty if it has none.
    """

    is_users: bool
    text: str
    at: datetime | None
    name: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation.

    Attributes:
        system: The name of the chat service. The keys of the pages begin with this name.
        name: The conversation's id in the export, or empty if it has none. A title is not an id, because it may change.
        title: The conversation's title, or empty if it has none.
        at: When the conversation began, or None if it is unknown. It is used as the time of all pages before the first
            page that has its own time.
    """

    system: str
    name: str
    title: str
    at: datetime | None


@dataclass(slots=True)
class _Exchange:
    number: int
    user: list[str] = field(default_factory=list)
    assistant: list[str] = field(default_factory=list)
    at: datetime | None = None
    name: str = ""


def pages(chat: Chat, messages: Iterable[Message]) -> Iterator[NewTurn]:
    """Yield the pages of one conversation in order. Every message is on exactly one page.

    A page with the key of an already imported page is not imported again. The key contains the id of the page's last
    message (`Message.name`). If a later export contains further messages of the page, the last message is a different
    one. So the page has a new key, and is imported again.

    If the last message has no unique id, the key contains the page's number in the conversation and a hash of the page.
    Such a key changes if a later export has additional pages before the page.
    """
    at, named = chat.at, set()
    for exchange in _exchanges(messages):
        at = exchange.at or at
        # A repeated name cannot identify a page.
        name = "" if exchange.name in named else exchange.name
        named.add(name)
        yield _page(chat, exchange, name, at)


def from_unix(seconds: object) -> datetime | None:
    """Return the time that is ``seconds`` after the start of 1970 (UTC), or None if the number is not valid."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def from_iso(text: object) -> datetime | None:
    """Return the time in an ISO 8601 text, with or without a zone; None if the text is not valid."""
    try:
        return datetime.fromisoformat(text.strip()) if isinstance(text, str) else None
    except ValueError:
        return None


def meta_data(**values: str) -> Mapping[str, str] | None:
    """Return metadata for a page. Empty values are left out, and long values are cut. If all are empty, return None."""
    return {name: value[:TITLE_MAX_CHARS] for name, value in values.items() if value} or None


def _exchanges(messages: Iterable[Message]) -> Iterator[_Exchange]:
    exchange = _Exchange(1)
    for message in messages:
        if message.is_users and exchange.assistant:
            yield exchange
            exchange = _Exchange(exchange.number + 1)
        (exchange.user if message.is_users else exchange.assistant).append(message.text)
        exchange.at, exchange.name = exchange.at or message.at, message.name
    if exchange.user or exchange.assistant:
        yield exchange


def _page(chat: Chat, exchange: _Exchange, name: str, at: datetime | None) -> NewTurn:
    user, assistant = _BETWEEN.join(exchange.user), _BETWEEN.join(exchange.assistant)
    return NewTurn(
        user_input=user,
        agent_response=assistant,
        timestamp=at,
        idempotency_key=key(chat.system, chat.name, name or f"{exchange.number}-{digest(user, assistant, str(at))}"),
        meta_data=meta_data(conversation=chat.name, title=chat.title),
    )
