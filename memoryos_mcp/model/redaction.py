"""Removal of secrets from a turn before it is stored."""

from dataclasses import dataclass, replace
from typing import Any

from memoryos_mcp.model.pages import TURN_FIELDS, Turn
from memoryos_mcp.text.secrets import SecretPolicy, redact, redact_json, refusal_of

# The fields of a turn that may be changed, with the functions that remove secrets from them.
_CLEANERS = {"user_input": redact, "agent_response": redact, "meta_data": redact_json}


@dataclass(frozen=True, slots=True)
class Redaction:
    """A turn in which placeholders have replaced the secrets.

    Attributes:
        kinds: Kind of each removed secret. If several secrets have the same kind, the kind is repeated.
    """

    turn: Turn
    kinds: tuple[str, ...] = ()


def redact_turn(turn: Turn, policy: SecretPolicy) -> Redaction:
    """Return a turn with its secrets replaced by placeholders, also in the keys and values of its ``meta_data``.

    If the policy is "off", the turn is not searched for secrets and is returned unchanged. Under the other policies,
    an idempotency key that contains a secret is rejected. With placeholders, two different keys could become equal, and
    their turns would be stored as one page.

    Raises:
        ArgumentError: The policy is not "off" and the idempotency key contains a secret, or the policy is "reject" and
            another field contains a secret. The error names the argument and the kind of the secret.
    """
    if policy == "off":
        return Redaction(turn)
    texts = {name: text for name in TURN_FIELDS if isinstance(text := getattr(turn, name), str)}
    cleaned = {name: _CLEANERS.get(name, redact)(text) for name, text in texts.items()}
    found = {name: clean for name, clean in cleaned.items() if clean.kinds}
    for name, clean in found.items():
        if name not in _CLEANERS:
            refusal = refusal_of(name, clean.kinds, "use one without a secret")
            raise refusal
    if not found:
        return Redaction(turn)
    if policy == "reject":
        argument, clean = next(iter(found.items()))
        refusal = refusal_of(argument, clean.kinds, "leave it out, or set secret_policy to redact; nothing was stored")
        raise refusal
    changes: dict[str, Any] = {name: clean.text for name, clean in found.items()}
    return Redaction(replace(turn, **changes), tuple(kind for clean in found.values() for kind in clean.kinds))
