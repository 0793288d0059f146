"""Translates error responses of an LLM endpoint into exceptions.

A dialect is a set of request parameters, as defined in `providers`. If an endpoint refuses a dialect, the exception
contains simpler dialects to try next.
"""

from collections.abc import Iterator
from dataclasses import replace

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import ErrorResponse
from memoryos_mcp.llm.api_errors import common_error
from memoryos_mcp.llm.providers import CapName, Dialect, Endpoint, ReplyFormat

_OTHER_CAP: dict[CapName, CapName] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_PLAINER_FORMAT = {ReplyFormat.JSON_SCHEMA: ReplyFormat.JSON_OBJECT, ReplyFormat.JSON_OBJECT: ReplyFormat.PROMPT}


class DialectError(ModelError):
    """The endpoint refused the parameters of a request. Such a set of parameters is called a dialect.

    Args:
        text: The message for the user: what is wrong and what to do.
        simpler: Dialects to try instead. The dialect that is most likely to be accepted comes first.
    """

    def __init__(self, text: str, *, simpler: tuple[Dialect, ...]) -> None:
        super().__init__(text)
        self.simpler = simpler


def error_of(response: ErrorResponse, endpoint: Endpoint, dialect: Dialect) -> ModelError:
    """Return the error to raise for an error response.

    Returns:
        A `PassingError` if the same request may succeed later, a `DialectError` if a simpler request may succeed now,
        or a plain `ModelError` if the user must act.
    """
    where = endpoint.api.where
    if response.is_too_long:
        return _too_long(response, where, dialect)
    error = common_error(response, endpoint.api)
    if error is not None:
        return error
    text = f"{where} refused even the simplest request ({response.label}); check llm_model and llm_provider"
    return DialectError(text, simpler=tuple(_simpler(response, dialect)))


def _too_long(response: ErrorResponse, where: str, dialect: Dialect) -> ModelError:
    text = f"{where}: the prompt is longer than the model's context ({response.label}); lower llm_max_prompt_tokens"
    if dialect.cap is not None and response.status != 413:
        # Several servers add the cap (the token limit of the reply) to the length of the prompt. Without the cap, the
        # prompt may fit.
        return DialectError(text, simpler=(replace(dialect, cap=None),))
    return ModelError(text)


def _simpler(response: ErrorResponse, dialect: Dialect) -> Iterator[Dialect]:
    """Yield the dialects (sets of request parameters) to try next.

    The first dialects change or omit the parameter that the response names. The others use simpler reply formats.
    """
    names = response.param or response.text
    if "enable_thinking" in names:
        yield replace(dialect, disables_thinking=not dialect.disables_thinking)
    elif "temperature" in names and dialect.temperature is not None:
        yield replace(dialect, temperature=None)
    elif dialect.cap is not None and dialect.cap in names:
        yield replace(dialect, cap=_OTHER_CAP[dialect.cap])
        yield replace(dialect, cap=None)
    if dialect.reply_format in _PLAINER_FORMAT:
        yield replace(dialect, reply_format=_PLAINER_FORMAT[dialect.reply_format])
    yield Dialect(ReplyFormat.PROMPT, cap=None, temperature=None)
