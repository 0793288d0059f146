"""What a reader of another system's memory finds: pages, facts, and what it had to leave.

A reader is a module of `memoryos_mcp.transfer.importers`; `Reader` says what it offers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import Source


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One exchange of a dialogue, as it stood in the other system.

    Attributes:
        user_input: What the user said; may be empty if the assistant's side is not.
        agent_response: What the assistant answered; may be empty.
        occurred_at: When it was said: ISO 8601 text, or a datetime; without a zone it is in the user's, None is now.
        key: Its name, the same at every import and no other page's of any system: ``chatgpt:<conversation>:<message>``.
            At most 256 characters; hash what is longer. Two pages with an equal key are one.
        meta_data: Plain JSON to keep with it, such as the conversation's title.
        source: Where its text comes from.
    """

    user_input: str
    agent_response: str
    occurred_at: datetime | str | None
    key: str
    meta_data: Mapping[str, Any] | None = None
    source: Source = Source.CONVERSATION


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A piece of knowledge without the pages it was learned from.

    Attributes:
        about: Whom it is about.
        text: The fact in words.
        at: When it was learned; without a zone it is in the user's, None is now.
        key: Its name in the other system, to tell of it; facts of equal words are one.
    """

    about: About
    text: str
    at: datetime | None
    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that cannot be taken in.

    Attributes:
        reason: Why, in a few words without a quote: equal reasons are counted together ("an image").
        where: Where it stands, without dialogue text: "conversation 12, message 3".
    """

    reason: str
    where: str


Found = FoundPage | FoundFact | Skipped
# Takes how many bytes of the file or folder were read so far; shown as progress.
Tell = Callable[[int], None]


class Reader(Protocol):
    """A module that reads the memories of one other system, or of one of its export formats."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """What ``--format`` calls it: lower case, with hyphens."""
        ...

    def recognises(self, path: Path) -> bool:
        """Whether a file or folder looks like its own; reads little of it, and raises nothing for what is not."""
        ...

    def read(self, path: Path, tell: Tell) -> Iterator[Found]:
        """Yield what is there in order of time within each conversation, holding no more than one conversation.

        Raises:
            ImportFormatError: It cannot be read on: cut off, no such format, beyond a limit.
        """
        ...
