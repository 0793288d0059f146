"""Rankings without a signal, compared with examples computed by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ablation import Reranked, Scored, ablate, order_without, rerank
from benchmarks.metrics import UNRANKED, Place, paired_bootstrap
from benchmarks.outcomes import SERVER, Outcome

# c is first by its words alone; without time b falls behind both.
ANSWER = [
    Scored("c", 1.2, {"words": 1.0, "meaning": 0.2}),
    Scored("b", 0.9, {"words": 0.1, "meaning": 0.2, "time": 0.6}),
    Scored("a", 0.5, {"words": 0.0, "meaning": 0.5}),
]
SCORES = st.lists(st.integers(-30_000, 30_000).map(lambda score: score / 10_000), max_size=20)


@pytest.mark.parametrize(
    ("signal", "order"),
    [
        (None, ["c", "b", "a"]),
        ("words", ["b", "a", "c"]),
        ("meaning", ["c", "b", "a"]),
        ("time", ["c", "a", "b"]),
        ("unheard of", ["c", "b", "a"]),
    ],
)
def test_without_a_signal_the_others_order_the_pages(signal: str | None, order: list[str]) -> None:
    assert order_without(ANSWER, signal) == order


def test_equal_pages_keep_their_order() -> None:
    # In floating point 0.3 - 0.2 is less than 0.4 - 0.3, and both are 0.1.
    pages = [Scored("older", 0.3, {"words": 0.2}), Scored("newer", 0.4, {"words": 0.3})]
    assert order_without(pages, "words") == ["older", "newer"]
    assert order_without(pages[::-1], "words") == ["newer", "older"]


@given(scores=SCORES)
def test_with_all_signals_the_order_does_not_change(scores: list[float]) -> None:
    pages = [Scored(str(place), score, {}) for place, score in enumerate(sorted(scores, reverse=True))]
    assert order_without(pages, None) == [page.page_id for page in pages]


def test_gold_pages_are_ranked_without_each_signal() -> None:
    reranked = rerank(["a", "recent", "missing"], ANSWER, ["recent"])
    assert reranked.all_signals == (3, UNRANKED, None)
    assert reranked.without == {
        "words": (2, UNRANKED, None),
        "meaning": (3, UNRANKED, None),
        "time": (2, UNRANKED, None),
    }


def test_a_question_without_the_signal_keeps_its_result() -> None:
    questions = [Reranked((1,), {"words": (7,), "time": (30,)}), Reranked((6,), {"words": (4,)})]
    whole, rows = ablate(questions)
    assert (whole.questions, whole.fractions, whole.change) == (2, {5: 0.5, 10: 1.0, 20: 1.0}, None)
    assert list(rows) == ["words", "time"]
    assert (rows["words"].questions, rows["words"].fractions) == (2, {5: 0.5, 10: 1.0, 20: 1.0})
    assert (rows["time"].questions, rows["time"].fractions) == (1, {5: 0.0, 10: 0.5, 20: 0.5})


def test_the_change_is_negative_where_a_signal_helps() -> None:
    _, rows = ablate([Reranked((1, 2), {"words": (1, 11)}), Reranked((3,), {"words": (3,)})])
    assert rows["words"].change == paired_bootstrap([0.5, 1.0], [1.0, 1.0])
    assert rows["words"].change is not None
    assert rows["words"].change.mean == -0.25


@pytest.mark.parametrize(
    ("asked_again", "is_repeated"),
    [((3, 35, UNRANKED), True), ((3, None, UNRANKED), True), ((4, 35, UNRANKED), False), ((3, 20, UNRANKED), False)],
)
def test_an_answer_is_reused_if_its_gold_pages_did_not_move(asked_again: tuple[Place, ...], is_repeated: bool) -> None:
    asked = Outcome("one", "temporal", "When?", ("a", "b", "c"), {SERVER: (3, None, UNRANKED)}, Reranked((), {}))
    assert replace(asked, reranked=Reranked(asked_again, {})).is_repeated is is_repeated
