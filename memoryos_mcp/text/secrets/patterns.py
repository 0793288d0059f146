"""All patterns for secrets. If two matches overlap, the pattern that comes first in the list determines the kind."""

import re

from memoryos_mcp.text.secrets import checks, key_blocks
from memoryos_mcp.text.secrets.account_numbers import ACCOUNT_NUMBERS
from memoryos_mcp.text.secrets.forms import SecretPattern
from memoryos_mcp.text.secrets.logins import LOGINS
from memoryos_mcp.text.secrets.passwords import KIND, PASSWORDS, is_named_password
from memoryos_mcp.text.secrets.provider_keys import PROVIDER_KEYS
from memoryos_mcp.text.secrets.recovery_codes import RECOVERY_CODES
from memoryos_mcp.text.secrets.wallets import WALLETS

PATTERNS: tuple[SecretPattern, ...] = (
    *key_blocks.PRIVATE_KEYS,
    *WALLETS,
    *PROVIDER_KEYS,
    *LOGINS,
    PASSWORDS,
    RECOVERY_CODES,
    *ACCOUNT_NUMBERS,
)

_KEY_NAME = re.compile("key|token|secret", re.IGNORECASE)


def is_named_secret(name: str, value: str) -> str | None:
    """Return the kind of the secret ``value``; None if ``value`` is not a secret.

    ``name`` is the name of the value, such as its key in a JSON object.
    """
    if is_named_password(name, value):
        return KIND
    return "api key" if _KEY_NAME.search(name) and checks.is_named_key(value) else None
