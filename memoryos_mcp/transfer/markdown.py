"""Writes a memory as Markdown, for people to read: one file, or a folder of notes that Obsidian opens.

Stored text is quoted, and its punctuation is escaped, so that it cannot become a heading, a link or markup. Only one
page is in RAM at a time, together with the day of each page and the days of each topic.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import tzinfo
from pathlib import Path
from typing import TextIO

from memoryos_mcp.model.records import FactRecord, PageRecord, PastTraitRecord, Record, SegmentRecord, TraitRecord
from memoryos_mcp.text.quoting import one_line, plain

MARK = "source: memoryos-mcp"
NOTICE = (
    "This copy is for reading. It cannot be imported again. For a copy that can be imported, run "
    "`memoryos-mcp export memory.jsonl`."
)
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#=|~$%^&])")
# The beginning of a line that would become an item of a list, or a rule.
_ITEM = re.compile(r"^(\d*)([-+.)])")


def escaped(text: str) -> str:
    """Return ``text`` on one line, with all Markdown syntax escaped."""
    return _escaped(one_line(text))


def quoted(text: str) -> str:
    """Return ``text`` as a Markdown quotation with the same lines. Markdown syntax in ``text`` is escaped."""
    lines = (_escaped(line.strip()) for line in plain(text).strip("\n").split("\n"))
    return "\n".join(f"> {line}  " if line else ">" for line in lines)


def _escaped(line: str) -> str:
    return _ITEM.sub(r"\1\\\2", _ACTIVE.sub(r"\\\1", line))


def _title(segment: SegmentRecord) -> str:
    """Return a topic's keywords without punctuation, because punctuation in links cannot be escaped."""
    words = " ".join(one_line(_ACTIVE.sub(" ", ", ".join(segment.keywords[:3]))).split())
    return words or f"Topic {segment.segment}"


def recognises(path: Path) -> bool:
    """Return whether a file begins like the files that this module writes. Only the beginning is read."""
    beginning = f"---\n{MARK}\n".encode()
    with path.open("rb") as file:
        return file.read(len(beginning)) == beginning


class _Book:
    """Converts a memory's pages, facts and traits to Markdown, for a single file or for a folder of notes.

    Args:
        zone: The time zone of days and times; None means the zone of this machine.
        link: Function that returns a link to a day's note. Its arguments are the day and the link's text.
    """

    def __init__(self, zone: tzinfo | None, link: Callable[[str, str], str]) -> None:
        self.counts: Counter[str] = Counter()
        self._zone = zone
        self._link = link
        self._day_of_page: dict[str, str] = {}
        self.days_of_topic: dict[int, dict[str, None]] = {}

    def day(self, page: PageRecord) -> str:
        """Return the day of a page, such as ``2025-01-31``, and store it for links to this day."""
        day = f"{page.occurred_at.astimezone(self._zone):%Y-%m-%d}"
        self._day_of_page[page.page_id] = day
        if page.segment is not None:
            self.days_of_topic.setdefault(page.segment, {})[day] = None
        return day

    def page(self, page: PageRecord, level: str) -> str:
        """Return a page as a section. ``level`` is the beginning of its heading, such as ``##``."""
        parts = [f"{level} {page.occurred_at.astimezone(self._zone):%H:%M} {page.page_id}"]
        for side, text in (("User", page.user_input), ("Assistant", page.agent_response)):
            if text.strip():
                parts.append(f"{side}:\n\n{quoted(text)}")
        return "\n\n".join(parts) + "\n\n"

    def long_term(self, records: Iterable[Record]) -> Iterator[tuple[str, str]]:
        """Yield pairs: the note ``Facts`` or ``Profile``, and a line about a fact or a trait for this note."""
        for record in records:
            match record:
                case FactRecord():
                    since = f"{record.valid_from.astimezone(self._zone):%Y-%m-%d}"
                    ended = " (no longer valid)" if record.valid_until is not None else ""
                    about = "" if record.about == "user" else f" (about the {record.about})"
                    text = f"- {since}: {escaped(record.text)}{ended}{about}{self._evidence(record.evidence)}\n"
                    yield "Facts", text
                case TraitRecord():
                    text = f"- {escaped(record.dimension)}: {record.level}. {escaped(record.reason)}"
                    yield "Profile", f"{text}{self._evidence(record.evidence)}\n"
                case PastTraitRecord():
                    until = f"{record.held_until.astimezone(self._zone):%Y-%m-%d}"
                    text = f"- {escaped(record.dimension)}, until {until}: {record.level}. {escaped(record.reason)}\n"
                    yield "Profile", text
                case _:
                    continue
            self.counts[record.kind] += 1

    def _evidence(self, pages: Iterable[str]) -> str:
        days = dict.fromkeys(self._day_of_page[page] for page in pages if page in self._day_of_page)
        return f" ({', '.join(self._link(day, day) for day in days)})" if days else ""


