"""Counts with a noun: "1 page", "2 pages"."""


def amount(count: int, noun: str) -> str:
    """Return a count and its noun, with a plural ``s`` if needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
