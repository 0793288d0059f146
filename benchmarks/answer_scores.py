"""Scores of answers: LoCoMo's questions with their keys, and pure functions that compare an answer with a key."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import LOCOMO_CATEGORIES, DatasetError

# What a question asks for that the conversation does not tell; the only right answer is to say so.
ADVERSARIAL = 5
ANSWERABLE = (1, 2, 3, 4)
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# How answers say that they do not know. Only the beginning counts: what follows may say why.
_DECLINES = re.compile(
    r"\b(?:not (?:mentioned|specified|stated|said|known|told|available|given|discussed|recorded|clear)|unknown|no "
    r"(?:information|mention|record|memory|answer)|(?:do|does|did)(?: not|n['’]t) (?:know|say|mention|tell|have|recall"
    r"|remember|specify)|nothing (?:is|was) (?:said|mentioned|known)|cannot (?:say|tell)|can['’]t (?:say|tell))\b",
    re.IGNORECASE,
)
DECLINING_CHARS = 200


@dataclass(frozen=True, slots=True)
class Question:
    """A question of LoCoMo.

    Attributes:
        id: Conversation and place among its questions, from 0: ``conv-26:0``.
        category: LoCoMo's number, 1 to 5.
        answer: What the key says; empty for an adversarial question.
        wrong_answer: What an adversarial question wants to be told; else empty.
    """

    id: str
    conversation: str
    text: str
    category: int
    answer: str
    wrong_answer: str


def load_questions(file: Path) -> list[Question]:
    """Return all questions of a file, also those without valid evidence, in its order.

    Raises:
        DatasetError: It is not LoCoMo's JSON.
    """
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        return [_question(entry, place, asked) for entry in entries for place, asked in enumerate(entry["qa"])]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{file} is not LoCoMo's JSON ({type(error).__name__}: {error})"
        raise DatasetError(message) from error


def load_key(file: Path) -> dict[str, str]:
    """Return the corrected answers of a file: one JSON object of question ids and answers.

    Raises:
        DatasetError: It is not such an object.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): str(answer) for name, answer in found.items()}
    except (ValueError, AttributeError) as error:
        message = f'{file} is no corrected key; write one JSON object like {{"conv-26:0": "7 May 2023"}}'
        raise DatasetError(message) from error


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def token_f1(answer: str, key: str) -> float:
    """Return the F1 of the sets of words, 0 to 1."""
    given, right = set(words(answer)), set(words(key))
    common = len(given & right)
    return 2 * common / (len(given) + len(right)) if common else 0.0


def bleu_1(answer: str, key: str) -> float:
    """Return BLEU with single words only, 0 to 1: clipped precision, times the penalty for an answer that is shorter.

    Papineni et al. 2002, with one reference and no smoothing.
    """
    given, right = Counter(words(answer)), Counter(words(key))
    length = given.total()
    if not length:
        return 0.0
    penalty = min(1.0, math.exp(1 - right.total() / length))
    return penalty * (given & right).total() / length


def declines(answer: str) -> bool:
    """Return whether an answer says that it does not know."""
    return _DECLINES.search(answer[:DECLINING_CHARS]) is not None


def is_refused(answer: str, wrong_answer: str) -> bool:
    """Return whether an adversarial question was seen through: declined, and not answered as it wants to be."""
    wanted = " ".join(words(wrong_answer))
    return declines(answer) and not (wanted and wanted in " ".join(words(answer)))


def spread(questions: Sequence[Question], count: int | None) -> list[Question]:
    """Return so many questions, evenly spread; all of them for None."""
    if count is None or count >= len(questions):
        return list(questions)
    return [questions[place * len(questions) // count] for place in range(count)]


def _question(entry: Mapping[str, Any], place: int, asked: Mapping[str, Any]) -> Question:
    category = int(asked["category"])
    if category not in LOCOMO_CATEGORIES:
        message = f"category {category}"
        raise ValueError(message)
    is_adversarial = category == ADVERSARIAL
    return Question(
        id=f"{entry['sample_id']}:{place}",
        conversation=str(entry["sample_id"]),
        text=str(asked["question"]),
        category=category,
        answer="" if is_adversarial else str(asked["answer"]),
        wrong_answer=str(asked.get("adversarial_answer", "")) if is_adversarial else "",
    )
