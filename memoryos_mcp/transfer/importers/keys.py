"""Keys of imported pages and facts, which are the same at every import and within the length limit of keys."""

import hashlib

MAX_CHARS = 200  # leaves room for the suffixes of a page that is split


def key(system: str, *names: str) -> str:
    """Return the names joined by colons, or hashed if they are too long together."""
    joined = ":".join((system, *names))
    return joined if len(joined) <= MAX_CHARS else f"{system}:{digest(*names)}"


def digest(*texts: str) -> str:
    """Return the first 128 bits of a SHA-256 of the texts and their lengths, in hexadecimal."""
    hashed = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:32]


def name_of(value: object) -> str:
    """Return an identifier as text, or an empty text if it is neither a text nor an integer."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
