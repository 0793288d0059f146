"""Counts of what an import found, added and skipped."""

from collections import Counter, defaultdict

from memoryos_mcp.transfer.found import Skipped

# Number of places reported for each reason.
PLACES_TOLD = 3


class Tally:
    """Counts of what was found, what of it is new, and what was skipped and why.

    Attributes:
        found: By kind, what can be imported.
        new: By kind, what was not in the memory before; also the number of archived facts.
        skipped: Number of skipped things by reason.
        places: The first places by reason.
        redacted: By kind, secrets removed from what can be imported.
    """

    def __init__(self) -> None:
        self.found = Counter[str]()
        self.new = Counter[str]()
        self.skipped = Counter[str]()
        self.redacted = Counter[str]()
        self.places = defaultdict[str, list[str]](list)

    def skip(self, skipped: Skipped) -> None:
        """Count something that is skipped."""
        self.skipped[skipped.reason] += 1
        if len(self.places[skipped.reason]) < PLACES_TOLD:
            self.places[skipped.reason].append(skipped.where)
