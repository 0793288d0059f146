"""The share of the budget that each kind of memory gets."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from memoryos_mcp.model.knowledge import About, Fact, Kind
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.model.profile import Level, Trait, relevant_traits
from memoryos_mcp.retrieval import fitting
from memoryos_mcp.retrieval.budget import whole
from memoryos_mcp.retrieval.fitting import Found, Limits, fit
from memoryos_mcp.retrieval.ranking import Ranked, alike, cut
from memoryos_mcp.retrieval.recall import RecalledFact, RecalledPage
from memoryos_mcp.text.addressees import NAMELESS
from memoryos_mcp.text.terms import stems

AT = datetime(2026, 5, 20, tzinfo=UTC)
NOTHING = Found(wishes=(), traits=(), facts=(), short_term=(), pages=())


def wish(number: int, text: str) -> RecalledFact:
    return RecalledFact(Fact(number, About.USER, text, None, AT, None, (), None, kind=Kind.WISH), 0.0)


def statement(number: int, about: About, text: str) -> RecalledFact:
    return RecalledFact(Fact(number, about, text, None, AT, None, (), None), 1.0)


def page(seq: int, text: str, **more: str) -> Page:
    return Page(
        seq=seq,
        page_id=f"p_{seq:016}",
        user_input=text,
        agent_response="I see.",
        occurred_at=AT,
        meta_data=more.get("meta_data"),
        session=1,
        tier=Tier.MID_TERM,
    )


def ranked(*pages: Page) -> list[RecalledPage]:
    return [RecalledPage(each, whole(each), 10.0 - place, notes=each.meta_data) for place, each in enumerate(pages)]


def test_wishes_come_first_within_their_share() -> None:
    pages = ranked(*(page(seq, f"Page {seq}. " + "word " * 200) for seq in range(1, 20)))
    wishes = [wish(number, f"Wish {number}: never use emojis in reviews.") for number in range(40, 0, -1)]
    fitted = fit(replace(NOTHING, wishes=wishes, pages=pages), Limits(20, 1_000), NAMELESS, frozenset())
    assert fitted.wishes[0].fact.fact == 40
    assert 2 < len(fitted.wishes) < 40
    assert fitted.pages
    assert fitted.left_out is not None
    assert fitted.left_out.facts == 40 - len(fitted.wishes)
    few = fit(replace(NOTHING, wishes=wishes[:2], pages=pages), Limits(20, 1_000), NAMELESS, frozenset())
    assert len(few.wishes) == 2


def test_the_users_facts_leave_room_for_the_assistants() -> None:
    mine = [statement(number, About.USER, f"I saw the bridge again, day {number}.") for number in range(30)]
    facts = [statement(99, About.ASSISTANT, "I promised to bring tea."), *mine]
    long = ranked(*(page(seq, "word " * 400) for seq in range(1, 9)))
    fitted = fit(replace(NOTHING, facts=facts, pages=long), Limits(20, 1_000), NAMELESS, frozenset())
    assert fitted.facts[0].fact.fact == 99
    assert 1 < len(fitted.facts) < len(facts)


def test_hidden_text_is_not_charged() -> None:
    said = page(1, "I bought a red kayak.")
    plain = fit(replace(NOTHING, pages=ranked(said)), Limits(20, 2_000), NAMELESS, frozenset())
    in_chain = ranked(replace(said, chain=1, chain_summary="Boats. " * 30))
    chained = fit(replace(NOTHING, pages=in_chain), Limits(20, 2_000), NAMELESS, frozenset())
    assert chained.tokens == plain.tokens < 70


def test_the_newest_pages_get_what_found_pages_leave() -> None:
    newest = [page(seq, "Short. " + "word " * 40) for seq in range(10, 17)]
    long = ranked(*(page(seq, "word " * 300) for seq in range(1, 9)))
    full = fit(replace(NOTHING, short_term=newest, pages=long), Limits(20, 1_000), NAMELESS, frozenset())
    assert len(full.short_term) < len(newest)
    assert full.short_term[-1].page.seq == 16
    left = fit(replace(NOTHING, short_term=newest, pages=long[:1]), Limits(20, 1_000), NAMELESS, frozenset())
    assert len(left.short_term) > len(full.short_term)


def test_an_elastic_budget_adds_pages_in_excerpts() -> None:
    long = ranked(*(page(seq, "word " * 800) for seq in range(1, 31)))
    counted = fit(replace(NOTHING, pages=long), Limits(30, 1_000, is_cut=False, is_elastic=True), NAMELESS, frozenset())
    assert len(counted.pages) == 30
    assert counted.tokens <= 1_000 + 30 * fitting.PAGE_ALLOWANCE_TOKENS
    kept = fit(replace(NOTHING, pages=long), Limits(30, 1_000, is_cut=False), NAMELESS, frozenset())
    assert len(kept.pages) < 30
    assert kept.tokens <= 1_000


def test_pages_far_below_the_best_are_cut_but_never_below_three() -> None:
    scores = [10.0, 8.0, 1.6, 1.4, 0.0, -3.0]
    entries = [Ranked(seq, score, {}) for seq, score in enumerate(scores, start=1)]
    assert [entry.seq for entry in cut(entries)] == [1, 2, 3]
    assert [entry.seq for entry in cut(entries[:1] + entries[3:])] == [1, 4, 5]
    assert [entry.seq for entry in cut(entries, {1, 2})] == [1, 2, 3, 4, 5]
    assert cut([]) == []


def test_pages_that_cover_as_much_as_the_best_are_not_cut() -> None:
    entries = [Ranked(seq, score, {}) for seq, score in ((4, 2.0), (2, 0.1), (1, 0.0), (5, -0.1), (3, -0.2))]
    covers = np.array([0.50, 0.30, 0.10, 0.55, 0.46])
    kept = alike(entries, np.arange(1, 6), {"cover": covers, "word_cover": np.zeros(5)})
    assert kept == {1, 4, 5}
    assert [entry.seq for entry in cut(entries, kept=kept)] == [4, 2, 1, 5]
    elsewhere = np.array([0.0, 0.0, 0.0, 0.0, -1.0])
    assert alike(entries, np.arange(1, 6), {"cover": covers, "project": elsewhere}) == {1, 4}
    assert alike(entries, np.arange(1, 6), {"cover": covers, "time": elsewhere}) == {1, 4}
    assert alike(entries, np.arange(1, 6), {"best_window": covers}) == set()
    assert alike(entries, np.array([9]), {"cover": covers[:1]}) == set()
    assert alike(entries, np.arange(1, 6), {"word_cover": np.zeros(5)}) == set()
    assert alike([], np.arange(1, 6), {"cover": covers}) == set()


def test_only_traits_relevant_to_the_query_are_returned() -> None:
    food = Trait("Food", Level.HIGH, "Spoke of bread and baking.", (), AT)
    sport = Trait("Sports", Level.LOW, "Spoke of running.", (), AT)
    assert relevant_traits([food, sport], frozenset(stems("What bread do I bake?"))) == [food]
    assert relevant_traits([food, sport], frozenset(stems("Where do I live?"))) == []


def test_common_words_do_not_make_a_trait_relevant() -> None:
    ants = Trait("Animals", Level.HIGH, "The user keeps ants, as two pages of the conversation show.", (), AT)
    for query in ("What is the user's job?", "Which page did the user speak of?", "Show me the assistant's messages"):
        assert relevant_traits([ants], frozenset(stems(query))) == []
    assert relevant_traits([ants], frozenset(stems("Does the user keep ants?"))) == [ants]


def test_the_current_conversation_gets_half_of_the_budget() -> None:
    newest = [page(seq, f"Step {seq}. " + "word " * 40) for seq in range(10, 17)]
    long = ranked(*(page(seq, "word " * 100) for seq in range(1, 9)))
    found = replace(NOTHING, short_term=newest, pages=long)
    answered = fit(found, Limits(20, 1_000, has_all_recent=True), NAMELESS, frozenset())
    assert [each.page.seq for each in answered.short_term] == [*range(10, 17)]
    assert not any(each.quote.is_excerpt for each in answered.short_term)
    assert answered.pages
    asked = fit(found, Limits(20, 1_000), NAMELESS, frozenset())
    assert len(asked.short_term) < len(newest)


def test_traits_without_room_are_counted() -> None:
    traits = [Trait("Food", Level.HIGH, f"Spoke of bread {number}. " + "word " * 20, (), AT) for number in range(9)]
    fitted = fit(replace(NOTHING, traits=traits), Limits(20, 200), NAMELESS, frozenset())
    assert len(fitted.traits) < len(traits)
    assert fitted.left_out is not None
    assert fitted.left_out.traits == len(traits) - len(fitted.traits)
    whole = fit(replace(NOTHING, traits=traits), Limits(20, fitted.left_out.max_tokens), NAMELESS, frozenset())
    assert whole.left_out is None


def test_reserved_tokens_are_left_free() -> None:
    pages = ranked(*(page(seq, "word " * 200) for seq in range(1, 9)))
    alone = fit(replace(NOTHING, pages=pages), Limits(20, 1_000), NAMELESS, frozenset())
    beside = fit(replace(NOTHING, pages=pages), Limits(20, 1_000, reserved_tokens=400), NAMELESS, frozenset())
    assert len(beside.pages) < len(alone.pages)
    assert 400 < beside.tokens <= 1_000
    assert alone.left_out is not None
    assert beside.left_out is not None
    assert beside.left_out.max_tokens == alone.left_out.max_tokens + 400


def test_in_a_small_budget_the_best_page_precedes_facts() -> None:
    facts = [statement(number, About.USER, "I'm Al.") for number in range(3)]
    pages = ranked(page(1, "Which oil is best for an oak table? " * 2), page(2, "word " * 40))
    newest = [page(9, "Good night.")]
    found = replace(NOTHING, facts=facts, short_term=newest, pages=pages)
    fitted = fit(found, Limits(20, 100), NAMELESS, frozenset())
    assert [each.page.seq for each in fitted.pages] == [1]
    assert not fitted.pages[0].quote.is_excerpt
