"""One user's way to the LLM: calls are counted, and neither a spent budget nor a forgotten memory is used."""

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
    """One user's token counts and forget epoch. Safe to share between tasks."""

    async def spent_today(self) -> int:
        """Return the tokens of today's calls, prompts and replies together."""
        ...

    async def book(self, purpose: Purpose, usage: Usage | None) -> None:
        """Add a call; usage is None if there was no reply."""
        ...


@dataclass(slots=True)
class Spent:
    """Totals of a purpose's calls since the process started; all but ``failed_calls`` are of answered calls only."""

    calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Tally:
    """Totals of all users' calls in this process, by purpose. Each user's own account is in the user's file."""

    def __init__(self) -> None:
        self.spent = {purpose: Spent() for purpose in Purpose}

    def add(self, purpose: Purpose, usage: Usage | None) -> None:
        """Add a call; usage is None if there was no reply."""
        spent = self.spent[purpose]
        if usage is None:
            spent.failed_calls += 1
            return
        spent.calls += 1
        spent.prompt_tokens += usage.prompt_tokens
        spent.completion_tokens += usage.completion_tokens


class UserChat:
    """A chat model whose calls are counted and end with the day's budget.

    A request is not sent, or its reply discarded, if something was forgotten since the memory was read for it.

    Args:
        chat: The model that answers.
        account: The user's token counts and forget epoch.
        tally: Counts the calls of all users.
        daily_token_limit: Tokens per day; None means no limit. The call that reaches the limit is still made.
    """

    def __init__(self, chat: ChatModel, account: Account, tally: Tally, daily_token_limit: int | None) -> None:
        self._chat = chat
        self._account = account
        self._tally = tally
        self._limit = daily_token_limit
        # Estimated prompt tokens of calls under way.
        self._asked_tokens = 0

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request, counted. See ``ChatModel.complete``.

        Raises:
            BudgetSpentError: The day's tokens are spent; no request was sent.
            LeaseLostError: Something was forgotten since the memory was read for the request.
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
        """Release connections."""
        await self._chat.aclose()

    async def _check_current(self, request: ChatRequest) -> None:
        if await quotes_forgotten(request, self._account):
            msg = "something was forgotten meanwhile; the remaining memory is read again"
            raise LeaseLostError(msg)

    async def _check_budget(self) -> None:
        if self._limit is None:
            return
        spent = await self._account.spent_today()
        if spent + self._asked_tokens >= self._limit:
            under_way = f" and {self._asked_tokens:,} under way" if self._asked_tokens else ""
            msg = (
                f"{spent:,} tokens are spent today{under_way}, and llm_daily_token_limit is {self._limit:,}; memory "
                "goes on without the LLM until tomorrow"
            )
            raise BudgetSpentError(msg)

    async def _book(self, purpose: Purpose, usage: Usage | None) -> None:
        """Count a call; if that fails, the reply that was paid for is still returned."""
        self._tally.add(purpose, usage)
        try:
            await self._account.book(purpose, usage)
        except StorageError as error:
            logger.warning("a call of the LLM could not be counted: %s", type(error).__name__)
