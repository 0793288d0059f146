"""Traces of LLM calls. They contain the purpose, duration and token counts of a call, but no text of the dialogue."""

from opentelemetry.trace import SpanKind, StatusCode, Tracer

from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener


class TracedChat:
    """A chat model that passes calls on to another chat model and records each call as an OpenTelemetry span."""

    def __init__(self, chat: ChatModel, tracer: Tracer) -> None:
        self._chat = chat
        self._tracer = tracer

    @property
    def name(self) -> str:
        """Name of the chat model to which calls are passed on."""
        return self._chat.name

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request. See ``ChatModel.complete``."""
        with self._tracer.start_as_current_span(
            f"chat {request.purpose}",
            kind=SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": self._chat.name,
                "memoryos.purpose": request.purpose.value,
            },
            # Only the type of an error is recorded, because its message may contain private data.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                reply = await self._chat.complete(request, listener)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise
            span.set_attribute("gen_ai.usage.input_tokens", reply.usage.prompt_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.completion_tokens)
            return reply

    async def aclose(self) -> None:
        """Close the chat model to which calls are passed on."""
        await self._chat.aclose()
