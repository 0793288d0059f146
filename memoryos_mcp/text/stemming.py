"""Reduces the inflected forms of a word to one stem. The stemmer is selected by the script of the word.

Words in Cyrillic and Greek script are stemmed by Snowball as Russian and Greek. Words in Arabic script are stemmed as
Arabic by a light stemmer based on Larkey, Ballesteros and Connell, "Light stemming for Arabic information retrieval"
(2007). This works well enough for other languages in these scripts, because queries and pages are stemmed in the same
way.

Many languages use Latin script, and a query of three words does not reveal its language. So one light stemmer is used
for all of these languages except English. It is based on Savoy, "Light stemming approaches for the French, Portuguese,
German and Hungarian languages" (2006). For search, removing the endings of nouns and adjectives is about as useful as a
full stemmer for each language.
"""

import re
import threading
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snowballstemmer.basestemmer import BaseStemmer

_ARABIC = re.compile("[\u0620-\u065f\u066e-\u06ef\u0750-\u077f]+")
_CYRILLIC = re.compile("[\u0400-\u052f]+")
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]+")
_LATIN = re.compile("[a-z\u00df-\u024f\u1e00-\u1eff]+(?:['’][a-z\u00df-\u024f\u1e00-\u1eff]+)?")

# Arabic vowel signs, and the stroke that lengthens a word.
_ARABIC_SIGNS = re.compile("[\u0640\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]+")
_ARABIC_ACCUSATIVE = re.compile("(?:\u0627\u064b|\u064b\u0627)(?!\\w)")
_ARABIC_LETTERS = str.maketrans("أإآٱىیکة", "ااااييكه")
_ARABIC_ARTICLE = re.compile("^(?:ال(?=..)|(?:[وف]?[بك]|[وف])ال(?=...)|[وف]?لل(?=..))")
_ARABIC_AND = re.compile("^و(?=...)")
_ARABIC_PRONOUN = re.compile("(?<=...)(?:هما|كما|ها|هم|هن|كم|كن|نا|ني|ك)$|(?<=..)ي$")
_ARABIC_NUMBER = re.compile("(?<=...)(?:ان|ين|ون|ا)$")
_ARABIC_FEMININE = re.compile("(?<=...)(?:ات|ه|ت)$")

_LATIN_LIGATURES = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
_LATIN_ELISION = re.compile("^\\w{1,5}['’](?=\\w\\w\\w)")
_LATIN_ENDING = re.compile(
    "(?<=\\w\\w\\w)(?:ern|ers|ens|em|en|er|ees|ee|es|e|(?<=[lr])n|(?<=[bdfghklmnprt])s"  # in German, Dutch, French
    "|oes|ao|os|as|(?<![aeou])is|o|a|i|ar|ir|(?<=[ae]u)x)$"  # in Romance languages
)
_DOUBLED = re.compile("([^aeiou])\\1$")

_per_thread = threading.local()


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return the stem of a lower-cased word. ASCII words are stemmed as English, other words by their script."""
    if word.isascii():
        return _snowball("english", word)
    return script_stem(word) or (latin_stem(word) if is_latin(word) else word)


@lru_cache(maxsize=20_000)
def script_stem(word: str) -> str | None:
    """Return the stem of a lower-cased word in Cyrillic, Arabic or Greek script; None for a word in another script."""
    if _CYRILLIC.fullmatch(word):
        return _snowball("russian", word.replace("ё", "е"))
    if _ARABIC.fullmatch(word):
        return _arabic(word)
    if _GREEK.fullmatch(word):
        return _snowball("greek", word)
    return None


def is_latin(word: str) -> bool:
    """Return whether a lower-cased word has only Latin letters and at most one apostrophe."""
    return _LATIN.fullmatch(word) is not None


@lru_cache(maxsize=20_000)
def latin_stem(word: str) -> str:
    """Return the stem of a lower-cased word in Latin script in a language other than English.

    Accents, umlauts, elided articles such as ``l'`` and the most common endings are removed.
    """
    found = _LATIN_ENDING.sub("", folded(_LATIN_ELISION.sub("", word)))
    return _DOUBLED.sub(r"\1", found)


def folded(text: str) -> str:
    """Return ``text`` in lower case, without accents and vowel signs. Arabic letter variants become one letter."""
    text = text.lower()
    if text.isascii():
        return text
    text = _ARABIC_SIGNS.sub("", _ARABIC_ACCUSATIVE.sub("", text)).translate(_ARABIC_LETTERS)
    parts = unicodedata.normalize("NFD", text.translate(_LATIN_LIGATURES))
    return unicodedata.normalize("NFC", "".join(char for char in parts if not "\u0300" <= char <= "\u036f"))


def _arabic(word: str) -> str:
    """Return the stem of an Arabic word.

    The article, the prefix for "and", pronouns, and the endings for number and gender are removed. In a short word, the
    feminine ending ``ة`` is not removed, but replaced by ``ت``. So ``شقة`` (flat) and ``شقتي`` (my flat) have the same
    stem.
    """
    found = _ARABIC_AND.sub("", _ARABIC_ARTICLE.sub("", folded(word)))
    for ending in (_ARABIC_PRONOUN, _ARABIC_NUMBER, _ARABIC_FEMININE):
        found = ending.sub("", found)
    return f"{found[:-1]}ت" if found.endswith("ه") and len(found) > 1 else found


def _snowball(language: str, word: str) -> str:
    return str(_stemmer(language).stemWord(word))


def _stemmer(language: str) -> "BaseStemmer":
    """Return a stemmer for the current thread. Stemmers have state, so threads must not share them."""
    stemmer = getattr(_per_thread, language, None)
    if stemmer is None:
        import snowballstemmer

        stemmer = snowballstemmer.stemmer(language)
        setattr(_per_thread, language, stemmer)
    return stemmer
