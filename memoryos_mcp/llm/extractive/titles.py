"""Titles of segments, for display.

A title consists of the segment's keywords that are meaningful without context, unlike "going" or "act". A keyword that
also belongs to a larger segment comes last. Keywords that are adjacent in the summary are joined. If only one ordinary
word is left, the title is a quote from the summary instead. Titles are not stored, because they can be computed from
the segments.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from memoryos_mcp.model.segments import Segment
from memoryos_mcp.text.prose import shorten
from memoryos_mcp.text.terms import stem

TITLE_PARTS = 3
TITLE_MAX_CHARS = 60
# Minimum number of pages for a title of keywords. With fewer pages, a sentence is more informative.
PAGES_FOR_KEYWORDS = 3

# Keywords that are not used in titles: verbs, adjectives and abstract nouns that occur in any conversation. They are
# not stemmed.
LIGHT = frozenset(
    """
    accept accepted achieve act acting active activity adding affect affected allowed amazed amount answer apart
    appear applied apply appreciated arrive ask assist assistance attention average aware beat beginner behind
    bigger biggest bits black blast blue bold born bought brave bright bringing broke broken brought building
    built burst calm careful carry carrying catching challenge challenges challenging chance chase chatted
    chatting cheer cherish cherished cherishing chill choice choices choosing clean comfort comfortable comforting
    commit common compare complete complex concern concerned confidence confident confused connect connected
    connection connections contribute control convenient correct count courage crazy create creating creative
    crucial curious current daily dear dedicated dedication deep default define deserve deserves desire determined
    develop developed developing development dig direct discover discuss discussed doubt dream dreams drive driven
    drop due dynamic eager encourage encouraged encouragement encouraging energy engage engaged engaging enhance
    enthusiasm entire epic essential eventually every exact execution existing expand expected experience
    experienced experiences experiencing explored exploring express expressing extended face faced facing fall
    famous favorite fear feature features fight filled final finally fixed flow following foster free fresh
    friendly front fuel fulfilled fulfilling gain gave gentle genuine goal goals going gone gotten grateful
    gratitude green grow growing growth guidance handled happiness hard harder heart helped hit honest honestly
    hopeful huge hurdles image images immediate impact implement implementation implementing important improve
    improved improvement improvements improves improving incident increase increased info initial insightful
    inspiration inspirational inspire inspired inspires instance interest involve join joined joining journey joy
    joyful keen kid lack large lasting lead leading lean level link lively local loooong lose lost major manage
    managed managing match maximum measure meet memorable memories mentioned mess method minimum mistakes mix
    moment motivated motivating motivation moved moves named natural never noted obstacles occur offer offered
    offering offers opportunities opportunity organized original overcome passion passionate patience pay peace
    peaceful perfect perfectly performance perspective photo photos pink pleased pleasure plenty popular positive
    positivity possibility power powerful precaution prefer prepare prepared present pretty prevent previously
    priceless pride process progress project promise proper properly protect pumped pure purple push pushed
    pushing quality raise rate reach reached reaching react readability real reality realizing receive received
    recent recharge record red reduce refer reflect reflecting refresh refreshing relate relax relaxed relaxing
    released relief rely remain remaining remarkable remind reminded reminder reminds replace report represent
    representation require required reset respect respond response rest result results reward rewarding role rough
    safe satisfying save scared scary search send serious serve services setting shape shown sign silly slow smart
    smile smiles smooth solid soul special specifics spot spread standard stick stoked strain strange strength
    strengths stressful structure struggle stuck style success successful suit suits surprise surprised survive
    sweet switch system tackle talented task teach technique thankful thinking thoughtful thrill thrilled
    thrilling throw tons tough tougher track tremendous true trust unexpected unreal update updated updates
    valuable values vibe vibes view vital waking walking warm weird white wild winning wins wish wonder wonderful
    worries worst worth yellow
    """.split()
)
_QUOTE = re.compile(r'(?:^|(?<=[\s:]))"(.+?)"(?=\s"|$)')
_CAPTION = re.compile(r"\[[^\]]*\]?")
_WORD = re.compile(r"[^\W_]+(?:['’+.][^\W_]+|\+)*")
_ADVERB = re.compile(r"^(?!family$)[a-z]{3,}ly$")
_VERB_FORM = re.compile(r"^[a-z]{3,}(?:ed|ing)$")
_JOINS = re.compile(r"[ -]")
_OPENING = re.compile(
    r"(?:(?:but|and|so|also|yes|yep|yeah|well|step \d+)[,:]? +)?"
    r"(?:i(?:['’]m| am) (?:trying|planning|hoping|going|not sure how) to +|i(?:['’]d like| want| need) to +)?",
    re.IGNORECASE,
)


def titles(segments: Sequence[Segment]) -> dict[int, str]:
    """Return a mapping from each segment's number to its title.

    A title is empty only if the segment has neither keywords nor a summary. If several segments share a keyword, the
    keyword comes last in all their titles except that of the largest segment.

    Args:
        segments: All segments of a memory.
    """
    owners: dict[str, int] = {}
    for segment in sorted(segments, key=lambda one: (-one.page_count, one.segment)):
        for keyword in segment.keywords:
            owners.setdefault(stem(keyword), segment.segment)
    return {segment.segment: _title(segment, owners) for segment in segments}


def _title(segment: Segment, owners: Mapping[str, int]) -> str:
    quotes = [text for quote in _QUOTE.findall(segment.summary) if (text := _CAPTION.sub(" ", quote).strip())]
    telling = [keyword for keyword in segment.keywords if keyword not in LIGHT and not _ADVERB.match(keyword)]
    telling.sort(key=lambda keyword: (owners[stem(keyword)] != segment.segment, bool(_VERB_FORM.search(keyword))))
    parts = _parts(telling, quotes)
    is_told = segment.page_count >= PAGES_FOR_KEYWORDS and (len(parts) > 1 or not "".join(parts).islower())
    if parts and (is_told or not quotes):
        return ", ".join(parts)
    said = max(quotes, key=lambda quote: _known_words(quote, segment.keywords), default=segment.summary)
    return shorten(_without_opening(said), TITLE_MAX_CHARS) if said else ", ".join(segment.keywords[:TITLE_PARTS])


def _parts(keywords: Sequence[str], quotes: Sequence[str]) -> list[str]:
    """Return the parts of a title, at most `TITLE_PARTS`. Each part is a keyword, spelled as in ``quotes``.

    Keywords that are adjacent in a quote are joined into one part.
    """
    runs = sorted((run for quote in quotes for run in _runs(quote, frozenset(keywords))), key=len, reverse=True)
    parts: list[str] = []
    used: set[str] = set()
    for keyword in keywords:
        if keyword in used:
            continue
        run = next((run for run in runs if keyword in run and used.isdisjoint(run)), {keyword: keyword})
        used.update(run)
        parts.append("".join(run.values()))
        if len(parts) == TITLE_PARTS:
            break
    return parts


def _runs(text: str, keywords: frozenset[str]) -> Iterator[dict[str, str]]:
    """Yield the runs of adjacent keywords in a text.

    A run maps each keyword to its spelling in the text, including the space or hyphen before it.
    """
    run: dict[str, str] = {}
    end = -1
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if word not in keywords:
            continue
        joint = text[end : match.start()]
        if run and (word in run or not _JOINS.fullmatch(joint)):
            yield run
            run = {}
        run[word] = f"{joint if run else ''}{_as_written(match[0], is_first=match.start() == 0)}"
        end = match.end()
    if run:
        yield run


def _as_written(word: str, *, is_first: bool) -> str:
    return word.lower() if is_first and word[1:].islower() else word


def _without_opening(sentence: str) -> str:
    """Return a sentence without an opening such as "But I'm trying to"."""
    rest = _OPENING.sub("", sentence, count=1)
    return rest[:1].upper() + rest[1:] if rest else sentence


def _known_words(text: str, keywords: Sequence[str]) -> int:
    return len({word.lower() for word in _WORD.findall(text)} & set(keywords))
