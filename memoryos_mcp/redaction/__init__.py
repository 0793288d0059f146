"""Redaction: keys, passwords and card numbers are left out of a turn before it is stored, embedded or shown to an LLM.

All that follows from a page is derived from what is stored, so that what is left out here is nowhere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.pages import Turn
from memoryos_mcp.redaction import key_blocks
from memoryos_mcp.redaction.patterns import LONG_WORD_CHARS, PATTERNS, SecretPattern, is_named_secret

_FURTHER_PASSES = 2
_KEY_BLOCK = -1  # in the place of a pattern's number

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
class Redaction:
    """A turn without its secrets.

    Attributes:
        kinds: What was left out of it, in order; a kind as often as it was found.
    """

    turn: Turn
    kinds: tuple[str, ...] = ()


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


def redact_turn(turn: Turn, policy: SecretPolicy) -> Redaction:
    """Return a turn as it may be stored: both sides, and keys and values of its ``meta_data``, without secrets.

    An idempotency key is never changed, since two turns would become one: with a secret in it the turn is refused.

    Raises:
        ArgumentError: There is a secret and the policy is to reject it, or it stands in the idempotency key. The error
            names the argument and the kind of secret.
    """
    if policy == "off":
        return Redaction(turn)
    key = redact(turn.idempotency_key or "")
    if key.kinds:
        refusal = _refusal("idempotency_key", key.kinds, "name the turn by something else")
        raise refusal
    user_input, agent_response = redact(turn.user_input), redact(turn.agent_response)
    meta_data = _redact_json(turn.meta_data) if turn.meta_data else None
    parts = {"user_input": user_input, "agent_response": agent_response, "meta_data": meta_data}
    found = {name: part.kinds for name, part in parts.items() if part is not None and part.kinds}
    if not found:
        return Redaction(turn)
    if policy == "reject":
        argument, kinds = next(iter(found.items()))
        refusal = _refusal(argument, kinds, "leave it out, or set secret_policy to redact; nothing was stored")
        raise refusal
    clean = replace(
        turn,
        user_input=user_input.text,
        agent_response=agent_response.text,
        meta_data=meta_data.text if meta_data else None,
    )
    return Redaction(clean, tuple(kind for kinds in found.values() for kind in kinds))


def redact_argument(argument: str, text: str, policy: SecretPolicy) -> str:
    """Return a text that is to be stored beside the pages, without its secrets.

    Raises:
        ArgumentError: There is one and the policy is to reject it. The error names the argument and the kind.
    """
    if policy == "off":
        return text
    redacted = redact(text)
    if redacted.kinds and policy == "reject":
        refusal = _refusal(argument, redacted.kinds, "leave it out, or set secret_policy to redact; nothing was stored")
        raise refusal
    return redacted.text


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the secrets from left to right; of those that overlap, the one whose form says more."""
    kept: list[tuple[int, int, int]] = []
    for found in sorted(_candidates(text)):
        if not kept or found[0] >= kept[-1][1]:
            kept.append(found)
        elif found[2] < kept[-1][2]:
            kept[-1] = found
    for start, end, number in kept:
        yield start, end, PATTERNS[number].kind if number >= 0 else key_blocks.KIND


def _candidates(text: str) -> list[tuple[int, int, int]]:
    """Return whatever has the form of a secret: its first character, the one after its last, the pattern's number."""
    # The one letter whose lower case is two characters; each has to stay at its place.
    lower = text.replace("İ", "i").lower()
    words = "\n".join(word for word in text.split() if len(word) >= LONG_WORD_CHARS)
    found: list[tuple[int, int, int]] = []
    if key_blocks.HINT in text:
        found += [(*span, _KEY_BLOCK) for span in key_blocks.find(text)]
    for number, pattern in enumerate(PATTERNS):
        if pattern.is_long and not words:
            continue
        searched = words if pattern.is_word else lower
        if pattern.hints and not any(hint in searched for hint in pattern.hints):
            continue
        secret = "secret" if pattern.is_part else 0
        for match in _matches(pattern, text, lower):
            if pattern.check is None or pattern.check(match[secret]):
                found.append((*match.span(secret), number))
    return found


def _matches(pattern: SecretPattern, text: str, lower: str) -> Iterator[re.Match[str]]:
    if pattern.names is None:
        yield from pattern.form.finditer(text)
        return
    for name in pattern.names.finditer(lower):
        if match := pattern.form.match(text, name.start()):
            yield match


def _redact_json(text: str) -> Redacted:
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


def _refusal(argument: str, kinds: Sequence[str], advice: str) -> ArgumentError:
    listed = ", ".join(dict.fromkeys(kinds))
    return ArgumentError(argument=argument, problem=f"holds a secret ({listed}); {advice}")
