"""Refusals: what an LLM's endpoint answers instead of a reply, and what to make of it.

A server's own words are read here to decide what to do, and go no further: they may repeat the key or the dialogue.
Every text of an error is ours.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from memoryos_mcp.errors import ModelError
from memoryos_mcp.providers import CapName, Dialect, Endpoint, FormRung

LONGEST_RETRY_AFTER_S = 60.0
# Long enough for any message; a body that repeats the whole prompt is not searched to its end.
TEXT_READ_CHARS = 20_000

_PLAIN_CODE = re.compile(r"[a-z_]{1,40}")
_CONTEXT_TOO_LONG = re.compile(
    r"context.?length|context.?(?:size|window)|prompt is too long|range of input length|too many (?:input )?tokens"
)
_NO_SUCH_MODEL = re.compile(
    r"model_?not_?found|(?:no such|invalid|unknown) model|model\b.{0,80}(?:not exist|not found|unknown)"
)
# Not "billing": messages of mere rate limits link to that page.
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|credit balance is too low|arrearage")
_OTHER_CAP: dict[CapName, CapName] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_PLAINER_RUNG = {FormRung.JSON_SCHEMA: FormRung.JSON_OBJECT, FormRung.JSON_OBJECT: FormRung.PROMPT}


class PassingError(ModelError):
    """A failure that may be over when tried again; its text is fit for a user.

    Args:
        text: What was wrong and what to do.
        retry_after_s: The pause that the server asks for, seconds; 0 if it asks for none.
    """

    def __init__(self, text: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class DialectError(ModelError):
    """The endpoint refused the request as it was put; its text is fit for a user.

    Args:
        text: What was wrong and what to do.
        plainer: Dialects to try instead, the likeliest first.
    """

    def __init__(self, text: str, *, plainer: tuple[Dialect, ...]) -> None:
        super().__init__(text)
        self.plainer = plainer


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with an HTTP status other than 200.

    Attributes:
        status: The HTTP status.
        code: The API's own name of the error; None if it gave none that is fit to be shown.
        param: The request's parameter that the API complains of; None if it named none.
        text: What it says, in lower case; not fit to be shown.
        retry_after_s: The pause it asks for, seconds, 0 if none.
    """

    status: int
    code: str | None = None
    param: str | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    retry_after_s: float = 0.0

    @property
    def label(self) -> str:
        """Status and code, fit for a message."""
        return f"HTTP {self.status}, {self.code}" if self.code else f"HTTP {self.status}"


def refusal(status: int, *, code: object, param: object, text: str, retry_after: str | None) -> Refusal:
    """Return an answer's refusal, with what is not fit for a message taken out of its code.

    Args:
        status: The HTTP status.
        code: The API's name of the error, if any.
        param: The parameter that the API names, if any.
        text: The whole body.
        retry_after: The header of that name, if any.
    """
    return Refusal(
        status=status,
        code=code if isinstance(code, str) and _PLAIN_CODE.fullmatch(code) else None,
        param=param.lower() if isinstance(param, str) and param else None,
        text=text[:TEXT_READ_CHARS].lower(),
        retry_after_s=retry_after_seconds(retry_after, now=datetime.now(UTC)),
    )


def retry_after_seconds(header: str | None, *, now: datetime) -> float:
    """Return the pause that a ``Retry-After`` header asks for, seconds, never negative; 0 if it asks for none.

    Args:
        header: Seconds or an HTTP date (RFC 9110, 10.2.3).
        now: The time, with its zone.
    """
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header).astimezone(UTC) - now).total_seconds()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def error_of(said: Refusal, endpoint: Endpoint, dialect: Dialect) -> ModelError:
    """Return the error to raise for a refusal.

    Returns:
        A `PassingError` if the same request may be answered later, a `DialectError` if a plainer one may be answered
        now, and a bare `ModelError` if somebody has to do something.
    """
    where = f"the LLM at {endpoint.address}"
    if _is_too_long(said):
        return _too_long(said, where, dialect)
    if said.status == 402 or (said.status in {400, 403, 429} and _NO_CREDIT.search(said.text)):
        return ModelError(f"{where}: the account has no credit left ({said.label}); check its plan and billing")
    if said.status in {408, 409, 429} or said.status >= 500:
        return _passing(said, where)
    if said.status in {401, 403}:
        return ModelError(_key_refused(said, where, endpoint))
    if said.status == 404 or (said.status in {400, 422} and _NO_SUCH_MODEL.search(said.text)):
        return ModelError(f"{where} has no such model or path ({said.label}); check llm_model and openai_base_url")
    if said.status in {400, 422}:
        text = f"{where} refused the request ({said.label}) in its plainest form too; check llm_model and llm_provider"
        return DialectError(text, plainer=tuple(_plainer(said, dialect)))
    if said.status < 400:
        return ModelError(f"{where} is elsewhere ({said.label}); set openai_base_url to where it redirects to")
    return ModelError(f"{where} refused the request ({said.label}); openai_base_url usually ends in /v1")


def _is_too_long(said: Refusal) -> bool:
    return said.status == 413 or (said.status in {400, 422, 500} and _CONTEXT_TOO_LONG.search(said.text) is not None)


def _too_long(said: Refusal, where: str, dialect: Dialect) -> ModelError:
    text = f"{where}: the prompt is longer than the model's context ({said.label}); lower llm_max_prompt_tokens"
    if dialect.cap is not None and said.status != 413:
        # Several servers add the cap to the prompt: without it the prompt itself may fit.
        return DialectError(text, plainer=(replace(dialect, cap=None),))
    return ModelError(text)


def _passing(said: Refusal, where: str) -> ModelError:
    if said.retry_after_s > LONGEST_RETRY_AFTER_S:
        return ModelError(f"{where} asks to wait {said.retry_after_s:.0f} s ({said.label}); it is asked again later")
    if said.status == 429:
        text = f"{where} takes no more calls just now ({said.label}); if it persists, lower llm_max_concurrent_calls"
    else:
        text = f"{where} failed ({said.label}); it may be overloaded, or its own log tells more"
    return PassingError(text, retry_after_s=said.retry_after_s)


def _key_refused(said: Refusal, where: str, endpoint: Endpoint) -> str:
    if endpoint.key is None:
        return f"{where} wants a key ({said.label}); set {endpoint.key_source}"
    return f"{where} refused the key ({said.label}); check {endpoint.key_source}, and that it is one for this address"


def _plainer(said: Refusal, dialect: Dialect) -> Iterator[Dialect]:
    """Yield dialects without what the refusal names; if it names nothing that was sent, plainer forms."""
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
