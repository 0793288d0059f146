"""The training of an embedding model: its conversations, its scores, and the file that it writes."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from benchmarks.training import chats
from benchmarks.training.__main__ import Vectors, loss_of, scores
from benchmarks.training.network import Network, write
from memoryos_mcp.retrieval.late_interaction import NEIGHBOURS


def test_every_question_names_pages_of_its_conversation() -> None:
    lines = [json.loads(line) for line in chats.FILE.read_text(encoding="utf-8").splitlines()]
    assert len({line["id"] for line in lines}) == len(lines)
    for line in lines:
        assert all(len(page) == 2 and page[0] for page in line["pages"])
        for question in line["questions"]:
            assert question["q"].strip()
            assert question["gold"]
            assert all(0 <= page < len(line["pages"]) for page in question["gold"])


def test_a_conversation_is_cut_into_windows_and_words() -> None:
    chat = next(chats.read())
    for text in (text for page in chat.pages for text in page):
        assert 0 < len(text.ids) == len(text.groups) <= 254
        words = set(text.groups.tolist()) - {-1}
        assert words == set(range(len(words)))


def test_a_page_scores_as_its_best_window_and_best_words() -> None:
    axes = torch.eye(4)
    asked = Vectors(axes[:1], [axes[:2]])
    found = Vectors(axes[[1, 0, 2]], [axes[[0]], axes[[3]], axes[[0, 1]]])
    scored = scores(asked, torch.tensor([3.0, 1.0]), found, [0, 0, 1], [0, 100])
    assert scored.by_text.tolist() == [[1, 0]]
    assert scored.by_words.tolist() == [[0.75, 1]]


def test_a_page_is_lent_the_words_of_its_neighbours() -> None:
    axes = torch.eye(4)
    asked = Vectors(axes[:1], [axes[:2]])
    found = Vectors(axes[:4], [axes[[0]], axes[[1]], axes[[2]], axes[[3]]])
    scored = scores(asked, torch.ones(2), found, [0, 1, 2, 2], [0, 1, 3])
    far = NEIGHBOURS[2] / 2**0.5
    expected = [[(1 + NEIGHBOURS[1]) / 2, (1 + NEIGHBOURS[1]) / 2, (far + NEIGHBOURS[3] / 2**0.5) / 2]]
    assert scored.by_words.tolist() == [pytest.approx(expected[0])]


def test_other_gold_pages_are_no_wrong_answers() -> None:
    scored = torch.tensor([[0.5, 0.5, -9.0]])
    assert float(loss_of(scored / 0.05, [[0, 1]])) == pytest.approx(0, abs=1e-6)
    assert float(loss_of(scored / 0.05, [[0]])) == pytest.approx(np.log(2), abs=1e-6)


def test_the_written_file_gives_the_networks_vectors(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Network().eval()
    write(network, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    ids = np.array([[101, *range(2000, 2030), 102]], dtype=np.int64)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    vector, tokens = session.run(["vector", "tokens"], {"input_ids": ids})
    with torch.no_grad():
        one, each = network.vectors(network.states(torch.from_numpy(ids), torch.ones((1, 32), dtype=torch.long)))
    assert vector @ one[0].numpy() > 0.97
    assert (tokens * each[0].numpy()).sum(axis=1).min() > 0.97
