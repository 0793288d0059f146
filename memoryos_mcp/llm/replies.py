"""Extraction and validation of the JSON in an LLM's reply.

Models wrap JSON in code fences and prose, write their reasoning before the JSON, or omit commas. They send one object
instead of a list, or numbers as strings. All of that is accepted. Any other defect raises a `ReplyFormatError`. The
error message is shown to the model and to the user. The message says what is wrong, but quotes nothing from the reply.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.chat import ChatReply
from memoryos_mcp.text.prose import plain

Item = TypeVar("Item", bound=BaseModel)

# No valid reply is longer. The time to repair invalid JSON grows with its length.
REPLY_MAX_CHARS = 100_000
# Minimum share of a list's items that must be usable. Otherwise, the model must correct its reply.
RIGHT_SHARE = 0.5

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Reasoning that has a closing tag but no opening tag. Some servers do not send the opening tag.
_THOUGHT = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>", "<reasoning>")
_CLOSING = "</think>"
_OPENING = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_THOUGHTS_FIRST = re.compile(rf"\A(?:\s*{_THINKING.pattern})+", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```(?:json)?\s*(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
# Small models may repeat the same words three or more times in a row. Because of the word boundaries, the time for the
# search is proportional to the length of the text.
LOOP_MIN_CHARS = 40
_LOOP = re.compile(r"\b(\w(?:.{0,98}?\w)?)(?:\W{1,3}\1\b){2,}")
_WORD = re.compile(r"\w+")
# A text is searched for repetitions only if its share of distinct words is at most this value. In a text without
# repetitions, the share is about 0.9.
_VARIED_SHARE = 0.7
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_NOTHING = re.compile(
    r"\W*+(?:none|null|nil|n/?a|nothing|unknown|undefined"
    r"|no (?:new )?(?:facts?|information|data|changes?|traits?|topics?|keywords?|summary))?\W*",
    re.IGNORECASE,
)


def is_nothing(text: str) -> bool:
    """Return whether ``text`` is empty or means "nothing", such as "None." or "N/A"."""
    return _NOTHING.fullmatch(text) is not None


def json_object(reply: ChatReply) -> dict[str, Any]:
    """Return the JSON object in a reply.

    Raises:
        ReplyFormatError: The reply contains no JSON object, is too long, or was cut at a token limit.
    """
    if reply.is_cut:
        msg = "the reply was cut at the token limit; answer more briefly"
        raise ReplyFormatError(msg)
    if len(reply.text) > REPLY_MAX_CHARS:
        msg = f"the reply is over {REPLY_MAX_CHARS:,} characters; answer more briefly"
        raise ReplyFormatError(msg)
    if (bare := _parsed(reply.text)) is not None:
        # Strings in the JSON may contain reasoning tags such as "<think>", so no tags are removed.
        return bare
    text = _THOUGHT.sub("", _THINKING.sub("", reply.text))
    if not text.strip():
        msg = "the reply is empty; a JSON object is required"
        raise ReplyFormatError(msg)
    fenced = _FENCED.search(text)
    for candidate in (text, fenced[1] if fenced else "", _from_first_brace(text)):
        found = _parsed(candidate)
        if found is not None:
            return found
    return _mended(_from_first_brace(fenced[1] if fenced else text))


class Speech:
    """Removes a model's reasoning from the beginning of a streamed text reply.

    Later tags such as "<think>" are not removed, because the reply may be about such tags.
    """

    def __init__(self) -> None:
        self._head = ""
        self._has_begun = False

    def hear(self, piece: str) -> str:
        """Return the new text to show after a piece of the reply has arrived.

        The text is empty while reasoning arrives, and as long as it is unclear whether the reply begins with reasoning.
        """
        if self._has_begun:
            return piece
        is_thinking = _OPENING.match(self._head) is not None
        self._head += piece
        if is_thinking and ">" not in piece:
            return ""
        said = _THOUGHTS_FIRST.sub("", self._head, count=1).lstrip()
        if not said or any(mark.startswith(said.lower()) for mark in _OPENINGS):
            return ""
        self._head, self._has_begun = "", True
        return said


def said_aloud(text: str) -> str:
    """Return a complete text reply without the model's reasoning at its beginning."""
    said = _THOUGHTS_FIRST.sub("", text, count=1)
    # Some servers do not send the opening tag.
    _, mark, after = said.partition(_CLOSING) if _OPENINGS[0] not in said else ("", "", "")
    return (after if mark else said).strip()


