"""Words of a text, as lexical search, keywords and overlap see them.

Scripts that are written without spaces (Chinese, Japanese, Thai, ...) and Korean, whose particles hang on its
words, are cut into overlapping pairs of characters, the usual way to search them without a dictionary. The last
character of a run stands alone as well, so that a single character is found, as a prefix, wherever it stands.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snowballstemmer.basestemmer import BaseStemmer

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’][^\W_{_UNSPACED}]+)?")
_POSSESSIVE = re.compile(r"['’]s$")

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing don down during each even ever few for from further get gets getting got
    had has have having he her here hers herself him himself his how i if in into is it its itself just let like ll
    may me might more most much must my myself no nor not now of off ok okay on once one only or other our ours
    ourselves out over own please really re same shall she should so some still such than thank thanks that the
    their theirs them themselves then there these they this those through to too under until up us ve very was we
    well were what when where which while who whom why will with would yeah yes you your yours yourself yourselves
    i'm i've i'd i'll you're you've you'll it's that's don't didn't doesn't can't won't isn't wasn't let's there's
    he's she's we're we've they're what's couldn't wouldn't shouldn't haven't hasn't aren't weren't
    """.split()
)
_per_thread = threading.local()


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where the words of a text stand and how they read, lower-cased; unspaced runs as pairs of characters.

    Args:
        text: In NFKC form.
    """
    for match in _WORD.finditer(text):
        word, start = match[0].lower(), match.start()
        if _UNSPACED_RUN.match(word):
            for place, pair in enumerate(_pairs(word)):
                yield start + place, start + place + len(pair), pair
        else:
            yield start, match.end(), _POSSESSIVE.sub("", word)


def words(text: str) -> list[str]:
    """Return the lower-cased words in order; runs of unspaced script as pairs of characters."""
    return [word for _, _, word in spans(_normal(text))]


def is_content(word: str) -> bool:
    """Whether a word carries meaning: no stop word, no single Latin letter or digit."""
    return word not in STOP_WORDS and (len(word) > 1 or not word.isascii())


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning."""
    return [word for word in words(text) if is_content(word)]


def query_words(query: str) -> list[str]:
    """Return what to search for, each once: the content words, or every word if there is no content word."""
    return list(dict.fromkeys(content_words(query) or words(query)))


def is_unspaced(word: str) -> bool:
    """Whether the word is a piece of a script that is searched by pairs of characters."""
    return _UNSPACED_RUN.fullmatch(word) is not None


def index_text(text: str) -> str:
    """Return the text as the lexical index takes it: unspaced runs as pairs and a last single, all else unchanged."""
    if text.isascii():
        return text
    return _UNSPACED_RUN.sub(lambda run: f" {' '.join([*_pairs(run[0]), run[0][-1]])} ", _normal(text))


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the form that an English word shares with its inflections; other scripts unchanged."""
    return str(_stemmer().stemWord(word)) if word.isascii() else word


def stems(text: str) -> list[str]:
    """Return the stems of the content words, in order, with repeats."""
    return [stem(word) for word in content_words(text)]


def _stemmer() -> "BaseStemmer":
    """Return this thread's stemmer: it keeps the word it works on in itself, so two threads must not share one."""
    stemmer = getattr(_per_thread, "stemmer", None)
    if stemmer is None:
        import snowballstemmer

        stemmer = _per_thread.stemmer = snowballstemmer.stemmer("english")
    return stemmer


def _normal(text: str) -> str:
    """Return compatibility forms (full-width letters, decomposed Hangul) as the plain ones."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
