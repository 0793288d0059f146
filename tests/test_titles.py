from datetime import UTC, datetime

import pytest

from memoryos_mcp.llm.extractive.titles import TITLE_MAX_CHARS, titles
from memoryos_mcp.model.segments import Segment


def segment(number: int, pages: int, keywords: str, summary: str = "", summariser: str = "extractive") -> Segment:
    return Segment(
        segment=number,
        summary=summary,
        keywords=tuple(keywords.split()),
        vector=None,
        n_visit=0,
        l_interaction=0,
        last_visit=datetime(2026, 5, 8, tzinfo=UTC),
        page_count=pages,
        unanalysed_count=0,
        summariser=summariser,
    )


def title(*told: Segment) -> str:
    return titles(told)[told[0].segment]


def test_uninformative_keywords_are_omitted() -> None:
    assert title(segment(1, 6, "going homeless class shelter weird volunteer")) == "homeless, class, shelter"


def test_adjacent_keywords_are_joined_in_a_title() -> None:
    told = segment(1, 19, "mental health counseling", 'x: "I work in mental health." "I like counseling."')
    assert title(told) == "mental health, counseling"


def test_a_name_in_a_title_keeps_its_spelling() -> None:
    assert title(segment(1, 5, "dog max walks", 'x: "I walk my dog Max."')) == "dog Max, walks"


def test_a_shared_keyword_belongs_to_the_largest_topic() -> None:
    large, small = segment(1, 50, "flask database error"), segment(2, 6, "flask password tests hashing")
    assert titles([small, large]) == {1: "flask, database, error", 2: "password, tests, hashing"}


@pytest.mark.parametrize(
    ("pages", "keywords", "quote"),
    [(1, "act every impact", "You're right, every small act can make a big impact."), (4, "weird", "That is weird.")],
)
def test_without_good_keywords_the_title_is_a_quote(pages: int, keywords: str, quote: str) -> None:
    assert title(segment(1, pages, keywords, f'x: "{quote}"')) == quote


def test_a_topic_without_keywords_has_a_title() -> None:
    assert title(segment(1, 9, "", '"Hey Melanie!"')) == "Hey Melanie!"
    assert title(segment(1, 9, "", "Long " * 50)).startswith("Long Long")
    assert len(title(segment(1, 9, "", "Long " * 50))) <= TITLE_MAX_CHARS


def test_a_title_omits_the_lead_in_of_a_sentence() -> None:
    quote = "But I'm not sure how to set up the virtual environment."
    assert title(segment(1, 2, "environment", f'x: "{quote}"')) == "Set up the virtual environment."


def test_an_llms_keywords_are_the_title_of_a_small_topic() -> None:
    assert title(segment(1, 1, "pottery glazes", "They glaze pots.", "gpt")) == "pottery, glazes"
