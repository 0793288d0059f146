"""The export format of this package: JSON Lines, lossless and deterministic.

Vectors, the word index and page counts are not exported, because they can be computed again. The last line contains the
SHA-256 of all previous lines, so that an incomplete or changed file is detected before anything is imported.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import Field, TypeAdapter, ValidationError

from memoryos_mcp.errors import ArgumentError, ImportFormatError
from memoryos_mcp.model.pages import Tier, meta_data_json
from memoryos_mcp.model.records import (
    FORMAT,
    FORMAT_VERSION,
    ChainRecord,
    End,
    FactRecord,
    Header,
    PageRecord,
    Record,
    SegmentRecord,
)
from memoryos_mcp.transfer.export_lines import lines, opened
from memoryos_mcp.transfer.interface import Progress

NAME = FORMAT
_HEADER_MAX_BYTES = 1_000
_ANY_LINE: TypeAdapter[Record | End] = TypeAdapter(Annotated[Record | End, Field(discriminator="kind")])


@dataclass(frozen=True, slots=True)
class Contents:
    """A summary of an export file.

    Attributes:
        sha256: Hash of all lines except the last.
        counts: Number of records of each kind.
    """

    sha256: str
    counts: Counter[str]


def write(records: Iterator[Record], put: Callable[[bytes], object]) -> Contents:
    """Write the records in the export format, and return a summary. ``put`` receives the file line by line."""
    digest, counts = hashlib.sha256(), Counter[str]()

    def put_line(line: Header | Record | End) -> None:
        text = line.model_dump_json(exclude_defaults=True).encode() + b"\n"
        digest.update(text)
        put(text)

    put_line(Header(format="memoryos", version=FORMAT_VERSION))
    for record in records:
        put_line(record)
        counts[record.kind] += 1
    contents = Contents(digest.hexdigest(), counts)
    put_line(End(kind="end", counts=counts, sha256=contents.sha256))
    return contents


def recognises(path: Path) -> bool:
    """Return whether a file begins like an export of this program."""
    if not path.is_file():
        return False
    try:
        with opened(path) as (file, _):
            first = file.readline(_HEADER_MAX_BYTES)
    except ImportFormatError:
        return False
    return first.replace(b" ", b"").startswith(b'{"format":"memoryos"')


def check(path: Path, progress: Progress) -> Contents:
    """Check every line of an export file, and return a summary of the file.

    Raises:
        ImportFormatError: The file is cut off, changed, in a newer format, or not exported by memoryos-mcp.
    """
    reading = _Reading(path)
    for _ in reading.records(progress):
        pass
    return Contents(reading.sha256, reading.counts)


def read(path: Path, progress: Progress) -> Iterator[Record]:
    """Yield the records of an export file.

    Raises:
        ImportFormatError: The file is cut off, changed, in a newer format, or not exported by memoryos-mcp.
    """
    return _Reading(path).records(progress)


class _Reading:
    """Reads an export file once, and checks every line."""

    def __init__(self, path: Path) -> None:
        self.counts = Counter[str]()
        self.sha256 = ""
        self._path = path
        self._line = 0
        self._numbers: dict[str, set[int]] = {"chain": set(), "segment": set(), "fact": set()}
        self._successors: set[int] = set()

    def records(self, progress: Progress) -> Iterator[Record]:
        digest, end = hashlib.sha256(), None
        for line in lines(self._path, progress):
            self._line += 1
            if end is not None:
                self._refuse("comes after the last line of an export")
            if self._line == 1:
                self._check_header(line)
            else:
                record = self._parsed(line)
                if isinstance(record, End):
                    end, self.sha256 = record, digest.hexdigest()
                    continue
                self._check_references(record)
                self.counts[record.kind] += 1
                yield record
            digest.update(line)
        self._check_end(end)

    def _check_header(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._refuse("is not JSON, so the file is not an export of memoryos-mcp", error)
        version = found.get("version") if isinstance(found, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION and found.get("format") == FORMAT:
            msg = (
                f"{self._path} has format version {version}, but this program only reads versions up to "
                f"{FORMAT_VERSION}. Upgrade memoryos-mcp-server"
            )
            raise ImportFormatError(msg)
        try:
            Header.model_validate(found)
        except ValidationError as error:
            self._refuse("is not the first line of an export, so the file is not an export of memoryos-mcp", error)

    def _parsed(self, line: bytes) -> Record | End:
        if not line.endswith(b"\n"):
            raise self._cut_off()
        try:
            return _ANY_LINE.validate_json(line)
        except ValidationError as error:
            self._refuse(_problem(line, error), error)

    def _check_references(self, record: Record) -> None:
        match record:
            case ChainRecord():
                self._number("chain", record.chain)
            case SegmentRecord():
                self._number("segment", record.segment)
            case FactRecord():
                self._number("fact", record.fact)
                self._successors |= {record.superseded_by} if record.superseded_by is not None else set()
            case PageRecord():
                self._check_page(record)

    def _check_page(self, page: PageRecord) -> None:
        for kind, number in (("chain", page.chain), ("segment", page.segment)):
            if number is not None and number not in self._numbers[kind]:
                self._refuse(f"refers to a {kind} that no earlier line defines")
        is_filed = page.segment is not None and page.organised_by is not None
        if (page.tier is Tier.MID_TERM) != is_filed:
            self._refuse("has a tier that does not fit its topic")
        if not page.user_input.strip() and not page.agent_response.strip():
            self._refuse("is a page without text")
        try:
            meta_data_json(page.meta_data)
        except ArgumentError as error:
            self._refuse(f"cannot be used: {error}", error)

    def _number(self, kind: str, number: int) -> None:
        if number in self._numbers[kind]:
            self._refuse(f"repeats the number of an earlier {kind}")
        self._numbers[kind].add(number)

    def _check_end(self, end: End | None) -> None:
        if self._line == 0:
            msg = f"{self._path} is empty; choose another file"
            raise ImportFormatError(msg)
        if end is None:
            raise self._cut_off()
        if end.sha256 != self.sha256 or +self.counts != +Counter(end.counts):
            msg = f"{self._path} was changed or damaged, because its checksum does not match; export the memory again"
            raise ImportFormatError(msg)
        if not self._successors <= self._numbers["fact"]:
            self._refuse("is the last line, but a fact is superseded by a fact that the file does not contain")

    def _cut_off(self) -> ImportFormatError:
        return ImportFormatError(f"{self._path} is cut off after line {self._line:,}. Get the whole file")

    def _refuse(self, problem: str, error: Exception | None = None) -> NoReturn:
        msg = f"{self._path}, line {self._line:,} {problem}. Export the memory again, or choose another file"
        raise ImportFormatError(msg) from error


def _problem(line: bytes, error: ValidationError) -> str:
    """Return a description of what is wrong with a line. It contains no text of the line."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return "is not UTF-8 text, so the file is not an export of memoryos-mcp"
    for each in error.errors(include_input=False, include_url=False, include_context=False):
        if each["type"] == "json_invalid":
            return "is not JSON, or is nested too deeply"
        if each["type"] == "string_pattern_mismatch":
            return "contains an invalid id or digest; a page's id is p_ and hexadecimal digits"
    return "is not a valid record: a field is missing, unknown or out of range"
