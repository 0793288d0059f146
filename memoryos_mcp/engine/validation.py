"""Checks the input of callers, and redacts secrets before the input is stored or used in a search."""

from collections.abc import Callable
from datetime import datetime

import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import NewTurn, checked, storable
from memoryos_mcp.model.redaction import Redaction, redact_turn
from memoryos_mcp.retrieval.fitting import TOKENS_AT_MOST
from memoryos_mcp.text.secrets import redact

QUERY_MAX_CHARS = 20_000
RESULTS_AT_MOST = 100
TOKENS_AT_LEAST = 100
# Checking this many characters takes 1 to 2 ms; longer pages are checked in a thread, to keep the event loop free.
CHECKED_AT_ONCE_CHARS = 20_000


class Validation:
    """Checks turns and redacts secrets in turns and queries, according to the settings."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock

    async def turn(self, new: NewTurn) -> Redaction:
        """Check a turn, and return it redacted according to the setting ``secret_policy``.

        Raises:
            ArgumentError: The turn is not valid, or the policy rejects a secret in it.
        """
        settings, now = self._settings, self._clock()

        def clean() -> Redaction:
            turn = checked(new, max_page_chars=settings.max_page_chars, zone=settings.zone, now=now)
            return redact_turn(turn, settings.secret_policy)

        is_long = len(new.user_input) + len(new.agent_response) > CHECKED_AT_ONCE_CHARS
        return await anyio.to_thread.run_sync(clean) if is_long else clean()

    def query(self, query: str) -> str:
        """Return a query with placeholders instead of secrets, because the query may be sent to an embedding API.

        If ``secret_policy`` is ``off``, secrets are not replaced.
        """
        query = storable(query)
        policy = self._settings.secret_policy
        return query if policy == "off" else redact(query).text


def check_query(query: str) -> None:
    """Raise ArgumentError if a query is too long."""
    if len(query) > QUERY_MAX_CHARS:
        raise ArgumentError(argument="query", problem=f"is longer than {QUERY_MAX_CHARS:,} characters; shorten it")


def check_results(max_results: int) -> None:
    """Raise ArgumentError if ``max_results`` is out of range."""
    check_range("max_results", max_results, 1, RESULTS_AT_MOST)


def check_tokens(max_tokens: int) -> None:
    """Raise ArgumentError if ``max_tokens`` is out of range."""
    check_range("max_tokens", max_tokens, TOKENS_AT_LEAST, TOKENS_AT_MOST)


def check_range(argument: str, value: int, low: int, high: int) -> None:
    """Raise ArgumentError unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise ArgumentError(argument=argument, problem=f"is out of range; use a value from {low:,} to {high:,}")
