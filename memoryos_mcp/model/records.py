"""Records of an exported memory, one JSON object per line; everything that cannot be derived again.

A file begins with a `Header` and ends with an `End`. Between them come, in this order: chains, segments, pages, facts,
traits, their history, corrections. Chains, segments and facts are numbered from 1 within the file. Pages are named by
their ``page_id``. Times are ISO 8601 with their offset. Absent and default values are left out.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, PlainValidator

from memoryos_mcp.model.ids import PAGE_PATTERN
from memoryos_mcp.model.knowledge import About, Kind
from memoryos_mcp.model.pages import (
    IDEMPOTENCY_KEY_MAX_CHARS,
    TURN_FIELDS,
    Source,
    Tier,
    Turn,
    meta_data_json,
    storable,
)
from memoryos_mcp.model.profile import Level

FORMAT = "memoryos"
FORMAT_VERSION = 1
# Fits SQLite's integers and every JSON parser.
_LARGEST = 2**53


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        msg = "no time with an offset"
        raise ValueError(msg)
    if timedelta(days=2) > moment - datetime.min.replace(tzinfo=UTC):
        msg = "a time outside the calendar"
        raise ValueError(msg)
    return moment


Moment = Annotated[datetime, PlainValidator(_moment), PlainSerializer(datetime.isoformat)]
Text = Annotated[str, AfterValidator(storable)]
Name = Annotated[Text, Field(min_length=1, max_length=IDEMPOTENCY_KEY_MAX_CHARS)]
PageId = Annotated[str, Field(pattern=PAGE_PATTERN)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Number = Annotated[int, Field(ge=1, le=_LARGEST)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Line):
    """The first line."""

    format: Literal["memoryos"]
    version: int


class ChainRecord(_Line):
    """Pages that continue one another."""

    kind: Literal["chain"]
    chain: Number
    summary: Text


class SegmentRecord(_Line):
    """Pages of one topic.

    Attributes:
        is_due: Whether it is to be read whatever its heat.
    """

    kind: Literal["segment"]
    segment: Number
    keywords: tuple[Text, ...]
    summary: Text
    summariser: Text
    n_visit: Count = 0
    l_interaction: Count = 0
    last_visit: Moment
    is_archived: bool = False
    is_due: bool = False


class PageRecord(_Line):
    """One exchange of a dialogue, in order of arrival.

    Attributes:
        organised_by: Who filed it.
        is_analysed: Whether it was read for the profile.
        read_by: Who read it for knowledge.
        learned_by: Who read it for the profile.
        is_degraded: Whether a fallback did so for an LLM that failed.
    """

    kind: Literal["page"]
    page_id: PageId
    session: Count
    tier: Tier
    chain: Number | None = None
    segment: Number | None = None
    occurred_at: Moment
    added_at: Moment
    idempotency_key: Name | None = None
    meta_data: dict[str, JsonValue] | None = None
    source: Source = Source.CONVERSATION
    gives_orders: bool = False
    is_analysed: bool = False
    read_by: Text | None = None
    organised_by: Text | None = None
    learned_by: Text | None = None
    is_degraded: bool = False
    user_input: Text = ""
    agent_response: Text = ""

    @property
    def turn(self) -> Turn:
        """What was said.

        Raises:
            ArgumentError: The meta data is too long or nested too deeply.
        """
        return Turn(
            **{name: getattr(self, name) for name in TURN_FIELDS} | {"meta_data": meta_data_json(self.meta_data)}
        )

    def with_turn(self, turn: Turn) -> "PageRecord":
        """Return the page with another text of what was said."""
        return self.model_copy(update=turn_values(turn))


class FactRecord(_Line):
    """A piece of knowledge, one that holds no more included.

    Attributes:
        assistant_id: Whose fact it is, if it is about an assistant.
        stated_until: Its end as it was stated, if a newer fact has ended it sooner.
        superseded_by: The fact that took its place.
        ended_by: ``user`` if a correction ended it.
        ended_after: The newest page at that time.
        evidence: The pages that state it.
        confirmed_in: The pages that only confirm it.
        said_since: Its beginning as it was said: a year, a month or a day.
        said_until: Its stated end in the same way.
    """

    kind: Literal["fact"]
    fact: Number
    about: About
    assistant_id: Text = ""
    text: Text
    slot: Text | None = None
    valid_from: Moment
    valid_until: Moment | None = None
    stated_until: Moment | None = None
    said_since: Text | None = None
    said_until: Text | None = None
    superseded_by: Number | None = None
    ended_by: Literal["user"] | None = None
    ended_after: PageId | None = None
    confirmed_at: Moment
    is_archived: bool = False
    learned_by: Text
    fact_kind: Kind = Kind.STATEMENT
    evidence: tuple[PageId, ...] = ()
    confirmed_in: tuple[PageId, ...] = ()


class TraitRecord(_Line):
    """One dimension of the profile."""

    kind: Literal["trait"]
    dimension: Text
    level: Level
    reason: Text
    updated_at: Moment
    learned_by: Text
    evidence: tuple[PageId, ...] = ()


class PastTraitRecord(_Line):
    """What a dimension of the profile was before.

    Attributes:
        ended_by: ``user`` if a correction ended it.
        evidence: The pages that it rested on then, if a correction ended it.
    """

    kind: Literal["past_trait"]
    dimension: Text
    level: Level
    reason: Text
    held_from: Moment
    held_until: Moment
    ended_by: Literal["user"] | None = None
    learned_by: Text = "extractive"
    evidence: tuple[PageId, ...] = ()


class NoteRecord(_Line):
    """A note of the memory about itself, such as the salt of the digests of what is not to be learned again."""

    kind: Literal["note"]
    key: Name
    value: Text


class RefusedRecord(_Line):
    """Something that is not to be learned again.

    Attributes:
        digest: Of what; hexadecimal.
        until: The last page from which it is not; None if none of them is left.
    """

    kind: Literal["refused"]
    digest: Annotated[str, Field(pattern="^([0-9a-f]{2}){1,64}$")]
    until: PageId | None = None


class End(_Line):
    """The last line.

    Attributes:
        counts: How many lines there are of each kind.
        sha256: Of all lines before, line ends included; hexadecimal.
    """

    kind: Literal["end"]
    counts: dict[str, Count]
    sha256: str


Record = (
    ChainRecord | SegmentRecord | PageRecord | FactRecord | TraitRecord | PastTraitRecord | NoteRecord | RefusedRecord
)
LongTermRecord = FactRecord | TraitRecord | PastTraitRecord | NoteRecord | RefusedRecord


def turn_values(turn: Turn) -> dict[str, Any]:
    """Return the fields of a `PageRecord` that hold what was said."""
    meta_data = None if turn.meta_data is None else json.loads(turn.meta_data)
    return {name: getattr(turn, name) for name in TURN_FIELDS} | {"meta_data": meta_data}
