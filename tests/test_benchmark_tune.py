"""Weights are learned from signals of gold pages, and scored on other conversations."""

from dataclasses import replace

import numpy as np
import pytest
from rich.progress import Progress

from benchmarks.metrics import UNRANKED
from benchmarks.tune import Case, Part, Questions, learn, out_of_fold


def case(good: list[float], noise: list[float], gold: int | None, fold: str = "a") -> Case:
    count = len(good)
    return Case(
        signals={"good": np.array(good), "noise": np.array(noise)},
        seqs=np.arange(1, count + 1),
        eligible=np.ones(count, dtype=np.bool_),
        gold=(gold,),
        fold=fold,
    )


def cases(seed: int, fold: str) -> list[Case]:
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(20):
        gold = int(generator.integers(0, 40))
        good = generator.normal(size=40)
        good[gold] += 2
        made.append(case(good.tolist(), (3 * generator.normal(size=40)).tolist(), gold, fold))
    return made


NAMES = ["good", "noise"]


def asked(cases_: list[Case]) -> Questions:
    return Questions(cases_, NAMES)


def found(questions: Questions, weights: dict[str, float]) -> dict[int, list[float]]:
    return {cut: shares.tolist() for cut, shares in questions.found(questions.scores(weights)).items()}


def test_the_weighted_sum_ranks_newer_pages_first_if_equal() -> None:
    equal = [case([0.0, *[1.0] * 5], [9.0, *[0.0] * 5], gold=gold) for gold in (0, 1, 2)]
    assert found(asked(equal), {"good": 1.0})[5] == [0.0, 1.0, 1.0]
    assert found(asked(equal), {"good": 1.0, "noise": 1.0})[5] == [1.0, 0.0, 1.0]
    assert found(asked(equal), {})[5] == [0.0, 1.0, 1.0]


def test_shown_pages_are_found_and_non_candidates_are_not() -> None:
    both = [case([1.0] * 9, [0.0] * 9, gold=UNRANKED - 1), case([1.0], [0.0], gold=None)]
    assert found(asked(both), {"good": 1.0})[5] == [1.0, 0.0]


def test_each_gold_page_counts_by_its_share() -> None:
    two = Case({"good": np.arange(8.0)}, np.arange(1, 9), np.ones(8, dtype=np.bool_), (0, 7), "a")
    assert found(asked([two]), {"good": 1.0}) == {5: [0.5], 10: [1.0], 20: [1.0]}


def test_a_question_for_several_memories_prefers_other_sessions() -> None:
    # Six pages of one session are a little better than the page of another session.
    good, sessions = [1.0] * 6 + [0.9], np.array([1] * 6 + [2])
    made = [replace(case(good, good, gold=6), apart=apart) for apart in (None, sessions)]
    questions = asked(made)
    scores = questions.scores({"good": 1.0})
    assert questions.found(scores)[5].tolist() == [0.0, 0.0]
    assert questions.found(questions.spread(scores))[5].tolist() == [0.0, 1.0]
    assert scores.tolist() == [*good, *good]


def test_learning_keeps_helpful_signals_and_drops_others() -> None:
    part = Part(asked(cases(1, "a") + cases(2, "b")), np.ones(40, dtype=np.bool_))
    learned = learn([part], NAMES)
    assert learned["good"] > 0
    assert learned["good"] > 4 * learned["noise"]
    assert part.figure(part.of.scores(learned)) > part.figure(part.of.scores({"good": 0.5, "noise": 0.5}))


def test_weights_are_the_mean_over_left_out_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from: list[set[str]] = []

    def climb(parts: list[Part], names: list[str]) -> dict[str, float]:
        learned_from.append({str(fold) for part in parts for fold in part.of.folds[part.chosen]})
        return dict.fromkeys(names, float(len(learned_from)))

    monkeypatch.setattr("benchmarks.tune.climb", climb)
    both = [asked(cases(1, "a") + cases(2, "b")), asked(cases(3, "c"))]
    parts = [Part(each, np.ones(len(each.folds), dtype=np.bool_)) for each in both]
    assert learn(parts, NAMES) == dict.fromkeys(NAMES, 2.0)
    assert learned_from == [{"b", "c"}, {"a", "c"}, {"a", "b"}]
    learned_from.clear()
    assert learn(parts[1:], NAMES) == dict.fromkeys(NAMES, 1.0)  # a data set of one conversation
    assert learned_from == [{"c"}]


def test_a_conversation_is_scored_by_weights_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = asked(cases(1, "a") + cases(2, "b") + cases(3, "c"))
    learned_from: list[set[str]] = []

    def learn_nothing(parts: list[Part], names: list[str]) -> dict[str, float]:
        learned_from.append(set(parts[0].of.folds[parts[0].chosen].tolist()))
        return {"good": 1.0 if len(learned_from) == 2 else 0.0}

    monkeypatch.setattr("benchmarks.tune.learn", learn_nothing)
    [apart] = out_of_fold([questions], NAMES, Progress(disable=True))
    assert learned_from == [{"b", "c"}, {"a", "c"}, {"a", "b"}]
    with_signal, without = (questions.found(questions.scores({"good": weight}))[10] for weight in (1.0, 0.0))
    assert apart[10].tolist() == [*without[:20], *with_signal[20:40], *without[40:]]
