"""The pattern for passwords: a word for "password", followed by the password.

After a word for "password", text that looks like a password (letters with digits or symbols) is always a password. A
plain word is a password only in some contexts: alone after a sign such as ":", between quotes, in a table cell or in a
tag.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memoryos_mcp.text.secrets import checks
from memoryos_mcp.text.secrets.forms import Check, SecretPattern, Span, positions
from memoryos_mcp.text.secrets.password_words import (
    CLOSING,
    IS,
    NAME,
    OPENING,
    PURPOSE,
    ROOTS,
    SIGN,
    is_password_or_word,
    is_plain_password,
    is_quoted_password,
)

KIND = "password"
# Characters at the end of a sentence or of bold text.
_ENDS = ".:*_…。।،"
# Maximum distance between the beginning of a sentence or tag and a word for a password in it.
_BEFORE_CHARS = 100

_CHARS = r"[^\s\"'`<>|,;(){}\[\]“”„«»「」]"
_VALUE = rf"(?P<secret>{_CHARS}{{4,128}}+)(?![(\[{{])"
_WORD = r"(?P<secret>[^\W\d_]{4,40}+(?:-[^\W\d_]{2,40}+){0,7})"
_QUOTED = r"\\{0,2}(?P<quote>[\"'`])(?P<secret>[^\"'`\\\n]{4,128}+)\\{0,2}(?P=quote)"
# The end of a clause, after a word.
_CLAUSE_ENDS = (
    r"(?=[\"'`*”»_]{0,3}(?:[.!]{0,3}[ \t]*(?:$|\n)|[.!,;)](?:[ \t\n]|$)"
    r"|[ \t](?:and|but|for|so|now|please|on|und|aber|en|maar|i|ve|y|et)[ \t]))"
)
# The end of a line, after emphasis marks and spaces.
_LINE_ENDS = r"(?=[*_`]{0,3}[ \t]*(?:[.,;][ \t]*)?(?:$|[\r\n]|\\n))"
_DETERMINER = r"(?:my|our|the|mein|unser|das|mijn|het|ons|moje|nasze)"
_CHANGED = r"(?:chang(?:ed?|ing)|set(?:ting)?|reset(?:ting)?|updat(?:ed?|ing)|switch(?:ed)?|rotat(?:ed?|ing)|made)"


@dataclass(frozen=True, slots=True)
class _Form:
    """A context in which a password is found.

    Attributes:
        after: Pattern for the text after the word for "password". Its group ``secret`` is the password.
        check: A function that returns whether the matched text is a password.
        before: Pattern for the text before the word for "password"; None if any text may precede the word.
    """

    after: re.Pattern[str]
    check: Check
    before: re.Pattern[str] | None = None


def _form(after: str, check: Check, before: str = "") -> _Form:
    flags = re.IGNORECASE | re.MULTILINE
    return _Form(re.compile(after, flags), check, re.compile(rf"(?:{before})\Z", flags) if before else None)


_FORMS = (
    # After a sign or a verb: **Password:** x, my password is x, "password": "x"
    _form(rf"{IS}{_VALUE}", checks.is_password),
    _form(rf"{PURPOSE}{CLOSING}\s{{0,3}}{SIGN}[*_]{{0,3}}\s{{0,3}}{_QUOTED}", is_quoted_password),
    # A plain word alone on its line, such as password: swordfish
    _form(rf"{CLOSING}[ \t]?[:：][*_]{{0,3}}[ \t]{{0,3}}{OPENING}{_WORD}{_LINE_ENDS}", is_plain_password),
    # In a list on one line: user: bob, password: swordfish, host: db
    _form(rf"{CLOSING}: {_WORD}(?=[,;/] ?[\w-]{{2,20}}: )", is_plain_password, before=r"[,;/(] ?"),
    # At the beginning of a line or of a part of a URL: password=swordfish
    _form(
        rf"=[\"']?{_WORD}[\"']?(?=[ \t]*$|[&;])",
        is_plain_password,
        before=r"(?:^[ \t]{0,2}(?:export |set )?|[?&;])[\w.-]{0,40}",
    ),
    # my password is swordfish
    _form(rf"{PURPOSE} (?:is|was|lautet|luidt|brzmi):? {OPENING}{_WORD}{_CLAUSE_ENDS}", is_plain_password),
    # changed my password to x
    _form(
        rf"{PURPOSE} (?:back )?(?:to|=>?|->):? {OPENING}{_VALUE}",
        checks.is_password,
        before=rf"(?<![a-z]){_CHANGED}(?: [\w'’-]{{1,20}}){{0,4}} ",
    ),
    _form(
        rf"{PURPOSE} (?:back )?to:? {OPENING}{_WORD}{_CLAUSE_ENDS}",
        is_plain_password,
        before=rf"(?<![a-z]){_CHANGED}(?: [\w'’-]{{1,20}}){{0,4}} ",
    ),
    _form(rf" (?:has been |was |is )?(?:now )?{_CHANGED} to:? {OPENING}{_VALUE}", checks.is_password),
    # In other languages, there may be words between the name and the password, so the password must contain letters and
    # digits.
    _form(
        rf"(?: [^\W\d_][\w'’.-]{{0,20}}){{0,3}}? (?:auf|zu|in|naar|na|to|a|à|на|إلى|=) {OPENING}{_VALUE}",
        checks.is_mixed_password,
    ),
    _form(rf"(?: [^\W\d_][\w'’.-]{{0,20}}){{1,2}}?[:：] {OPENING}{_VALUE}", checks.is_mixed_password),
    _form(rf"[ \t]{{1,3}}{OPENING}{_VALUE}", checks.is_mixed_password),
    # | password | x |
    _form(
        rf"[*`_\"' ]{{0,20}}\|[ \t]{{0,20}}[*`_\"']{{0,3}}{_VALUE}[ \t]{{0,20}}(?:[*`_]{{1,3}}[ \t]{{0,20}})?(?:\||$)",
        checks.is_password,
    ),
    _form(
        rf"[*`_ ]{{0,20}}\|[ \t]{{0,20}}[*`_\"']{{0,3}}{_WORD}[*`_\"']{{0,3}}[ \t]{{0,20}}\|?[ \t]{{0,8}}$"
        r"(?!\s{0,3}\|?[ :]{0,3}--)",
        is_plain_password,
        before=r"^[ \t>]{0,8}\|?[^|\n]{0,60}",
    ),
    # Between tags: <password>x</password>
    _form(
        r"(?:\s[^<>]{0,200})?>\s{0,3}(?:<!\[CDATA\[)?(?P<secret>[^<>\n]{3,128}?)(?:\]\]>)?\s{0,3}</[\w:.-]{3,80}>",
        is_quoted_password,
        before=r"<[\w:.-]{0,40}",
    ),
    # my password (x)
    _form(rf"{PURPOSE} [(]{OPENING}(?P<secret>{_CHARS}{{4,128}}+)[\"'`”]?[)]", checks.is_mixed_password),
    _form(
        rf" [(]{OPENING}{_WORD}[\"'`”]?[)]",
        is_plain_password,
        before=rf"(?<![a-z]){_DETERMINER} (?:[\w'’-]{{1,20}} ){{0,3}}",
    ),
    # An environment variable: DB_PASS=x, PGPASSWORD=x
    _form(
        r"(?-i:(?<=[A-Z])=)[\"']?(?P<secret>[^\s\"'`;|<>$(){}]{4,128}+)",
        is_password_or_word,
    ),
)


def _find(text: str, lower: str) -> Iterator[Span]:
    for at in positions(ROOTS, lower):
        if name := NAME.match(text, at):
            for form in _FORMS:
                if (found := form.after.match(text, name.end())) and (
                    form.before is None or form.before.search(text, max(at - _BEFORE_CHARS, 0), at)
                ):
                    secret = found["secret"].rstrip(_ENDS)
                    if form.check(secret):
                        yield found.start("secret"), found.start("secret") + len(secret)


PASSWORDS = SecretPattern(KIND, ROOTS, _find)


def is_named_password(name: str, value: str) -> bool:
    """Return whether ``value`` is a password. ``name`` is its name, such as its key in a JSON object.

    The result is False if the name contains no word for "password". If the name contains such a word but does not end
    with it, a value that is a plain word is not a password.
    """
    named = None
    for at in positions(ROOTS, name.lower()):
        named = NAME.match(name, at) or named
    if named is None:
        return False
    return is_quoted_password(value) if named.end() == len(name) else checks.is_password(value)
