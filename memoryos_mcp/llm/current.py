"""Requests that quote what was forgotten meanwhile: they are not sent, or their replies are discarded."""

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener
from memoryos_mcp.llm.reading import Forgettings, Reading


class CurrentChat:
    """A chat model that discards a request, or its reply, if something was forgotten since the memory was read.

    Args:
        chat: The model that answers.
        forgettings: Counts what was forgotten.
    """

    def __init__(self, chat: ChatModel, forgettings: Forgettings) -> None:
        self._chat = chat
        self._forgettings = forgettings

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request. See ``ChatModel.complete``.

        Raises:
            LeaseLostError: Something was forgotten since the memory was read for the request.
        """
        reading = await Reading.begun(self._forgettings)
        await _check(reading)
        reply = await self._chat.complete(request, listener)
        await _check(reading)
        return reply

    async def aclose(self) -> None:
        """Release connections."""
        await self._chat.aclose()


async def _check(reading: Reading) -> None:
    if not await reading.is_current():
        msg = "something was forgotten meanwhile; what is left is read anew"
        raise LeaseLostError(msg)
