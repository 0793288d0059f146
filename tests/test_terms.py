"""Words of any script, as search sees them."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp import terms


def test_english_words_are_lower_cased_and_lose_their_possessive() -> None:
    assert terms.words("Anna's Dog can't RUN") == ["anna", "dog", "can't", "run"]


def test_stop_words_carry_no_content() -> None:
    assert terms.content_words("What is the name of my dog?") == ["name", "dog"]


def test_a_query_of_stop_words_alone_is_searched_as_it_is() -> None:
    assert terms.query_words("what is it") == ["what", "is", "it"]


def test_unspaced_script_is_cut_into_pairs() -> None:
    assert terms.words("我喜欢茶") == ["我喜", "喜欢", "欢茶"]
    assert terms.words("茶") == ["茶"]


@pytest.mark.parametrize("text", ["我喜欢喝茶", "東京タワーへ行く", "서울에서 일해요", "ฉันชอบแมว"])
def test_the_index_holds_every_pair_and_the_last_character(text: str) -> None:
    indexed = terms.index_text(text).split()
    assert set(terms.words(text)) <= set(indexed)
    assert text[-1] in indexed


def test_compatibility_forms_are_found_as_the_plain_ones() -> None:
    assert terms.words("ＡＢＣ ｶﾀｶﾅ") == terms.words("abc カタカナ")


def test_inflections_share_a_stem() -> None:
    assert terms.stem("moved") == terms.stem("moving") == "move"


def test_plain_ascii_is_indexed_unchanged() -> None:
    assert terms.index_text("It's (fine)!") == "It's (fine)!"


@given(st.text())
def test_any_text_has_words_without_failing(text: str) -> None:
    assert all(word == word.lower() for word in terms.words(text) if word.isascii())
    terms.index_text(text)
    terms.stems(text)


def test_threads_stem_at_once_without_disturbing_one_another() -> None:
    made_up = ["".join(parts) for parts in product("bcdfglmnprst", "aeiou") for suffix in ("nding", "kies", "tly")]
    with ThreadPoolExecutor(8) as threads:
        rounds = list(threads.map(lambda _: [terms.stem.__wrapped__(word) for word in made_up], range(40)))
    assert all(stems == rounds[0] for stems in rounds)
