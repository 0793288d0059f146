"""Arguments of the tools. Error messages contain the argument's name and a remedy, but not the argument's value."""

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
        msg = "must be a whole number"
        raise ValueError(msg)  # noqa: TRY004 - pydantic accepts only a ValueError
    return value


Count = Annotated[int | None, BeforeValidator(_no_flag)]
# The same bounds as in the engine, which is not imported here because its libraries load slowly.
RESULTS: JsonDict = {"minimum": 1, "maximum": 100}
TOKENS: JsonDict = {"minimum": 100, "maximum": 1_000_000}


class Arguments(BaseModel):
    """Arguments of a tool. Unknown arguments are rejected. For an optional argument, null means the default."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in given.items() if value is not None or name not in optional}


class RetrieveMemoryArguments(Arguments):
    """Arguments of ``retrieve_memory``."""

    query: str = Field(description="Question or keywords.")
    relationship_with_user: str = Field(default="", description="Your role towards the user.")
    style_hint: str = Field(default="", description="Tone of your answer.")
    max_results: Count = Field(default=None, description="Usually omitted.", json_schema_extra=RESULTS)
    max_tokens: Count = Field(default=None, description="Usually omitted.", json_schema_extra=TOKENS)
    project: str = Field(default="", description="Project, if any.")
    explain: bool = Field(default=False, description="Say why each page was found.")


class GetUserProfileArguments(Arguments):
    """Arguments of ``get_user_profile``."""

    include_knowledge: bool = Field(default=True, description="Facts about the user.")
    include_assistant_knowledge: bool = Field(default=False, description="Facts about the assistant.")


class NoArguments(Arguments):
    """Arguments of a tool that takes no arguments."""


# An additional argument of every tool, for callers who may act for other users.
USER_ID = "user_id"
USER_ID_SCHEMA = {"type": "string", "description": "Owner of the memory. Default: the caller."}


def take_user_id(given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Split ``given`` into the user id and the other arguments. The user id is None if ``given`` does not contain it.

    Raises:
        ArgumentError: The user id is not a string. Null is rejected too, because it does not identify a user.
    """
    if USER_ID not in given:
        return None, given
    user_id = given[USER_ID]
    if not isinstance(user_id, str):
        raise ArgumentError(
            argument=USER_ID, problem="is not a string; pass a string, or leave it out to use your own memory"
        )
    return user_id, {name: value for name, value in given.items() if name != USER_ID}


def check(model: type[ArgumentsT], given: dict[str, Any], *, also_known: Sequence[str] = ()) -> ArgumentsT:
    """Validate ``given``, and return it as an instance of ``model``.

    Args:
        model: The class of the arguments.
        given: The arguments that the client sent.
        also_known: Further valid names, which an error message may suggest for a misspelt name.

    Raises:
        ArgumentError: An argument is missing, unknown or not valid.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        # Report a misspelt name first, because it may also cause an error about a missing argument.
        cause = min(found, key=lambda one: one["type"] != "extra_forbidden")
        raise _translated(cause, [*model.model_fields, *also_known]) from None


def _translated(error: ErrorDetails, known: list[str]) -> ArgumentError:
    argument = str(error["loc"][0]) if error["loc"] else "arguments"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(argument, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"valid arguments: {', '.join(known) or 'none'}"
        name = argument if argument.isidentifier() and len(argument) <= 64 else "arguments"
        return ArgumentError(argument=name, problem=f"is not a valid argument; {hint}")
    if error["type"] == "missing":
        return ArgumentError(argument=argument, problem="is required; pass a value")
    problem = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return ArgumentError(argument=argument, problem=problem[:1].lower() + problem[1:])
