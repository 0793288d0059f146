"""Amounts in words: "1 page", "2 pages"."""


def amount(count: int, noun: str) -> str:
    """Return how many of something there are, in English; the noun's plural ends in a mere ``s``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