def _front(title: str, **more: str) -> str:
    rows = "".join(f"{name}: {value}\n" for name, value in more.items())
    return f"---\n{MARK}\n{rows}---\n\n# {title}\n\n"


def write_file(records: Iterator[Record], put: Callable[[bytes], object], zone: tzinfo | None) -> Counter[str]:
    """Write a memory as one Markdown file, and return how many pages, topics, facts and traits it contains.

    ``put`` receives the file part by part.
    """
    book = _Book(zone, lambda _, text: text)

    def say(text: str) -> None:
        put(text.encode())

    say(_front("Memory") + NOTICE + "\n\n")
    heading = ""

    def under(title: str) -> None:
        nonlocal heading
        if title != heading:
            heading = title
            say(f"\n## {title}\n\n")

    def others() -> Iterator[Record]:
        for record in records:
            if isinstance(record, SegmentRecord):
                under("Topics")
                say(f"- {escaped(', '.join(record.keywords))}: {escaped(record.summary)}\n")
            elif isinstance(record, PageRecord):
                under(book.day(record))
                say(book.page(record, "###"))
            else:
                yield record
                continue
            book.counts[record.kind] += 1

    for title, line in book.long_term(others()):
        under(title)
        say(line)
    return book.counts


def write_folder(records: Iterator[Record], folder: Path, zone: tzinfo | None) -> Counter[str]:
    """Write a memory as notes into an empty folder, and return how many pages, topics, facts and traits they contain.

    The folder gets a note for each day and each topic, and the notes Memory, Facts and Profile.
    """
    book = _Book(zone, lambda day, text: f"[[Days/{day}|{text}]]")
    for name in ("Days", "Topics"):
        (folder / name).mkdir()
    topics: dict[int, str] = {}
    with ExitStack() as closing:
        notes = {
            name: closing.enter_context((folder / f"{name}.md").open("w", encoding="utf-8", newline="\n"))
            for name in ("Memory", "Facts", "Profile")
        }
        notes["Memory"].write(f"{_front('Memory')}{NOTICE}\n\n- [[Facts]]\n- [[Profile]]\n")
        for name in ("Facts", "Profile"):
            notes[name].write(_front(name))
        days = _Days(folder / "Days")
        closing.callback(days.close)

        def others() -> Iterator[Record]:
            for record in records:
                if isinstance(record, SegmentRecord):
                    title = _title(record)
                    topics[record.segment] = title
                    with _topic(folder, record.segment).open("w", encoding="utf-8", newline="\n") as note:
                        note.write(f"{_front(title)}{quoted(record.summary)}\n\n")
                elif isinstance(record, PageRecord):
                    text = book.page(record, "##")
                    if record.segment in topics:
                        text += f"Topic: [[Topics/{record.segment}|{topics[record.segment]}]]\n\n"
                    days.note(book.day(record)).write(text)
                else:
                    yield record
                    continue
                book.counts[record.kind] += 1

        for name, line in book.long_term(others()):
            notes[name].write(line)
        for number, title in topics.items():
            notes["Memory"].write(f"- [[Topics/{number}|{title}]]\n")
            with _topic(folder, number).open("a", encoding="utf-8", newline="\n") as note:
                note.writelines(f"- [[Days/{day}]]\n" for day in book.days_of_topic.get(number, ()))
    return book.counts


def _topic(folder: Path, number: int) -> Path:
    return folder / "Topics" / f"{number}.md"


class _Days:
    """Opens the notes of the days for writing, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._day = ""
        self._note: TextIO | None = None

    def note(self, day: str) -> TextIO:
        """Open the note of a day, and return it. If another note is open, close it first."""
        if self._note is None or day != self._day:
            self.close()
            path = self._folder / f"{day}.md"
            is_new = not path.exists()
            self._day, self._note = day, path.open("a", encoding="utf-8", newline="\n")
            if is_new:
                self._note.write(_front(day, date=day))
        return self._note

    def close(self) -> None:
        if self._note is not None:
            self._note.close()
