"""Amounts in words: "1 page", "2 pages"."""


def amount(count: int, noun: str) -> str:
    """Return a count with its noun, in English; the noun's plural ends in ``s``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
