"""Redaction: keys, passwords and card numbers are left out of a turn before it is stored, embedded or shown to an LLM.

All that follows from a page is derived from what is stored, so that what is left out here is nowhere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.text.secrets.forms import LONG_WORD_CHARS, Find, SecretPattern
from memoryos_mcp.text.secrets.patterns import PATTERNS, is_named_secret

_FURTHER_PASSES = 2
_DIGITS = re.compile("[0-9]{3,}")
# A key has a capital letter or a digit, and no dot or slash for a while.
_KEY_LIKE = re.compile(r"(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{16}")

SecretPolicy = Literal["redact", "reject", "off"]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets.

    Attributes:
        text: With ``[redacted: github token]`` and the like in their place; the text itself if there was none.
        kinds: What was left out, in order; a kind as often as it was found.
    """

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns that are looked for in the same texts, each with its number."""

    pattern: SecretPattern
    finds: tuple[tuple[int, Find], ...]


def _grouped() -> Iterator[_Group]:
    groups: dict[tuple[Any, ...], list[tuple[int, SecretPattern]]] = {}
    for number, one in enumerate(PATTERNS):
        when = (one.hints, one.is_word, one.is_long, one.digits, one.may_match)
        groups.setdefault(when, []).append((number, one))
    for members in groups.values():
        yield _Group(members[0][1], tuple((number, one.find) for number, one in members))


_GROUPS = tuple(_grouped())
_KEYS = tuple(group for group in _GROUPS if group.pattern.is_word and group.pattern.hints)
_LONG = tuple(group for group in _GROUPS if group.pattern.is_long and group not in _KEYS)
_OTHERS = tuple(group for group in _GROUPS if not group.pattern.is_long)


def redact(text: str) -> Redacted:
    """Return a text without its secrets; a text without any, such as one redacted before, comes back as it is.

    Takes a time in proportion to the text's length, whatever it holds.
    """
    clean = found = _redact_once(text)
    for _ in range(_FURTHER_PASSES):
        if not found.kinds:
            break
        # What stood beside a secret may show itself as one only without it.
        found = _redact_once(clean.text)
        clean = Redacted(found.text, clean.kinds + found.kinds)
    return clean


def _redact_once(text: str) -> Redacted:
    pieces: list[str] = []
    kinds: list[str] = []
    at = 0
    for start, end, kind in _found(text):
        pieces += (text[at:start], placeholder(kind))
        kinds.append(kind)
        at = end
    return Redacted("".join([*pieces, text[at:]]), tuple(kinds)) if kinds else Redacted(text)


def placeholder(kind: str) -> str:
    """Return what stands where a secret stood."""
    return f"[redacted: {kind}]"


def redact_argument(argument: str, text: str, policy: SecretPolicy) -> str:
    """Return a text that is to be stored beside the pages, without its secrets.

    Raises:
        ArgumentError: There is one and the policy is to reject it. The error names the argument and the kind.
    """
    if policy == "off":
        return text
    redacted = redact(text)
    if redacted.kinds and policy == "reject":
        refusal = refusal_of(
            argument, redacted.kinds, "leave it out, or set secret_policy to redact; nothing was stored"
        )
        raise refusal
    return redacted.text


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the secrets from left to right; those that overlap are one, of the kind whose form says more."""
    kept: list[tuple[int, int, int]] = []
    for start, end, number in sorted(_candidates(text)):
        if kept and start < kept[-1][1]:
            before = kept[-1]
            kept[-1] = before[0], max(end, before[1]), min(number, before[2])
        else:
            kept.append((start, end, number))
    for start, end, number in kept:
        yield start, end, PATTERNS[number].kind


def _candidates(text: str) -> list[tuple[int, int, int]]:
    """Return whatever has the form of a secret: its first character, the one after its last, the pattern's number."""
    # The one letter whose lower case is two characters; each has to stay at its place.
    lower = text.replace("İ", "i").lower()
    tokens = text.split()
    long = [token for token in tokens if len(token) >= LONG_WORD_CHARS]
    words = "\n".join(long)
    keys = "\n".join([word for word in long if _KEY_LIKE.search(word)])
    digits = len("".join(_DIGITS.findall(text)))
    groups = (_KEYS if keys else ()) + (_LONG if long else ()) + _OTHERS
    found: list[tuple[int, int, int]] = []
    for group in groups:
        pattern = group.pattern
        if pattern.digits > digits or (pattern.may_match and not pattern.may_match(tokens)):
            continue
        searched = keys if pattern.is_word else lower
        for hint in pattern.hints:
            if hint in searched:
                break
        else:
            if pattern.hints:
                continue
        for number, find in group.finds:
            if pattern.is_word and not pattern.hints and next(find(words, words), None) is None:
                continue
            found += [(*span, number) for span in find(text, lower)]
    return found


def redact_json(text: str) -> Redacted:
    """Return JSON whose keys and values are without secrets."""
    kinds: list[str] = []
    clean = _clean(json.loads(text), kinds)
    return Redacted(json.dumps(clean, ensure_ascii=False), tuple(kinds)) if kinds else Redacted(text)


def _clean(value: Any, kinds: list[str]) -> Any:
    """Return JSON's value without secrets, and add their kinds. A number may be one as well: a card's."""
    if isinstance(value, Mapping):
        return _clean_object(value, kinds)
    if isinstance(value, list):
        return [_clean(item, kinds) for item in value]
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        clean = redact(str(value))
        kinds += clean.kinds
        return clean.text if clean.kinds else value
    return value


def _clean_object(members: Mapping[str, Any], kinds: list[str]) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for name, value in members.items():
        key = _clean(name, kinds)
        while key in clean:  # two names that were secrets
            key += "*"
        clean[key] = _clean(value, kinds)
        if clean[key] == value and isinstance(value, str) and (kind := is_named_secret(name, value)):
            clean[key] = placeholder(kind)
            kinds.append(kind)
    return clean


def refusal_of(argument: str, kinds: Sequence[str], advice: str) -> ArgumentError:
    """Return the error that names an argument and the kinds of secret in it."""
    listed = ", ".join(dict.fromkeys(kinds))
    return ArgumentError(argument=argument, problem=f"holds a secret ({listed}); {advice}")