def items(value: object) -> list[Any]:
    """Return the items of a JSON value.

    The items of a list are its elements. The items of an object are its values if all of them are objects; otherwise,
    the object itself is the only item. Other values have no items.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value.values()) if all(isinstance(one, dict) for one in value.values()) else [value]
    return []


def texts(value: object) -> list[str]:
    """Return the strings in a value, at any depth. Strings are split at commas, semicolons and line ends."""
    if isinstance(value, str):
        return [plain(part) for part in re.split("[,;\n、，]", value) if not is_nothing(part)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return []


def numbers(value: object) -> list[int]:
    """Return the first whole number in each number or string of a list, or in a single number or string."""
    parts = value if isinstance(value, list) else [value]
    found = [re.search(r"\d{1,6}", str(part)) for part in parts if isinstance(part, str | int | float)]
    return [int(match[0]) for match in found if match]


def text_of(value: object) -> str:
    """Return the text of a string or of a list of strings, without repeated sentences and phrases.

    The strings of a list are joined by spaces, and white space is reduced to single spaces. The result is empty for
    other values, and for text that means "nothing".
    """
    if isinstance(value, list):
        value = " ".join(part for part in value if isinstance(part, str))
    if not isinstance(value, str) or is_nothing(value):
        return ""
    text = plain(value)
    words = _WORD.findall(text)
    if len(set(words)) <= _VARIED_SHARE * len(words):
        text = _LOOP.sub(_once, text)
    return " ".join(dict.fromkeys(_SENTENCE_END.split(text)))


def checked(
    found: Iterable[object],
    what: str,
    model: type[Item],
    problem: Callable[[Item], str | None],
    right_share: float | None = RIGHT_SHARE,
) -> list[Item]:
    """Return the valid items of an LLM's reply. Invalid items are left out.

    Args:
        found: The items in the reply.
        what: The word for an item in error messages, such as "fact".
        model: The Pydantic model of an item.
        problem: Returns what is wrong with an item; None if the item is valid.
        right_share: Minimum share of valid items, from 0 to 1. With 0, one valid item is enough. With None, all items
            may be invalid.

    Raises:
        ReplyFormatError: Too few items are valid. The message describes the first invalid item.
    """
    good: list[Item] = []
    wrong: list[str] = []
    for place, value in enumerate(found):
        try:
            item = model.model_validate(value)
        except ValidationError as error:
            wrong.append(f"{what} {place + 1}: {_problem_text(error)}")
            continue
        reason = problem(item)
        if reason is None:
            good.append(item)
        else:
            wrong.append(f"{what} {place + 1}: {reason}")
    if wrong and right_share is not None and len(good) < max(1, right_share * (len(good) + len(wrong))):
        raise ReplyFormatError(wrong[0])
    return good


class Part(BaseModel):
    """Base class for parts of an LLM's reply. Fields that were not requested are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


Text = Annotated[str, BeforeValidator(text_of)]
Texts = Annotated[list[str], BeforeValidator(texts)]
Numbers = Annotated[list[int], BeforeValidator(numbers)]
Number = Annotated[int, BeforeValidator(lambda value: next(iter(numbers(value)), 0))]


def _once(loop: re.Match[str]) -> str:
    """Return the text that a match of `_LOOP` repeats, such as "I see" for "I see I see I see ...".

    If the repetition may be intended (it is short or has no letters), return the whole match.
    """
    is_loop = len(loop[0]) >= LOOP_MIN_CHARS and any(char.isalpha() for char in loop[1])
    return loop[1] if is_loop else loop[0]


def _from_first_brace(text: str) -> str:
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text[max(start, 0) :]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return found if isinstance(found, dict) else None


def _mended(text: str) -> dict[str, Any]:
    import json_repair

    if "{" not in text:
        msg = "the reply contains no JSON object, but one is required"
        raise ReplyFormatError(msg)
    try:
        found = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list):
        found = next((part for part in found if isinstance(part, dict)), None)
    if not isinstance(found, dict) or not found:
        msg = "the reply is not valid JSON; a JSON object is required"
        raise ReplyFormatError(msg)
    return found


def _problem_text(error: ValidationError) -> str:
    """Return a description of the first validation error, without a quote from the reply."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{first['loc'][0] if first['loc'] else 'it'} does not have the requested form ({first['type']})"
