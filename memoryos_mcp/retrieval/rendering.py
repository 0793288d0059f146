"""Rendering: turns the result of a retrieval into text for tool results and for LLM prompts.

`fitting` subtracts the size of each line (`line_bytes`) from the token budget. The text therefore stays within the
budget, unless `Limits.is_elastic` is set. In a prompt, pages have no ids, and the newest pages are shown as a
conversation.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.pages import Source, page_marks
from memoryos_mcp.model.profile import Trait, trait_text
from memoryos_mcp.text.addressees import NAMELESS, Speakers
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import disarmed, framed, head, one_line, quoted, section, topic_line

if TYPE_CHECKING:  # listing a server's tools must not import NumPy
    from memoryos_mcp.retrieval.recall import LeftOut, Recall, RecalledFact, RecalledPage

NOTHING = "Nothing is remembered about this."
WISHES = "What the user wants in every answer"
TRAITS = "Profile of the user"
KNOWN = {About.USER: "Known about the user", About.ASSISTANT: "Known about the assistant"}
FOUND = "Earlier conversations, best match first"
NEWEST = "Most recent conversation, oldest first"
READ = "Recently read from other sources"
UNFILED = "# Without a topic yet"


def recall_text(recall: "Recall", manner: Iterable[str] = ()) -> str:
    """Return the result of a retrieval as text for a tool result.

    The text begins with the lines of ``manner``, which say how to respond; see `manner_lines`.
    """
    body = recall_lines(recall, recall.short_term, NEWEST, has_ids=True)
    if not body and recall.left_out is None:
        body = [NOTHING]
    text = [*manner, *framed(body)]
    if recall.left_out is not None:
        text.append(left_out_line(recall.left_out))
    return "\n".join(text)


def recall_lines(recall: "Recall", newest: Sequence["RecalledPage"], title: str, *, has_ids: bool) -> list[str]:
    """Return the memories as lines: wishes, traits, facts, found pages, and the ``newest`` pages under ``title``."""
    found = [
        line
        for topic, pages in grouped(recall.pages, has_topics=recall.has_topics)
        for line in (*topic, *(page_line(page, recall.speakers, has_ids=has_ids) for page in pages))
    ]
    return [
        *section(WISHES, fact_lines(recall.wishes)),
        *section(TRAITS, map(trait_line, recall.traits)),
        *section(KNOWN[About.USER], fact_lines(recall.user_facts)),
        *section(KNOWN[About.ASSISTANT], fact_lines(recall.assistant_facts)),
        *section(FOUND, found),
        *section(title, (page_line(page, recall.speakers, has_ids=has_ids) for page in newest)),
    ]


def manner_lines(relationship: str, style_hint: str) -> list[str]:
    """Return lines that ask the assistant to answer in a role and a style. An empty argument adds no line."""
    lines = []
    if relationship:
        lines.append(f"Answer as the user's {one_line(relationship)}.")
    if style_hint:
        lines.append(f"Style: {one_line(style_hint)}.")
    return [disarmed(line) for line in lines]


def trait_line(trait: Trait) -> str:
    """Return a trait as a list item."""
    return f"- {trait_text(trait)}"


def fact_lines(facts: Iterable["RecalledFact"]) -> list[str]:
    """Return facts as list items."""
    return [fact_line(recalled.fact) for recalled in facts]


def fact_line(fact: Fact) -> str:
    """Return a fact as a list item, including the period in which it is valid."""
    return f"- {one_line(fact.text)} ({period(fact)})"


def period(fact: Fact) -> str:
    """Return the period in which a fact is valid, such as ``2019``, ``from 2019 to 2024`` or ``until 2024``.

    Without a known end, return only the beginning: the stated date, or the day from which the fact is valid. With a
    known end but no stated beginning, return only the end.
    """
    begin = fact.said_since or f"{fact.valid_from:%Y-%m-%d}"
    end = fact.said_until or (f"{fact.valid_until:%Y-%m-%d}" if fact.valid_until is not None else None)
    if end is None or end == fact.said_since:
        return begin
    return f"from {begin} to {end}" if fact.said_since else f"until {end}"


def grouped(
    pages: Sequence["RecalledPage"], *, has_topics: bool
) -> list[tuple[Sequence[str], Sequence["RecalledPage"]]]:
    """Return the pages grouped by topic, each group with its heading lines. The topic of the best page comes first.

    If ``has_topics`` is False, all pages are in one group without a heading.
    """
    if not has_topics:
        return [((), pages)]
    by_topic: dict[int | None, list[RecalledPage]] = {}
    for page in pages:
        by_topic.setdefault(page.segment.segment if page.segment else None, []).append(page)
    groups: list[tuple[Sequence[str], Sequence[RecalledPage]]] = []
    for together in by_topic.values():
        segment = together[0].segment
        unfiled = (UNFILED,) if len(by_topic) > 1 else ()
        groups.append(((topic_line(segment.summary),) if segment else unfiled, together))
    return groups


def page_line(recalled: "RecalledPage", speakers: Speakers, *, has_ids: bool = True) -> str:
    """Return a page as text: a first line in brackets, the user's text, the assistant's text, and the caller's notes.

    The first line contains the time, the id if ``has_ids`` is true, and remarks such as "excerpt".
    """
    page, text = recalled.page, recalled.quote
    marks = [f"{page.occurred_at:%Y-%m-%d %H:%M}", page.page_id if has_ids else None]
    marks += page_marks(page, is_excerpt=text.is_excerpt)
    shown = page_text(text.user_input, text.agent_response, marks, page.source, speakers)
    return f"{shown}\n{notes_line(recalled.notes)}" if recalled.notes else shown


def notes_line(notes: str) -> str:
    """Return the caller's notes about a page as one line."""
    return f"Notes: {one_line(notes)}"


def page_text(
    user_input: str, agent_response: str, marks: Iterable[str | None], source: str, speakers: Speakers = NAMELESS
) -> str:
    """Return a page as text: a first line with ``marks`` in brackets, then what the user and the assistant said.

    The names of the speakers are included only if ``source`` is ``Source.CONVERSATION``.
    """
    is_said = source == Source.CONVERSATION
    sides = ((speakers.user_label, user_input), (speakers.agent_label, agent_response))
    return "\n".join([head(*marks), *(quoted(text, f"{who}: " if is_said else "") for who, text in sides if text)])


def left_out_line(left_out: "LeftOut") -> str:
    """Return a line that says how many memories were omitted, and which token budget is enough for all memories."""
    return f"{left_out_text(left_out)}; pass max_tokens={left_out.max_tokens} for all."


def left_out_text(left_out: "LeftOut") -> str:
    """Return a phrase that states how many memories were omitted because of the token budget."""
    counts = {"page": left_out.pages, "fact": left_out.facts, "trait": left_out.traits}
    told = [amount(count, noun) for noun, count in counts.items() if count]
    if left_out.excerpts:
        told.append(f"parts of {amount(left_out.excerpts, 'page')}")
    return f"Beyond the token budget: {', '.join(told)}"


def line_bytes(*lines: str) -> int:
    """Return the size of the lines in UTF-8 bytes, including line ends."""
    return sum(len(disarmed(line).encode("utf-8", "replace")) + 1 for line in lines)
