"""Arguments of the tools. An error names the argument and the fix, and never quotes the argument's value."""

import difflib
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from memoryos_mcp.errors import ArgumentError

ArgumentsT = TypeVar("ArgumentsT", bound="Arguments")


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        msg = "give a whole number"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns only a ValueError into its own
    return value


Count = Annotated[int | None, BeforeValidator(_no_flag)]
# The engine's bounds, repeated here because the engine is imported only when it is needed.
RESULTS: JsonDict = {"minimum": 1, "maximum": 100}
TOKENS: JsonDict = {"minimum": 100, "maximum": 1_000_000}


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused, and one that may be left out may be null instead."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in given.items() if value is not None or name not in optional}


class RetrieveMemoryArguments(Arguments):
    """A question to the memory."""

    query: str = Field(description="A question or a few words, in any language.")
    relationship_with_user: str = Field(default="", description="Your role towards the user; handed back.")
    style_hint: str = Field(default="", description="Tone of your answer; handed back.")
    max_results: Count = Field(default=None, description="Pages wanted; usually left out.", json_schema_extra=RESULTS)
    max_tokens: Count = Field(default=None, description="Length at most; usually left out.", json_schema_extra=TOKENS)
    explain: bool = Field(default=False, description="Tell why pages were found.")


class GetUserProfileArguments(Arguments):
    """Which parts of the long-term memory to show."""

    include_knowledge: bool = Field(default=True, description="With facts about the user.")
    include_assistant_knowledge: bool = Field(default=False, description="With facts about the assistant.")


class NoArguments(Arguments):
    """Nothing to say."""


# An extra argument of every tool, for callers who may act as another user.
USER_ID = "user_id"
USER_ID_SCHEMA = {"type": "string", "description": "Whose memory. Default: the caller's own."}


def take_user_id(given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the named user (None if the argument is missing) and the other arguments.

    Raises:
        ArgumentError: The user is not a string. Null is an error too, because the user must not be guessed.
    """
    if USER_ID not in given:
        return None, given
    user_id = given[USER_ID]
    if not isinstance(user_id, str):
        raise ArgumentError(argument=USER_ID, problem="should be a text; leave it out for your own memory")
    return user_id, {name: value for name, value in given.items() if name != USER_ID}


def check(model: type[ArgumentsT], given: dict[str, Any], *, beside: Sequence[str] = ()) -> ArgumentsT:
    """Return the validated arguments; ``beside`` adds names to the suggestions for unknown ones.

    Raises:
        ArgumentError: An argument is missing, unknown or not valid.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        # A misspelt name comes first: it also causes the error about the missing argument.
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
