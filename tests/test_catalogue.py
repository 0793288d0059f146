from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.llm.catalogue import Dimension, as_text, dimensions, find
from memoryos_mcp.llm.extractive import traits

REFERENCE = {
    "Psychological model": (
        "Extraversion, Openness, Agreeableness, Conscientiousness, Neuroticism, Physiological Needs, "
        "Need for Security, Need for Belonging, Need for Self-Esteem, Cognitive Needs, Aesthetic Appreciation, "
        "Self-Actualization, Need for Order, Need for Autonomy, Need for Power, Need for Achievement"
    ).split(", "),
    "AI alignment": (
        "Helpfulness, Honesty, Safety, Instruction Compliance, Truthfulness, Coherence, Complexity, Conciseness"
    ).split(", "),
    "Content platform interests": (
        "Science, Education, Psychology, Family, Fashion, Art, Health, Financial Management, Sports, Food, Travel, "
        "Music, Literature, Film, Social Media Activity, Tech, Environmental, History, Political, Religious, Gaming, "
        "Animal, Emotional Expression, Sense of Humor, Information Density, Language Style, Practicality"
    ).split(", "),
}
NAMES = [dimension.name for dimension in dimensions()]
each_dimension = pytest.mark.parametrize("dimension", dimensions(), ids=lambda dimension: dimension.name)


def listed(text: str) -> list[str]:
    return [name for line in text.splitlines() for name in line.partition(": ")[2].split(", ")]


def test_the_90_dimensions_have_different_names() -> None:
    assert len(NAMES) == 90
    assert [find(name) for name in NAMES] == NAMES


def test_the_51_dimensions_of_the_reference_are_in_its_order() -> None:
    found: dict[str, list[str]] = {}
    for dimension in dimensions():
        if dimension.source.startswith("MemoryOS; "):
            found.setdefault(dimension.group, []).append(dimension.name)
    assert sum(map(len, found.values())) == 51
    assert found == REFERENCE


def test_dimensions_of_a_group_are_adjacent() -> None:
    groups = [dimension.group for dimension in dimensions()]
    assert groups == sorted(groups, key=list(REFERENCE).index)


@each_dimension
def test_a_dimension_is_complete_and_its_name_fits_a_prompt(dimension: Dimension) -> None:
    assert dimension.name.isascii()
    assert "," not in dimension.name
    assert 1 <= len(dimension.name.split()) <= 3
    assert 2 <= len(dimension.meaning.split()) <= 12
    assert not dimension.meaning.endswith(".")
    assert any(char.isdigit() for char in dimension.source), "a source has a year or a version"


def test_dimensions_learned_without_an_llm_are_in_the_catalogue() -> None:
    learned = {style.dimension for style in traits._STYLES}.union(*traits._cues().values())
    assert learned
    assert learned <= set(NAMES)


@pytest.mark.parametrize(
    "written",
    [
        "need for self-esteem",
        "NEED FOR SELF ESTEEM",
        "NeedForSelfEsteem",
        " need_for\nself–esteem: ",
        "**`Need for Self-Esteem`**",
    ],
)
def test_lookup_ignores_case_spaces_and_punctuation(written: str) -> None:
    assert find(written) == "Need for Self-Esteem"


@given(
    st.sampled_from(NAMES), st.sampled_from([str.upper, str.lower, str.swapcase]), st.text(" \t-_.,:*`'", max_size=5)
)
def test_lookup_ignores_decoration(name: str, in_case: Callable[[str], str], decoration: str) -> None:
    assert find(decoration + decoration.join(in_case(name)) + decoration) == name


@pytest.mark.parametrize("written", ["", " ", "...", "Need", "Shoe Size", "Music Film"])
def test_an_unknown_name_is_not_found(written: str) -> None:
    assert find(written, ["Chess", "???"]) is None


def test_a_users_dimension_keeps_the_users_spelling() -> None:
    own = ["Chess", "Любовь к чаю", "茶道"]
    assert find("chess", own) == "Chess"
    assert find("ЛЮБОВЬ К ЧАЮ", own) == "Любовь к чаю"
    assert find("茶 道", own) == "茶道"
    assert find("chess") is None


def test_names_that_differ_only_in_a_vowel_sign_stay_apart() -> None:
    assert find("की", ["का", "की"]) == "की"


def test_a_dimension_of_the_catalogue_keeps_its_spelling() -> None:
    assert find("music", ["MUSIC"]) == "Music"
    assert as_text(["MUSIC"]) == as_text()


def test_the_prompt_text_contains_every_name_once() -> None:
    text = as_text()
    assert listed(text) == NAMES
    assert [line.partition(":")[0].partition(" (")[0] for line in text.splitlines()] == list(REFERENCE)
    assert len(text) < 2000


def test_the_prompt_text_ends_with_the_users_dimensions() -> None:
    assert as_text(["Chess", "CHESS", "Tea\n\nceremony", "!!!"]) == f"{as_text()}\nOwn: Chess, Tea ceremony"
