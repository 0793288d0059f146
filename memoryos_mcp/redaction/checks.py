"""Checks that tell a secret from what merely has its form: checksums, issuers, the look of what is drawn at random."""

import base64
import binascii
import re
import zlib

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CRC_CHARS = 6
# "xxxxxxxx" and "1111-1111" are told from a key by how few characters they are made of.
DISTINCT_CHARS_MIN = 6
_DISTINCT_IN_NAMED_KEY = 8
_DIGITS_IN_NAMED_KEY = 2

# What stands in examples and in code where a password would be. Not "key", not "user": they are in real ones.
_PLACEHOLDER = re.compile(
    r"pass|passwort|kennwort|secret|your|example|sample|dummy|placeholder|wrong|invalid|redacted|process\.|environ"
    r"|getenv|config|settings|request|hash|token|string|_here|^my[_-]|^test|^[/~.<]|^\$|^%|^\{|\*{3}|x{4}|\.{3}"
    r"|^\$?(?:pbkdf2|scrypt|argon2\w*|2[aby])[:$]|^(?:sha-?\d+|md5|argon2\w*|base64|utf-?8|oauth2?|bcrypt)$|\b(?:min|max)\d|\d(?:chars|characters)\b",
    re.IGNORECASE,
)
PASSWORD_CHARS_MIN = 5
_SENTENCE_ENDS = ".!?:*…。！？"
_SYMBOLS = frozenset("!#$%^&*+?~")
# Issuers by their first digits and the lengths of their numbers (ISO/IEC 7812). Visa's old 13 digits are left out:
# every bar code of Germany would look like one.
_ISSUER = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011\d\d|5\d{4}|4[4-9]\d{3})\d{10}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)


def base62_crc32(text: str) -> str:
    """Return the checksum that tokens of GitHub and npm end in: the CRC-32 in six digits of base 62."""
    number = zlib.crc32(text.encode())
    digits = ""
    while number:
        number, digit = divmod(number, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits.rjust(_CRC_CHARS, _BASE62[0])


def has_crc32(token: str) -> bool:
    """Whether the token, after its prefix, ends in the checksum of what is between them."""
    body = token.partition("_")[2]
    return base62_crc32(body[:-_CRC_CHARS]) == body[-_CRC_CHARS:]


def is_drawn(text: str) -> bool:
    """Whether the text is made of enough different characters to have been drawn at random."""
    return len(set(text)) >= DISTINCT_CHARS_MIN


def is_checked_token(token: str) -> bool:
    """Whether a token with a checksum is to be taken for one.

    With a good checksum it is one, however it looks. With a bad one it may still be one with a letter mistyped, which
    is nearly as good to a thief; only what was plainly never drawn is let go.
    """
    return has_crc32(token) or is_drawn(token.partition("_")[2])


def is_card_number(text: str) -> bool:
    """Whether the digits are a number that a card issuer could have given out: its prefix, its length, Luhn's sum."""
    digits = re.sub("[ -]", "", text)
    return _ISSUER.fullmatch(digits) is not None and has_luhn(digits) and len(set(digits)) > 1


def has_luhn(digits: str) -> bool:
    """Whether the last digit is Luhn's check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


def is_password(text: str) -> bool:
    """Whether what stands where a password would is one: digits, or letters with digits or symbols, no placeholder."""
    text = text.rstrip(_SENTENCE_ENDS)
    if len(text) < PASSWORD_CHARS_MIN or _PLACEHOLDER.search(text):
        return False
    has_digits = any(char.isdigit() for char in text)
    is_mixed = any(char.isalpha() for char in text) and (has_digits or not _SYMBOLS.isdisjoint(text))
    return (is_mixed or text.isdigit()) and len(set(text)) > 1


def is_url_password(text: str) -> bool:
    """Whether what stands between the name and the host of an address is a password and no placeholder."""
    return not _PLACEHOLDER.search(text) and text.lower() not in {"pw", "pwd", "port"}


def is_named_key(text: str) -> bool:
    """Whether what stands where a key would looks drawn: several digits, letters, many different characters."""
    return (
        not _PLACEHOLDER.search(text)
        and sum(char.isdigit() for char in text) >= _DIGITS_IN_NAMED_KEY
        and any(char.isalpha() for char in text)
        and len(set(text)) >= _DISTINCT_IN_NAMED_KEY
    )


def is_jwt(token: str) -> bool:
    """Whether the first part is the header of a JWT: a JSON object, in base64, that names its algorithm."""
    header = _decoded(token.partition(".")[0])
    return header.startswith(b"{") and b'"alg"' in header


def is_discord_token(token: str) -> bool:
    """Whether the first part is a bot's number in base64."""
    return _decoded(token.partition(".")[0]).isdigit()


def is_basic_login(text: str) -> bool:
    """Whether it is a name and a password, joined by a colon, in base64."""
    login = _decoded(text)
    return b":" in login[1:-1] and login.isascii() and login.decode("ascii").isprintable()


def _decoded(text: str) -> bytes:
    """Return what the base64 stands for, of either alphabet; nothing if it is none."""
    text = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
