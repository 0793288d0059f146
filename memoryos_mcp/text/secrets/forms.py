r"""Patterns of secrets: the words that announce a secret, and how it is found.

Every quantifier is bounded or possessive (``++``, ``{n,}+``), so that the time is proportional to the length even of
hostile text. A secret may touch letters of a script without spaces, so ASCII letters and digits decide where it ends,
not ``\b``.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

START = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"

# Random secrets are at least this long. Most pages have few words of this length, so only these are searched.
LONG_WORD_CHARS = 16

Span = tuple[int, int]
# Takes a text and the same text in lower case, of the same length.
Find = Callable[[str, str], Iterator[Span]]
Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A form of secret.

    Attributes:
        kind: Its name in placeholders and receipts.
        hints: Every text with such a secret contains one of these, in lower case unless ``is_word``. Without hints
            only the form itself decides; then long words are searched first if ``is_word``.
        find: Yields start and end of such secrets.
        is_word: Whether the hint and the secret are in one word without a blank.
        is_long: Whether the secret has at least ``LONG_WORD_CHARS`` without a blank.
        digits: Minimum number of digits of such a secret, counted in groups of three and more.
        may_match: Whether a text of these words may contain one; a quick check if there are no hints.
    """

    kind: str
    hints: tuple[str, ...]
    find: Find
    is_word: bool = False
    is_long: bool = False
    digits: int = 0
    may_match: Callable[[Sequence[str]], bool] | None = None


def key(kind: str, hints: str, form: str, check: Check | None = None) -> SecretPattern:
    """Return the form of a key that is recognised by its beginning; hints are separated by blanks."""
    find = finding(re.compile(START + form), check)
    return SecretPattern(kind, tuple(hints.split()), find, is_word=True, is_long=True)


def named(kind: str, hints: str, form: str, check: Check | None = None, *, is_long: bool = True) -> SecretPattern:
    """Return the form of a secret with a name before it; the form begins with a hint. Hints are separated by commas."""
    names = tuple(hints.split(","))
    begins = re.compile("|".join(map(re.escape, names)))
    return SecretPattern(kind, names, finding(re.compile(form, re.IGNORECASE), check, begins), is_long=is_long)


def finding(form: re.Pattern[str], check: Check | None = None, names: re.Pattern[str] | None = None) -> Find:
    """Return a function that finds a form in a text.

    Args:
        form: The form; its group ``secret`` if only that part is removed.
        check: Whether a match is a secret; gets the secret part.
        names: Finds in the lower-case text where the form may begin; None if it may begin anywhere.
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


def positions(roots: tuple[str, ...], lower: str) -> Iterator[int]:
    """Yield the positions of a few roots; several times as fast as a regular expression that begins with one."""
    for root in roots:
        at = lower.find(root)
        while at >= 0:
            yield at
            at = lower.find(root, at + len(root))


def at_places(roots: tuple[str, ...], form: str, check: Check | None = None) -> Find:
    """Return a function that finds the group ``secret`` of a form that begins with a root."""
    pattern = re.compile(form, re.IGNORECASE)

    def find(text: str, lower: str) -> Iterator[Span]:
        for at in positions(roots, lower):
            match = pattern.match(text, at)
            if match and (check is None or check(match["secret"])):
                yield match.span("secret")

    return find
