"""Parses and validates the facts and traits in an LLM's reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.catalogue import find
from memoryos_mcp.llm.prompts import FACTS_PER_PAGE_MAX, facts_asked, traits_asked
from memoryos_mcp.llm.replies import RIGHT_SHARE, Number, Numbers, Part, Text, checked, items
from memoryos_mcp.model.knowledge import (
    FAMILY,
    HEAD_SLOTS,
    About,
    AddFact,
    ConfirmFact,
    Fact,
    Kind,
    KnowledgeChange,
    Lessons,
)
from memoryos_mcp.model.pages import EARLIEST_YEAR, Page
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.text.prose import shorten
from memoryos_mcp.text.terms import stem, stems

FACT_MAX_CHARS = 400
REASON_MAX_CHARS = 300
# Models write this year for "open-ended".
LATEST_YEAR = 9999

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
# The valid slots. Other slots, which models sometimes invent, are ignored.
_SLOT = re.compile(rf"(?:{'|'.join(HEAD_SLOTS)}|{FAMILY}\w[\w' -]{{0,20}}(?::\w[\w' -]{{0,20}})?)")
# A wish to be called by a name. Only the latest such wish is valid.
_CALLED = re.compile(r"\b(?:to be called|call (?:me|him|her|them|the user)) [^\W\d_a-z]")
# Stems of words for the person that a fact is about. These words are not part of the fact's content.
_SUBJECT_STEMS = frozenset({"user", "assist"}) | {stem("assistant")}


class _FactReply(Part):
    action: Text = "add"
    fact: Number = 0
    about: Text = "user"
    kind: Text = ""
    slot: Text = ""
    text: Text = ""
    since: Text = ""
    until: Text = ""
    pages: Numbers = Field(default_factory=list)


class _TraitReply(Part):
    dimension: Text
    level: Text
    reason: Text
    pages: Numbers = Field(default_factory=list)


class FactsReading:
    """Turns the facts in a reply into changes to the known facts.

    Args:
        pages: The pages, in the order of the prompt.
        facts: The known facts, in the order of the prompt.
    """

    def __init__(self, pages: Sequence[Page], facts: Sequence[Fact]) -> None:
        self._pages = list(pages)
        self._facts = facts
        self._page_stems: dict[int, frozenset[str]] = {}

    def read(self, found: object, is_last: bool) -> tuple[KnowledgeChange, ...]:
        """Return the changes to the known facts.

        The prompt requests at most `facts_asked` facts. If more facts are usable, only the first ones are used. A reply
        with more than ``FACTS_PER_PAGE_MAX`` facts per page is rejected.

        Args:
            found: The facts in the reply's JSON.
            is_last: Whether this is the second reply, which the model sent when it was asked to correct its first one.

        Raises:
            ReplyFormatError: Fewer than half of the facts are usable, or there are more than ``FACTS_PER_PAGE_MAX`` per
                page. In the second reply, one usable fact is enough.
        """
        facts = items(found)
        most = FACTS_PER_PAGE_MAX * len(self._pages)
        if len(facts) > most:
            msg = f"facts: there are {len(facts):,} for {len(self._pages)} pages; report at most {most}"
            raise ReplyFormatError(msg)
        share = 0.0 if is_last else RIGHT_SHARE
        said = checked(facts, "fact", _FactReply, self._problem, share)
        return tuple(map(self._change, said[: facts_asked(self._pages)]))

    def _problem(self, fact: _FactReply) -> str | None:
        if fact.about.lower() not in set(About):
            return 'about is neither "user" nor "assistant"'
        if not self._cited(fact.pages):
            return "pages names none of the pages that the user or the assistant said"
        if fact.action.lower() == "confirm":
            return None if 1 <= fact.fact <= len(self._facts) else "fact is not the number of a known fact"
        if not fact.text or len(fact.text) > FACT_MAX_CHARS:
            return f"text is empty or over {FACT_MAX_CHARS} characters"
        if not self._is_grounded(fact):
            return "text has no word in common with the pages it cites"
        return None

    def _is_grounded(self, fact: _FactReply) -> bool:
        """Return whether a fact shares a word with the pages that it cites.

        Only words in ASCII are compared. If the fact or the pages contain no such words, the result is True.
        """
        in_fact = {stem for stem in stems(fact.text) if stem.isascii()} - _SUBJECT_STEMS
        in_pages = frozenset[str]().union(*map(self._stems, self._cited(fact.pages)))
        return not in_fact or not any(stem.isascii() for stem in in_pages) or not in_fact.isdisjoint(in_pages)

    def _stems(self, place: int) -> frozenset[str]:
        """Return the stems of the words on a page. ``place`` is the page's number in the prompt, from 1."""
        if place not in self._page_stems:
            self._page_stems[place] = frozenset(stems(self._pages[place - 1].text))
        return self._page_stems[place]

    def _cited(self, places: Sequence[int]) -> list[int]:
        return [place for place in cited(places, len(self._pages)) if self._pages[place - 1].teaches]

    def _change(self, fact: _FactReply) -> KnowledgeChange:
        pages = [self._pages[place - 1] for place in self._cited(fact.pages)]
        evidence = tuple(page.seq for page in pages)
        known = self._facts[fact.fact - 1] if 1 <= fact.fact <= len(self._facts) else None
        if fact.action.lower() == "confirm" and known is not None:
            return ConfirmFact(fact=known.fact, evidence=evidence)
        about = About(fact.about.lower())
        said_at = pages[-1].occurred_at
        replaced = fact.action.lower() == "supersede" and known is not None and known.about is about
        kind = Kind.WISH if fact.kind.lower() == Kind.WISH and about is About.USER else Kind.STATEMENT
        if kind is Kind.WISH:
            slot = "called" if _CALLED.search(fact.text) else None
        else:
            slot = fact.slot if _SLOT.fullmatch(fact.slot) else None
        since, until = _period(fact.since, said_at), _period(fact.until, said_at)
        if since is not None and since.begin > said_at:  # a plan is valid from the day when the user mentions it
            since = None
        if until is not None and until.end <= said_at:  # a fact about the past does not expire
            until = None
        return AddFact(
            about=about,
            text=fact.text,
            slot=slot,
            valid_from=said_at if since is None else since.begin,
            evidence=evidence,
            supersedes=(known.fact,) if replaced and known is not None else (),
            valid_until=None if until is None else until.end,
            kind=kind,
            said_since=None if since is None else since.said,
            said_until=None if until is None else until.said,
        )


