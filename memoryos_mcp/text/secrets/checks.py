"""Checks that distinguish secrets from other text of the same form, by checksums or by apparent randomness."""

import base64
import binascii
import re
import zlib

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CRC_CHARS = 6
# Keys have at least this many different characters, unlike "xxxxxxxx" and "1111-1111".
DISTINCT_CHARS_MIN = 6
_DISTINCT_IN_NAMED_KEY = 8
_DIGITS_IN_NAMED_KEY = 2

# Texts that are used in place of a password in examples and code. "key" and "user" are not listed, because real
# passwords contain them.
_PLACEHOLDER = re.compile(
    r"your|example|dummy|placeholder|redacted|process\.|environ|getenv|_here|^my[_-]|^[/~.<]|^\$|^%|^\{|\*{3}|x{4}|\.{3}"
    r"|^\$?(?:pbkdf2|scrypt|argon2\w*|2[aby])[:$]|^(?:sha-?\d+|md5|argon2\w*|base64|utf-?8|oauth2?|bcrypt)$|\b(?:min|max)\d|\d(?:chars|characters)\b",
    re.IGNORECASE,
)
# Words in examples that also occur in real passwords. A text with such a word is a password only if it also contains
# digits and a symbol, or looks random.
_WORDS_OF_EXAMPLES = re.compile(
    r"pass|kennwort|wachtwoord|hasło|contraseña|secret|sample|wrong|invalid|config|settings|request|hash|token|string|^test",
    re.IGNORECASE,
)
PASSWORD_CHARS_MIN = 5
_MIXED_CHARS_MIN = 6
_PIN_CHARS_MIN = 4
_DIGITS_IN_CHOSEN = 2
SENTENCE_ENDS = ".!?:*…。！？।،"
_SYMBOLS = frozenset("!#$%^&*+?~")
_PIECE = re.compile("[A-Z]?[a-z]++|[0-9]++|.")
_CHARS_OF_A_RANDOM_PIECE = 2.4
_CHOSEN_SYMBOLS = _SYMBOLS | {"@"}


def base62_crc32(text: str) -> str:
    """Return the CRC-32 of ``text`` as six base-62 digits. GitHub and npm tokens end with this checksum."""
    number = zlib.crc32(text.encode())
    digits = ""
    while number:
        number, digit = divmod(number, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits.rjust(_CRC_CHARS, _BASE62[0])


def has_crc32(token: str) -> bool:
    """Return whether a token (such as "ghp_...") ends with a valid checksum of six characters.

    The checksum is the CRC-32 of the characters between the first underscore and the checksum.
    """
    body = token.partition("_")[2]
    return base62_crc32(body[:-_CRC_CHARS]) == body[-_CRC_CHARS:]


def looks_random(text: str) -> bool:
    """Return whether ``text`` has enough different characters to look random."""
    return len(set(text)) >= DISTINCT_CHARS_MIN


def is_checked_token(token: str) -> bool:
    """Return whether ``token``, which has the form of a token with a checksum (such as "ghp_..."), is a secret.

    A token with a valid checksum is a secret. A token with an invalid checksum also counts as a secret if it looks
    random: it may be a real token with a typo, which a thief could correct.
    """
    return has_crc32(token) or looks_random(token.partition("_")[2])


def has_luhn(digits: str) -> bool:
    """Return whether the last digit is the Luhn check digit of the other digits (ISO/IEC 7812-1, annex B)."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


def is_placeholder(text: str) -> bool:
    """Return whether ``text`` is a placeholder for a password, as in examples or code."""
    if _PLACEHOLDER.search(text):
        return True
    return _WORDS_OF_EXAMPLES.search(text) is not None and not _looks_chosen(text)


def _looks_chosen(text: str) -> bool:
    """Return whether ``text`` mixes letters, digits and symbols as passwords do and identifiers do not."""
    if sum(map(str.isdigit, text)) >= _DIGITS_IN_CHOSEN and not _CHOSEN_SYMBOLS.isdisjoint(text):
        return True
    return len(text) / max(len(_PIECE.findall(text)), 1) < _CHARS_OF_A_RANDOM_PIECE


def is_password(text: str) -> bool:
    """Return whether ``text``, found where a password is expected, is a password.

    A password consists of digits ("4711"), or of letters with digits or symbols ("rain2Day", "go#west"). A placeholder,
    a short text or one repeated character is not a password.
    """
    text = text.rstrip(SENTENCE_ENDS)
    if is_placeholder(text) or len(set(text)) <= 1:
        return False
    if text.isdigit():
        return len(text) >= _PIN_CHARS_MIN
    return len(text) >= PASSWORD_CHARS_MIN and _is_mixed(text)


def is_mixed_password(text: str) -> bool:
    """Return whether ``text`` looks like a password and has both letters and digits.

    This check is stricter than `is_password`, for contexts in which other text is likely, such as after "password ".
    """
    text = text.rstrip(SENTENCE_ENDS)
    has_digits = any(char.isdigit() for char in text)
    return len(text) >= _MIXED_CHARS_MIN and has_digits and _is_mixed(text) and is_password(text)


def _is_mixed(text: str) -> bool:
    has_digits = any(char.isdigit() for char in text)
    return any(char.isalpha() for char in text) and (has_digits or not _SYMBOLS.isdisjoint(text))


def is_url_password(text: str) -> bool:
    """Return whether ``text``, found between the user name and the host of a URL, is a password.

    A placeholder is not a password.
    """
    return not is_placeholder(text) and text.lower() not in {"pw", "pwd", "port"}


def is_named_key(text: str) -> bool:
    """Return whether ``text``, found after the name of a key, looks random.

    The text must contain letters, digits and many different characters, and must not be a placeholder.
    """
    return (
        not is_placeholder(text)
        and sum(char.isdigit() for char in text) >= _DIGITS_IN_NAMED_KEY
        and any(char.isalpha() for char in text)
        and len(set(text)) >= _DISTINCT_IN_NAMED_KEY
    )


def is_jwt(token: str) -> bool:
    """Return whether a token begins with the header of a JWT: a base64-encoded JSON object with ``alg``."""
    header = _decoded(token.partition(".")[0])
    return header.startswith(b"{") and b'"alg"' in header


def is_basic_login(text: str) -> bool:
    """Return whether ``text`` is the base64 encoding of a user name, a colon and a password."""
    login = _decoded(text)
    return b":" in login[1:-1] and _is_printable(login)


def _is_printable(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _decoded(text: str) -> bytes:
    """Decode base64 text in the standard or URL-safe alphabet; return empty bytes if the text is not valid."""
    text = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
