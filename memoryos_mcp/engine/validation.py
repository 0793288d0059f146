"""Validation: the input of callers is checked and its secrets are removed, before it is stored or searched for."""

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
# Checking this many characters takes 1 to 2 ms; longer pages are checked in a thread, so that nobody else waits.
CHECKED_AT_ONCE_CHARS = 20_000


class Validation:
    """Checks the input of one user's callers as the settings say."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock

    async def turn(self, new: NewTurn) -> Redaction:
        """Return a checked turn without its secrets.

        Raises:
            ArgumentError: An argument is not valid, or contains a secret that the policy refuses.
        """
        settings, now = self._settings, self._clock()

        def clean() -> Redaction:
            turn = checked(new, max_page_chars=settings.max_page_chars, zone=settings.zone, now=now)
            return redact_turn(turn, settings.secret_policy)

        is_long = len(new.user_input) + len(new.agent_response) > CHECKED_AT_ONCE_CHARS
        return await anyio.to_thread.run_sync(clean) if is_long else clean()

    def asked(self, query: str) -> str:
        """Return a query without its secrets, unless the policy is off; it may be embedded by an API."""
        query = storable(query)
        policy = self._settings.secret_policy
        return query if policy == "off" else redact(query).text


def check_query(query: str) -> None:
    """Check a query's length.

    Raises:
        ArgumentError: It is too long.
    """
    if len(query) > QUERY_MAX_CHARS:
        raise ArgumentError(argument="query", problem=f"is over {QUERY_MAX_CHARS:,} characters; shorten it")


def check_results(max_results: int) -> None:
    """Check a number of results.

    Raises:
        ArgumentError: It is out of range.
    """
    check_range("max_results", max_results, 1, RESULTS_AT_MOST)


def check_tokens(max_tokens: int) -> None:
    """Check a budget of tokens.

    Raises:
        ArgumentError: It is out of range.
    """
    check_range("max_tokens", max_tokens, TOKENS_AT_LEAST, TOKENS_AT_MOST)


def check_range(argument: str, value: int, low: int, high: int) -> None:
    """Check that a number is in range.

    Raises:
        ArgumentError: It is not.
    """
    if not low <= value <= high:
        raise ArgumentError(argument=argument, problem=f"is out of range; give {low:,} to {high:,}")
