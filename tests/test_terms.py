"""Words of any script, as used for search."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.text import terms


def test_english_words_are_lower_cased_and_lose_their_possessive() -> None:
    assert terms.words("Anna's Dog can't RUN") == ["anna", "dog", "can't", "run"]


def test_stop_words_are_not_content_words() -> None:
    assert terms.content_words("What is the name of my dog?") == ["name", "dog"]


def test_a_query_of_only_stop_words_is_searched_unchanged() -> None:
    assert terms.query_words("what is it") == ["what", "is", "it"]


def test_unspaced_script_is_split_into_pairs() -> None:
    assert terms.words("我喜欢茶") == ["我喜", "喜欢", "欢茶"]
    assert terms.words("茶") == ["茶"]


@pytest.mark.parametrize("text", ["我喜欢喝茶", "東京タワーへ行く", "서울에서 일해요", "ฉันชอบแมว"])
def test_the_index_has_every_pair_and_the_last_character(text: str) -> None:
    indexed = terms.index_text(text).split()
    assert set(terms.words(text)) <= set(indexed)
    assert text[-1] in indexed


def test_compatibility_forms_equal_the_normal_forms() -> None:
    assert terms.words("ＡＢＣ ｶﾀｶﾅ") == terms.words("abc カタカナ")


def test_inflections_share_a_stem() -> None:
    assert terms.stem("moved") == terms.stem("moving") == "move"


@pytest.mark.parametrize("text", ["It's (fine)!", "The café was, as he said, très chic.", "Los Angeles, 8 a.m. EST"])
def test_english_is_indexed_unchanged(text: str) -> None:
    assert terms.index_text(text) == text


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Wir wohnen in einem Haus mit Garten.", "Häusern Gärten"),
        ("Meine Lehrerinnen haben zwei Bücher empfohlen.", "Lehrerin Buch"),
        ("L'été dernier nous avons acheté un appartement.", "appartements acheter"),
        ("Nous cherchons des bateaux pour la traversée.", "bateau"),
        ("El domingo compramos unas mesas en el mercado.", "mesa mercados domingos"),
        ("Mio fratello ha venduto la macchina.", "fratelli macchine"),
        ("Ontem os meninos não comeram as maçãs.", "menino maçã"),
        ("Mijn zus heeft twee katten.", "kat"),
        ("В нашей квартире живут две сестры.", "квартира сестрой"),
        ("Жёлтая лодка", "желтую лодки"),
        ("اشترينا سيارة وشقة قرب المدرسة", "السيارة سيارتنا شقتي مدرسة والمدرسة"),
        ("عندي حساسيّة من البندق وقرأت كتاباً", "الحساسية بندق الكتاب"),
        ("Το σπίτι έχει μεγάλους κήπους", "σπίτια κήπος"),
        ("हिन्दी में लिखा", "हिन्दी"),
    ],
)
def test_a_query_finds_other_inflections(said: str, asked: str) -> None:
    indexed = set(terms.index_text(said).lower().replace(".", "").split())
    lost = [word for word in terms.query_words(asked) if not indexed & set(terms.index_forms(word))]
    assert not lost


@given(st.lists(st.sampled_from("haus und wir сестра в البيت من garden the flat où été ville 年 猫が 고양이".split())))
def test_every_word_has_a_form_in_the_index(chosen: list[str]) -> None:
    text = " ".join(chosen)
    indexed = set(terms.index_text(text).split())
    assert all(indexed & set(terms.index_forms(word)) for word in terms.words(text))


def test_foreign_stop_words_are_content_words_in_english() -> None:
    assert terms.content_words("Wann war die Prüfung?") == ["prüfung"]
    assert terms.content_words("Did the plants die in the war?") == ["plants", "die", "war"]


@given(st.text())
def test_any_text_can_be_split_into_words(text: str) -> None:
    assert all(word == word.lower() for word in terms.words(text) if word.isascii())
    terms.index_text(text)
    terms.stems(text)


def test_threads_can_stem_concurrently() -> None:
    made_up = ["".join(parts) for parts in product("bcdfglmnprst", "aeiou") for suffix in ("nding", "kies", "tly")]
    with ThreadPoolExecutor(8) as threads:
        rounds = list(threads.map(lambda _: [terms.stem.__wrapped__(word) for word in made_up], range(40)))
    assert all(stems == rounds[0] for stems in rounds)
