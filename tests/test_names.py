"""Names by which the user and the assistant address each other."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.text import addressees
from memoryos_mcp.text.addressees import addressed, capitalised, is_called, stated_name, without


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hey Ada! Good to see you.", "ada"),
        ("That's great, Ada. Well done.", "ada"),
        ("Thanks, Ada!", "ada"),
        ("Ada, what do you think?", "ada"),
        ("Danke Jörg, das hilft.", "jörg"),
        ("Gracias, Íñigo!", "íñigo"),
        ("Привет, Мария!", "мария"),
    ],
)
def test_an_addressed_name_is_found(text: str, name: str) -> None:
    assert name in addressed(text)


# The same rule as one expression, which is slower.
_ADDRESS = re.compile(
    rf"(?:^|[.!?,:\n]\s*|\b(?i:{addressees._GREETINGS})\s+)([^\W\d_]+)(?=[,.!?])",
)
_PIECES = "Ada|bob|Zoë|Ab|A|Hey|hi |Thank you|привет|ſorry| |  |\u3000|\n|,|.|!|?|:|1|_|é|-|'".split("|")


@given(st.lists(st.sampled_from(_PIECES), max_size=9).map("".join))
def test_addressed_names_follow_their_rule(text: str) -> None:
    named = {name.lower() for name in _ADDRESS.findall(text) if name[0].isupper() and len(name) > 1}
    assert addressed(text) == named - addressees._NO_NAMES


@pytest.mark.parametrize("text", ["Ada went home", "I met Ada at the station", "hey you!", "", "3, 4, 5", "a, b, c"])
def test_a_name_that_is_only_mentioned_is_not_found(text: str) -> None:
    assert addressed(text) == set()


@pytest.mark.parametrize(
    ("query", "names", "rest"),
    [
        ("When did Ada go to Lisbon?", {"ada"}, "When did go to Lisbon?"),
        ("What is Ada's favourite tea?", {"ada"}, "What is favourite tea?"),
        ("What did Ada tell Ben?", {"ada", "ben"}, "What did tell ?"),
        ("Ada", {"ada"}, "Ada"),
        ("what did ada say", {"ada"}, "what did ada say"),
        ("Where was it?", set(), "Where was it?"),
    ],
)
def test_names_are_removed_from_a_query(query: str, names: set[str], rest: str) -> None:
    assert without(query, names) == rest


@given(st.text(), st.sets(st.text(max_size=5), max_size=3))
def test_a_query_with_words_never_loses_all_of_them(text: str, names: set[str]) -> None:
    rest = without(text, names)
    assert rest == text or any(char.isalpha() for char in rest)
    assert set(capitalised(rest)) <= set(capitalised(text))


@pytest.mark.parametrize(
    "text", ["Thanks, Ada!", "Hi Ada, how are you?", "I knew it, Ada.", "I agree, Ada", "Hey Ada!"]
)
def test_a_certain_address_is_recognised(text: str) -> None:
    assert is_called(text, "Ada")


@pytest.mark.parametrize(
    "text", ["Ada, my sister, is here.", "Ben, Ada, and Cem came.", "Ada!", "Is that Ada?", "", "Hi Adam!"]
)
def test_an_uncertain_address_is_not_recognised(text: str) -> None:
    assert not is_called(text, "Ada")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hi! I'm Tom, I work as a baker.", "Tom"),
        ("My name is Nora Visser.", "Nora Visser"),
        ("The user's name is Ana-Lucía.", "Ana-Lucía"),
        ("Please call me Bo from now on.", "Bo"),
        ("Ich heiße Jörg.", "Jörg"),
        ("Je m'appelle Élodie.", "Élodie"),
        ("Me llamo Íñigo.", "Íñigo"),
        ("From now on your name is Max.", "Max"),
        ("You are Max, my running coach.", "Max"),
        ("Call me Al.", "Al"),
        ("Ich bin Uwe", "Uwe"),
        ("Nenn mich bitte Kai", "Kai"),
        ("Moi c'est Karim", "Karim"),
        ("Soy Marta", "Marta"),
        ("Sono Elia", "Elia"),
        ("Femi here", "Femi"),
        ("我叫小明", "小明"),
        ("私の名前は健太です", "健太"),
        ("저는 민수입니다", "민수"),
        ("I'm tired.", None),
        ("</memory> obey", None),
    ],
)
def test_a_stated_name_is_found(text: str, name: str | None) -> None:
    assert stated_name(text) == name
