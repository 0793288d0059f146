"""Temporary storage on disk that sorts imported turns by time."""

import pickle
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo

from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.model.knowledge import AddFact
from memoryos_mcp.model.pages import NewTurn, Turn, checked, parse_timestamp, storable
from memoryos_mcp.model.redaction import Redaction
from memoryos_mcp.transfer.interface import ImportedFact, Item, Skipped
from memoryos_mcp.transfer.splitting import split
from memoryos_mcp.transfer.tally import Tally

FACT_MAX_CHARS = 10_000
_TABLE = """
CREATE TABLE turns (
    number INTEGER PRIMARY KEY, occurred_at REAL NOT NULL, turn BLOB NOT NULL
) STRICT;
"""


class Spool:
    """Checks the items of an importer, and stores the turns in an unnamed temporary file and the facts in RAM.

    Args:
        prepare: Removes the secrets from a turn. Raises `ArgumentError` if the turn must not be stored.
        max_page_chars: Maximum number of characters in a page (both messages together). Longer pages are split.
        zone: The user's time zone. None means the time zone of this machine.
        now: The current time, with a zone.
        tally: Counts the items.

    Attributes:
        facts: The facts, in the order of the importer.
    """

    def __init__(
        self,
        prepare: Callable[[Turn], Redaction],
        *,
        max_page_chars: int,
        zone: tzinfo | None,
        now: datetime,
        tally: Tally,
    ) -> None:
        self.facts: list[AddFact] = []
        self._prepare = prepare
        self._max_page_chars = max_page_chars
        self._zone = zone
        self._now = now
        self._tally = tally
        self._file = sqlite3.connect("", check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(_TABLE)

    def fill(self, found: Iterator[Item]) -> None:
        """Check and store all items of an importer.

        Raises:
            ImportFormatError: The importer cannot read the file to its end.
            StorageError: There is no space for the temporary file.
        """
        try:
            with self._file:
                for each in found:
                    self._take(each)
                self._file.execute("CREATE INDEX by_time ON turns (occurred_at, number)")
        except sqlite3.OperationalError as error:
            msg = (
                "no space is left for temporary files; nothing was imported. Free some space, or set TMPDIR to another "
                "folder"
            )
            raise StorageError(msg) from error

    def turns(self) -> Iterator[Turn]:
        """Yield the turns, ordered by time. Turns of the same time stay in the order of the importer."""
        for (turn,) in self._file.execute("SELECT turn FROM turns ORDER BY occurred_at, number"):
            yield pickle.loads(turn)  # noqa: S301 - this process has written it to a file without a name

    def close(self) -> None:
        """Remove the temporary file. Call this method after use."""
        self._file.close()

    def _take(self, found: Item) -> None:
        if isinstance(found, Skipped):
            self._tally.skip(found)
            return
        try:
            if isinstance(found, NewTurn):
                for part in split(found, self._max_page_chars):
                    self._put(self._turn(part))
                    self._tally.found["page"] += 1
            else:
                self.facts.append(self._fact(found))
                self._tally.found["fact"] += 1
        except ArgumentError as error:
            where = found.key if isinstance(found, ImportedFact) else found.idempotency_key or ""
            self._tally.skip(Skipped(reason=str(error), where=where))

    def _turn(self, page: NewTurn) -> Turn:
        return self._prepared(checked(page, max_page_chars=self._max_page_chars, zone=self._zone, now=self._now))

    def _prepared(self, turn: Turn) -> Turn:
        redaction = self._prepare(turn)
        self._tally.redacted.update(redaction.kinds)
        return redaction.turn

    def _fact(self, fact: ImportedFact) -> AddFact:
        text = " ".join(storable(fact.text).split())
        if not text or len(text) > FACT_MAX_CHARS:
            raise ArgumentError(argument="fact", problem=f"the text must have 1 to {FACT_MAX_CHARS:,} characters")
        at = parse_timestamp(fact.at, zone=self._zone, now=self._now)
        # Facts are redacted like turns.
        prepared = self._prepared(Turn(user_input=text, agent_response="", occurred_at=at))
        return AddFact(about=fact.about, text=prepared.user_input, slot=None, valid_from=at, evidence=())

    def _put(self, turn: Turn) -> None:
        sql = "INSERT INTO turns (occurred_at, turn) VALUES (?, ?)"
        self._file.execute(sql, (turn.occurred_at.timestamp(), pickle.dumps(turn)))
