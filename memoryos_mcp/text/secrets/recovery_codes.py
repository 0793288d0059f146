"""The pattern for recovery codes of an account: words that announce the codes, followed by codes of the same shape."""

import re
from collections.abc import Iterator

from memoryos_mcp.text.secrets import checks
from memoryos_mcp.text.secrets.forms import SecretPattern, Span, positions

# Words that precede "code". Those in ``_SORTS_OF_MANY`` only match before the plural "codes": a single "MFA code" soon
# expires and is not a recovery code.
_SORTS = (
    *("backup", "back-up", "recovery", "rescue", "scratch", "emergency", "ersatz", "notfall"),
    *("herstel", "kurtarma", "yedek", "récupération", "secours", "recuperación", "respaldo", "recuperação", "zapasow"),
    *("odzyskiwania", "الاسترداد", "النسخ الاحتياطي", "बैकअप", "резервные"),
)
_SORTS_OF_MANY = ("one-time", "one time", "2fa", "mfa", "two-factor", "two factor")
_HEAD = re.compile(
    rf"(?:{'|'.join(_SORTS)})(?:lungs?|s)?[ _-]?(?:(?:backup|recovery|login|verification|access|2fa|mfa)[ _-])?"
    r"(?:codes?|keys?|kod(?:lar)?\w{0,3}|schlüssel|कोड|коды)(?![a-z])"
    rf"|(?:{'|'.join(_SORTS_OF_MANY)})[ _-](?:(?:backup|recovery|login|access)[ _-])?codes(?![a-z])"
    r"|(?:codes?|códigos?) de (?:récupération|secours|recuperación|respaldo|recuperação)"
    r"|kod(?:y|ów|u)? (?:zapasow|odzyskiwania)\w{0,3}|رموز (?:الاسترداد|النسخ الاحتياطي)"
)
# The text between the announcing words and the codes, up to a sign, a verb or the end of the line.
_LEAD = re.compile(
    r"[\"'`*_)]{0,3}(?:[ \t][^\n:=]{0,60}?)??[ \t]{0,2}(?:[:=：]|\b(?:are|is|were|sind|zijn|sont|son|são)\b:?"
    r"|(?=\n))[*_]{0,3}",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?P<gap>(?:[\s,;|\"'`*•·\[\]/>+-]{0,12}+(?:(?:and|or|und|oder|en|et|y|i|ve|e|और|و)[ \t]"
    r"|[(#]?[0-9]{1,2}[.):][ \t]{1,4})?+)[\s\"'`*]{0,3}+)"
    r"(?P<secret>[A-Za-z0-9]{4,32}+(?:-[A-Za-z0-9]{3,12}+){0,7})(?![A-Za-z0-9_@]|\.[A-Za-z0-9])"
)
_CODE_CHARS_MIN = 6
_GROUP_CHARS = 4
_DATE = re.compile(r"(?:19|20)\d\d-\d\d-\d\d")
_ROOTS = ("code", "kod", "key", "schlüssel", "código", "رموز", "कोड", "коды")
_HEAD_CHARS = 45


def _find(text: str, lower: str) -> Iterator[Span]:
    ends = set()
    for at in positions(_SORTS + _SORTS_OF_MANY, lower):
        if head := _HEAD.search(lower, max(at - _HEAD_CHARS, 0), at + _HEAD_CHARS):
            ends.add(head.end())
    for end in ends:
        if lead := _LEAD.match(text, end):
            yield from _codes(text, lead.end())


def _codes(text: str, at: int) -> Iterator[Span]:
    """Yield the start and end of each code in the series of codes that begins at ``at``.

    All codes of a series have the shape of the first code.
    """
    run: list[re.Match[str]] = []
    while code := _CODE.match(text, at):
        if run and not (code["gap"] and _shape(code["secret"]) == _shape(run[0]["secret"])):
            break
        run.append(code)
        at = code.end()
    # Ordinary words after the codes may have the same number of letters; they are removed from the series.
    while run and run[-1]["secret"].isalpha() and not run[-1]["secret"].isupper() and run[-1]["gap"] in {" ", ""}:
        run.pop()
    if run and _are_codes([code["secret"] for code in run]):
        yield from (code.span("secret") for code in run)


def _shape(code: str) -> tuple[int, ...]:
    return tuple(map(len, code.split("-")))


def _are_codes(codes: list[str]) -> bool:
    first = codes[0]
    is_long_enough = len(first) >= _CODE_CHARS_MIN or (
        len(first) == _GROUP_CHARS and first.isdigit() and len(codes) > 1
    )
    return (
        is_long_enough
        and not _DATE.fullmatch(first)
        and not any(checks.is_placeholder(code) for code in codes)
        and any(char.isdigit() for code in codes for char in code)
    )


RECOVERY_CODES = SecretPattern("recovery code", _ROOTS, _find)
