"""Removes secrets, such as keys, passwords and card numbers, from text before it is stored, embedded or sent to an LLM.

All other data is derived from the stored pages, so a secret that is removed here does not appear anywhere else.
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
# Every key contains a capital letter or a digit, and at least 16 consecutive letters, digits, hyphens or underscores.
_KEY_LIKE = re.compile(r"(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{16}")

SecretPolicy = Literal["redact", "reject", "off"]


@dataclass(frozen=True, slots=True)
class Redacted:
    """Text in which placeholders have replaced the secrets.

    Attributes:
        text: The text with placeholders such as ``[redacted: github token]``; unchanged if it contained no secrets.
        kinds: Kinds of the removed secrets, with duplicates.
    """

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns that are searched for under the same conditions; see `SecretPattern`.

    Attributes:
        pattern: The first of the patterns. Its search conditions are those of all patterns in the group.
        finds: For each pattern, its number in `PATTERNS` and its ``find`` function.
    """

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
    """Return ``text`` with placeholders in place of the secrets. Text that was already redacted is unchanged.

    The running time is proportional to the length of the text, whatever the text contains.
    """
    clean = found = _redact_once(text)
    for _ in range(_FURTHER_PASSES):
        if not found.kinds:
            break
        # Some secrets are only recognised after the secret next to them has been removed.
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
    """Return the placeholder for secrets of the given kind."""
    return f"[redacted: {kind}]"


def redact_argument(argument: str, text: str, policy: SecretPolicy) -> str:
    """Return the text of a tool argument with placeholders in place of the secrets.

    If the policy is ``off``, the text is returned unchanged.

    Raises:
        ArgumentError: The text contains a secret, and the policy is ``reject``. The message names the argument and the
            kind of secret.
    """
    if policy == "off":
        return text
    redacted = redact(text)
    if redacted.kinds and policy == "reject":
        advice = "leave it out, or set secret_policy to redact; nothing was stored"
        raise refusal_of(argument, redacted.kinds, advice)
    return redacted.text


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind of each secret.

    Overlapping secrets are merged. The merged secret gets the kind whose pattern comes first in `PATTERNS`.
    """
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
    """Return the matches of all patterns. Each is a tuple: start, end, and the pattern's number in `PATTERNS`."""
    # "İ" is the only letter whose lower case has two characters. They would shift the positions after it.
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
    """Return a JSON text with placeholders in place of the secrets in its keys and values.

    Raises:
        ValueError: The text is not valid JSON.
    """
    kinds: list[str] = []
    clean = _clean(json.loads(text), kinds)
    return Redacted(json.dumps(clean, ensure_ascii=False), tuple(kinds)) if kinds else Redacted(text)


def _clean(value: Any, kinds: list[str]) -> Any:
    """Replace the secrets in a JSON value with placeholders, and append the kind of each to ``kinds``.

    Integers are checked too, because a number may be a secret.
    """
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
        while key in clean:  # two different names may be equal after redaction
            key += "*"
        clean[key] = _clean(value, kinds)
        if clean[key] == value and isinstance(value, str) and (kind := is_named_secret(name, value)):
            clean[key] = placeholder(kind)
            kinds.append(kind)
    return clean


def refusal_of(argument: str, kinds: Sequence[str], advice: str) -> ArgumentError:
    """Return the error for an argument that contains secrets of the given kinds.

    ``advice`` is the end of the message and says what the caller should do, such as "use one without a secret".
    """
    listed = ", ".join(dict.fromkeys(kinds))
    return ArgumentError(argument=argument, problem=f"contains a secret ({listed}); {advice}")
