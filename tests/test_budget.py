"""Texts are cut to a token budget without losing the relevant passage."""

from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.model.pages import estimate_tokens
from memoryos_mcp.retrieval.budget import ELLIPSIS, quote, roots

FILLER = "Nothing of note was said in this long and winding passage about the weather. " * 30


def test_a_page_that_fits_is_not_cut() -> None:
    text = quote("hello", "hi there", 100, frozenset())
    assert text is not None
    assert (text.user_input, text.agent_response, text.is_excerpt) == ("hello", "hi there", False)


def test_a_long_page_is_cut_to_the_relevant_passage() -> None:
    text = quote("Tell me.", f"{FILLER} The bakery opens at seven. {FILLER}", 150, roots("when does the bakery open"))
    assert text is not None
    assert text.is_excerpt
    assert "bakery opens at seven" in text.agent_response
    assert ELLIPSIS in text.agent_response


def test_without_common_words_the_nearest_window_is_used() -> None:
    answer = f"{FILLER}Zebras are striped. {FILLER}"
    start = answer.index("Zebras")
    text = quote("", answer, 150, frozenset(), (start, start + 20))
    assert text is not None
    assert "Zebras are striped" in text.agent_response


def test_a_page_is_omitted_if_only_a_stump_would_fit() -> None:
    assert quote(FILLER, FILLER, 10, frozenset()) is None


@given(st.text(max_size=3000), st.text(max_size=3000), st.integers(0, 800), st.text(max_size=30))
def test_a_quote_fits_its_budget_and_adds_no_words(
    user_input: str, agent_response: str, max_tokens: int, query: str
) -> None:
    text = quote(user_input, agent_response, max_tokens, roots(query))
    if text is None:
        return
    assert text.tokens == estimate_tokens(text.user_input) + estimate_tokens(text.agent_response)
    assert text.tokens <= max_tokens
    for whole, part in ((user_input, text.user_input), (agent_response, text.agent_response)):
        assert all(piece in whole for piece in part.split(ELLIPSIS)) or ELLIPSIS in whole
