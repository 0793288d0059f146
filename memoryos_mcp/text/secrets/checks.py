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
    r"your|example|dummy|placeholder|redacted|process\.|environ|getenv|_here|^my[_-]|^[/~.<]|^\$|^%|^\{|\*{3}|x{4}|\.{3}"
    r"|^\$?(?:pbkdf2|scrypt|argon2\w*|2[aby])[:$]|^(?:sha-?\d+|md5|argon2\w*|base64|utf-?8|oauth2?|bcrypt)$|\b(?:min|max)\d|\d(?:chars|characters)\b",
    re.IGNORECASE,
)
# In examples too, but real passwords are made of them as well; those have digits and a symbol.
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
_CHARS_OF_A_DRAWN_PIECE = 2.4
_CHOSEN_SYMBOLS = _SYMBOLS | {"@"}


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


def has_luhn(digits: str) -> bool:
    """Whether the last digit is Luhn's check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


def is_placeholder(text: str) -> bool:
    """Whether it is what examples and code hold where a password would be."""
    if _PLACEHOLDER.search(text):
        return True
    return _WORDS_OF_EXAMPLES.search(text) is not None and not _is_chosen(text)


def _is_chosen(text: str) -> bool:
    """Whether letters, digits and symbols change as in a chosen or drawn password and as in no name of a program's."""
    if sum(map(str.isdigit, text)) >= _DIGITS_IN_CHOSEN and not _CHOSEN_SYMBOLS.isdisjoint(text):
        return True
    return len(text) / max(len(_PIECE.findall(text)), 1) < _CHARS_OF_A_DRAWN_PIECE


def is_password(text: str) -> bool:
    """Whether what stands where a password would is one: digits, or letters with digits or symbols, no placeholder."""
    text = text.rstrip(SENTENCE_ENDS)
    if is_placeholder(text) or len(set(text)) <= 1:
        return False
    if text.isdigit():
        return len(text) >= _PIN_CHARS_MIN
    return len(text) >= PASSWORD_CHARS_MIN and _is_mixed(text)


def is_mixed_password(text: str) -> bool:
    """Whether it is a password by its look alone, where other things could stand as well: letters with digits."""
    text = text.rstrip(SENTENCE_ENDS)
    has_digits = any(char.isdigit() for char in text)
    return len(text) >= _MIXED_CHARS_MIN and has_digits and _is_mixed(text) and is_password(text)


def _is_mixed(text: str) -> bool:
    has_digits = any(char.isdigit() for char in text)
    return any(char.isalpha() for char in text) and (has_digits or not _SYMBOLS.isdisjoint(text))


def is_url_password(text: str) -> bool:
    """Whether what stands between the name and the host of an address is a password and no placeholder."""
    return not is_placeholder(text) and text.lower() not in {"pw", "pwd", "port"}


def is_named_key(text: str) -> bool:
    """Whether what stands where a key would looks drawn: several digits, letters, many different characters."""
    return (
        not is_placeholder(text)
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
    return b":" in login[1:-1] and _is_printable(login)


def _is_printable(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _decoded(text: str) -> bytes:
    """Return what the base64 stands for, of either alphabet; nothing if it is none."""
    text = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
