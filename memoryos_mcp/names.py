"""Names: by what the two sides of a dialogue call each other.

Who says "Thanks, Ada!" tells what the other side is called. Questions speak of people by name, while the pages they
said it in do not; so such a name says whose side is asked about, and nothing about the subject.
"""

import re
from collections.abc import Iterator, Set

# A name stands between the beginning of a sentence, a comma or a word of greeting, and another mark.
_GREETINGS = (
    "hey|hi|hello|dear|thanks|thank you|wow|bye|yeah|yes|no|oh|well|sorry|congrats|"
    "hallo|danke|liebe|lieber|bonjour|salut|merci|hola|gracias|ciao|grazie|olá|obrigado|obrigada|hoi|bedankt|"
    "привет|спасибо"
)
_ADDRESS = re.compile(rf"(?:^|[.!?,:\n]\s*|\b(?i:{_GREETINGS})\s+)([^\W\d_]+)(?=[,.!?])")
_NO_NAMES = frozenset(re.split(r"[| ]", _GREETINGS))
_WORD = re.compile(r"[^\W\d_]+(?:['’]s\b)?")
_POSSESSIVE = re.compile(r"['’]s$")
NAME_MAX_CHARS = 40


def addressed(text: str) -> set[str]:
    """Return what may be names by which somebody is addressed in a text, lower-cased; many are no names at all."""
    found = {word.lower() for word in _ADDRESS.findall(text) if word[0].isupper() and 1 < len(word) <= NAME_MAX_CHARS}
    return found - _NO_NAMES


def capitalised(text: str) -> list[str]:
    """Return the words of a text that may be names, lower-cased, without possessive endings, each once."""
    return list(dict.fromkeys(name for _, _, name in places(text)))


def without(text: str, names: Set[str]) -> str:
    """Return a text without some names, or as it was if nothing else is in it.

    Args:
        text: A query.
        names: Lower-cased.
    """
    kept, end = [], 0
    for start, last, name in places(text):
        if name in names:
            kept.append(text[end:start])
            end = last
    if not kept:
        return text
    rest = " ".join("".join([*kept, text[end:]]).split())
    return rest if _WORD.search(rest) else text


def places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each word stands that may be a name, with its possessive ending, and the name, lower-cased."""
    for match in _WORD.finditer(text):
        if match[0][0].isupper():
            yield match.start(), match.end(), _POSSESSIVE.sub("", match[0]).lower()
