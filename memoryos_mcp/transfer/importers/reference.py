"""Code shared by the importers for MemoryOS. It collects pages, facts and profiles, and orders the pages.

MemoryOS stores a copy of a page in every topic that the page belongs to. Only one copy links to the next page. A
short-term page has no id. A page's key is therefore made from its text and time, which are the same in all copies. Two
pages with different ids are different pages, even if text and time are the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn, Source
from memoryos_mcp.transfer.importers.keys import digest, key, name_of
from memoryos_mcp.transfer.importers.turns import from_iso, meta_data
from memoryos_mcp.transfer.interface import ImportedFact, Item, Skipped

SYSTEM = "memoryos"
ERROR_TEXT = "an error message instead of an LLM's answer"
NO_FACT = "a note that nothing was found"
NO_WORDS = "a page without text"
DAMAGED = "a damaged entry"
_ERROR = "Error: Could not get response"
_NOTHING = frozenset({"", "none", "null", "n/a", "nothing"})


@dataclass(frozen=True, slots=True)
class _Copy:
    """One copy of an imported page. Other files or topics may contain further copies of the page.

    Attributes:
        at: The time as written in the file, or empty if it is missing.
        before: The id of the previous page in the chain, or empty if this copy does not contain it.
        after: The id of the next page in the chain, or empty if this copy does not contain it.
        is_newest: Whether this is a short-term page. Short-term pages come after all other pages.
    """

    page_id: str
    user_input: str
    agent_response: str
    at: str
    before: str
    after: str
    summary: str
    is_newest: bool


@dataclass(slots=True)
class Gathering:
    """Collects the pages, profiles and facts of a memory. Afterwards, call `found` to get them in order."""

    _pages: dict[str, _Copy] = field(default_factory=dict)
    _facts: list[ImportedFact] = field(default_factory=list)
    _documents: list[NewTurn] = field(default_factory=list)

    def page(self, raw: object, where: str, *, is_newest: bool = False) -> Iterator[Skipped]:
        """Add a page, and yield a note about each part of the page that is skipped.

        Copies of the same page are merged. ``is_newest`` must be true for a short-term page.
        """
        if not isinstance(raw, Mapping):
            yield Skipped(DAMAGED, where)
            return
        sides = [raw.get("user_input"), raw.get("agent_response")]
        words = [text if isinstance(text, str) else "" for text in sides]
        if any(text is not None and not isinstance(text, str) for text in sides):
            yield Skipped(DAMAGED, where)
        if any(_is_error(text) for text in words):
            yield Skipped(ERROR_TEXT, where)
            words = ["" if _is_error(text) else text for text in words]
        if not any(text.strip() for text in words):
            yield Skipped(NO_WORDS, where)
            return
        summary = raw.get("meta_info")
        copy = _Copy(
            page_id=name_of(raw.get("page_id")) or f"#{len(self._pages)}",
            user_input=words[0],
            agent_response=words[1],
            at=_time(raw.get("timestamp")),
            before=name_of(raw.get("pre_page")),
            after=name_of(raw.get("next_page")),
            summary=summary if isinstance(summary, str) and not _is_error(summary) else "",
            is_newest=is_newest,
        )
        known = self._pages.get(copy.page_id)
        if known and (known.user_input, known.agent_response) != (copy.user_input, copy.agent_response):
            # Two different pages have the same id, so the second page gets another id.
            copy = replace(copy, page_id=f"{copy.page_id}#{digest(*words)}")
            known = self._pages.get(copy.page_id)
        self._pages[copy.page_id] = _joined(known, copy) if known else copy

    def fact(self, raw: object, about: About, where: str) -> Iterator[Skipped]:
        """Add one fact, or yield a note with the reason why it is skipped."""
        text = raw.get("knowledge", raw.get("text")) if isinstance(raw, Mapping) else raw
        at = raw.get("timestamp") if isinstance(raw, Mapping) else None
        if not isinstance(text, str):
            yield Skipped(DAMAGED, where)
        elif _is_error(text):
            yield Skipped(ERROR_TEXT, where)
        elif _is_nothing(text):
            yield Skipped(NO_FACT, where)
        else:
            words = text.strip().removeprefix("- ").strip()
            self._facts.append(ImportedFact(about, words, from_iso(at), key(SYSTEM, "fact", about, digest(words))))

    def profile(self, raw: object, where: str) -> Iterator[Skipped]:
        """Add the text of a profile as a document. It is not added as traits, because a trait needs pages as evidence.

        If the text is damaged or is an error message, yield a note instead. ``where`` is the profile's location, which
        the note contains. A missing or empty text is ignored.
        """
        text = raw.get("data") if isinstance(raw, Mapping) else raw
        at = raw.get("last_updated") if isinstance(raw, Mapping) else None
        if not isinstance(text, str):
            if text is not None:
                yield Skipped(DAMAGED, where)
        elif _is_error(text):
            yield Skipped(ERROR_TEXT, where)
        elif not _is_nothing(text):
            self._documents.append(
                NewTurn(
                    user_input=text,
                    agent_response="",
                    timestamp=_time(at) or None,
                    idempotency_key=key(SYSTEM, "profile", digest(text)),
                    meta_data={"title": "Profile text of the imported memory"},
                    source=Source.DOCUMENT,
                )
            )

    def found(self) -> Iterator[Item]:
        """Yield the pages in order, without duplicates, then the profiles, then the facts."""
        places = _places(self._pages)
        copies = sorted(self._pages.values(), key=lambda copy: places[copy.page_id])
        seen: Counter[str] = Counter()
        before = ""
        for copy in copies:
            before = copy.at or before
            name = digest(copy.user_input, copy.agent_response, copy.at)
            seen[name] += 1
            yield NewTurn(
                user_input=copy.user_input,
                agent_response=copy.agent_response,
                timestamp=before or None,
                idempotency_key=key(SYSTEM, name if seen[name] == 1 else f"{name}-{seen[name]}"),
                meta_data=meta_data(chain=copy.summary),
            )
        yield from self._documents
        yield from self._facts


def _is_error(text: str) -> bool:
    """Return whether ``text`` is the error message of a failed LLM call."""
    return text.lstrip().startswith(_ERROR)


def _is_nothing(text: str) -> bool:
    """Return whether ``text`` is empty or only a word like "none"."""
    return text.strip(" \t\r\n-*.`'\"").lower() in _NOTHING


def _time(value: object) -> str:
    return value.strip() if isinstance(value, str) and from_iso(value) else ""


def _joined(known: _Copy, copy: _Copy) -> _Copy:
    """Return ``known`` with its missing values filled in from ``copy``, which is a copy of the same page.

    The values are the time, the links to the previous and the next page, and the summary of the chain.
    """
    return replace(
        known,
        at=known.at or copy.at,
        before=known.before or copy.before,
        after=known.after or copy.after,
        summary=known.summary or copy.summary,
    )


def _places(pages: Mapping[str, _Copy]) -> dict[str, tuple[datetime, int]]:
    """Return the sort key of each page: its time, and its position among pages of the same time.

    Positions follow the chains. Pages without a chain are in the order of the files. A page without a time gets the
    time of the page before it. If no page before it has a time, it gets the earliest possible time.
    """
    after = {copy.before: name for name, copy in pages.items() if copy.before in pages}
    after |= {name: copy.after for name, copy in pages.items() if copy.after in pages}
    followers = set(after.values())
    names = sorted(pages, key=lambda name: pages[name].is_newest)
    ordered: dict[str, None] = {}
    for name in [*(name for name in names if name not in followers), *names]:
        step: str | None = name
        while step is not None and step not in ordered:
            ordered[step] = None
            step = after.get(step)
    places, at = {}, datetime.min  # noqa: DTZ901 - only compared with times without a zone
    for number, name in enumerate(ordered):
        known = from_iso(pages[name].at)
        at = known.replace(tzinfo=None) if known else at
        places[name] = (at, number)
    return places
