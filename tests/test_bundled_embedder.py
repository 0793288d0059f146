"""The bundled embedder with its real model."""

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryos_mcp.embedding import Embedder, Passage, bundled, token_vectors
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.embedding.windowing import SLICE_CHARS
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.pages import Window

# Longer than a slice and a window; all sentences differ.
LONG_TEXT = " ".join(f"On day {day} we walked {day % 7 + 1} miles along the river." for day in range(240))

# The pinned model's vector of "The cat sat on the mat."; other values would be another space with the same identity.
KNOWN_START = [0.0636, -0.0218, 0.0011, 0.0921]

# All scripts; characters that are difficult for tokenizers are more likely than others.
ANY_TEXT = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(
            ["\x00", "\ud800", "e\u0301", "👍🏽", "日本語。", "한국어", "[SEP]", "\n", " ", "\u200b", "İ", "word. "]
        ),
        st.builds(
            str.__mul__, st.sampled_from(["x", "ab ", "語", "한", "\u0301", "?! ", "\n", "👍"]), st.integers(1, 700)
        ),
    ),
    max_size=4,
).map("".join)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[BundledEmbedder]:
    embedder = BundledEmbedder()
    async with asyncio.timeout(60):
        await embedder.load()
    yield embedder
    await embedder.aclose()


