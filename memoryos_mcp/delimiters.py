"""Delimiters: between them stands what was once said, as data, wherever a model reads it."""

import re

# The extractive analyst skips what is between them where a client pastes it back.
OPEN, CLOSE = "<memory>", "</memory>"
_DELIMITER = re.compile(r"<(\s*/?)\s*memory", re.IGNORECASE)


def disarmed(text: str) -> str:
    """Return a text with our delimiter disarmed, so that nothing remembered can end the block it stands in."""
    return _DELIMITER.sub(r"<\1 memory", text)
