"""A chat model for one user. It counts calls, enforces the token limit, and discards replies about forgotten pages."""

import logging
from dataclasses import dataclass
from typing import Protocol

from memoryos_mcp.errors import BudgetSpentError, LeaseLostError, StorageError
from memoryos_mcp.llm.chat import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ForgetEpochs,
    Listener,
    Purpose,
    Usage,
    quotes_forgotten,
)
from memoryos_mcp.model.pages import estimate_tokens

logger = logging.getLogger(__name__)


class Account(ForgetEpochs, Protocol):
    """One user's token counts and forget epoch (see `ForgetEpochs`). It can be shared between tasks."""

    async def spent_today(self) -> int:
        """Return the number of tokens in today's prompts and replies."""
        ...

    async def book(self, purpose: Purpose, usage: Usage | None) -> None:
        """Count a call and its tokens; ``usage`` is None if there was no reply."""
        ...


@dataclass(slots=True)
class Spent:
    """Totals of all calls with the same purpose since the process started.

    Calls without a reply are counted in ``failed_calls`` only.
    """

    calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Tally:
    """The totals of all users' calls since the process started, by purpose.

    Each user's own counts are stored with that user's memory.
    """

    def __init__(self) -> None:
        self.spent = {purpose: Spent() for purpose in Purpose}

    def add(self, purpose: Purpose, usage: Usage | None) -> None:
        """Count a call and its tokens; ``usage`` is None if there was no reply."""
        spent = self.spent[purpose]
        if usage is None:
            spent.failed_calls += 1
            return
        spent.calls += 1
        spent.prompt_tokens += usage.prompt_tokens
        spent.completion_tokens += usage.completion_tokens


class UserChat:
    """A chat model that counts its calls, and refuses further calls when the daily token limit is reached.

    If anything is forgotten after the memory was read for a request, `complete` raises an error. A request that was not
    sent yet is not sent. If it was already sent, its reply is discarded.

    Args:
        chat: The chat model that replies.
        account: The user's token counts and forget epoch.
        tally: The totals of all users.
        daily_token_limit: Maximum number of tokens per day; None for no limit. The last call of a day may exceed the
            limit.
    """

    def __init__(self, chat: ChatModel, account: Account, tally: Tally, daily_token_limit: int | None) -> None:
        self._chat = chat
        self._account = account
        self._tally = tally
        self._limit = daily_token_limit
        # Estimated number of prompt tokens in the calls that are running.
        self._asked_tokens = 0

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Send a request, count the call, and return the reply. See ``ChatModel.complete``.

        Raises:
            BudgetSpentError: The daily token limit is reached. No request was sent.
            LeaseLostError: Something was forgotten after the memory was read for the request.
            ModelError: There was no reply.
        """
        await self._check_current(request)
        needed = sum(estimate_tokens(message.content) for message in request.messages)
        await self._check_budget()
        self._asked_tokens += needed
        usage: Usage | None = None
        try:
            reply = await self._chat.complete(request, listener)
            usage = reply.usage
        finally:
            await self._book(request.purpose, usage)
            self._asked_tokens -= needed
        await self._check_current(request)
        return reply

    async def aclose(self) -> None:
        """Close the connections of the chat model."""
        await self._chat.aclose()

    async def _check_current(self, request: ChatRequest) -> None:
        if await quotes_forgotten(request, self._account):
            msg = "a part of the memory was forgotten after this request was prepared; the memory will be read again"
            raise LeaseLostError(msg)

    async def _check_budget(self) -> None:
        if self._limit is None:
            return
        spent = await self._account.spent_today()
        if spent + self._asked_tokens >= self._limit:
            under_way = (
                f", about {self._asked_tokens:,} more are needed for running calls" if self._asked_tokens else ""
            )
            msg = (
                f"{spent:,} tokens were spent today{under_way}, and llm_daily_token_limit is {self._limit:,}; "
                "increase this limit, or wait until tomorrow. Until then, the memory works without the LLM"
            )
            raise BudgetSpentError(msg)

    async def _book(self, purpose: Purpose, usage: Usage | None) -> None:
        """Count a call. If ``usage`` is None, the call counts as failed.

        If the count cannot be stored, only a warning is logged, so that the reply is not lost.
        """
        self._tally.add(purpose, usage)
        try:
            await self._account.book(purpose, usage)
        except StorageError as error:
            logger.warning(
                "today's token count is too low, because an LLM call could not be added (%s); check the storage",
                type(error).__name__,
            )
