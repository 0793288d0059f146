"""Keys of imported pages and facts: the same at every import, and within the length limit of keys."""

import hashlib

MAX_CHARS = 200  # leaves room for the suffix of a page's further parts


def key(system: str, *names: str) -> str:
    """Return the names joined by colons, or hashed if they are too long together."""
    joined = ":".join((system, *names))
    return joined if len(joined) <= MAX_CHARS else f"{system}:{digest(*names)}"


def digest(*texts: str) -> str:
    """Return 128 bits of the texts' SHA-256 as hexadecimal; the boundaries between the texts are hashed too."""
    hashed = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:32]


def name_of(value: object) -> str:
    """Return an identifier as text; empty if it is not a text or an integer."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
