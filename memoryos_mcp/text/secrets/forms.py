r"""What a form of secret is: the words that announce it, and how it is found.

Every quantifier is bounded or possessive (``++``, ``{n,}+``), so that no text, however hostile, takes longer than in
proportion to its length. A secret may touch letters of a script without spaces, so borders are told by ASCII letters
and digits, not by ``\b``.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

START = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"

# Secrets that are drawn at random are at least this long. Most pages hold few words that are, so that these are looked
# at in their place.
LONG_WORD_CHARS = 16

Span = tuple[int, int]
# Takes a text and the same text in lower case, of the same length.
Find = Callable[[str, str], Iterator[Span]]
Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A form of secret.

    Attributes:
        kind: What it is called where it is left out, and in receipts.
        hints: One of these stands in every text that holds such a secret, in lower case unless ``is_word``; without
            any, only the form itself tells: then the long words are looked through first, if it is one of them.
        find: Yields where such secrets begin and end.
        is_word: Whether one word, without a blank, holds the hint and the secret.
        is_long: Whether the secret has at least ``LONG_WORD_CHARS`` without a blank.
        digits: How many digits such a secret has at least, in groups of three and more.
        may_match: Whether a text of these words may hold one; a quick look where there are no hints.
    """

    kind: str
    hints: tuple[str, ...]
    find: Find
    is_word: bool = False
    is_long: bool = False
    digits: int = 0
    may_match: Callable[[Sequence[str]], bool] | None = None


def key(kind: str, hints: str, form: str, check: Check | None = None) -> SecretPattern:
    """Return the form of a key that is told by its beginning; hints are separated by blanks."""
    find = finding(re.compile(START + form), check)
    return SecretPattern(kind, tuple(hints.split()), find, is_word=True, is_long=True)


def named(kind: str, hints: str, form: str, check: Check | None = None, *, is_long: bool = True) -> SecretPattern:
    """Return the form of a secret that a name before it tells; it begins with a hint. They are separated by commas."""
    names = tuple(hints.split(","))
    begins = re.compile("|".join(map(re.escape, names)))
    return SecretPattern(kind, names, finding(re.compile(form, re.IGNORECASE), check, begins), is_long=is_long)


def finding(form: re.Pattern[str], check: Check | None = None, names: re.Pattern[str] | None = None) -> Find:
    """Return what finds a form in a text.

    Args:
        form: What it looks like; the group ``secret`` if only that part is left out.
        check: Whether what has the form is one; sees the secret part.
        names: Finds, in the text in lower case, where the form may begin; None if the form is looked for everywhere.
    """
    secret = "secret" if "secret" in form.groupindex else 0

    def find(text: str, lower: str) -> Iterator[Span]:
        for match in _matches(form, names, text, lower):
            if check is None or check(match[secret]):
                yield match.span(secret)

    return find


def _matches(form: re.Pattern[str], names: re.Pattern[str] | None, text: str, lower: str) -> Iterator[re.Match[str]]:
    if names is None:
        yield from form.finditer(text)
        return
    for name in names.finditer(lower):
        if match := form.match(text, name.start()):
            yield match


def places(roots: tuple[str, ...], lower: str) -> Iterator[int]:
    """Yield where one of a few roots stands; several times as quick as a regular expression that begins with one."""
    for root in roots:
        at = lower.find(root)
        while at >= 0:
            yield at
            at = lower.find(root, at + len(root))


def at_places(roots: tuple[str, ...], form: str, check: Check | None = None) -> Find:
    """Return what finds a form that begins with a root and of which the group ``secret`` is left out."""
    pattern = re.compile(form, re.IGNORECASE)

    def find(text: str, lower: str) -> Iterator[Span]:
        for at in places(roots, lower):
            match = pattern.match(text, at)
            if match and (check is None or check(match["secret"])):
                yield match.span("secret")

    return find
