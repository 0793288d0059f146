"""Patterns for card, account and social security numbers.

The numbers are recognised by their issuer, country and check digits, or by nearby words.
"""

import re
from collections.abc import Iterator

from memoryos_mcp.text.secrets import checks
from memoryos_mcp.text.secrets.forms import SecretPattern, Span, at_places, finding, positions

# Issuers by the first digits and the length of their numbers (ISO/IEC 7812). Old Visa numbers with 13 digits are
# omitted, because German bar codes look like them.
_ISSUER = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011\d\d|5\d{4}|4[4-9]\d{3})\d{10}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
# Characters between groups of digits: spaces, hyphens and a dot.
_GAP = "[ .\u00a0\u2007\u2009\u202f\u2010\u2011-]"
_SHORTEST_ACCOUNT = 10
# Minimum number of digits in the text, counting only groups of three or more.
_CARD_DIGITS = 13
_ACCOUNT_DIGITS = 8
# Length of an IBAN by its country code (ISO 13616, SWIFT's registry).
_IBAN_CHARS = dict(
    pair.split(":")
    for pair in (
        "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27"
        " DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28"
        " IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22"
        " MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24"
        " SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30"
    ).split()
)
_IBAN_BEGINS = re.compile(rf"[A-Z]{{2}}[0-9]{{2}}{_GAP}?[A-Z0-9]{{4}}")
_IBAN_BEGINS_IN_ANY_CASE = re.compile(_IBAN_BEGINS.pattern, re.IGNORECASE)
_BEFORE_IBAN = re.compile("[A-Za-z0-9+/=_-]")
_IBAN_CHAR = re.compile(rf"{_GAP}?([A-Za-z0-9])")
_IBAN_REMAINDER = 1
_NOT_AN_AREA = frozenset({"000", "666"})


def is_card_number(text: str) -> bool:
    """Return whether ``text`` can be the number of a payment card. Spaces, hyphens and dots are allowed.

    The first digits and the length must be those of a card issuer, for example a first digit of 4 and 16 digits. The
    check digit must be valid, and the digits must not all be the same.
    """
    digits = re.sub(_GAP, "", text)
    return _ISSUER.fullmatch(digits) is not None and checks.has_luhn(digits) and len(set(digits)) > 1


def is_iban(text: str) -> bool:
    """Return whether ``text`` is a valid IBAN, written without spaces.

    Its length must be right for its country, and its check digits must be valid (mod 97, ISO 7064).
    """
    if len(text) != int(_IBAN_CHARS.get(text[:2], 0)):
        return False
    number = "".join(str(int(char, 36)) for char in text[4:] + text[:4])
    return int(number) % 97 == _IBAN_REMAINDER


def is_social_security_number(text: str) -> bool:
    """Return whether the nine digits in ``text`` can be a social security number of the United States."""
    digits = re.sub("[^0-9]", "", text)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in _NOT_AN_AREA and area < "900" and group != "00" and serial != "0000"


def _find_ibans(text: str, lower: str) -> Iterator[Span]:
    begins = _IBAN_BEGINS_IN_ANY_CASE if "iban" in lower else _IBAN_BEGINS
    for begin in begins.finditer(text):
        length = int(_IBAN_CHARS.get(begin[0][:2].upper(), 0))
        if not length or _BEFORE_IBAN.match(text, begin.start() - 1 if begin.start() else len(text)):
            continue
        chars, at = "", begin.start()
        while len(chars) < length and (char := _IBAN_CHAR.match(text, at)):
            chars += char[1]
            at = char.end()
        is_number = sum(map(str.isdigit, chars)) >= _SHORTEST_ACCOUNT and is_iban(chars.upper())
        if is_number and not text[at : at + 1].isalnum():
            yield begin.start(), at


_OWNERS = ("ssn", "social security", "social-security", "soc sec", "soc. sec", "social no", "social num")
_NINE = r"(?P<secret>[0-9]{3}(?P<gap>[ .\u00a0\u2011-]?)[0-9]{2}(?P=gap)[0-9]{4})(?![0-9]|[.-][0-9])"
_NINE_BEFORE = re.compile(rf"(?<![0-9.-]){_NINE}[^0-9\n]{{0,30}}\Z")
_OWNER_CHARS = 45


