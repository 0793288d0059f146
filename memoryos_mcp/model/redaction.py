"""Removes secrets from a turn before it is stored."""

from dataclasses import dataclass, replace

from memoryos_mcp.model.pages import Turn
from memoryos_mcp.text.secrets import SecretPolicy, redact, redact_json, refusal_of


@dataclass(frozen=True, slots=True)
class Redaction:
    """A turn without its secrets.

    Attributes:
        kinds: Kinds of the removed secrets, in order, with repeats.
    """

    turn: Turn
    kinds: tuple[str, ...] = ()


def redact_turn(turn: Turn, policy: SecretPolicy) -> Redaction:
    """Return a turn without the secrets in its sides and in keys and values of its ``meta_data``.

    An idempotency key is never changed, because turns with the same key become one page.

    Raises:
        ArgumentError: The idempotency key contains a secret, or another part does and the policy is "reject". The error
            names the argument and the kind of secret.
    """
    if policy == "off":
        return Redaction(turn)
    key = redact(turn.idempotency_key or "")
    if key.kinds:
        refusal = refusal_of("idempotency_key", key.kinds, "use another key")
        raise refusal
    user_input, agent_response = redact(turn.user_input), redact(turn.agent_response)
    meta_data = redact_json(turn.meta_data) if turn.meta_data else None
    parts = {"user_input": user_input, "agent_response": agent_response, "meta_data": meta_data}
    found = {name: part.kinds for name, part in parts.items() if part is not None and part.kinds}
    if not found:
        return Redaction(turn)
    if policy == "reject":
        argument, kinds = next(iter(found.items()))
        refusal = refusal_of(argument, kinds, "leave it out, or set secret_policy to redact; nothing was stored")
        raise refusal
    clean = replace(
        turn,
        user_input=user_input.text,
        agent_response=agent_response.text,
        meta_data=meta_data.text if meta_data else None,
    )
    return Redaction(clean, tuple(kind for kinds in found.values() for kind in kinds))
