"""Refusals of an OpenAI-compatible API: which of them may pass, and what to do about the others.

Refusals of the request's content differ between LLMs and embedding models, and are handled with those.
"""

import re

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import Api, PassingError, Refusal

LONGEST_RETRY_AFTER_S = 60.0

_NO_SUCH_MODEL = re.compile(
    r"model_?not_?found|(?:no such|invalid|unknown) model|model\b.{0,80}(?:not exist|not found|unknown)"
)
# Not "billing": rate-limit messages link to the page of that name.
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|credit balance is too low|arrearage")


def common_error(said: Refusal, api: Api) -> ModelError | None:
    """Return the error for a refusal that is not about the request's content; None for any other.

    Returns:
        A `PassingError` if the same request may succeed later, a bare `ModelError` if somebody must act.
    """
    where, wording = api.where, api.wording
    if said.status == 402 or (said.status in {400, 403, 429} and _NO_CREDIT.search(said.text)):
        return ModelError(f"{where}: the account has no credit left ({said.label}); check its plan and billing")
    if said.status in {408, 409, 429} or said.status >= 500:
        return _passing(said, api)
    if said.status in {401, 403}:
        return ModelError(_key_refused(said, api))
    if said.status == 404 or (said.status in {400, 422} and _NO_SUCH_MODEL.search(said.text)):
        settings = f"{wording.model_setting} and {wording.url_setting}"
        return ModelError(f"{where} has no such model or path ({said.label}); check {settings}")
    if said.status in {400, 422}:
        return None
    if said.status < 400:
        return ModelError(f"{where} is elsewhere ({said.label}); set {wording.url_setting} to where it redirects to")
    return ModelError(f"{where} refused the request ({said.label}); {wording.url_setting} usually ends in /v1")


def no_such_api(api: Api, kind: str) -> ModelError:
    """Return the error for an answer with status 200 that is not of the expected kind of API, such as "a chat API"."""
    return ModelError(
        f"{api.address} answers, but not as {kind}; {api.wording.url_setting} usually ends in /v1: "
        "check it, and what stands between"
    )


def _passing(said: Refusal, api: Api) -> ModelError:
    if said.retry_after_s > LONGEST_RETRY_AFTER_S:
        text = f"{api.where} asks to wait {said.retry_after_s:.0f} s ({said.label}); it is asked again later"
        return ModelError(text)
    if said.status == 429:
        text = f"{api.where} takes no more calls just now ({said.label}); if it persists, {api.wording.relief}"
    else:
        text = f"{api.where} failed ({said.label}); it may be overloaded, or its own log tells more"
    return PassingError(text, retry_after_s=said.retry_after_s)


def _key_refused(said: Refusal, api: Api) -> str:
    if api.key is None:
        return f"{api.where} wants a key ({said.label}); set {api.key_source}"
    return f"{api.where} refused the key ({said.label}); check {api.key_source}, and that it is one for this address"