def _find_social_security_numbers(text: str, lower: str) -> Iterator[Span]:
    for at in positions(_OWNERS, lower):
        match = _NINE_AFTER.match(text, at) or _NINE_BEFORE.search(text, max(at - _OWNER_CHARS, 0), at)
        if match and is_social_security_number(match["secret"]):
            yield match.span("secret")


_NINE_AFTER = re.compile(rf"[a-z][^0-9\n]{{2,60}}{_NINE}", re.IGNORECASE)
_IS = r"[\"'`*)]{0,3}\s{0,2}(?:[:=：#]|is|was|ist|lautet|est|es|jest|to|هو|है|=>)[*]{0,2}\s{0,2}[\"'`*(]{0,3}"
_ALONE = r"(?![0-9]|[.,:/-][0-9]|[A-Za-z%_])"
_CARD_CODES = (
    *("cvv", "cvc", "cvn", "security code", "card verification", "prüfziffer", "prüfnummer", "sicherheitscode"),
    *("cryptogramme", "código de seguridad", "veiligheidscode", "güvenlik kodu"),
)
_CARD_CODE = (
    rf"(?:card verification (?:code|number|value)|{'|'.join(_CARD_CODES)})2?"
    rf"(?:{_IS}|(?:(?<=c[vcn][vcn])|(?<=c[vcn][vcn]2))[ \t]{{1,3}})(?P<secret>[0-9]{{3,4}}){_ALONE}"
)
_PINS = ("pin", "geheimzahl", "الرقم السري", "رقم سري", "पिन")
_PIN_NAME = (
    rf"(?:(?<![a-z])pin|{'|'.join(_PINS[1:])})(?:[ -]?(?:code|kod(?:u|um)?|nummer|number|no|कोड))?(?:im|um)?"
    r"(?: (?:for|to|of|für|voor|do|na) [\w .'’-]{1,30}?)?"
)
# A number directly after "PIN" is a secret only if an owner is named ("my PIN 1234"). After an unambiguous word for a
# PIN, no owner is needed.
_OWN = "|".join(f"(?<={own} )" for own in "my our mein meine mijn mój moja kod atm sim bank card".split())
_PIN = (
    rf"(?:{_PIN_NAME}{_IS}|(?:(?:{_OWN})pin(?:[ -]?code)?|{'|'.join(_PINS[1:])}|pin kodu?m?)[ \t]{{1,2}})"
    rf"(?P<secret>[0-9]{{4,8}}){_ALONE}"
)

ACCOUNT_NUMBERS: tuple[SecretPattern, ...] = (
    SecretPattern(
        "card number",
        (),
        finding(
            r"(?<![0-9A-Za-z_.+])(?<![A-Za-z]-)(?:[2-6][0-9]{13,18}(?![0-9])"
            # Groups of digits are not a card number if they are part of a longer series of groups, as in an IBAN.
            rf"|(?<![0-9]{_GAP})(?:[2-6][0-9]{{3}}(?P<four>{_GAP})[0-9]{{4}}(?P=four)[0-9]{{4}}(?P=four)[0-9]{{4,7}}"
            rf"|3[0-9]{{3}}(?P<six>{_GAP})[0-9]{{6}}(?P=six)[0-9]{{4,5}})(?!{_GAP}?[0-9]))(?![A-Za-z_])(?!\.[0-9])",
            is_card_number,
            # Every card number begins like this. A pattern that begins with a character class is several times as fast.
            names=f"[2-6][0-9]{{3}}{_GAP}?[0-9]{{4,6}}{_GAP}?[0-9]{{4}}",
        ),
        digits=_CARD_DIGITS,
    ),
    SecretPattern("bank account", (), _find_ibans, digits=_ACCOUNT_DIGITS),
    SecretPattern("social security number", ("ssn", "soc"), _find_social_security_numbers, digits=7),
    SecretPattern("card code", _CARD_CODES, at_places(_CARD_CODES, _CARD_CODE), digits=3),
    SecretPattern("PIN", _PINS, at_places(_PINS, _PIN), digits=4),
)
