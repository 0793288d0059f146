"""Counts of the items of an import: in the file, new and skipped."""

from collections import Counter, defaultdict

from memoryos_mcp.transfer.interface import Skipped

# Number of places that are reported for each reason.
PLACES_SHOWN = 3


class Tally:
    """Counts of the items of an import.

    Attributes:
        found: Number of items that can be imported, by kind.
        new: Number of these items that were not in the memory before, by kind. Also the number of archived facts.
        skipped: Number of skipped items, by reason.
        places: The first places of skipped items, by reason.
        redacted: Number of secrets that are removed from the items, by kind of secret.
    """

    def __init__(self) -> None:
        self.found = Counter[str]()
        self.new = Counter[str]()
        self.skipped = Counter[str]()
        self.redacted = Counter[str]()
        self.places = defaultdict[str, list[str]](list)

    def skip(self, skipped: Skipped) -> None:
        """Count an item that is skipped."""
        self.skipped[skipped.reason] += 1
        if len(self.places[skipped.reason]) < PLACES_SHOWN:
            self.places[skipped.reason].append(skipped.where)
