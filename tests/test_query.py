"""Query parsing: weights of tokens, named sides, and questions for several memories."""

import numpy as np
import pytest

from memoryos_mcp.retrieval.query import (
    COMMON_WEIGHT,
    RARITY_POWER,
    Side,
    asks_for_course,
    asks_for_several,
    is_english,
    normalised,
    side_of,
    subject_of,
    token_weights,
)
from memoryos_mcp.storage.values import TermStats
from memoryos_mcp.text.terms import rarity

NOBODY: frozenset[str] = frozenset()


def known(user: frozenset[str] = NOBODY, agent: frozenset[str] = NOBODY) -> TermStats:
    return TermStats(pages=10, counts={}, user_names=user, agent_names=agent)


def test_the_rarer_a_word_the_more_it_weighs() -> None:
    weights = [rarity(count, 100) for count in (0, 1, 10, 100)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < 0.01


def test_tokens_have_their_words_weight_and_punctuation_none() -> None:
    query = "Where is the samovar?"
    pieces = [(0, 5), (6, 8), (9, 12), (13, 16), (16, 20), (20, 21)]
    weights = token_weights(query, pieces, {"samovar": 2}, 50)
    assert weights.tolist() == [COMMON_WEIGHT] * 3 + [rarity(2, 50) ** RARITY_POWER] * 2 + [0]


def test_a_character_gets_the_weight_of_its_rarest_pair() -> None:
    weights = token_weights("喝绿茶", [(0, 1), (1, 2), (2, 3)], {"喝绿": 1, "绿茶": 40}, 50)
    rare, common = rarity(1, 50) ** RARITY_POWER, rarity(40, 50) ** RARITY_POWER
    assert weights.tolist() == [rare, rare, common]


@pytest.mark.parametrize("query", ["?!", "👍 👍", ""])
def test_without_words_all_tokens_weigh_the_same(query: str) -> None:
    pieces = [(place, place + 1) for place in range(len(query))]
    assert np.array_equal(token_weights(query, pieces, {}, 50), np.ones(len(pieces)))


def test_the_named_side_is_recognised_and_not_in_the_subject() -> None:
    ada, ben = frozenset({"ada"}), frozenset({"ben"})
    assert side_of("What does Ada drink?", known(user=ada)) is Side.USER
    assert side_of("What is Ben's dog called?", known(agent=ben)) is Side.AGENT
    assert side_of("What did Carol drink?", known()) is None
    assert subject_of("What does Ada drink with Ben?", known(user=ada, agent=ben)) == "What does drink with ?"


@pytest.mark.parametrize(
    ("query", "side"),
    [
        ("What did Ada tell Ben about the bees?", Side.USER),
        ("Did Ben's bees sting Ada?", Side.AGENT),
        ("What do Ada and Ben drink?", None),
        ("Ben, Ada: who was it?", None),
    ],
)
def test_the_first_of_two_names_counts_unless_named_together(query: str, side: Side | None) -> None:
    assert side_of(query, known(user=frozenset({"ada"}), agent=frozenset({"ben"}))) is side


@pytest.mark.parametrize(
    "query",
    [
        "How many times did I go swimming?",
        "List the books I have read",
        "In what order did I visit them?",
        "Wie viele Bücher habe ich gelesen?",
        "Сколько раз я был там?",
        "我去过哪些地方？请列出",
    ],
)
def test_questions_for_several_memories_are_recognised(query: str) -> None:
    assert asks_for_several(query)


@pytest.mark.parametrize("query", ["What did I order for lunch?", "When did I move?", "Wo wohne ich?", ""])
def test_questions_for_one_memory_are_recognised(query: str) -> None:
    assert not asks_for_several(query)


@pytest.mark.parametrize(
    "query",
    [
        "Can you summarize how my garden project went?",
        "In what order did I visit these towns?",
        "How has my training evolved over time?",
        "Kannst du den Verlauf zusammenfassen?",
        "Fais-moi un résumé de mon projet.",
        "Hazme un resumen de mi mudanza.",
        "我的项目经过是怎样的？",
    ],
)
def test_a_question_about_a_course_is_recognised(query: str) -> None:
    assert asks_for_course(query)


@pytest.mark.parametrize(
    "query", ["Where do I live?", "Which game did I develop?", "How should I format my resume?", ""]
)
def test_other_questions_ask_for_no_course(query: str) -> None:
    assert not asks_for_course(query)


@pytest.mark.parametrize(
    "query",
    ["When did I move?", "How many µg do I take?", "Which café in Zürich did I visit?", "kiln", "👍", ""],
)
def test_a_query_in_english_is_recognised(query: str) -> None:
    assert is_english(query)


@pytest.mark.parametrize(
    "query", ["Wann bin ich umgezogen?", "¿Cuándo fui al médico?", "Когда?", "我喜欢什么", "東京 trip"]
)
def test_a_query_in_another_language_is_recognised(query: str) -> None:
    assert not is_english(query)


def test_white_space_around_a_query_does_not_shift_its_weights() -> None:
    # The spans of the embedded query begin after the white space.
    assert normalised(" \n bees and honey\t") == "bees and honey"
