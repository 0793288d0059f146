"""Makes keys for imported pages and facts. The same data has the same key in every import."""

import hashlib

MAX_CHARS = 200  # leaves room for the suffix that each part of a split page gets


def key(system: str, *names: str) -> str:
    """Return a key that consists of the name of a system and of ``names``, joined by colons.

    If the key would be longer than `MAX_CHARS`, it contains a hash of ``names`` instead of the names.
    """
    joined = ":".join((system, *names))
    return joined if len(joined) <= MAX_CHARS else f"{system}:{digest(*names)}"


def digest(*texts: str) -> str:
    """Return the first 128 bits of a SHA-256 hash of the texts and their lengths, in hexadecimal."""
    hashed = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:32]


def name_of(value: object) -> str:
    """Return an identifier as a string, or an empty string if it is neither a string nor an integer."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
