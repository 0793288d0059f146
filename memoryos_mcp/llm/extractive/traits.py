"""Finds traits without an LLM, by counting subjects and ways of writing in the user's messages.

The reason for a trait is a sentence that states the count. When later pages are counted, the count is read from this
sentence, and the sentence is updated. A reason that was written by an LLM or by the user is never changed.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources

from memoryos_mcp.llm.extractive.digests import is_question
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Level, Trait, TraitChange
from memoryos_mcp.text.prose import sentences, shorten
from memoryos_mcp.text.terms import is_unspaced, words

PAGES_MIN = 2
MEDIUM_PAGES = 3
HIGH_PAGES = 6
WORDS_SHOWN = 4
QUOTE_MAX_CHARS = 120
CUE_WORDS_MAX = 3
STYLE_PAGES_MIN = 5
STYLE_EVIDENCE_PER_CALL = 3
STYLE_EVIDENCE_MAX = 20

_ORDER = (Level.LOW, Level.MEDIUM, Level.HIGH)
_INTEREST_REASON = re.compile(
    r"Spoke of (?P<words>.+?) in \d+ pages (?:on (?P<on>\d{4}-\d\d-\d\d)"
    r"|from (?P<start>\d{4}-\d\d-\d\d) to (?P<end>\d{4}-\d\d-\d\d))"
    r', as in "(?P<quote>.*)"',
    re.DOTALL,
)
_FIRST_PERSON = re.compile(r"\b(?:I|I['’]\w+|my|ich|je|j['’]\w+|yo|mi|я|мой|моя)\b|我|私|僕|저|나는")
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_LAUGH = re.compile(
    r"\b(?:ha(?:ha)+h?|lol|lmao|rofl|just kidding|jk|hehe|jaja(?:ja)*|mdr|хаха\w*)\b|[😂🤣😆😹]|哈哈|ㅋㅋ|笑笑|www\b",
    re.IGNORECASE,
)
_CASUAL = re.compile(
    r"\b(?:\w+['’](?:m|re|ve|ll|d|s|t)|gonna|wanna|gotta|kinda|sorta|yeah|yep|nope|cuz|lol"
    r"|haha|hey|hmm|yup|dude|guys|ok|btw|tbh|omg)\b",
    re.IGNORECASE,
)
_PRACTICAL = re.compile(
    r"\b(?:how (?:do|can|should|could|would) (?:i|we)|how to|step[- ]by[- ]step|can you (?:help"
    r"|show|give|create|suggest|recommend)|could you (?:help|show|give|suggest|recommend)"
    r"|tips (?:for|on)"
    r"|help me|what should i|best way to|wie kann ich|comment (?:faire|puis-je)|cómo puedo)\b"
    r"|如何|怎么|怎样|どうやって|어떻게",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Message:
    """What the user said on a page.

    Attributes:
        page: The page.
        sentences: The sentences of the user's message. Lists are left out.
        text: The sentences, joined by spaces.
        word_count: Number of words in ``text``.
    """

    page: Page
    sentences: tuple[str, ...]
    text: str
    word_count: int


def learn_traits(pages: Sequence[Page], traits: Sequence[Trait]) -> tuple[TraitChange, ...]:
    """Return the traits that pages add or change.

    A new interest must occur on at least ``PAGES_MIN`` of the pages, because later calls do not include these pages.
    For a known interest, a single page is enough.

    Args:
        pages: Pages that have not been analysed yet.
        traits: The current profile.
    """
    messages = [message for message in map(_message, pages) if message.sentences]
    known = {trait.dimension: trait for trait in traits}
    return (*_interests(messages, known), *_styles(messages, known))


def _message(page: Page) -> _Message:
    own = tuple(sentences(page.user_input, with_lists=False))
    text = " ".join(own)
    return _Message(page, own, text, len(words(text)))


# Interests


@cache
def _cues() -> dict[str, frozenset[str]]:
    """Return a mapping from each cue to the dimensions that it indicates.

    A cue is one word, or several words joined by single spaces.
    """
    source = resources.files("memoryos_mcp.llm.extractive") / "data" / "interests.json"
    found: dict[str, set[str]] = {}
    for dimension, cues in json.loads(source.read_text(encoding="utf-8")).items():
        for cue in cues:
            found.setdefault(cue, set()).add(dimension)
    return {cue: frozenset(dimensions) for cue, dimensions in found.items()}


@cache
def _unspaced_cues() -> re.Pattern[str]:
    cues = sorted((cue for cue in _cues() if is_unspaced(cue)), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, cues)))


def _cues_in(text: str) -> Iterator[str]:
    cues = _cues()
    found = [word for word in words(text) if not is_unspaced(word)]
    for start, word in enumerate(found):
        if word in cues:
            yield word
        elif word.endswith("s") and word[:-1] in cues:
            yield word[:-1]
        for size in range(2, CUE_WORDS_MAX + 1):
            phrase = " ".join(found[start : start + size])
            if phrase in cues:
                yield phrase
    if not text.isascii():
        yield from _unspaced_cues().findall(text)


@dataclass(slots=True)
class _Interest:
    """The evidence for one dimension in the new pages.

    A cue is a word or phrase that indicates the dimension.

    Attributes:
        cues: A mapping from each cue to the number of sentences that contain it.
        pages: The pages that contain cues. The keys are the ``seq`` of the pages.
        quote: The sentence to quote, as a tuple of its score and its text. It has the highest score of all sentences.
    """

    cues: Counter[str]
    pages: dict[int, Page]
    quote: tuple[float, str]


def _interests(messages: Sequence[_Message], known: Mapping[str, Trait]) -> Iterator[TraitChange]:
    found: dict[str, _Interest] = {}
    for message in messages:
        for sentence in message.sentences:
            here: dict[str, set[str]] = {}
            for cue in _cues_in(sentence):
                for dimension in _cues()[cue]:
                    here.setdefault(dimension, set()).add(cue)
            for dimension, cues in here.items():
                interest = found.setdefault(dimension, _Interest(Counter(), {}, (float("-inf"), "")))
                interest.cues.update(cues)
                interest.pages[message.page.seq] = message.page
                score = len(cues) + 1.5 * bool(_FIRST_PERSON.search(sentence)) - 2.0 * is_question(sentence)
                if score > interest.quote[0]:
                    interest.quote = (score, sentence)
    for dimension in sorted(found):
        change = _interest_change(dimension, found[dimension], known.get(dimension))
        if change is not None:
            yield change


def _interest_change(dimension: str, interest: _Interest, trait: Trait | None) -> TraitChange | None:
    kept = trait.evidence if trait is not None else ()
    new = [page for page in interest.pages.values() if page.page_id not in kept]
    count = len(set(kept)) + len(new)
    if not new or count < PAGES_MIN:
        return None
    level = _ORDER[(count >= MEDIUM_PAGES) + (count >= HIGH_PAGES)]
    cues = [cue for cue, _ in sorted(interest.cues.items(), key=lambda item: (-item[1], item[0]))]
    days = [page.occurred_at.date() for page in new]
    quote = shorten(interest.quote[1], QUOTE_MAX_CHARS)
    if trait is not None:
        level = max(level, trait.level, key=_ORDER.index)
        written = _INTEREST_REASON.fullmatch(trait.reason)
        if written is None:
            return TraitChange(dimension, level, trait.reason, _seqs(new))
        cues = list(dict.fromkeys([*_listed(written["words"]), *cues]))
        days += [date.fromisoformat(day) for day in (written["on"], written["start"], written["end"]) if day]
        quote = written["quote"]
    return TraitChange(dimension, level, _interest_reason(cues[:WORDS_SHOWN], count, days, quote), _seqs(new))


def _interest_reason(cues: Sequence[str], count: int, days: Sequence[date], quote: str) -> str:
    spoken_of = " and ".join((", ".join(cues[:-1]), cues[-1])) if len(cues) > 1 else cues[0]
    first, last = min(days), max(days)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return f'Spoke of {spoken_of} in {count} pages {when}, as in "{quote}"'


def _listed(spoken_of: str) -> list[str]:
    head, _, last = spoken_of.rpartition(" and ")
    return [*head.split(", "), last] if head else [last]


def _seqs(pages: Sequence[Page]) -> tuple[int, ...]:
    return tuple(sorted(page.seq for page in pages))


# Styles


@dataclass(frozen=True, slots=True)
class _Style:
    """A way of writing. It is measured in each message, and the mean of the measurements determines the level.

    Attributes:
        dimension: Name of the profile dimension whose level is determined.
        measure: Function that returns the value measured in a message.
        medium: Minimum mean for the level Medium.
        high: Minimum mean for the level High.
        is_share: Whether each value is 0 or 1. The mean is then the share of messages with the value 1.
        shown_min: Minimum number of messages with a value above 0. With fewer messages, no new trait is learned.
        words: Template of the reason, with the fields ``{value}`` and ``{count}``.
    """

    dimension: str
    measure: Callable[[_Message], float]
    medium: float
    high: float
    is_share: bool
    shown_min: int
    words: str

    def level(self, mean: float) -> Level:
        return _ORDER[(mean >= self.medium) + (mean >= self.high)]

    def reason(self, mean: float, count: int) -> str:
        value = f"{round(100 * mean)}%" if self.is_share else f"{mean:.1f}"
        return self.words.format(value=value, count=count)

    def read(self, reason: str) -> tuple[float, int] | None:
        """Return the mean and the number of measured messages from a text that the method `reason` returned.

        Return None if the text has a different form.
        """
        pattern = re.escape(self.words).replace(r"\{value\}", r"(\d+(?:\.\d+)?)%?").replace(r"\{count\}", r"(\d+)")
        match = re.fullmatch(pattern, reason)
        if match is None:
            return None
        return float(match[1]) / (100 if self.is_share else 1), int(match[2])


def _shows(pattern: re.Pattern[str]) -> Callable[[_Message], float]:
    return lambda message: float(pattern.search(message.text) is not None)


def _is_emotional(message: _Message) -> float:
    return float("!" in message.text or "！" in message.text or _EMOJI.search(message.page.user_input) is not None)


_STYLES = (
    _Style(
        "Emotional Expression", _is_emotional, 0.25, 0.6, True, 0,
        "Exclamation marks or emoji in {value} of {count} messages.",
    ),
    _Style("Sense of Humor", _shows(_LAUGH), 0.1, 0.3, True, 2, "Laughs or jokes in {value} of {count} messages."),
    _Style(
        "Information Density", lambda message: float(message.word_count), 15, 40, False, 0,
        "Writes {value} words a message, over {count} messages.",
    ),
    _Style(
        "Language Style", _shows(_CASUAL), 0.4, 0.75, True, 0,
        "Casual: contractions or colloquial words in {value} of {count} messages.",
    ),
    _Style(
        "Practicality", _shows(_PRACTICAL), 0.2, 0.5, True, 2,
        "Asks how to do things, or for steps and tips, in {value} of {count} messages.",
    ),
)  # fmt: skip


def _styles(messages: Sequence[_Message], known: Mapping[str, Trait]) -> Iterator[TraitChange]:
    for style in _STYLES:
        change = _style_change(style, messages, known.get(style.dimension))
        if change is not None:
            yield change


def _style_change(style: _Style, messages: Sequence[_Message], trait: Trait | None) -> TraitChange | None:
    kept = frozenset(trait.evidence) if trait is not None else frozenset()
    new = [message for message in messages if message.page.page_id not in kept]
    before = style.read(trait.reason) if trait is not None else (0.0, 0)
    if before is None or not new or (trait is None and len(new) < STYLE_PAGES_MIN):
        return None
    values = {message.page.seq: style.measure(message) for message in new}
    if trait is None and sum(value > 0 for value in values.values()) < style.shown_min:
        return None
    mean, seen = before
    count = seen + len(values)
    mean = (mean * seen + sum(values.values())) / count
    telling = sorted(values, key=lambda seq: (-values[seq], seq))
    evidence = telling[: min(STYLE_EVIDENCE_PER_CALL, max(0, STYLE_EVIDENCE_MAX - len(kept)))]
    return TraitChange(style.dimension, style.level(mean), style.reason(mean, count), tuple(sorted(evidence)))
