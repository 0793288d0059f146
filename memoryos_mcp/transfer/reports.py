"""The report of an import, as an object and in words."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from memoryos_mcp.storage.values import ARCHIVED
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import one_line
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.interface import Reader
from memoryos_mcp.transfer.tally import Tally

_KINDS = {
    "page": "page",
    "chain": "chain",
    "segment": "topic",
    "fact": "fact",
    "trait": "trait",
    "past_trait": "former trait",
    "note": "note",
    "refused": "correction",
}


class SkippedItems(BaseModel, frozen=True):
    """Items that were skipped for the same reason.

    ``places`` contains the locations of the first few of these items in the file.
    """

    reason: str
    count: int
    places: list[str]


class ImportReport(BaseModel, frozen=True):
    """The result of an import.

    ``found`` maps each kind of item to the number of items in the file that can be imported. ``new`` maps each kind to
    the number of these items that were not in the memory before the import. In a dry run, ``new`` contains only pages.
    ``archived_facts`` is the number of facts that were archived because the memory contained more facts than
    ``long_term_knowledge_capacity``.
    """

    format: str
    is_dry_run: bool
    found: dict[str, int]
    new: dict[str, int]
    skipped: list[SkippedItems]
    redacted: dict[str, int]
    pages_waiting: int
    archived_facts: int


def make_report(reader: Reader | None, tally: Tally, waiting: int, *, is_dry_run: bool) -> ImportReport:
    """Return the report of an import. ``waiting`` is the number of pages that wait to be organised."""
    return ImportReport(
        format=export_format.NAME if reader is None else reader.NAME,
        is_dry_run=is_dry_run,
        found=dict(tally.found),
        new={kind: tally.new[kind] for kind in tally.found if kind == "page" or not is_dry_run},
        skipped=[
            SkippedItems(reason=reason, count=count, places=tally.places[reason])
            for reason, count in tally.skipped.most_common()
        ],
        redacted=dict(tally.redacted.most_common()),
        pages_waiting=waiting,
        archived_facts=tally.new[ARCHIVED],
    )


def counted(counts: Mapping[str, int]) -> str:
    """Return the number of records of each kind as part of a sentence, such as "2 pages, 1 topic"."""
    return ", ".join(amount(count, _KINDS[kind]) for kind, count in counts.items())


def report_lines(report: ImportReport) -> Iterator[str]:
    """Yield the report in words, line by line."""
    yield f"Format: {report.format}"
    for kind, found in report.found.items():
        new = (
            f", {report.new[kind]:,} new, {found - report.new[kind]:,} already in the memory"
            if kind in report.new
            else ""
        )
        yield f"{_KINDS[kind].capitalize()}s: {found:,} found{new}"
    for skipped in report.skipped:
        more = "; ..." if skipped.count > len(skipped.places) else ""
        places = one_line("; ".join(skipped.places))
        yield f"Skipped: {skipped.count:,} x {one_line(skipped.reason)} ({places}{more})"
    if report.redacted:
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in report.redacted.items())
        yield f"Secrets removed: {kinds}"
    if report.archived_facts:
        facts = amount(report.archived_facts, "fact")
        yield f"Archived: {facts}, because the memory reached long_term_knowledge_capacity. Searches still find them."
    if report.new.get("fact"):
        yield "Search finds new facts by keywords now, and by meaning after a server has embedded them."
    if report.is_dry_run:
        yield "This was a dry run; nothing was changed."
    elif report.pages_waiting:
        pages = amount(report.pages_waiting, "page")
        yield f"To be organised: {pages}; a running server organises them in the background."
