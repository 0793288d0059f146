"""What became of the things that a file holds."""

from collections import Counter, defaultdict

from memoryos_mcp.transfer.found import Skipped

# So many of the places where something was left out are told.
PLACES_TOLD = 3


class Tally:
    """Counts what is found, what of it is new, and what is left out and why.

    Attributes:
        found: By kind, what can be taken in.
        new: By kind, what was not there before; with it, how many facts were archived.
        skipped: By reason, how often.
        places: By reason, the first places.
        redacted: By kind, secrets that were left out of what is taken in.
    """

    def __init__(self) -> None:
        self.found = Counter[str]()
        self.new = Counter[str]()
        self.skipped = Counter[str]()
        self.redacted = Counter[str]()
        self.places = defaultdict[str, list[str]](list)

    def skip(self, skipped: Skipped) -> None:
        """Take note of something that is left out."""
        self.skipped[skipped.reason] += 1
        if len(self.places[skipped.reason]) < PLACES_TOLD:
            self.places[skipped.reason].append(skipped.where)
