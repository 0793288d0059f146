"""Arguments of the tools, checked so that an error names the argument and the fix and never repeats its text."""

import difflib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from memoryos_mcp.errors import ArgumentError

ArgumentsT = TypeVar("ArgumentsT", bound="Arguments")


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        msg = "give a whole number"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns only a ValueError into its own
    return value


def none_is_empty(value: object) -> object:
    """Return an empty text for null."""
    return "" if value is None else value


def _none_is_conversation(value: object) -> object:
    return value or "conversation"


def _read_object(value: object) -> object:
    """Return the object that a client sent as JSON text, as some do."""
    if isinstance(value, str):
        try:
            return json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            msg = "give an object, not text"
            raise ValueError(msg) from None
    return value


Count = Annotated[int | None, BeforeValidator(_no_flag)]
# A text that may be left out; null and "" mean the same.
OptionalText = Annotated[str, BeforeValidator(none_is_empty)]

SourceName = Annotated[Literal["conversation", "tool", "web", "document"], BeforeValidator(_none_is_conversation)]


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class AddMemoryArguments(Arguments):
    """One turn of dialogue to remember."""

    user_input: str = Field(description="What the user said, verbatim. May be empty if agent_response is not.")
    agent_response: str = Field(description="What the assistant answered. May be empty if user_input is not.")
    timestamp: OptionalText = Field(
        default="",
        description="When it was said: ISO 8601 or 'YYYY-MM-DD HH:MM:SS'. Empty: now. Without a zone: the user's.",
    )
    meta_data: Annotated[dict[str, Any] | None, BeforeValidator(_read_object)] = Field(
        default=None, description="Notes of your own to keep with the page, a JSON object."
    )
    idempotency_key: OptionalText = Field(
        default="", description="A name for this turn if it may be sent twice; turns with an equal name are kept once."
    )
    source: Annotated[Literal["conversation", "tool", "web", "document"], BeforeValidator(_none_is_conversation)] = (
        Field(
            default="conversation",
            description="Where the text comes from, if not from the conversation itself. Fetched text is kept and "
            "found like any other, but teaches nothing about the user.",
        )
    )


class RetrieveMemoryArguments(Arguments):
    """A question to the memory."""

    query: str = Field(description="What to look for: a question or a few words, in any language.")
    relationship_with_user: OptionalText = Field(
        default="friend", description="How the assistant stands to the user; handed back with the result."
    )
    style_hint: OptionalText = Field(default="", description="The tone of the answer; handed back with the result.")
    max_results: Count = Field(
        default=None, description="Pages at most, 1 to 100, beside the most recent ones. Default: 10 unless configured."
    )
    max_tokens: Count = Field(
        default=None,
        description="About how many tokens the texts may take, 100 to 1000000. Default: 2000 unless configured.",
    )
    explain: bool = Field(default=False, description="Whether to tell why each page was found.")


class GetUserProfileArguments(Arguments):
    """Which parts of the long-term memory to show."""

    include_knowledge: bool = Field(default=True, description="Whether to list the facts about the user.")
    include_assistant_knowledge: bool = Field(
        default=False, description="Whether to list the facts about the assistant."
    )


class NoArguments(Arguments):
    """Nothing to say."""


# Beside each tool's own arguments, for those who may name another user.
USER_ID = "user_id"
USER_ID_SCHEMA = {
    "type": "string",
    "title": "User Id",
    "description": "Whose memory. Default: the caller's own.",
}


def take_user_id(given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return which user is named, None if none is, and the other arguments.

    Raises:
        ArgumentError: It is no text. Null and "" are none either: whose memory it is must not be guessed.
    """
    if USER_ID not in given:
        return None, given
    user_id = given[USER_ID]
    if not isinstance(user_id, str):
        raise ArgumentError(argument=USER_ID, problem="should be a text; leave it out for your own memory")
    return user_id, {name: value for name, value in given.items() if name != USER_ID}


def check(model: type[ArgumentsT], given: dict[str, Any], *, beside: Sequence[str] = ()) -> ArgumentsT:
    """Return the arguments, checked.

    Args:
        model: What the tool takes.
        given: What the client gave.
        beside: Further arguments that the caller may give, already taken out.

    Raises:
        ArgumentError: The first argument that cannot be used.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        # A misspelt argument is the cause, the missing one that it should have been only the effect.
        cause = min(found, key=lambda one: one["type"] != "extra_forbidden")
        raise _translated(cause, [*model.model_fields, *beside]) from None


def _translated(error: ErrorDetails, known: list[str]) -> ArgumentError:
    argument = str(error["loc"][0]) if error["loc"] else "arguments"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(argument, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(known) or 'none'}"
        name = argument if argument.isidentifier() and len(argument) <= 64 else "arguments"
        return ArgumentError(argument=name, problem=f"no such argument; {hint}")
    if error["type"] == "missing":
        return ArgumentError(argument=argument, problem="is missing; give it")
    problem = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return ArgumentError(argument=argument, problem=problem[:1].lower() + problem[1:])
