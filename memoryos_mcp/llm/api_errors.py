"""Translates error responses of OpenAI-compatible APIs into errors with our own messages.

Errors about the content of a request differ between LLMs and embedding models, so each client translates those
errors itself.
"""

import re

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import Api, ErrorResponse, PassingError

LONGEST_RETRY_AFTER_S = 60.0

_NO_SUCH_MODEL = re.compile(
    r"model_?not_?found|(?:no such|invalid|unknown) model|model\b.{0,80}(?:not exist|not found|unknown)"
)
# "billing" is not included, because rate-limit messages link to a page of that name.
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|credit balance is too low|arrearage")


def common_error(response: ErrorResponse, api: Api) -> ModelError | None:
    """Return the error to raise for an error response.

    Returns:
        A `PassingError` if the same request may succeed later, or a plain `ModelError` if the user must act. None if
        the API rejected the content of the request; the caller must then handle the response.
    """
    where, label, wording = api.where, response.label, api.wording
    if response.status == 402 or (response.status in {400, 403, 429} and _NO_CREDIT.search(response.text)):
        return ModelError(f"{where}: the account has no credit left ({label}); check its plan and billing")
    if response.status in {408, 409, 429} or response.status >= 500:
        return _passing(response, api)
    if response.status in {401, 403}:
        return ModelError(_key_refused(response, api))
    if response.status == 404 or (response.status in {400, 422} and _NO_SUCH_MODEL.search(response.text)):
        settings = f"{wording.model_setting} and {wording.url_setting}"
        return ModelError(f"{where} has no such model or path ({label}); check {settings}")
    if response.status in {400, 422}:
        return None
    if response.status < 400:
        return ModelError(f"{where} redirects to another address ({label}); set {wording.url_setting} to that address")
    return ModelError(f"{where} refused the request ({label}); check {wording.url_setting}, which usually ends in /v1")


def no_such_api(api: Api, kind: str) -> ModelError:
    """Return the error to raise for a response with status 200 that does not come from the expected kind of API.

    Args:
        api: The API at the configured address.
        kind: The expected kind of API, such as "a chat API".
    """
    return ModelError(
        f"{api.address} responded, but is not {kind}; check {api.wording.url_setting}, which usually ends in /v1, "
        "and any proxy in between"
    )


def _passing(response: ErrorResponse, api: Api) -> ModelError:
    where, label, wait_s = api.where, response.label, response.retry_after_s
    if wait_s > LONGEST_RETRY_AFTER_S:
        return ModelError(f"{where} asks for a pause of {wait_s:.0f} s ({label}); try again after the pause")
    if response.status == 429:
        text = f"{where} accepts no more calls at present ({label}); if this persists, {api.wording.rate_limit_advice}"
    else:
        text = (
            f"{where} failed ({label}), perhaps because of overload; "
            "try again later, or look for the reason in the server's log"
        )
    return PassingError(text, retry_after_s=wait_s)


def _key_refused(response: ErrorResponse, api: Api) -> str:
    if api.key is None:
        return f"{api.where} requires a key ({response.label}); set {api.key_source}"
    return (
        f"{api.where} refused the key ({response.label}); check {api.key_source}, which must be valid for this address"
    )