@pytest.fixture
def modified_model(tmp_path: Path) -> Path:
    weights = bytearray(bundled.MODEL_FILE.read_bytes())
    weights[len(weights) // 2] ^= 1
    file = tmp_path / "model.onnx"
    file.write_bytes(weights)
    return file


async def cosine(embedder: Embedder, one: str, other: str) -> float:
    async with asyncio.timeout(60):
        rows = await embedder.embed([one, other])
    return float(rows[0] @ rows[1])


async def whole(embedder: Embedder, *texts: str) -> list[list[Window]]:
    async with asyncio.timeout(300):
        return await embedder.embed_pages([Passage(text, "") for text in texts])


async def asked(embedder: Embedder, text: str) -> np.ndarray:
    async with asyncio.timeout(60):
        return (await embedder.embed_query(text)).vector


def uncovered(text: str, windows: list[Window]) -> list[int]:
    covered = np.zeros(len(text), dtype=bool)
    for window in windows:
        covered[window.start : window.end] = True
    return [index for index, char in enumerate(text) if not covered[index] and not char.isspace()]


def test_its_identity_is_known_before_the_model_is_loaded() -> None:
    embedder: Embedder = BundledEmbedder()
    assert embedder.identity == f"memoryos-small:384:{bundled.MODEL_SHA256[:12]}.words"
    assert embedder.dimension == 384
    assert not embedder.is_loaded


def test_importing_and_constructing_it_loads_no_model_library() -> None:
    program = (
        "import sys\n"
        "from memoryos_mcp.embedding.bundled import BundledEmbedder\n"
        "BundledEmbedder()\n"
        "heavy = {'onnxruntime', 'tokenizers'} & sys.modules.keys()\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr


async def test_concurrent_first_calls_load_the_model_once() -> None:
    embedder = BundledEmbedder()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        answers = [group.create_task(embedder.embed_query("hello")) for _ in range(5)]
    assert embedder.is_loaded
    assert all(np.array_equal(answer.result().vector, answers[0].result().vector) for answer in answers)


async def test_concurrent_queries_have_the_vectors_of_each_alone(embedder: BundledEmbedder) -> None:
    queries = ["tea", LONG_TEXT, "Who keeps bees on the roof?", "", *(f"number {n} of many" for n in range(60))]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        together = [group.create_task(embedder.embed_query(query)) for query in queries]
    for query, task in zip(queries, together, strict=True):
        shared, alone = task.result(), await embedder.embed_query(query)
        assert np.array_equal(shared.vector, alone.vector)
        assert np.array_equal(shared.tokens, alone.tokens)
        assert shared.spans == alone.spans


async def test_the_vector_of_a_known_text_never_changes(
    embedder: BundledEmbedder,
) -> None:
    row = await asked(embedder, "The cat sat on the mat.")
    assert row[:4] == pytest.approx(KNOWN_START, abs=5e-3)


async def test_each_text_gets_one_unit_length_row_in_order(embedder: BundledEmbedder) -> None:
    texts = ["a long walk by the river " * 5, "tea", "", "   \n", "👍", LONG_TEXT, *(f"number {n}" for n in range(30))]
    async with asyncio.timeout(60):
        rows = await embedder.embed(texts)
        alone = [await embedder.embed([text]) for text in texts]
    assert rows.shape == (len(texts), 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    assert (rows * np.concatenate(alone)).sum(axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-3)


async def test_no_texts_give_no_rows(embedder: BundledEmbedder) -> None:
    async with asyncio.timeout(60):
        assert (await embedder.embed([])).shape == (0, 384)
        assert await embedder.embed_pages([]) == []


async def test_the_same_text_has_one_vector_as_query_and_as_passage(embedder: BundledEmbedder) -> None:
    text = "Which river did we walk along?"
    query = await asked(embedder, text)
    async with asyncio.timeout(60):
        [passage] = await embedder.embed([text])
    [[window]] = await whole(embedder, text)
    assert query @ passage == pytest.approx(1, abs=1e-4)
    assert query @ window.vector == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("sentence", "related", "unrelated"),
    [
        ("Where does my brother live?", "My brother moved to Lisbon.", "The soup needs more salt."),
        ("I am allergic to peanuts.", "Nuts make me ill.", "The train to Munich was late."),
        ("What instrument do I play?", "I practise the cello every evening.", "Our tax return is due in May."),
    ],
)
async def test_related_sentences_are_closer_than_unrelated_ones(
    embedder: BundledEmbedder, sentence: str, related: str, unrelated: str
) -> None:
    assert await cosine(embedder, sentence, related) > await cosine(embedder, sentence, unrelated) + 0.15


async def test_the_end_of_a_long_text_is_found_by_its_last_window(embedder: BundledEmbedder) -> None:
    text = f"{LONG_TEXT}\nMy sister keeps bees on the roof of her house in Porto."
    [windows] = await whole(embedder, text)
    query = await asked(embedder, "Who keeps bees?")
    cosines = [float(query @ window.vector) for window in windows]
    assert len(windows) > 10
    assert int(np.argmax(cosines)) == len(windows) - 1
    assert text[windows[-1].start : windows[-1].end].endswith("in Porto.")


async def test_windows_are_consecutive_and_end_with_sentences(embedder: BundledEmbedder) -> None:
    [windows] = await whole(embedder, LONG_TEXT)
    for before, after in itertools.pairwise(windows):
        assert before.start < before.end <= after.start < after.end
    assert all(LONG_TEXT[: window.end].endswith("river.") for window in windows)


async def test_a_window_has_the_vector_of_its_text_alone(embedder: BundledEmbedder) -> None:
    text = " ".join(f"Wörter Nummer {n} für den Wald, 木 {n}." for n in range(60))
    [windows] = await whole(embedder, text)
    async with asyncio.timeout(60):
        rows = await embedder.embed([text[window.start : window.end] for window in windows])
    # Only a token at the edge of a window, which splits its word, may differ.
    assert (rows * np.stack([window.vector for window in windows])).sum(axis=1) == pytest.approx(1, abs=0.01)


async def test_words_are_ordered_by_side_and_question(embedder: BundledEmbedder) -> None:
    async with asyncio.timeout(60):
        [[window]] = await embedder.embed_pages([Passage("And you? We keep bees.", "How many hives?")])
        query = await embedder.embed_query("We keep bees.")
    assert window.codes is not None
    # Stop words: one row each for "we", "and you" and "how". Words: "bees", "keep", "hives" and "many".
    assert (window.codes.shape, window.parts) == ((7, 40), (3, 1, 0, 3))
    # A word of the query is nearest to the same word of the page.
    cosines = token_vectors.cosines(window.codes, query.tokens)
    assert cosines.argmax(axis=0).tolist() == [0, 2, 1]
    assert query.spans == [(0, 2), (3, 7), (8, 12)]


async def test_each_different_word_has_one_vector(embedder: BundledEmbedder) -> None:
    pages = [
        Passage("Beekeeping, beekeeping and again BEEKEEPING!", ""),
        Passage("Imkerei, Imkerei und nochmals Imkerei", ""),
        Passage("養蜂", ""),
        Passage("... !? ...", ""),
        Passage("", "7 Uhr"),
        Passage("I don't take vitamin C.", ""),
        Passage("さくらのはなみ", ""),
    ]
    async with asyncio.timeout(60):
        found = [window for [window] in await embedder.embed_pages(pages)]
        query = await embedder.embed_query("¿Imkerei?")
        marks = await embedder.embed_query("?!")
    rows = [window.parts for window in found]
    # "beekeeping", stop words; "Imkerei", "nochmals", stop words; two signs; statement and question without words
    assert rows[:4] == [(2, 0, 0, 0), (3, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 0)]
    # "7", "Uhr"; "take", "vitamin", "C", stop words with the "t"; each sign of a script without spaces
    assert rows[4:] == [(0, 0, 2, 0), (4, 0, 0, 0), (7, 0, 0, 0)]
    assert query.spans == [(1, 8)]
    assert np.linalg.norm(query.tokens, axis=1) == pytest.approx(1, abs=1e-3)
    assert marks.spans == [(0, 1), (1, 2)]


async def test_every_window_of_a_long_page_separates_both_sides(embedder: BundledEmbedder) -> None:
    user, agent = LONG_TEXT[:1500], LONG_TEXT[1500:4500]
    async with asyncio.timeout(60):
        [windows] = await embedder.embed_pages([Passage(user, agent)])
    users = [sum(window.parts[:2]) for window in windows]
    sizes = [0 if window.codes is None else len(window.codes) for window in windows]
    border = next(place for place, window in enumerate(windows) if window.end > len(user))
    assert users[:border] == sizes[:border]
    assert 0 <= users[border] < sizes[border]
    assert not any(users[border + 1 :])


async def test_each_text_gets_its_own_windows(embedder: BundledEmbedder) -> None:
    texts = [LONG_TEXT[:3000], "tea", "", LONG_TEXT[6000:8000], "a bee"]
    together = await whole(embedder, *texts)
    for text, windows in zip(texts, together, strict=True):
        [alone] = await whole(embedder, text)
        assert [(window.start, window.end) for window in windows] == [(window.start, window.end) for window in alone]
        for one, other in zip(windows, alone, strict=True):
            assert one.vector @ other.vector == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("text", ["", "   \n\t ", "👍🏽", "\u200b", "\x01\x02", "\ud800"])
async def test_a_text_without_words_still_has_one_window(embedder: BundledEmbedder, text: str) -> None:
    [windows] = await whole(embedder, text)
    assert [(window.start, window.end) for window in windows] == [(0, len(text))]
    assert np.linalg.norm(windows[0].vector) == pytest.approx(1, abs=1e-5)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=ANY_TEXT)
async def test_windows_cover_all_text_except_white_space(embedder: BundledEmbedder, text: str) -> None:
    [windows] = await whole(embedder, text)
    assert uncovered(text, windows) == []
    for window in windows:
        assert 0 <= window.start <= window.end <= len(text)
        assert np.linalg.norm(window.vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("unit", ["ab. ", "x", "한국어", "日"])
async def test_a_text_of_many_slices_is_covered_to_its_end(embedder: BundledEmbedder, unit: str) -> None:
    text = (unit * 10_000)[: SLICE_CHARS + 1_000]
    [windows] = await whole(embedder, text)
    assert uncovered(text, windows) == []


async def test_a_special_token_in_dialogue_is_ordinary_text(embedder: BundledEmbedder) -> None:
    # As text, the token is lower-cased; the model's special token is not.
    assert await cosine(embedder, "it printed [MASK] twice", "it printed [mask] twice") == pytest.approx(1, abs=1e-5)


async def test_a_query_is_answered_while_a_long_text_is_being_embedded(embedder: BundledEmbedder) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        bulk = group.create_task(embedder.embed_pages([Passage(LONG_TEXT, "")] * 3))
        await embedder.embed(["tea"])
        row = (await embedder.embed_query("Who keeps bees?")).vector
        assert not bulk.done()
        bulk.cancel()
    assert bulk.cancelled()
    assert np.isfinite(row).all()
    assert len(await whole(embedder, "tea")) == 1


async def test_closing_twice_ends_the_threads() -> None:
    before = set(threading.enumerate())
    embedder = BundledEmbedder()
    await whole(embedder, "tea")
    await asked(embedder, "coffee")
    own = {t for t in threading.enumerate() if t.name.startswith(("memoryos-embed", "memoryos-query"))} - before
    assert len(own) == 2
    await embedder.aclose()
    await embedder.aclose()
    assert not own & set(threading.enumerate())
    for call in (embedder.embed_query("tea"), embedder.embed(["tea"])):
        with pytest.raises(ModelError, match="ending"):
            await call


async def test_modified_weights_are_rejected_with_a_remedy(modified_model: Path) -> None:
    embedder = BundledEmbedder(model_file=modified_model)
    async with asyncio.timeout(60):
        with pytest.raises(ModelError, match=r"SHA-256.*pip install --force-reinstall"):
            await embedder.load()
        with pytest.raises(ModelError):
            await embedder.embed_query("hello")
    assert not embedder.is_loaded


async def test_a_modified_tokenizer_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(bundled.TOKENIZER_FILE.read_bytes().replace(b'"lowercase":true', b'"lowercase":false'))
    embedder = BundledEmbedder(tokenizer_file=file)
    async with asyncio.timeout(60):
        with pytest.raises(ModelError, match=r"SHA-256.*pip install --force-reinstall"):
            await embedder.load()


async def test_missing_weights_are_named_and_can_be_restored(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    embedder = BundledEmbedder(model_file=file)
    async with asyncio.timeout(60):
        with pytest.raises(ModelError, match=r"cannot read .*model\.onnx; run: pip install"):
            await embedder.load()
        file.write_bytes(bundled.MODEL_FILE.read_bytes())
        await embedder.load()
    assert embedder.is_loaded
