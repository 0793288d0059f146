"""Records of an exported memory, one JSON object per line. An export contains all data that cannot be recomputed.

The first line of a file is a `Header`, and the last line is an `End`. Between them are, in this order: chains,
segments, pages, facts, traits, past traits, named values for internal use, and facts and traits that must not be
learned again. Chains, segments and facts are numbered from 1 within the file. Pages are referenced by their
``page_id``. Times are in ISO 8601 with a UTC offset. Fields with their default value are omitted.
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
    project_name,
    storable,
)
from memoryos_mcp.model.profile import Level

FORMAT = "memoryos"
FORMAT_VERSION = 2
# Every JSON parser reads integers up to this value exactly. The value also fits in an SQLite integer.
_LARGEST = 2**53


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        msg = "must be a valid time with a UTC offset, such as 2024-05-31T09:00:00+02:00"
        raise ValueError(msg)
    if timedelta(days=2) > moment - datetime.min.replace(tzinfo=UTC):
        msg = "must not be earlier than 0001-01-03 in UTC"
        raise ValueError(msg)
    return moment


Moment = Annotated[datetime, PlainValidator(_moment), PlainSerializer(datetime.isoformat)]
Text = Annotated[str, AfterValidator(storable)]
Name = Annotated[Text, Field(min_length=1, max_length=IDEMPOTENCY_KEY_MAX_CHARS)]
PageId = Annotated[str, Field(pattern=PAGE_PATTERN)]
Project = Annotated[str, AfterValidator(project_name)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Number = Annotated[int, Field(ge=1, le=_LARGEST)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Line):
    """The first line of an export."""

    format: Literal["memoryos"]
    version: int


class ChainRecord(_Line):
    """A chain: a series of pages in which each page continues the conversation of an earlier one."""

    kind: Literal["chain"]
    chain: Number
    summary: Text


class SegmentRecord(_Line):
    """A segment, which contains the pages of one topic.

    Attributes:
        is_due: Whether the segment must be analysed next, regardless of its heat.
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
    """A page. The pages of an export are in order of arrival.

    Attributes:
        is_analysed: Whether the page has been read to update the profile.
        read_by: Name of the analyst that extracted facts from the page, such as the LLM's name; None if none has yet.
        organised_by: Name of the analyst that assigned the page to a chain and a segment; None if none has yet.
        learned_by: Name of the analyst that read the page to update the profile; None if none has yet.
        is_degraded: Whether the page was processed without the LLM because the LLM failed.
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
    project: Project | None = None
    is_analysed: bool = False
    read_by: Text | None = None
    organised_by: Text | None = None
    learned_by: Text | None = None
    is_degraded: bool = False
    user_input: Text = ""
    agent_response: Text = ""

    @property
    def turn(self) -> Turn:
        """The page's turn of dialogue.

        Raises:
            ArgumentError: The metadata is too long or nested too deeply.
        """
        return Turn(
            **{name: getattr(self, name) for name in TURN_FIELDS} | {"meta_data": meta_data_json(self.meta_data)}
        )

    def with_turn(self, turn: Turn) -> "PageRecord":
        """Return a copy of the record in which ``turn`` replaces the previous turn."""
        return self.model_copy(update=turn_values(turn))


class FactRecord(_Line):
    """A fact, current or ended.

    Attributes:
        assistant_id: Id of the assistant that the fact is about; empty for a fact about the user.
        stated_until: The stated end of the fact, as a time, even if the fact ended earlier; None if no end was stated.
        said_since: The stated start of the fact: a year, a month or a day, such as "2023-05"; None if no start was
            stated.
        said_until: The stated end of the fact, in the same form as ``said_since``; None if no end was stated.
        superseded_by: Number of the fact that replaced this one; None if no fact did.
        ended_by: ``user`` if the user ended the fact by a correction; None otherwise.
        ended_after: Id of the newest page at the time of that correction; None without a correction.
        evidence: Ids of the pages that state the fact.
        confirmed_in: Ids of the pages that repeat the fact.
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
    """A trait of the profile."""

    kind: Literal["trait"]
    dimension: Text
    level: Level
    reason: Text
    updated_at: Moment
    learned_by: Text
    evidence: tuple[PageId, ...] = ()


class PastTraitRecord(_Line):
    """A previous state of a trait.

    Attributes:
        ended_by: ``user`` if the user ended this state by a correction; None otherwise.
        evidence: Ids of the pages that supported this state; empty unless a correction ended the state.
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
    """A named value for internal use, such as the salt of the digests in `RefusedRecord`."""

    kind: Literal["note"]
    key: Name
    value: Text


class RefusedRecord(_Line):
    """A fact or trait that must not be learned again from pages older than the user's correction.

    Attributes:
        digest: Salted digest of the fact or trait, in hexadecimal.
        until: Id of the newest of these pages that still exists; None if none of them still exists.
    """

    kind: Literal["refused"]
    digest: Annotated[str, Field(pattern="^([0-9a-f]{2}){1,64}$")]
    until: PageId | None = None


class End(_Line):
    """The last line of an export.

    Attributes:
        counts: Number of records of each kind.
        sha256: SHA-256 of all previous lines, including their line ends, in hexadecimal.
    """

    kind: Literal["end"]
    counts: dict[str, Count]
    sha256: str


Record = (
    ChainRecord | SegmentRecord | PageRecord | FactRecord | TraitRecord | PastTraitRecord | NoteRecord | RefusedRecord
)
LongTermRecord = FactRecord | TraitRecord | PastTraitRecord | NoteRecord | RefusedRecord


def turn_values(turn: Turn) -> dict[str, Any]:
    """Return the fields of a `PageRecord` that contain the turn, as a mapping from field name to value."""
    meta_data = None if turn.meta_data is None else json.loads(turn.meta_data)
    return {name: getattr(turn, name) for name in TURN_FIELDS} | {"meta_data": meta_data}
