"""Refusals by an LLM's endpoint, and the error or the plainer dialect that follows from each."""

from collections.abc import Iterator
from dataclasses import replace

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import Refusal
from memoryos_mcp.llm.api_errors import common_error
from memoryos_mcp.llm.providers import CapName, Dialect, Endpoint, FormRung

_OTHER_CAP: dict[CapName, CapName] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_PLAINER_RUNG = {FormRung.JSON_SCHEMA: FormRung.JSON_OBJECT, FormRung.JSON_OBJECT: FormRung.PROMPT}


class DialectError(ModelError):
    """The endpoint refused the dialect of a request.

    Args:
        text: What was wrong and what to do, fit for a user.
        plainer: Dialects to try instead, the likeliest first.
    """

    def __init__(self, text: str, *, plainer: tuple[Dialect, ...]) -> None:
        super().__init__(text)
        self.plainer = plainer


def error_of(said: Refusal, endpoint: Endpoint, dialect: Dialect) -> ModelError:
    """Return the error to raise for a refusal.

    Returns:
        A `PassingError` if the same request may succeed later, a `DialectError` if a plainer one may succeed now, and a
        bare `ModelError` if somebody must act.
    """
    where = endpoint.api.where
    if said.is_of_length:
        return _too_long(said, where, dialect)
    error = common_error(said, endpoint.api)
    if error is not None:
        return error
    text = f"{where} refused the request ({said.label}) in its plainest form too; check llm_model and llm_provider"
    return DialectError(text, plainer=tuple(_plainer(said, dialect)))


def _too_long(said: Refusal, where: str, dialect: Dialect) -> ModelError:
    text = f"{where}: the prompt is longer than the model's context ({said.label}); lower llm_max_prompt_tokens"
    if dialect.cap is not None and said.status != 413:
        # Several servers count the cap with the prompt; without it, the prompt may fit.
        return DialectError(text, plainer=(replace(dialect, cap=None),))
    return ModelError(text)


def _plainer(said: Refusal, dialect: Dialect) -> Iterator[Dialect]:
    """Yield dialects to try: first without the parameter that the refusal names, then with plainer forms."""
    names = said.param or said.text
    if "enable_thinking" in names:
        yield replace(dialect, forbids_thinking=not dialect.forbids_thinking)
    elif "temperature" in names and dialect.temperature is not None:
        yield replace(dialect, temperature=None)
    elif dialect.cap is not None and dialect.cap in names:
        yield replace(dialect, cap=_OTHER_CAP[dialect.cap])
        yield replace(dialect, cap=None)
    if dialect.rung in _PLAINER_RUNG:
        yield replace(dialect, rung=_PLAINER_RUNG[dialect.rung])
    yield Dialect(FormRung.PROMPT, cap=None, temperature=None)
