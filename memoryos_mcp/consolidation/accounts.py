"""Stores a user's LLM usage in the user's memory. All processes share the counts, which survive restarts."""

from collections.abc import Callable
from datetime import datetime, tzinfo

from memoryos_mcp.llm.chat import Purpose, Usage
from memoryos_mcp.model.stats import UsageEntry
from memoryos_mcp.storage.interface import Store


class StoredAccount:
    """Counts a user's LLM calls and tokens in the user's memory. Implements ``user_chat.Account``.

    A day begins at midnight in the time zone ``zone``, or in the local time zone if ``zone`` is None.
    """

    def __init__(self, store: Store, *, zone: tzinfo | None, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._zone = zone
        self._clock = clock

    @property
    def today(self) -> str:
        """The current date, as ``YYYY-MM-DD``."""
        return self._clock().astimezone(self._zone).date().isoformat()

    async def spent_today(self) -> int:
        """Return the number of tokens in today's prompts and replies."""
        return sum(entry.prompt_tokens + entry.completion_tokens for entry in await self._store.usage(self.today))

    async def forget_epoch(self) -> int:
        """Return the forget epoch: the number of deletions in this memory so far."""
        return (await self._store.snapshot()).forget_epoch

    async def book(self, purpose: Purpose, usage: Usage | None) -> None:
        """Record an LLM call. If ``usage`` is None, the call counts as failed."""
        entry = UsageEntry(
            day=self.today,
            purpose=purpose,
            calls=1,
            failed_calls=usage is None,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            completion_tokens=usage.completion_tokens if usage else 0,
        )
        await self._store.add_usage(entry)
