"""Floors: the cost of the server's work without a server, a protocol, or guarantees beyond those of the disk."""

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw
import faiss
import numpy as np
import onnxruntime
import tokenizers
from numpy.typing import NDArray

from memoryos_mcp.embedding import bundled
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.retrieval.retrieving import CANDIDATES_BY_MEANING, CANDIDATES_BY_WORDS
from memoryos_mcp.storage.sql import lexical, term_stats
from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.text.terms import query_words

READ_BYTES = 1 << 20


class BareStore:
    """A SQLite file with a page table and its word index, with an fsynced commit per page."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute(
            "CREATE TABLE pages (seq INTEGER PRIMARY KEY, user_input TEXT, agent_response TEXT);"
            "CREATE VIRTUAL TABLE page_words USING fts5 (user_input, agent_response, content = '', "
            "contentless_delete = 1, tokenize = 'porter unicode61')"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def add(self, user_input: str, agent_response: str) -> None:
        """Commit one page with its lexical row."""
        connection, sides = self._connection, (user_input, agent_response)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO pages (user_input, agent_response) VALUES (?, ?)", sides)
        seq = connection.last_insert_rowid()
        connection.execute("INSERT INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)", (seq, *sides))
        connection.execute("COMMIT")


def bare_query(
    database: Path, vectors: NDArray[np.float32], embedder: BundledEmbedder
) -> Callable[[str], Awaitable[float]]:
    """Return a function that answers a question with the bare libraries and returns the seconds.

    One query pass of the model, one exact FAISS search of the same vectors, one FTS5 query as the server chooses it
    (the choice is not timed).

    Args:
        database: The user's file.
        vectors: Vectors of all its pages, shape ``(pages, dimension)``.
        embedder: The model of the server.
    """
    faiss.omp_set_num_threads(1)  # for a single query, FAISS is slower with several threads
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    connection = SqliteConnection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    known = term_stats.WordCounts()

    async def ask(question: str) -> float:
        counts = term_stats.term_stats(connection, query_words(question), [], known).counts
        words = lexical.within_budget(counts) or ["-"]
        began = time.perf_counter()
        query = (await embedder.embed_query(question)).vector[None]
        index.search(query, CANDIDATES_BY_MEANING)
        connection.words.best(words, CANDIDATES_BY_WORDS)
        return time.perf_counter() - began

    return ask


def read_once(path: Path) -> float:
    """Return the seconds that it takes to read a whole file."""
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(READ_BYTES):
            pass
    return time.perf_counter() - began


class BareModel:
    """The bundled model without the embedder."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(bundled.MODEL_FILE), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = tokenizers.Tokenizer.from_file(str(bundled.TOKENIZER_FILE))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def forward(self, *texts: str) -> float:
        """Return the seconds of running tokenized texts through the model, in one sequence."""
        ids = self._ids(" ".join(texts))
        began = time.perf_counter()
        self._session.run(["vector", "tokens"], {"input_ids": ids})
        return time.perf_counter() - began

    def embed(self, texts: Sequence[str]) -> None:
        """Tokenize texts and run them through the model, one after another."""
        for text in texts:
            self._session.run(["vector", "tokens"], {"input_ids": self._ids(text)})

    def _ids(self, text: str) -> NDArray[np.int64]:
        return np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
