"""Lessons are reconciled with concurrent changes: equal facts are merged, and different facts remain."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.consolidation.reconciling import is_same_fact, reconcile
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.model.profile import Level, Trait, TraitChange

NOW = datetime(2026, 5, 8, tzinfo=UTC)


def known(number: int, text: str, about: About = About.USER) -> Fact:
    return Fact(number, about, text, None, NOW, None, ("p_1",), None)


def added(text: str, *pages: int, supersedes: tuple[int, ...] = (), about: About = About.USER) -> AddFact:
    return AddFact(about, text, None, NOW, pages or (1,), supersedes)


def fitted(*changes: KnowledgeChange, facts: tuple[Fact, ...] = ()) -> tuple[KnowledgeChange, ...]:
    lessons = reconcile(Lessons((), changes), (), (), facts, {})
    assert lessons is not None
    return lessons.knowledge


def trait(level: Level, reason: str = "before", *, hours: int = 0, dimension: str = "Music") -> Trait:
    return Trait(dimension, level, reason, ("p_1",), NOW + timedelta(hours=hours))


def change(level: Level, reason: str = "new", dimension: str = "Music") -> TraitChange:
    return TraitChange(dimension, level, reason, (7,))


# Facts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user lives in Oslo.", "user lives in oslo"),
        ("The user lives in Oslo.", "The user currently lives in Oslo"),
        ("The user has two cats.", "The user has two cat."),
        ("The user is a nurse.", "User is the nurse"),
        ("我住在上海。", "我住在上海"),
        ("The!", "the"),
    ],
)
def test_the_same_words_are_the_same_fact(one: str, other: str) -> None:
    assert is_same_fact(one, other)
    assert fitted(added(other, 4, 5), facts=(known(7, one),)) == (ConfirmFact(7, (4, 5)),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user eats meat.", "The user does not eat meat."),
        ("The user often eats meat.", "The user never eats meat."),
        ("The user moved to Oslo.", "The user moved from Oslo."),
        ("The user has 2 cats.", "The user has 3 cats."),
        ("The user has two cats.", "The user has three cats."),
        ("The user's sister lives in Oslo.", "The user lives in Oslo."),
        ("The user works for Ann.", "The user works with Ann."),
        ("The user is a nurse.", "The a."),
        ("我住在上海。", "我住在北京。"),
    ],
)
def test_a_negation_direction_or_number_makes_another_fact(one: str, other: str) -> None:
    assert not is_same_fact(one, other)
    new = added(other)
    assert fitted(new, facts=(known(7, one),)) == (new,)
    assert fitted(added(one), new) == (added(one), new)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user moved from Oslo to Rome.", "The user moved from Rome to Oslo."),
        ("The user has two cats and three dogs.", "The user has three cats and two dogs."),
        ("The user's brother taught Ann.", "Ann taught the user's brother."),
    ],
)
def test_the_same_words_in_another_order_are_another_fact(one: str, other: str) -> None:
    assert not is_same_fact(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("The user is married.", "The user was married."), ("The user has a dog.", "The user had a dog.")],
)
def test_a_fact_in_the_past_tense_is_another_fact(one: str, other: str) -> None:
    assert not is_same_fact(one, other)


@given(st.text(max_size=60), st.text(max_size=60))
def test_fact_equality_is_symmetric(one: str, other: str) -> None:
    assert is_same_fact(one, one)
    assert is_same_fact(one, other) == is_same_fact(other, one)


def test_facts_about_user_and_assistant_are_different() -> None:
    new = added("Is called Robin.", about=About.ASSISTANT)
    assert fitted(new, facts=(known(7, "Is called Robin."),)) == (new,)
    both = (added("Is called Robin."), new)
    assert fitted(*both) == both


def test_a_repeated_fact_is_added_once_with_all_evidence() -> None:
    first, again, other = added("I like tea.", 1, 2), added("I like the tea!", 2, 3), added("I like jam.", 3)
    assert fitted(first, again, other) == (added("I like tea.", 1, 2, 3), other)


def test_a_repeated_fact_supersedes_the_facts_of_both() -> None:
    first, again = added("I live in Oslo.", 1, supersedes=(7,)), added("I live in Oslo", 2, supersedes=(8, 7, 3))
    facts = (known(7, "I live in Rome."), known(8, "I live in Kyiv."))
    assert fitted(first, again, facts=facts) == (added("I live in Oslo.", 1, 2, supersedes=(7, 8)),)


def test_facts_about_user_and_assistant_are_not_merged() -> None:
    both = (added("Likes tea.", 1), added("Likes tea.", 2, about=About.ASSISTANT))
    assert fitted(*both) == both


def test_facts_that_ended_are_not_confirmed_or_superseded() -> None:
    assert fitted(ConfirmFact(3, (1,)), ConfirmFact(7, (2,)), facts=(known(7, "Tea."),)) == (ConfirmFact(7, (2,)),)
    new = added("The user lives in Rome.", supersedes=(3, 7))
    assert fitted(new, facts=(known(7, "The user lives in Oslo."),)) == (
        added("The user lives in Rome.", supersedes=(7,)),
    )
    assert fitted(new) == (added("The user lives in Rome."),)


def test_a_fact_that_rewords_the_one_it_supersedes_confirms_it() -> None:
    new = added("The user is currently a nurse.", 4, supersedes=(7,))
    assert fitted(new, facts=(known(7, "The user is a nurse."),)) == (ConfirmFact(7, (4,)),)


def test_a_fact_known_by_now_still_supersedes_others() -> None:
    new = added("The user currently lives in Oslo.", 4, supersedes=(7, 8))
    facts = (known(7, "The user lives in Rome."), known(8, "The user lives in Oslo."))
    assert fitted(new, facts=facts) == (added("The user lives in Oslo.", 4, supersedes=(7,)),)
    assert fitted(new, facts=facts[1:]) == (ConfirmFact(8, (4,)),)


def test_other_fields_of_a_fact_are_unchanged() -> None:
    whole = AddFact(About.USER, "Away.", "place", NOW, (3, 4), (9, 7), NOW + timedelta(days=1))
    assert fitted(whole, facts=(known(7, "Home."),)) == (
        AddFact(About.USER, "Away.", "place", NOW, (3, 4), (7,), NOW + timedelta(days=1)),
    )


@given(st.lists(st.sampled_from(["I like tea.", "i LIKE tea", "I do not like tea.", "Tea likes me.", "Jam."])))
def test_reconciling_twice_changes_nothing_more(told: list[str]) -> None:
    changes = tuple(added(text) for text in told)
    once = fitted(*changes)
    assert fitted(*once) == once
    facts = tuple(known(number, new.text) for number, new in enumerate(once, 1) if isinstance(new, AddFact))
    assert all(isinstance(again, ConfirmFact) for again in fitted(*changes, facts=facts))


# Traits


def test_a_trait_without_concurrent_changes_is_applied() -> None:
    lessons = Lessons((change(Level.HIGH),), ())
    assert reconcile(lessons, (), (), (), {}) == lessons
    assert reconcile(lessons, [trait(Level.LOW)], [trait(Level.LOW)], (), {}) == lessons


def test_equal_levels_keep_the_stored_reason_and_join_evidence() -> None:
    now = trait(Level.HIGH, "theirs", hours=1)
    lessons = reconcile(Lessons((change(Level.HIGH),), ()), [trait(Level.LOW)], [now], (), {})
    assert lessons == Lessons((TraitChange("Music", Level.HIGH, "theirs", (7,)),), ())
    assert reconcile(Lessons((change(Level.HIGH),), ()), (), [now], (), {}) == lessons


@pytest.mark.parametrize("then", [[], [trait(Level.LOW)]])
def test_a_concurrent_level_change_means_learning_again(then: list[Trait]) -> None:
    now = [trait(Level.MEDIUM, "theirs", hours=1)]
    assert reconcile(Lessons((change(Level.HIGH),), (added("Tea."),)), then, now, (), {}) is None


def test_changes_of_other_traits_have_no_effect() -> None:
    lessons = Lessons((change(Level.HIGH),), ())
    other = trait(Level.LOW, dimension="Travel", hours=1)
    assert reconcile(lessons, [trait(Level.LOW)], [trait(Level.LOW), other], (), {}) == lessons


def test_a_concurrently_removed_trait_is_added_again() -> None:
    lessons = Lessons((change(Level.HIGH),), ())
    assert reconcile(lessons, [trait(Level.LOW)], (), (), {}) == lessons
