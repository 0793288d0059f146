"""Redaction: removes keys, passwords and card numbers from a turn before it is stored, embedded or shown to an LLM.

Everything else is derived from stored pages, so a secret removed here does not appear anywhere.
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
# A key has a capital letter or a digit, and 16 characters without a dot or slash.
_KEY_LIKE = re.compile(r"(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{16}")

SecretPolicy = Literal["redact", "reject", "off"]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets.

    Attributes:
        text: With ``[redacted: github token]`` and the like in their place; unchanged if there were none.
        kinds: Kinds of the removed secrets, in order, with repeats.
    """

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns that are searched in the same texts, each with its number."""

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
    """Return a text without its secrets; a text without any, such as a redacted one, comes back unchanged.

    The time taken is proportional to the length of the text, whatever it contains.
    """
    clean = found = _redact_once(text)
    for _ in range(_FURTHER_PASSES):
        if not found.kinds:
            break
        # Text beside a secret may be recognisable as another one only after the first is removed.
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
    """Return the text that replaces a secret."""
    return f"[redacted: {kind}]"


def redact_argument(argument: str, text: str, policy: SecretPolicy) -> str:
    """Return a text that will be stored in addition to the pages, without its secrets.

    Raises:
        ArgumentError: It contains a secret and the policy is to reject it. The error names the argument and the kind.
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
    """Yield the secrets from left to right; overlapping ones are merged and take the kind of the earlier pattern."""
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
    """Return the start, end and pattern number of everything that has the form of a secret."""
    # The only letter whose lower case is two characters; positions must not shift.
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
    """Return JSON without secrets in its keys and values."""
    kinds: list[str] = []
    clean = _clean(json.loads(text), kinds)
    return Redacted(json.dumps(clean, ensure_ascii=False), tuple(kinds)) if kinds else Redacted(text)


def _clean(value: Any, kinds: list[str]) -> Any:
    """Return a JSON value without secrets, and add their kinds. A number may be a secret too: a card number."""
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