class LearnReading:
    """Turns a reply with facts and traits into changes to the known facts and to the profile.

    Args:
        pages: The pages, in the order of the prompt.
        facts: The known facts, in the order of the prompt; None if no facts were requested.
        dimensions: Profile dimensions that the user has added to the built-in ones.
    """

    def __init__(self, pages: Sequence[Page], facts: Sequence[Fact] | None, dimensions: Sequence[str]) -> None:
        self._seqs = [view.seq for view in pages]
        self._facts = None if facts is None else FactsReading(pages, facts)
        self._dimensions = dimensions

    def read(self, found: dict[str, Any], is_last: bool) -> Lessons:
        """Return the changes to the profile and to the known facts.

        Args:
            found: The JSON object in the reply.
            is_last: Whether this is the second reply, which the model sent when it was asked to correct its first one.

        Raises:
            ReplyFormatError: All requested parts are missing, fewer than half of the facts or traits are usable, or
                there are more than ``FACTS_PER_PAGE_MAX`` facts per page. In the second reply, one usable fact and one
                usable trait are enough.
        """
        if "traits" not in found and (self._facts is None or "facts" not in found):
            msg = "traits are missing; list them" if self._facts is None else "facts and traits are missing; list them"
            raise ReplyFormatError(msg)
        knowledge = () if self._facts is None else self._facts.read(found.get("facts"), is_last)
        share = 0.0 if is_last else RIGHT_SHARE
        shown = checked(items(found.get("traits")), "trait", _TraitReply, self._problem, share)
        traits = {change.dimension: change for change in map(self._trait, shown[: traits_asked(len(self._seqs))])}
        return Lessons(traits=tuple(traits.values()), knowledge=knowledge)

    def _problem(self, trait: _TraitReply) -> str | None:
        if find(trait.dimension, self._dimensions) is None:
            return "dimension is not in the list of dimensions"
        if trait.level.capitalize() not in set(Level):
            return 'level is not "Low", "Medium" or "High"'
        if not trait.reason:
            return "reason is empty"
        return None if cited(trait.pages, len(self._seqs)) else "pages names none of the pages shown"

    def _trait(self, trait: _TraitReply) -> TraitChange:
        return TraitChange(
            dimension=find(trait.dimension, self._dimensions) or trait.dimension,
            level=Level(trait.level.capitalize()),
            reason=shorten(trait.reason, REASON_MAX_CHARS),
            evidence=tuple(self._seqs[place - 1] for place in cited(trait.pages, len(self._seqs))),
        )


def cited(places: Sequence[int], pages: int) -> list[int]:
    """Return the valid page numbers in ``places``, without duplicates. Pages are numbered from 1.

    Args:
        places: The page numbers in a reply.
        pages: The number of pages in the prompt.
    """
    return [place for place in dict.fromkeys(places) if 1 <= place <= pages]


@dataclass(frozen=True, slots=True)
class _Period:
    """A year, month or day.

    Attributes:
        said: The period as text, such as "2023", "2023-05" or "2023-05-07".
        begin: The first instant of the period.
        end: The first instant after the period.
    """

    said: str
    begin: datetime
    end: datetime


def _period(text: str, said_at: datetime) -> _Period | None:
    """Return the day, month or year with which ``text`` begins, such as "2023-05", in the time zone of ``said_at``.

    Return None if the text does not begin with a valid date in a plausible year.
    """
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    if year is None or not EARLIEST_YEAR <= year < LATEST_YEAR:
        return None
    try:
        begin = datetime(year, month or 1, day or 1, tzinfo=said_at.tzinfo)
    except ValueError:
        return None
    if day is not None:
        return _Period(f"{begin:%Y-%m-%d}", begin, begin + timedelta(days=1))
    if month is not None:
        return _Period(f"{begin:%Y-%m}", begin, begin.replace(year=year + month // 12, month=month % 12 + 1))
    return _Period(f"{begin:%Y}", begin, begin.replace(year=year + 1))
