"""Scores of answers: LoCoMo's questions with their keys, and pure functions that compare an answer with a key."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.datasets import LOCOMO_CATEGORIES, DatasetError

T = TypeVar("T")

# The conversation does not contain the answer to an adversarial question. The only right answer is to say so.
ADVERSARIAL = 5
ANSWERABLE = (1, 2, 3, 4)
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# Phrases that decline a question, at the beginning of an answer; the rest may give a reason.
_DECLINES = re.compile(
    r"\b(?:not (?:mentioned|specified|stated|said|known|told|available|given|discussed|recorded|clear)|unknown|no "
    r"(?:information|mention|record|memory|answer)|(?:do|does|did)(?: not|n['’]t) (?:know|say|mention|tell|have|recall"
    r"|remember|specify)|nothing (?:is|was) (?:said|mentioned|known)|cannot (?:say|tell)|can['’]t (?:say|tell))\b",
    re.IGNORECASE,
)
DECLINING_CHARS = 200
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class Question:
    """A question of LoCoMo.

    Attributes:
        id: Conversation and index among its questions, such as ``conv-26:0``.
        category: LoCoMo's number, 1 to 5.
        answer: The answer of the key; empty for an adversarial question.
        wrong_answer: The wrong answer that an adversarial question suggests; else empty.
    """

    id: str
    conversation: str
    text: str
    category: int
    answer: str
    wrong_answer: str


def load_questions(file: Path) -> list[Question]:
    """Return all questions of a file in order, including those without valid evidence.

    Raises:
        DatasetError: The file is not LoCoMo's JSON.
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
        DatasetError: The file does not contain such an object.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): str(answer) for name, answer in found.items()}
    except (ValueError, AttributeError) as error:
        message = f'{file} is not a corrected key; write one JSON object like {{"conv-26:0": "7 May 2023"}}'
        raise DatasetError(message) from error


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def token_f1(answer: str, key: str) -> float:
    """Return the F1 score of the sets of words, 0 to 1."""
    given, right = set(words(answer)), set(words(key))
    common = len(given & right)
    return 2 * common / (len(given) + len(right)) if common else 0.0


def is_exact(answer: str, key: str) -> bool:
    """Return whether an answer has the words of the key in the same order, without articles.

    Rajpurkar et al. 2016.
    """
    given, right = ([word for word in words(text) if word not in _ARTICLES] for text in (answer, key))
    return given == right


def bleu_1(answer: str, key: str) -> float:
    """Return BLEU-1, 0 to 1: the clipped precision of words, times a penalty for a short answer.

    Papineni et al. 2002, with one reference and no smoothing.
    """
    given, right = Counter(words(answer)), Counter(words(key))
    length = given.total()
    if not length:
        return 0.0
    penalty = min(1.0, math.exp(1 - right.total() / length))
    return penalty * (given & right).total() / length


def declines(answer: str) -> bool:
    """Return whether an answer declines the question."""
    return _DECLINES.search(answer[:DECLINING_CHARS]) is not None


def is_refused(answer: str, wrong_answer: str) -> bool:
    """Return whether an adversarial question was declined and not answered with its wrong answer."""
    wanted = " ".join(words(wrong_answer))
    return declines(answer) and not (wanted and wanted in " ".join(words(answer)))


def spread(questions: Sequence[T], count: int | None) -> list[T]:
    """Return a number of questions, evenly spread; all of them for None."""
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
