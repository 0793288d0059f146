"""Formats a count with its noun, as in "1 page" and "2 pages"."""


def amount(count: int, noun: str) -> str:
    """Return a count with its noun. The noun gets a plural ``s`` if needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
