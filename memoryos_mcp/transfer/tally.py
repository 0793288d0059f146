"""Counts the items of an import: all usable items of the file, new items and skipped items."""

from collections import Counter, defaultdict

from memoryos_mcp.transfer.interface import Skipped

# Number of locations that are reported for each reason.
PLACES_SHOWN = 3


class Tally:
    """Counts of the items of an import.

    Attributes:
        found: For each kind, the number of items in the file that can be imported.
        new: For each kind, the number of these items that were not in the memory yet. Under the kind `ARCHIVED`,
            the number of archived facts.
        skipped: For each reason, the number of skipped items.
        places: For each reason, the locations of the first `PLACES_SHOWN` skipped items.
        redacted: For each kind of secret, the number of secrets that were removed from the items.
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
