r"""Building blocks of the patterns for secrets.

Every quantifier is bounded or possessive (``++``, ``{n,}+``), so that the running time is proportional to the length of
the text.

In scripts without spaces, such as Chinese, a letter may directly follow a secret. ``\b`` does not match between the
secret and such a letter. The pattern `END` is used instead: it matches unless an ASCII letter or digit follows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

START = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"

# Minimum length of random secrets. Most pages have few words of this length, so only these words are searched.
LONG_WORD_CHARS = 16

Span = tuple[int, int]
# Takes a text and the same text in lower case, which must have the same length.
Find = Callable[[str, str], Iterator[Span]]
Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """The pattern of one kind of secret.

    Attributes:
        kind: Name of the kind in placeholders and receipts.
        hints: A text is searched only if it contains one of these strings. They are in lower case unless ``is_word`` is
            True. If there are no hints, this condition does not apply.
        find: A function that yields the start and end of each secret.
        is_word: Whether the hint and the secret are in one word without spaces. If so and there are no hints, a text is
            searched only if the pattern matches in a word of at least ``LONG_WORD_CHARS`` characters.
        is_long: Whether the secret has at least ``LONG_WORD_CHARS`` characters without a space.
        digits: A text is searched only if it has at least this many digits in groups of three or more.
        may_match: A function that takes the words of a text, and quickly returns whether the text may contain such a
            secret. If it returns False, the text is not searched. None for patterns that need no such check.
    """

    kind: str
    hints: tuple[str, ...]
    find: Find
    is_word: bool = False
    is_long: bool = False
    digits: int = 0
    may_match: Callable[[Sequence[str]], bool] | None = None


def key(kind: str, hints: str, form: str, check: Check | None = None) -> SecretPattern:
    """Return the pattern of a key that is recognised by its beginning.

    Args:
        kind: Name of the kind in placeholders and receipts.
        hints: The possible beginnings, such as "ghp_ gho_", separated by spaces.
        form: The regular expression of the whole key.
        check: A function that returns whether a match is really a secret.
    """
    return SecretPattern(kind, tuple(hints.split()), finding(START + form, check), is_word=True, is_long=True)


def named(kind: str, hints: str, form: str, check: Check | None = None, *, is_long: bool = True) -> SecretPattern:
    """Return the pattern of a secret that follows its name, such as a key after "twilio".

    Args:
        kind: Name of the kind in placeholders and receipts.
        hints: The beginnings of the possible names, in lower case, separated by commas.
        form: A regular expression that matches a name and the secret after it; see `finding`.
        check: A function that returns whether a match is really a secret.
        is_long: See `SecretPattern`.
    """
    names = tuple(hints.split(","))
    begins = "|".join(map(re.escape, names))
    return SecretPattern(kind, names, finding(form, check, begins, re.IGNORECASE), is_long=is_long)


def finding(form: str, check: Check | None = None, names: str | None = None, flags: int = 0) -> Find:
    """Return a function that finds secrets with a regular expression.

    Args:
        form: The regular expression. If it has a group ``secret``, only this group is the secret.
        check: A function that returns whether a match is really a secret.
        names: A regular expression that is searched for in the lower-case text. A match of ``form`` must begin where
            ``names`` matches. If ``names`` is None, a match of ``form`` may begin anywhere.
        flags: The flags of ``form``.
    """

    def find(text: str, lower: str) -> Iterator[Span]:
        pattern = _compiled(form, flags)
        secret = "secret" if "secret" in pattern.groupindex else 0
        for match in _matches(pattern, None if names is None else _compiled(names), text, lower):
            if check is None or check(match[secret]):
                yield match.span(secret)

    return find


@cache
def _compiled(form: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a regular expression when it is first needed, because most texts need few of them."""
    return re.compile(form, flags)


def _matches(form: re.Pattern[str], names: re.Pattern[str] | None, text: str, lower: str) -> Iterator[re.Match[str]]:
    if names is None:
        yield from form.finditer(text)
        return
    for name in names.finditer(lower):
        if match := form.match(text, name.start()):
            yield match


def positions(roots: tuple[str, ...], lower: str) -> Iterator[int]:
    """Yield each position at which one of ``roots`` occurs in the lower-case text ``lower``.

    This search is several times as fast as a regular expression.
    """
    for root in roots:
        at = lower.find(root)
        while at >= 0:
            yield at
            at = lower.find(root, at + len(root))


def at_places(roots: tuple[str, ...], form: str, check: Check | None = None) -> Find:
    """Return a function that finds secrets with a regular expression.

    The expression ``form`` is tried wherever one of the strings ``roots`` occurs. The group ``secret`` of each match is
    the secret. If ``check`` is not None, secrets for which it returns False are left out.
    """

    def find(text: str, lower: str) -> Iterator[Span]:
        pattern = _compiled(form, re.IGNORECASE)
        for at in positions(roots, lower):
            match = pattern.match(text, at)
            if match and (check is None or check(match["secret"])):
                yield match.span("secret")

    return find
