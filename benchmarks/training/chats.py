"""The conversations of the training, cut into the windows and words that the server uses."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryos_mcp.embedding import Passage, bundled
from memoryos_mcp.embedding.windowing import WINDOW_TOKENS, head, slices
from memoryos_mcp.model.pages import storable
from memoryos_mcp.retrieval.query import token_weights
from memoryos_mcp.text.terms import words

FILE = Path(__file__).parent / "conversations.jsonl"


@dataclass(frozen=True, slots=True)
class Text:
    """A query or a window of a page.

    Attributes:
        ids: Its token ids, shape ``(n,)``.
        groups: The word of each token, shape ``(n,)``; -1 for a token without one.
    """

    ids: NDArray[np.int64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the numbers of the pages that answer it.

    Attributes:
        weights: Weight of each of its words in a query to the server, shape ``(w,)``.
    """

    text: Text
    weights: NDArray[np.float32]
    gold: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. Each page is its windows."""

    id: str
    pages: tuple[tuple[Text, ...], ...]
    questions: tuple[Question, ...]


def read() -> Iterator[Chat]:
    """Yield the conversations."""
    tokenizer = tokenizers.Tokenizer.from_file(str(bundled.TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Tokenizing does not need the network.
    model = bundled.Model(None, tokenizer)
    for line in FILE.read_text(encoding="utf-8").splitlines():
        chat = json.loads(line)
        pages = [Passage(*page) for page in chat["pages"]]
        counts = Counter(word for page in pages for word in set(words(page.text)))
        yield Chat(
            chat["id"],
            tuple(_windows(model, page) for page in pages),
            tuple(
                Question(*_query(model, each["q"], counts, len(pages)), tuple(sorted(set(each["gold"]))))
                for each in chat["questions"]
            ),
        )


def _windows(model: bundled.Model, passage: Passage) -> tuple[Text, ...]:
    text = passage.text
    encoded = np.concatenate([model.encode(text[a:b], a) for a, b in slices(text)], axis=1)
    layouts = bundled.layouts(text, encoded, len(passage.user_input))
    return tuple(Text(encoded[0, each.stretch.first : each.stretch.last], each.groups) for each in layouts)


def _query(model: bundled.Model, text: str, counts: Mapping[str, int], pages: int) -> tuple[Text, NDArray[np.float32]]:
    start = head(storable(text))
    encoded = model.encode(start)[:, :WINDOW_TOKENS]
    tokens, groups = bundled.query_words(start, encoded)
    return Text(encoded[0], groups), token_weights(start, tokens, counts, pages).astype(np.float32)
