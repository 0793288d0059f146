"""Makes digests of pages without an LLM. Keywords are the most distinctive words; summaries are quoted sentences."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryos_mcp.model.pages import Page, page_text
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.text.prose import plain, sentences, shorten
from memoryos_mcp.text.terms import FOREIGN_STOP_WORDS, content_words, is_unspaced, stem

KEYWORDS_MAX = 8
SUMMARY_KEYWORDS = 3
QUOTES_MAX = 3
QUOTE_MAX_CHARS = 160
PAGES_MAX = 200
TOTAL_MAX_CHARS = 200_000
SIDE_MAX_CHARS = 2_000
USER_WEIGHT = 1.5
COVERED_AGAIN = 0.25
GREETING_WORDS_MAX = 12

# Words that are not used as keywords. They are not stemmed, so that "thinking" is excluded and "thinker" is not.
FILLER = frozenset(
    """
    able absolutely actually add added adding agree ago ah aha ahead almost alone along already alright always
    amazing anybody anyone anything anyway appreciate approach are area around aspect asked asking available away
    awesome back bad based basic beautiful became become becoming beginning believe best better big bit break bring
    bringing brings btw busy bye call called came can't cannot care case catch certain certainly chance change
    changed changes chat check checked checking choose chose clear clearly close come comes coming completely
    congrats congratulations consider considering continue cool could correct couple create created creating cut
    cute cuz day days deal decide decided def definitely details difference different difficult difficulty doing
    dude each early easier easily easy effective effort either else end enjoy enjoyed enjoying enough ensure
    ensuring especially etc even everybody everyone everything exactly example examples excited exciting expect
    explain explore extra face fab fact fair fantastic far fast fave feel feeling feelings feels felt figure find
    finding fine finish finished first fit five focus focused follow following for forward found four full fun funny
    future gave general give given gives giving glad gonna good goodbye got gotta grab great group guess guy guys
    guidance ha haha hahaha half handle happen happened happening happens happy hard having hear heard hello help
    helped helpful helping helps hey hi high hmm hold honestly hope hopefully hoping hour hours huge idea ideas im
    imagine important improve include included includes including incredible information inspiring instead
    interested interesting involve involved issue issues it item items job keep keeping keeps kept key kind kinda
    knew know knowing knows lately later lead learn learned learning least leave left less let lets letting life lil
    little live lol long look looked looking looks lot lots love loved lovely loves loving low luck lucky made main
    make makes making man many matter mean meaning means meant mention mentioned met might mind mine minute minutes
    moment moments month months morning mostly move moving nah name near necessary need needed needs new next nice
    night none nope note notice number numbers oh often ok okay old omg ones open option options order others
    overall page part particular past people perfect perhaps person personal pick picture pictures pic pics piece
    place places plan planning plans play plus point possible potential pretty prevent previous probably problem
    problems process proud provide provided provides put putting question questions quick quickly quite ready real
    realize realized really reason recently recommend regarding related remember right rock room run running said
    saw say saying says second see seeing seem seemed seems seen sense set several share shared sharing short should
    show showed showing shows side similar simple simply since single size situation small solution somebody someone
    something sometimes somewhere soon sorry sort sound sounds special specific spend spent stand start started
    starting starts stay step steps still stop strong struggling stuff such suggest suggestion suggestions super
    support sure surely sweet take taken takes taking talk talked talking team tell telling term test than thanks
    that'd thats them there'll thing things think thinking third those though thought thoughts three thx time times
    tip tips today together told tomorrow tonight took top tot total totally touch tough toward towards tried true
    truly try trying turn two type understand understanding unfortunately unique upcoming update use used useful
    user uses using usually value various via view wait wanna want wanted wanting wants watch way ways week weekend
    weekends weeks welcome well went whatever whenever wherever whether whoever whole wish within without woah
    wonder wonderful wondering word words work worked working works world worry worried worth would wow write ya yay
    yea year years yep yesterday yet yo young yup last maybe noticed watching watched besides throughout stands
    stand super anyhow lovely normal various overall thinkin thinking doin goin bring cheers here's i'm y'all gonna
    wow whoa wowza awww aww yeah hooray agreed nvm fyi january february march april may june july august september
    october november december monday tuesday wednesday thursday friday saturday sunday assistant approach approaches
    current currently line lines list access allow allows method methods return returns string true false null none
    self args code hi hiya mate buddy bro mrs mr ms dr st
    """.split()
)

_HAN_FUNCTION = (
    "的了是我你他她它们们在和有不这那就也都吗呢吧啊很会要说到去来没个一上下还着过把被让给对于为与及"
    "或但而且所以因为什么怎么样如果可以能想觉得天年月日点些里呀嘛哦嗯请谢您好多少大小又才再最从向每"
)
_RUN = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff々]+|[\u30a0-\u30ff]{2,}|[\uac00-\ud7af]+|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+"
)
_HAN_CUT = re.compile(f"[{_HAN_FUNCTION}]+")
_PARTICLE = re.compile(r"(?<=..)(?:에서는|에서|으로|에게|한테|까지|부터|은|는|이|가|을|를|에|의|로|와|과|도|만)$")
_NO_WORDS = re.compile(
    r"(?:https?://|www\.)\S+|\S+@\S+\.\w+|\b(?=\w*\d)[0-9a-fA-F-]{8,}\b|\w*_\w+|`[^`\n]*[^`\w\s-][^`\n]*`"
    r"|\S*[\\/=<>{}]\S*\w*[\\=<>{}]\S*"
)
_CALLED = re.compile(
    r"(?:\b(?:hey|hi|hello|thanks|thank you|wow|bye|yeah|yep|sure|oh|ok|okay|morning|night"
    r"|cool|nice|agreed?|congrats|right)[ ,]+"
    r"|,\s*)([^\W\d_]+)(?=\s*(?:[,.!?]|$))",
    re.IGNORECASE,
)
_MODIFIED = re.compile(
    r"\b(?:a|an|the|my|our|your|his|her|their|this|that|some|of|for|about|in|at|with) ([^\W\d_]+)", re.IGNORECASE
)
_CAPITAL_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_ADVERB = re.compile(r"^[a-z]{3,}ly$")
_VERB_FORM = re.compile(r"^[a-z]{3,}(?:ed|ing)$")
_GREETING = re.compile(
    r"^(?:hey|hi|hello|thanks|thank you|thx|wow|whoa|woah|bye|good (?:morning|evening|night)"
    r"|congrat|sure|certainly|absolutely|of course"
    r"|great|awesome|cool|nice|sounds|you['’]re welcome|no problem|that['’]s|yeah|yep|got it|i['’]m glad|glad|sorry"
    r"|hallo|danke|bonjour|merci|hola|gracias|你好|谢谢|こんにちは|ありがとう|안녕|감사|привет|спасибо)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\*\*|`|\]\(")
_QUESTION = re.compile(r"[?？؟][\"'”’)\s]*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its terms (see `PageTerms`) and its weight, which depends on the speaker."""

    text: str
    terms: frozenset[str]
    weight: float


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The sentences and terms of a page. A term is a stem, or a run of characters in a script without spaces.

    Attributes:
        sentences: The sentences of the user's and the assistant's messages.
        terms: A mapping from each term to its weight.
        forms: For each term, the words from which it is derived, and how often each word occurs.
    """

    sentences: tuple[Sentence, ...]
    terms: dict[str, float]
    forms: dict[str, Counter[str]]


def page_terms(page: Page, *, side_max_chars: int = SIDE_MAX_CHARS) -> PageTerms:
    """Return the sentences and terms of a page.

    Only the first ``side_max_chars`` characters of each of the page's two messages are read.
    """
    found: list[Sentence] = []
    counts: dict[str, float] = defaultdict(float)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    bonus: dict[str, float] = defaultdict(float)
    for text, weight in zip(page.sides_without_orders, (USER_WEIGHT, 1.0), strict=True):
        said = sentences(text[:side_max_chars], with_lists=True)
        whole = "\n".join(said)
        called = {name.lower() for name in _CALLED.findall(whole) if name[0].isupper()}
        nouns = {word.lower() for word in _MODIFIED.findall(whole)}
        names = {word.lower() for word in _CAPITAL_INSIDE.findall(whole)}
        for sentence in said:
            roots: set[str] = set()
            for word in _terms(sentence):
                if word in called:
                    continue
                root = stem(word)
                roots.add(root)
                counts[root] += weight
                forms[root][word] += 1
                bonus[root] = max(bonus[root], _term_weight(word, is_noun=word in nouns, is_name=word in names))
            found.append(Sentence(sentence, frozenset(roots), weight))
    terms = {root: bonus[root] * (1 + math.log(max(count, 1.0))) for root, count in counts.items()}
    return PageTerms(tuple(found), terms, dict(forms))


def make_digest(pages: Sequence[Page]) -> Digest:
    """Return a digest (keywords and summary) of pages.

    If there are more than ``PAGES_MAX`` pages, only that many evenly spaced pages are used.
    """
    pages = evenly(pages, PAGES_MAX)
    limit = min(SIDE_MAX_CHARS, max(400, TOTAL_MAX_CHARS // (2 * len(pages))))
    return digest_of(pages, [page_terms(page, side_max_chars=limit) for page in pages])


def digest_of(pages: Sequence[Page], said: Sequence[PageTerms]) -> Digest:
    """Return a digest (keywords and summary) of pages.

    Args:
        pages: The pages, at least one.
        said: The sentences and terms of each page.
    """
    weights = topic_terms(said)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for page in said:
        for root in weights.keys() & page.forms.keys():
            forms[root].update(page.forms[root])
    keywords = tuple(dict.fromkeys(_commonest_form(forms[root]) for root in weights))
    quotes = [shorten(quote, QUOTE_MAX_CHARS) for quote in _representative(said, weights)]
    if not quotes:
        quotes = [shorten(plain(page_text(*page.sides_without_orders)), QUOTE_MAX_CHARS) for page in pages[:1]]
    quoted = " ".join(f'"{quote}"' for quote in quotes)
    label = ", ".join(keywords[:SUMMARY_KEYWORDS])
    return Digest(keywords=keywords, summary=f"{label}: {quoted}" if label else quoted)


def topic_terms(said: Iterable[PageTerms], limit: int = KEYWORDS_MAX) -> dict[str, float]:
    """Return the terms whose total weight over all pages is highest: at most ``limit`` terms, the highest first.

    The result maps each term to its total weight.
    """
    total: dict[str, float] = defaultdict(float)
    for page in said:
        for root, weight in page.terms.items():
            total[root] += weight
    best = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return dict(best)


def evenly(pages: Sequence[Page], limit: int) -> Sequence[Page]:
    """Return at most ``limit`` evenly spaced pages, in order."""
    if len(pages) <= limit:
        return pages
    return [pages[i * len(pages) // limit] for i in range(limit)]


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return _QUESTION.search(sentence) is not None


def _terms(text: str) -> list[str]:
    text = _NO_WORDS.sub(" ", text)
    found = [word for word in content_words(text) if not is_unspaced(word) and _is_telling(word)]
    if not text.isascii():
        for run in _RUN.findall(text):
            found.extend(_unspaced_terms(run))
    return found


def _is_telling(word: str) -> bool:
    return (
        word not in FILLER
        and not any(char.isdigit() for char in word)
        and 2 < len(word) <= 30
        and (word not in FOREIGN_STOP_WORDS)
        and ("'" not in word and "’" not in word)
    )


def _unspaced_terms(run: str) -> list[str]:
    first = run[0]
    if "\uac00" <= first <= "\ud7af":
        word = _PARTICLE.sub("", run)
        return [word] if 2 <= len(word) <= 8 else []
    if "\u30a0" <= first <= "\u30ff" or first < "\u3000":
        return [run] if 2 <= len(run) <= 12 else []
    terms: list[str] = []
    for piece in _HAN_CUT.split(run):
        if 2 <= len(piece) <= 4:
            terms.append(piece)
        elif len(piece) > 4:
            terms.extend(piece[i : i + 2] for i in range(len(piece) - 1))
    return terms


def _term_weight(word: str, *, is_noun: bool, is_name: bool) -> float:
    if not word.isascii():
        return 1.0
    weight = 1.0 + 0.4 * is_noun + 0.3 * is_name
    if _ADVERB.match(word):
        weight *= 0.4
    elif _VERB_FORM.match(word) and not is_noun:
        weight *= 0.8
    return weight


def _commonest_form(forms: Counter[str]) -> str:
    return min(forms, key=lambda form: (-forms[form], len(form), form))


@dataclass(slots=True)
class _Candidate:
    order: int
    page: int
    text: str
    terms: frozenset[str]
    factor: float


def _representative(said: Sequence[PageTerms], weights: dict[str, float]) -> list[str]:
    candidates = _candidates(said, weights)
    wanted = min(QUOTES_MAX, 1 if len(said) == 1 else len(said))
    left = dict(weights)
    chosen: list[_Candidate] = []
    while candidates and len(chosen) < wanted:
        pages = {candidate.page for candidate in chosen}
        best = max(
            candidates,
            key=lambda candidate: (
                sum(left[root] for root in candidate.terms)
                * candidate.factor
                * (0.5 if candidate.page in pages else 1.0),
                -candidate.order,
            ),
        )
        if chosen and not any(left[root] == weights[root] for root in best.terms):
            break
        chosen.append(best)
        candidates = [candidate for candidate in candidates if candidate.text != best.text]
        for root in best.terms:
            left[root] = weights[root] * COVERED_AGAIN
    return [candidate.text for candidate in sorted(chosen, key=lambda candidate: candidate.order)]


def _candidates(said: Sequence[PageTerms], weights: dict[str, float]) -> list[_Candidate]:
    sayings = ((number, sentence) for number, page in enumerate(said) for sentence in page.sentences)
    return [
        _Candidate(
            order, number, sentence.text, sentence.terms & weights.keys(), sentence.weight * _quotability(sentence.text)
        )
        for order, (number, sentence) in enumerate(sayings)
    ]


def _quotability(text: str) -> float:
    size = len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 3)
    factor = 1.0 / (1.0 + max(0, size - 20) / 30) if size >= 4 else 0.3
    if is_question(text):
        factor *= 0.3
    if size <= GREETING_WORDS_MAX and _GREETING.match(text) is not None:
        factor *= 0.4
    if text.endswith(":") or _MARKUP.search(text) is not None:
        factor *= 0.4
    return factor
