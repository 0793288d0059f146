"""The embedder for APIs, against a local server that answers correctly, wrongly or never."""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Embedder, EmbeddingModel, Passage
from memoryos_mcp.embedding.api import BATCH_CHARS, BATCH_TEXTS, ApiEmbedder
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.embedding.embedders import configured_model, make_embedder
from memoryos_mcp.embedding.revision import PROBE, revision_of
from memoryos_mcp.embedding.windowing import WINDOW_BYTES
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import ATTEMPTS
from memoryos_mcp.model.pages import page_text
from tests.llm_server import (
    Answer,
    Answering,
    Asked,
    Drip,
    Hang,
    LlmServer,
    api_error,
    embeddings,
    free_port,
    html,
    json_reply,
    llm_server,
)

TIME_LIMIT_S = 30
KEY = "sk-live-4f9a8b7c6d5e"
PASSWORD = "hunter2"  # noqa: S105 - of no account
DIALOGUE = "My sister Nadia moved to Porto."
DIMENSION = 24
MODEL = os.environ.get("MEMORYOS_GGUF")


@dataclass(frozen=True, slots=True)
class Talk:
    """A server, its embedder, and the pauses of the embedder in seconds."""

    server: LlmServer
    embedder: ApiEmbedder
    pauses_s: list[float]

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request, except the probe."""
        return [body["input"] for body in self.server.bodies if not body["input"][0].endswith(PROBE)]


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return a reproducible vector of a text, not of unit length."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return [float(number) for number in 3.0 * np.random.default_rng(seed).normal(size=dimension)]


def unit(vector: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vector, dtype=np.float64) / np.float64(np.linalg.norm(vector))


def well(asked: Asked) -> Answer:
    """Answer correctly."""
    return embeddings(vector_of(text) for text in asked.body["input"])


def well_to_the_probe(answer: Answer | Answering) -> Answering:
    """Return a server that answers correctly to the probe, and with ``answer`` to other texts."""

    def answering(asked: Asked) -> Any:
        if asked.body["input"][0].endswith(PROBE):
            return well(asked)
        return answer(asked) if callable(answer) else answer

    return answering


@contextlib.asynccontextmanager
async def talk(
    answer: Answering | Answer | Sequence[Answer],
    *,
    name: str = "tiny",
    kwargs: str = "{}",
    key: str | None = KEY,
    timeout_s: float = 20.0,
) -> AsyncIterator[Talk]:
    """Start a server and its embedder, with a time limit; pauses before retries are skipped."""
    pauses_s: list[float] = []

    async def pause(seconds: float) -> None:
        pauses_s.append(seconds)

    async with asyncio.timeout(TIME_LIMIT_S), llm_server(answer) as server:
        model = EmbeddingModel(name, server.base_url, kwargs)
        secret = None if key is None else SecretStr(key)
        embedder = ApiEmbedder(model, secret, timeout_s=timeout_s, pause=pause)
        try:
            yield Talk(server, embedder, pauses_s)
        finally:
            await embedder.aclose()


async def failure(embedder: Embedder, text: str = DIALOGUE) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await embedder.embed([text])
    return caught.value


# Requests and replies


async def test_one_probe_determines_dimension_and_identity() -> None:
    async with talk(well, name="maker/tiny:latest") as talked:
        embedder: Embedder = talked.embedder
        assert not embedder.is_loaded
        with pytest.raises(ModelError, match="load the model first"):
            _ = embedder.identity
        await asyncio.gather(embedder.load(), embedder.load())
        assert embedder.is_loaded
        assert embedder.dimension == DIMENSION
        assert (
            embedder.identity
            == f"maker/tiny:latest:{DIMENSION}:{revision_of(np.array(vector_of(PROBE), dtype=np.float32))}"
        )
        (asked,) = talked.server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "maker/tiny:latest", "input": [PROBE], "encoding_format": "float"}


async def test_without_a_key_requests_contain_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with talk(well, key=None) as talked:
        await talked.embedder.load()
        assert KEY not in str(talked.server.asked)


def test_importing_the_module_does_not_import_openai() -> None:
    program = "import sys, memoryos_mcp.embedding.api; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


async def test_texts_keep_their_order_at_unit_length_over_many_batches() -> None:
    texts = [f"{number} " + "bees " * (number * 37 % 290) for number in range(200)]
    async with talk(well) as talked:
        found = await talked.embedder.embed(texts)
        batches = talked.texts
    assert found.shape == (200, DIMENSION)
    assert found.dtype == np.float32
    for row, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(row, unit(vector_of(text.strip())), atol=1e-6)
    assert max(map(len, batches)) <= BATCH_TEXTS
    assert max(sum(map(len, batch)) for batch in batches) <= BATCH_CHARS
    assert all(max(map(len, batch)) < 1500 for batch in batches)
    assert len(batches) < 20


async def test_no_texts_give_no_rows() -> None:
    async with talk(well) as talked:
        assert (await talked.embedder.embed([])).shape == (0, DIMENSION)
        assert await talked.embedder.embed_pages([]) == []


async def test_an_empty_text_is_never_sent() -> None:
    async with talk(well) as talked:
        assert (await talked.embedder.embed(["", " \n"])).shape == (2, DIMENSION)
        await talked.embedder.embed_query("")
        assert all(text.strip() for texts in talked.texts for text in texts)


async def test_reordered_vectors_are_sorted_by_index() -> None:
    def shuffled(asked: Asked) -> Answer:
        data = [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(asked.body["input"])]
        return json_reply({"data": data[::-1]})

    async with talk(shuffled) as talked:
        found = await talked.embedder.embed(["one", "two", "three"])
    for row, text in zip(found, ["one", "two", "three"], strict=True):
        np.testing.assert_allclose(row, unit(vector_of(text)), atol=1e-6)


async def test_vectors_without_an_index_keep_their_order() -> None:
    def bare(asked: Asked) -> Answer:
        return json_reply({"data": [{"embedding": vector_of(text)} for text in asked.body["input"]]})

    async with talk(bare) as talked:
        found = await talked.embedder.embed(["one", "two"])
    np.testing.assert_allclose(found[1], unit(vector_of("two")), atol=1e-6)


@pytest.mark.parametrize(
    ("user_input", "agent_response"),
    [
        ("I keep bees.", "Lovely."),
        ("It was 3.5 km, and then some more. " * 300, "Well! " * 900),
        ("蜜蜂在屋顶上采蜜。" * 800, "好"),
        ("x" * 20_000, ""),
        ("a\n" + " " * 9000 + "\nb", "😀" * 3000),
        ("." * 10_000, "?"),
    ],
)
async def test_windows_cover_a_page_and_fit_the_model(user_input: str, agent_response: str) -> None:
    text = page_text(user_input, agent_response)
    async with talk(well) as talked:
        ((*windows,),) = await talked.embedder.embed_pages([Passage(user_input, agent_response)])
        sent = {text for texts in talked.texts for text in texts}
    ends = [0, *(window.end for window in windows)]
    for before, window in zip(ends, windows, strict=False):
        assert not text[before : window.start].strip()
        assert text[window.start : window.end] in sent
        assert len(text[window.start : window.end].encode()) <= WINDOW_BYTES
        np.testing.assert_allclose(window.vector, unit(vector_of(text[window.start : window.end])), atol=1e-6)
        assert window.codes is None
    assert not text[ends[-1] :].strip()
    assert len(windows) <= 1 + 1.5 * len(text.encode()) / WINDOW_BYTES


async def test_a_window_ends_with_a_sentence_or_a_word() -> None:
    said = "The bees flew 3.5 km to the lindens. " * 60
    words = "beeswax " * 300
    async with talk(well) as talked:
        pages = await talked.embedder.embed_pages([Passage(said, ""), Passage(words, "")])
    assert all(said[window.start : window.end].endswith("lindens.") for window in pages[0])
    assert all(words[window.start : window.end].endswith("beeswax") for window in pages[1])


# Instructions


async def test_queries_and_passages_get_the_instructions_of_the_model() -> None:
    async with talk(well, name="intfloat/multilingual-e5-small") as talked:
        await talked.embedder.embed_query("bees?")
        await talked.embedder.embed(["bees."])
        await talked.embedder.embed_pages([Passage("I keep bees.", "")])
        assert talked.server.bodies[0]["input"] == [f"passage: {PROBE}"]
        assert talked.texts == [["query: bees?"], ["passage: bees."], ["passage: I keep bees."]]


async def test_kwargs_set_instructions_and_dimension() -> None:
    kwargs = '{"query_prompt": "Q: ", "passage_prompt": "", "dimensions": 24}'
    async with talk(well, name="e5-small", kwargs=kwargs) as talked:
        await talked.embedder.embed_query("bees?")
        await talked.embedder.embed(["bees."])
        assert talked.texts == [["Q: bees?"], ["bees."]]
        assert {body["dimensions"] for body in talked.server.bodies} == {24}


@pytest.mark.parametrize("kwargs", ['{"device": "cpu"}', f'{{"api_key": "{KEY}"}}', '{"dimensions": 0}', "[]"])
async def test_invalid_kwargs_are_rejected_without_quoting_them(kwargs: str) -> None:
    embedder = ApiEmbedder(EmbeddingModel("tiny", "http://127.0.0.1/v1", kwargs), None, timeout_s=1)
    with pytest.raises(ModelError) as caught:
        await embedder.load()
    assert "query_prompt, passage_prompt, dimensions" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


# The revision


async def test_other_weights_of_the_same_name_are_another_space() -> None:
    def other(asked: Asked) -> Answer:
        return embeddings(vector_of(f"other weights: {text}") for text in asked.body["input"])

    identities = []
    for answer in (well, other):
        async with talk(answer) as talked:
            await talked.embedder.load()
            identities.append(talked.embedder.identity)
    assert identities[0] != identities[1]
    assert all(identity.startswith(f"tiny:{DIMENSION}:") for identity in identities)


# Queries


async def test_a_query_is_one_vector_without_tokens() -> None:
    async with talk(well) as talked:
        found = await talked.embedder.embed_query("  where are the bees? ")
        np.testing.assert_allclose(found.vector, unit(vector_of("where are the bees?")), atol=1e-6)
    assert not talked.embedder.has_tokens
    assert found.tokens.shape[0] == 0
    assert list(found.spans) == []


async def test_a_query_longer_than_a_window_is_cut() -> None:
    async with talk(well) as talked:
        await talked.embedder.embed_query("bees " * 10_000)
        ((text,),) = talked.texts
    assert len(text) <= WINDOW_BYTES


async def test_a_query_is_answered_while_an_import_hangs() -> None:
    def answer(asked: Asked) -> Answer:
        return Hang() if asked.body["input"][0].startswith("page") else well(asked)

    async with talk(answer) as talked:
        await talked.embedder.load()
        pages = [Passage(f"page {number} " + "bees " * 4000, "") for number in range(20)]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(talked.embedder.embed_pages(pages))
            await talked.server.was_asked(5)
            for number in range(30):
                await talked.embedder.embed_query(f"{number}?")
            assert not task.done()
            task.cancel()
        assert talked.server.most_at_once <= 5


# Texts that are too long


def refusing_over(chars: int, error: Answer) -> Answering:
    """Return a server that rejects requests with a long text."""
    return lambda asked: error if max(map(len, asked.body["input"])) > chars else well(asked)


TOO_LONG = [
    api_error(400, f"This model's maximum context length is 512 tokens. {DIALOGUE}", code="context_length_exceeded"),
    api_error(400, "the input length exceeds the context length"),
    api_error(500, "input (6001 tokens) is too large to process. increase the physical batch size"),
    api_error(413, "Input validation error: `inputs` must have less than 512 tokens. Given: 600"),
]


@pytest.mark.parametrize("error", TOO_LONG)
async def test_a_text_that_is_too_long_is_halved(error: Answer) -> None:
    long = "".join(chr(97 + number % 26) for number in range(1000))
    async with talk(refusing_over(500, error)) as talked:
        short_row, long_row = await talked.embedder.embed(["short", long])
        assert talked.pauses_s == []
    halves = unit(vector_of(long[:500])) + unit(vector_of(long[500:]))
    np.testing.assert_allclose(short_row, unit(vector_of("short")), atol=1e-6)
    np.testing.assert_allclose(long_row, unit(halves), atol=1e-6)


async def test_a_request_with_too_many_texts_is_halved() -> None:
    error = api_error(422, "batch size 64 > maximum allowed batch size 32")
    texts = [f"text {number}" for number in range(100)]
    async with talk(lambda asked: error if len(asked.body["input"]) > 32 else well(asked)) as talked:
        found = await talked.embedder.embed(texts)
    for row, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(row, unit(vector_of(text)), atol=1e-6)


@pytest.mark.parametrize("error", TOO_LONG)
async def test_an_api_that_rejects_short_texts_is_an_error(error: Answer) -> None:
    async with talk(well_to_the_probe(error)) as talked:
        text = str(await failure(talked.embedder, "bees " * 300))
        assert len(talked.server.asked) < 12
    assert "rejects even short texts" in text
    assert DIALOGUE not in text


# Retries


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_temporary_failure_is_retried(status: int) -> None:
    async with talk([html("busy", status=status)] * 2 + [embeddings([vector_of(PROBE)])]) as talked:
        await talked.embedder.load()
        assert len(talked.pauses_s) == 2


async def test_retries_are_limited_for_each_call() -> None:
    async with talk(api_error(503, code="server_error")) as talked:
        assert "HTTP 503, server_error" in str(await failure(talked.embedder))
        assert len(talked.server.asked) == ATTEMPTS
        await failure(talked.embedder)
        assert len(talked.server.asked) == 2 * ATTEMPTS
        assert not talked.embedder.is_loaded


async def test_a_requested_pause_before_a_retry_is_made() -> None:
    answers = [api_error(429, headers={"retry-after": "7"}), embeddings([vector_of(PROBE)])]
    async with talk(answers) as talked:
        await talked.embedder.load()
        assert talked.pauses_s == [7.0]


async def test_a_connection_reset_is_retried() -> None:
    whole = embeddings([vector_of(PROBE)])
    async with talk([replace(whole, sent_bytes=20), replace(whole, sent_bytes=0), whole]) as talked:
        await talked.embedder.load()
        assert len(talked.server.asked) == 3


@pytest.mark.parametrize("answer", [Hang(), Drip()])
async def test_a_silent_or_slow_server_reaches_the_time_limit(answer: Answer) -> None:
    async with talk(answer, timeout_s=2) as talked:
        text = str(await failure(talked.embedder))
        await talked.server.hung_up.wait()
        assert len(talked.server.asked) == 1
    assert "within 2 s" in text
    assert "embedding_timeout_s" in text


# Rejections and invalid replies


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (api_error(401, code="invalid_api_key"), ("HTTP 401, invalid_api_key", "embedding_api_key")),
        (api_error(404, code="model_not_found"), ("embedding_model_name", "embedding_base_url")),
        (api_error(429, code="insufficient_quota"), ("no credit", "billing")),
        (api_error(400, "dimensions is not supported"), ("embedding_model_kwargs", "embedding_model_name")),
        (html("moved", status=307), ("redirect", "embedding_base_url")),
        (html("method not allowed", status=405), ("HTTP 405", "/v1")),
    ],
)
async def test_a_rejection_is_not_retried_and_says_what_to_do(error: Answer, words: tuple[str, ...]) -> None:
    async with talk(error) as talked:
        text = str(await failure(talked.embedder))
        assert len(talked.server.asked) == 1
    assert all(word in text for word in words), text
    assert "openai_base_url" not in text
    assert "llm_" not in text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_error_for_a_missing_key_names_the_setting(host: str) -> None:
    async with talk(api_error(401), key=None) as talked:
        assert "set embedding_api_key" in str(await failure(talked.embedder))


async def test_an_unreachable_server_is_named_without_credentials() -> None:
    port = free_port()
    given = f"http://user:{PASSWORD}@127.0.0.1:{port}/v1"

    async def pause(seconds: float) -> None:
        del seconds

    model = EmbeddingModel("tiny", f"http://127.0.0.1:{port}/v1")
    embedder = ApiEmbedder(model, None, timeout_s=20, base_url=given, pause=pause)
    async with asyncio.timeout(TIME_LIMIT_S):
        text = str(await failure(embedder))
        await embedder.aclose()
    assert f"nothing answers at http://127.0.0.1:{port}/v1; is the embeddings API's server running?" in text
    assert PASSWORD not in text


@pytest.mark.parametrize(
    "answer",
    [
        html("<html>Welcome to nginx</html>"),
        json_reply({"choices": []}),
        json_reply({"data": [{"embedding": "AAAA"}]}),
        json_reply({"data": [{"index": 0}]}),
        json_reply(None),
        replace(json_reply({}), body=b'{"data": [{"emb'),
    ],
)
async def test_a_reply_of_another_api_points_to_the_address(answer: Answer) -> None:
    async with talk(answer) as talked:
        text = str(await failure(talked.embedder))
        assert len(talked.server.asked) == 1
    assert "is not an embeddings API" in text
    assert "embedding_base_url" in text


GOOD = [1.0] * DIMENSION


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (embeddings([]), "one vector for each"),
        (embeddings([GOOD]), "one vector for each"),
        (embeddings([GOOD] * 3), "one vector for each"),
        (json_reply({"data": [{"index": 1, "embedding": GOOD}] * 2}), "one vector for each"),
        (embeddings([GOOD, GOOD[1:]]), "different lengths"),
        (embeddings([GOOD[1:]] * 2), "restart"),
        (embeddings([[], []]), "zero or not finite"),
        (embeddings([GOOD, [0.0] * DIMENSION]), "zero or not finite"),
        (embeddings([GOOD, [None, *GOOD[1:]]]), "zero or not finite"),
        (embeddings([GOOD, [float("nan"), *GOOD[1:]]]), "zero or not finite"),
        (embeddings([GOOD, [float("inf"), *GOOD[1:]]]), "zero or not finite"),
        (embeddings([GOOD, [1e300, *GOOD[1:]]]), "zero or not finite"),
    ],
)
async def test_invalid_vectors_are_an_error(answer: Answer, words: str) -> None:
    async with talk(well_to_the_probe(answer)) as talked:
        with pytest.raises(ModelError, match=words):
            await talked.embedder.embed([DIALOGUE, "and so on"])


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422, 429, 500])
async def test_errors_and_logs_quote_no_key_dialogue_or_reply(
    status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    words = f"your key {KEY} may not say {DIALOGUE}: {PASSWORD}"
    async with talk(well_to_the_probe(api_error(status, words, code=words, param=words))) as talked:
        error = await failure(talked.embedder)
        told = [str(error), repr(error), "".join(traceback.format_exception(error)), caplog.text, repr(talked.embedder)]
    assert "\n" not in str(error)
    for secret in (KEY, DIALOGUE, PASSWORD):
        assert not any(secret in text for text in told)


# Closing


async def test_a_closed_embedder_sends_nothing_and_closes_twice() -> None:
    async with talk(well) as talked:
        await talked.embedder.embed_query("bees?")
        await talked.embedder.aclose()
        await talked.embedder.aclose()
        assert "closed" in str(await failure(talked.embedder))
        with pytest.raises(ModelError, match="closed"):
            await talked.embedder.embed_query("bees?")
        assert len(talked.server.asked) == 2


async def test_closing_the_embedder_ends_its_running_calls() -> None:
    async with talk(well_to_the_probe(Hang())) as talked, asyncio.TaskGroup() as group:
        call = group.create_task(failure(talked.embedder))
        await talked.server.was_asked(2)
        await talked.embedder.aclose()
        assert "closed" in str(await call)


# Settings


def settings_at(base_url: str, **more: Any) -> Settings:
    return Settings(embedding_model_name="tiny", embedding_base_url=base_url, **more)


async def test_settings_determine_api_key_and_credentials() -> None:
    async with asyncio.timeout(TIME_LIMIT_S), llm_server(well) as server:
        settings = settings_at(
            f"{server.base_url.replace('//', f'//user:{PASSWORD}@')}/embeddings",
            embedding_model_kwargs={"dimensions": 24},
        )
        model = configured_model(settings)
        assert model is not None
        assert PASSWORD not in model.to_json()
        embedder = make_embedder(model, settings)
        assert embedder.model == model == EmbeddingModel.from_json(model.to_json())
        await embedder.load()
        await embedder.aclose()
        (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"].startswith("Basic ")
    assert asked.body["dimensions"] == 24


@pytest.mark.parametrize("is_at_the_same_address", [True, False])
async def test_the_key_is_sent_only_to_the_configured_address(*, is_at_the_same_address: bool) -> None:
    async with asyncio.timeout(TIME_LIMIT_S), llm_server(well) as server:
        url = server.base_url if is_at_the_same_address else "https://api.example.com/v1"
        settings = settings_at(url, embedding_api_key=SecretStr(f" {KEY} "))
        before = EmbeddingModel("small", server.base_url)
        embedder = make_embedder(before, settings)
        await embedder.load()
        await embedder.aclose()
        assert (server.asked[0].headers["authorization"] == f"Bearer {KEY}") is is_at_the_same_address
        assert (KEY in str(server.asked)) is is_at_the_same_address


async def test_the_llm_s_key_is_not_used_for_embeddings() -> None:
    async with asyncio.timeout(TIME_LIMIT_S), llm_server(api_error(401)) as server:
        settings = settings_at(server.base_url, openai_api_key=SecretStr(KEY), embedding_api_key=SecretStr("your-key"))
        model = configured_model(settings)
        assert model is not None
        embedder = make_embedder(model, settings)
        assert "set embedding_api_key" in str(await failure(embedder))
        await embedder.aclose()
        assert KEY not in str(server.asked)


async def test_a_memory_is_embedded_and_searched_by_an_api(tmp_path: Path) -> None:
    async with asyncio.timeout(TIME_LIMIT_S), llm_server(well) as server:
        settings = Settings(data_storage_path=tmp_path, embedding_base_url=server.base_url, embedding_model_name="tiny")
        async with MemoryService(settings) as service, service.user("ada") as engine:
            receipt = await engine.add(DIALOGUE, "Lovely.")
            while (stats := await engine.stats()).counts.unembedded:  # noqa: ASYNC110 - the state is another task's
                await asyncio.sleep(0.05)
            found = await engine.retrieve("Where did she go?")
        texts = [text for body in server.bodies for text in body["input"]]
        # The fact is learned in the background, before or after the query.
        texts = [text for text in texts if text != "My sister Nadia moved to Porto."]
    assert stats.space == f"tiny:{DIMENSION}:{revision_of(np.array(vector_of(PROBE), dtype=np.float32))}"
    assert texts == [PROBE, page_text(DIALOGUE, "Lovely."), "Where did she go?"]
    assert [page.page.page_id for page in found.short_term] == [receipt.page_id]


def test_an_api_may_have_the_bundled_model_s_name() -> None:
    settings = Settings(embedding_base_url="http://127.0.0.1:11434/v1")
    assert not settings.uses_bundled_embedder
    assert configured_model(settings) == EmbeddingModel("memoryos-small", "http://127.0.0.1:11434/v1")
    assert isinstance(make_embedder(EmbeddingModel("memoryos-small"), settings), BundledEmbedder)


def test_settings_show_neither_key_nor_credentials_of_the_api() -> None:
    settings = settings_at(f"https://user:{PASSWORD}@api.example.com/v1", embedding_api_key=SecretStr(KEY))
    shown = settings.public()
    assert shown["embedding_api_key"] == "set"
    assert shown["embedding_base_url"] == "https://api.example.com/v1"
    assert KEY not in json.dumps(shown) + repr(settings)
    assert PASSWORD not in json.dumps(shown) + repr(settings)


# A real server


@pytest.fixture(scope="module")
def llama_address() -> Iterator[str]:
    """A llama.cpp server on a free port of this machine, whose texts may have 128 tokens."""
    xllamacpp = pytest.importorskip("xllamacpp")
    if not MODEL:
        pytest.skip("MEMORYOS_GGUF names no model")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = MODEL
    parameters.embedding = True
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = 128
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.warmup = False
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


@pytest.mark.campaign
async def test_a_real_server_embeds_queries_and_pages_of_any_length(llama_address: str) -> None:
    async with asyncio.timeout(120):
        embedder = ApiEmbedder(EmbeddingModel("smollm2", llama_address), None, timeout_s=60)
        again = ApiEmbedder(EmbeddingModel("smollm2", llama_address), None, timeout_s=60)
        await embedder.load()
        await again.load()
        assert embedder.identity == again.identity
        assert embedder.identity.startswith("smollm2:576:")
        query = await embedder.embed_query("Where did Nadia move?")
        rows = await embedder.embed([DIALOGUE, "Where did Nadia move?", ""])
        (windows,) = await embedder.embed_pages([Passage("The bees fly to the lindens. " * 100, DIALOGUE)])
        await embedder.aclose()
        await again.aclose()
    np.testing.assert_allclose(rows[1], query.vector, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm([*rows, *(w.vector for w in windows)], axis=1), 1.0, atol=1e-5)
    assert len(windows) == 2
