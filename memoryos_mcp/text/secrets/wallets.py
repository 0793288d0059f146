"""Patterns for the keys of cryptocurrency wallets.

Seed phrases and Bitcoin keys are recognised by their checksums, Ethereum keys by nearby words.

The word list is the unchanged English list of BIP-39.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from memoryos_mcp.text.secrets import checks
from memoryos_mcp.text.secrets.forms import END, START, SecretPattern, Span, key, positions

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_B58 = f"[{_BASE58}]"
_CHECKSUM_BYTES = 4
_EXTENDED_BYTES = 78
_WIF_VERSIONS = frozenset({0x80, 0xEF})  # Bitcoin's main and test networks
_WIF_BYTES = frozenset({33, 34})

_WORD_BITS = 11
_PHRASE_WORDS = (24, 21, 18, 15, 12)
_SHORTEST = _PHRASE_WORDS[-1]
# A series of words that are separated by spaces or commas, possibly with numbers or bullets.
_LIST_WORD = r"[A-Za-z]{3,8}+(?![A-Za-z]|['’][A-Za-z])"
_RUN = re.compile(
    rf"(?<![A-Za-z]){_LIST_WORD}"
    rf"(?:[\s,;|\"'`*/_–-]{{1,8}}+(?:[(#]?[0-9]{{1,2}}[.):]?[\s|\"'`*]{{0,6}}+)?+{_LIST_WORD})*+"
)
_WORD = re.compile("[A-Za-z]+")
_TOKENS_BETWEEN = 3
_GOES_ON_BEFORE = re.compile(r"[A-Za-z][ ,]{1,3}$")
_GOES_ON_AFTER = re.compile(r"[ ,]{1,3}[A-Za-z]")
_AROUND = "0123456789.,;:|#()*-_\"'`/"
# Words joined by commas or slashes without spaces.
_JOINED = re.compile(r"(?<![a-z])[a-z]{3,8}(?:[,;/|_-][a-z]{3,8}){11}")


def is_seed_phrase(words: tuple[str, ...]) -> bool:
    """Return whether lower-cased words from the BIP-39 list form a seed phrase with a valid checksum.

    One in 16 sequences of 12 words has a valid checksum by chance. Return False if at most half of the words are
    different, because such a sequence is probably not a seed phrase.
    """
    if 2 * len(set(words)) <= len(words):
        return False
    numbers = _numbers()
    total = 0
    for word in words:
        total = total << _WORD_BITS | numbers[word]
    checksum_bits = len(words) * _WORD_BITS // 33
    entropy, checksum = total >> checksum_bits, total & ((1 << checksum_bits) - 1)
    digest = hashlib.sha256(entropy.to_bytes(checksum_bits * 4, "big")).digest()
    return digest[0] >> (8 - checksum_bits) == checksum


def _decoded(text: str) -> bytes | None:
    """Return the payload of a Base58Check text; None if its checksum is not valid."""
    number = 0
    for char in text:
        number = number * len(_BASE58) + _BASE58.index(char)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    payload, checksum = raw[:-_CHECKSUM_BYTES], raw[-_CHECKSUM_BYTES:]
    digest = hashlib.sha256(hashlib.sha256(payload).digest()).digest()
    return payload if digest[:_CHECKSUM_BYTES] == checksum else None


def _is_extended_key(text: str) -> bool:
    payload = _decoded(text)
    return payload is not None and len(payload) == _EXTENDED_BYTES


def _is_wif(text: str) -> bool:
    payload = _decoded(text)
    return payload is not None and len(payload) in _WIF_BYTES and payload[0] in _WIF_VERSIONS


@cache
def _numbers() -> Mapping[str, int]:
    text = files(__package__).joinpath("bip39_english.txt").read_text(encoding="ascii")
    return {word: number for number, word in enumerate(text.split())}


def _find_joined_phrases(text: str, lower: str) -> Iterator[Span]:
    if _JOINED.search(lower):
        yield from _find_seed_phrases(text, lower)


def _find_seed_phrases(text: str, lower: str) -> Iterator[Span]:
    numbers = _numbers()
    for run in _RUN.finditer(text):
        group: list[re.Match[str]] = []
        for word in _WORD.finditer(lower, *run.span()):
            if word[0] in numbers:
                group.append(word)
                continue
            yield from _phrases_of(text, group)
            group = []
        yield from _phrases_of(text, group)


def _may_contain_phrase(tokens: Sequence[str]) -> bool:
    """Return whether the tokens contain at least 12 consecutive words from the BIP-39 list.

    A few numbers and bullets between the words are ignored. To save time, the search starts only at every eleventh
    token. Any 12 consecutive tokens include at least one of these tokens.
    """
    numbers = _numbers()
    for at in range(_SHORTEST - 1, len(tokens), _SHORTEST - 1):
        word = _bare(tokens[at])
        if (word in numbers or not word) and _run_around(tokens, at, numbers) >= _SHORTEST:
            return True
    return False


def _run_around(tokens: Sequence[str], at: int, numbers: Mapping[str, int]) -> int:
    """Return the number of consecutive words from the BIP-39 list around a token, at most 12.

    A few numbers and bullets may be between the words.
    """
    count = 0
    for direction in (range(at, -1, -1), range(at + 1, len(tokens))):
        between = 0
        for place in direction:
            word = _bare(tokens[place])
            between = 0 if word else between + 1
            if (word and word not in numbers) or between > _TOKENS_BETWEEN:
                break
            count += bool(word)
            if count >= _SHORTEST:
                return count
    return count


def _bare(token: str) -> str:
    return token.strip(_AROUND).lower()


def _phrases_of(text: str, group: list[re.Match[str]]) -> Iterator[Span]:
    """Yield the start and end of each seed phrase in a run of words from the BIP-39 list.

    One in 16 sequences of 12 words has a valid checksum by chance. If several valid sequences overlap, only those
    with the most free ends are seed phrases. An end is free if no other word is next to it on the same line.
    """
    words = tuple(match[0] for match in group)
    found: list[tuple[int, int, int]] = []
    for first in range(len(words) - _SHORTEST + 1):
        for size in _PHRASE_WORDS:
            phrase = words[first : first + size]
            # Words in alphabetical order are an excerpt from the list, not a phrase.
            if len(phrase) == size and is_seed_phrase(phrase) and list(phrase) != sorted(phrase):
                start, end = group[first].start(), group[first + size - 1].end()
                found.append((start, end, _stands_alone(text, start, end)))
                break
    for start, end, alone in found:
        if all(alone >= other for begin, finish, other in found if begin < end and start < finish):
            yield start, end


def _stands_alone(text: str, start: int, end: int) -> int:
    """Return on how many sides (0 to 2) the phrase from ``start`` to ``end`` has no other word on the same line."""
    return (not _GOES_ON_BEFORE.search(text, max(start - 8, 0), start)) + (not _GOES_ON_AFTER.match(text, end))


_KEY = r"(?:priv(?:ate)?|wallet|secret|signing|eth(?:ereum)?)[ _-]?key"
_OTHER_HEX = r"sha-?(?:1|2|3|256|512)|fingerprint|digest|hash|checksum|public|address|\btx"
_HEX_KEY = rf"(?P<secret>(?:0x)?[0-9a-f]{{64}}){END}"
_HEX_AFTER_KEY = re.compile(rf"{_KEY}(?:(?!{_OTHER_HEX})[^\n]){{0,60}}?{START}{_HEX_KEY}", re.IGNORECASE)
_HEX_BEFORE_KEY = re.compile(
    rf"{START}{_HEX_KEY}[\"'`)]{{0,3}} (?:is|was|as) (?:[\w'’]{{1,20}} ){{0,4}}?{_KEY}", re.IGNORECASE
)
_KEY_ROOTS = ("priv", "wallet key", "wallet_key", "eth key", "ethereum key", "signing key", "secret key", "secret_key")
_HEX_CHARS = 160  # maximum distance between the start of a key and the words for it


def _find_hex_keys(text: str, lower: str) -> Iterator[Span]:
    for at in positions(_KEY_ROOTS, lower):
        for form, chars in ((_HEX_AFTER_KEY, 0), (_HEX_BEFORE_KEY, _HEX_CHARS)):
            match = form.search(text, max(at - chars, 0), at + _HEX_CHARS)
            if match and checks.looks_random(match["secret"]):
                yield match.span("secret")


WALLETS: tuple[SecretPattern, ...] = (
    key("wallet key", "prv", rf"[xyztuvYZUV]prv{_B58}{{100,112}}+{END}", _is_extended_key),
    key("wallet key", "", rf"[5KL9c]{_B58}{{50,51}}{END}", _is_wif),
    SecretPattern("wallet key", _KEY_ROOTS, _find_hex_keys, is_long=True),
    SecretPattern("seed phrase", (), _find_seed_phrases, may_match=_may_contain_phrase),
    SecretPattern("seed phrase", (), _find_joined_phrases, is_word=True, is_long=True),
)
