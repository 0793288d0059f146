"""Finds the names by which the user and the assistant address each other.

For example, the message "Thanks, Ada!" contains the name of the other speaker. Queries often mention speakers by name,
but speakers rarely use their own names. A speaker's name in a query is therefore not used as a search term, but to
select that speaker's messages.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

# The name of an addressed person is at the start of a sentence, after a comma or after a greeting. A punctuation mark
# follows the name.
_GREETINGS = (
    "hey|hi|hello|dear|thanks|thank you|wow|bye|yeah|yes|no|oh|well|sorry|congrats|"
    "hallo|danke|liebe|lieber|bonjour|salut|merci|hola|gracias|ciao|grazie|olá|obrigado|obrigada|hoi|bedankt|"
    "привет|спасибо"
)
_ADDRESS = re.compile(r"\b[^\W\d_]++(?=[,.!?])")
_GREETING = re.compile(rf"\b(?i:{_GREETINGS})$")
_GREETING_MAX_CHARS = 12
# A word after this text is certainly the name of the person addressed. A word at the start of a sentence may not be a
# name, for example "Certainly,".
_BEFORE_CALL = re.compile(rf"(?:(?P<comma>,\s+)|\b(?i:{_GREETINGS})\s+)$")
_BEFORE_CALL_CHARS = 12
_NAME = r"((?:[^\W\d_a-z][\w'’-]*)(?: [^\W\d_a-z][\w'’-]*){0,2})"
# Words before a stated name, in several languages. The French word "moi" may follow them.
_BEFORE_NAME = (
    "i['’]?m|i am|is|are|name['’]s|called|named|calls? me|calls? you|go by|goes by|"
    "heiße|heisse|heißt|bin|nenne? mich|nenne? mich bitte|appelle|appelez|moi c['’]est|suis|nom est|"
    "llamo|llama|llámame|nombre es|soy|chiamo|chiama|chiamami|sono|nome è|nome é|chamo|chama|"
    "chame de|sou|sou [oa]|зовут"
)
# Statements of a name, such as "I'm called Ada", "The user's name is Ada", "Call me Ada" and "Ada here".
_STATED = (
    re.compile(rf"(?i:\b(?:{_BEFORE_NAME})(?:[- ]moi)?\b)[\s:]+{_NAME}"),
    re.compile(rf"^{_NAME} (?i:here|hier|ici|aquí|qui)\b"),
    re.compile(r"(?:我叫|我的名字是|私の名前は)(\w{1,8}?)(?:です|と申します)?(?=\W|$)"),
    re.compile(r"(?:저는|제 이름은) (\w{2,8}?)(?:입니다|이에요|예요)"),
)
_NO_NAMES = frozenset(re.split(r"[| ]", _GREETINGS))
_WORD = re.compile(r"[^\W\d_]+(?:['’]s\b)?")
_POSSESSIVE = re.compile(r"['’]s$")
NAME_MAX_CHARS = 40


@dataclass(frozen=True, slots=True)
class Speakers:
    """The names of the user and the assistant. A name is None if it is not known."""

    user: str | None = None
    agent: str | None = None

    @property
    def user_label(self) -> str:
        """Label of the user's messages, such as ``User (Ada)``."""
        return f"User ({self.user})" if self.user else "User"

    @property
    def agent_label(self) -> str:
        """Label of the assistant's messages, such as ``Assistant (Ben)``."""
        return f"Assistant ({self.agent})" if self.agent else "Assistant"


NAMELESS = Speakers()


def addressed(text: str) -> set[str]:
    """Return the words of ``text`` that may be the name of the person addressed.

    The words are in lower case. Some of them may not be names.
    """
    found = {
        match[0].lower()
        for match in _ADDRESS.finditer(text)
        if match[0][0].isupper() and 1 < len(match[0]) <= NAME_MAX_CHARS and _addresses(text[: match.start()])
    }
    return found - _NO_NAMES


def _addresses(before: str) -> bool:
    """Return whether the next word after the text ``before`` may be the name of the person addressed."""
    said = before.rstrip()
    if not before or said.endswith((".", "!", "?", ",", ":")) or "\n" in before[len(said) :]:
        return True
    return said != before and _GREETING.search(said, max(0, len(said) - _GREETING_MAX_CHARS)) is not None


def is_called(text: str, name: str) -> bool:
    """Return whether ``text`` certainly addresses a person by ``name``, as in "Thanks, Ada!" and "Hi Ada,".

    The comparison is case-sensitive.
    """
    end = 0
    while (start := text.find(name, end)) >= 0:
        end = start + len(name)
        before = _BEFORE_CALL.search(text[max(0, start - _BEFORE_CALL_CHARS) : start])
        # In "XML, Json, and more", Json is not a person.
        if before and (text[end : end + 1] in {"", ".", "!", "?"} or (text[end] == "," and not before["comma"])):
            return True
    return False


def stated_name(text: str) -> str | None:
    """Return the name that ``text`` states, as in "I'm called Ada"; None if the text does not state a name."""
    found = next(filter(None, (form.search(text) for form in _STATED)), None)
    return found[1].strip() if found and len(found[1]) <= NAME_MAX_CHARS else None


def capitalised(text: str) -> list[str]:
    """Return each capitalised word of ``text`` once, converted to lower case and without a possessive ending."""
    return list(dict.fromkeys(name for _, _, name in places(text)))


def without(text: str, names: Set[str]) -> str:
    """Return the query ``text`` without the given names, which must be in lower case.

    A name is removed only where it is capitalised. A query that contains no other words is returned unchanged.
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
    """Yield the start and end of each capitalised word, and the word in lower case without a possessive ending."""
    for match in _WORD.finditer(text):
        if match[0][0].isupper():
            yield match.start(), match.end(), _POSSESSIVE.sub("", match[0]).lower()
