"""Data sets: conversations with questions, read from three file formats.

LoCoMo's published JSON (Maharana et al. 2024) has turns of two speakers and cites turns as evidence. The neutral JSON
format has pages and cites pages. A life is TOML: the pages of one person, with ``questions.toml`` next to it.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
# The conversation does not contain the answer to an adversarial question, so retrieval cannot be measured with it.
SET_APART = frozenset({"adversarial"})
LOCOMO_KEY = "LoCoMo's published key, whose known faults are not corrected (99 answers, 57 citations of 1,540)"
NEUTRAL_KEY = "the gold_page_ids of the file"
LIFE_QUESTIONS, LIFE_KEY = "questions.toml", "the gold pages of the questions beside the file"

# "D8:6"; a few citations have a stray colon ("D:11:26") or stand several in one text ("D8:6; D9:17").
_CITATION = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
# Time between the pages of a session, so that their times show their order.
_PAGE_INTERVAL = timedelta(seconds=10)


class DatasetError(Exception):
    """The file is not in a known format."""


@dataclass(frozen=True, slots=True)
class Page:
    """One turn of each side.

    Attributes:
        page_id: Its id within the conversation.
        user_input: The first side; empty if the second speaker began.
        agent_response: The second side; empty if the turn was not answered.
        timestamp: When it was said; in UTC if the file has no zone.
    """

    page_id: str
    user_input: str
    agent_response: str
    timestamp: datetime

    @property
    def text(self) -> str:
        """Both sides, joined by a line end."""
        return "\n".join(side for side in (self.user_input, self.agent_response) if side)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the pages that hold its answer.

    Attributes:
        gold: Ids of those pages, at least one, without repeats.
    """

    text: str
    category: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Pages in order of time, and questions about them.

    Attributes:
        left_out: Number of questions without valid evidence; they are not among ``questions``.
        bad_citations: Number of citations of unknown turns or pages.
    """

    id: str
    pages: tuple[Page, ...]
    questions: tuple[Question, ...]
    left_out: int
    bad_citations: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """The conversations of one file.

    Attributes:
        key: The answer key from which the gold pages are.
        categories: Names of the question categories, in the order of reports.
    """

    name: str
    key: str
    categories: tuple[str, ...]
    conversations: tuple[Conversation, ...]


def load(file: Path) -> Dataset:
    """Return a file's conversations.

    Raises:
        DatasetError: The file is not in a known format.
        OSError: The file could not be read.
    """
    try:
        conversations, key = _read(file)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        message = f"{file} is neither LoCoMo's JSON nor the neutral format ({type(error).__name__}: {error})"
        raise DatasetError(message) from error
    found = {question.category for conversation in conversations for question in conversation.questions}
    known = [name for name in LOCOMO_CATEGORIES.values() if name in found]
    return Dataset(
        name=file.parent.name if file.suffix == ".toml" else file.stem,
        key=key,
        categories=(*known, *sorted(found.difference(known))),
        conversations=tuple(conversations),
    )


def _read(file: Path) -> tuple[list[Conversation], str]:
    if file.suffix == ".toml":
        return [_life(file)], LIFE_KEY
    entries = json.loads(file.read_text(encoding="utf-8"))
    if "conversation" in entries[0]:
        return [_locomo_conversation(entry) for entry in entries], LOCOMO_KEY
    return [_neutral_conversation(entry) for entry in entries], NEUTRAL_KEY


def pair_turns(turns: Sequence[Mapping[str, Any]], first_speaker: str) -> list[tuple[Mapping[str, Any], ...]]:
    """Return the turns of one session as pages, in order; every turn is in exactly one.

    A page is a turn of the first speaker and the following turn of the other one. A turn without a partner is a page of
    its own.
    """
    pages: list[tuple[Mapping[str, Any], ...]] = []
    for turn in turns:
        is_answer = turn["speaker"] != first_speaker
        if is_answer and pages and len(pages[-1]) == 1 and pages[-1][0]["speaker"] == first_speaker:
            pages[-1] = (*pages[-1], turn)
        else:
            pages.append((turn,))
    return pages


def cited_turns(evidence: Sequence[str]) -> list[str]:
    """Return the turn ids that an evidence list cites, without repeats; malformed ids are corrected.

    A text without a turn id is returned unchanged, so that it can be counted as a bad citation.
    """
    found = []
    for text in evidence:
        found += [f"D{session}:{turn}" for session, turn in _CITATION.findall(text)] or [text]
    return list(dict.fromkeys(found))


def _locomo_conversation(entry: Mapping[str, Any]) -> Conversation:
    pages, page_of_turn = [], {}
    for page, turn_ids in _locomo_pages(entry["conversation"]):
        pages.append(page)
        page_of_turn.update(dict.fromkeys(turn_ids, page.page_id))
    asked = [
        (item["question"], LOCOMO_CATEGORIES[item["category"]], cited_turns(item.get("evidence") or ()))
        for item in entry["qa"]
    ]
    return _conversation(str(entry["sample_id"]), pages, asked, page_of_turn)


def _locomo_pages(conversation: Mapping[str, Any]) -> Iterator[tuple[Page, list[str]]]:
    """Yield each page with the ids of its turns; its id is that of its first turn."""
    first_speaker = conversation["speaker_a"]
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    for number in numbers:
        # The file has no zone; any zone will do if it is the same for all turns.
        began = datetime.strptime(conversation[f"session_{number}_date_time"], _LOCOMO_TIME).replace(tzinfo=UTC)
        for place, turns in enumerate(pair_turns(conversation[f"session_{number}"], first_speaker)):
            sides = {turn["speaker"] == first_speaker: _turn_text(turn) for turn in turns}
            yield (
                Page(
                    page_id=turns[0]["dia_id"],
                    user_input=sides.get(True, ""),
                    agent_response=sides.get(False, ""),
                    timestamp=began + place * _PAGE_INTERVAL,
                ),
                [turn["dia_id"] for turn in turns],
            )


def _turn_text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [image: {caption}]" if caption else str(turn["text"])


def _neutral_conversation(entry: Mapping[str, Any]) -> Conversation:
    pages = [
        Page(
            page_id=page["page_id"],
            user_input=page["user_input"],
            agent_response=page["agent_response"],
            timestamp=_with_zone(datetime.fromisoformat(page["timestamp"])),
        )
        for page in entry["pages"]
    ]
    asked = [(item["question"], item["ability"], item["gold_page_ids"]) for item in entry["queries"]]
    return _conversation(str(entry["id"]), pages, asked, {page.page_id: page.page_id for page in pages})


def _life(file: Path) -> Conversation:
    said = tomllib.loads(file.read_text(encoding="utf-8"))["page"]
    asked = tomllib.loads((file.parent / LIFE_QUESTIONS).read_text(encoding="utf-8"))["question"]
    pages = [
        Page(
            page_id=page["id"],
            user_input=page["user"],
            agent_response=page["assistant"],
            timestamp=_with_zone(page["at"]),
        )
        for page in said
    ]
    questions = [(item["text"], "life", item["gold"]) for item in asked]
    return _conversation(file.parent.name, pages, questions, {page.page_id: page.page_id for page in pages})


def _conversation(
    name: str,
    pages: Sequence[Page],
    asked: Sequence[tuple[str, str, Sequence[str]]],
    page_of_citation: Mapping[str, str],
) -> Conversation:
    questions = []
    left_out = bad_citations = 0
    for text, category, cited in asked:
        gold = dict.fromkeys(page_of_citation[each] for each in cited if each in page_of_citation)
        bad_citations += sum(each not in page_of_citation for each in cited)
        if gold:
            questions.append(Question(text=text, category=category, gold=tuple(gold)))
        else:
            left_out += 1
    return Conversation(
        id=name,
        pages=tuple(pages),
        questions=tuple(questions),
        left_out=left_out,
        bad_citations=bad_citations,
    )


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
