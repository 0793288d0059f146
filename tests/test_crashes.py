"""Servers and imports are killed at any moment: no page is lost, duplicated or restored.

``MEMORYOS_KILLS`` sets how often, 60 times by default.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.llm_server import purpose_of, reply_to
from memoryos_mcp.llm.chat import Purpose
from tests.foreign_memories import claude_conversation, claude_message, write_json
from tests.llm_server import Answer, Asked, LlmServer, completion, embeddings, llm_server
from tests.servers import USER, PipeServer, page_id_of, serve_environment, stored_pages, wait_until
from tests.stores import broken_references, indexed_pages, rows, stored_bytes, value

pytestmark = [pytest.mark.campaign, pytest.mark.both_stores]

KILLS = int(os.environ.get("MEMORYOS_KILLS", "60"))
# Every page is filed, read and embedded at once, so that kills hit all of this work.
SETTINGS = {
    "short_term_capacity": 2,
    "consolidation_batch_pages": 3,
    "consolidation_idle_s": 0,
    "mid_term_heat_threshold": 1,
    "llm_model": "tiny",
}
BUNDLED = {"embedding_model_name": "memoryos-small"}
LLM_LATENCY_S = 0.01
LONGEST_DELAY_S = 0.4
LIKED = ("tea", "rowing", "chess", "Lisbon")
CHATS, TURNS_PER_CHAT = 4, 20
SECONDS_PER_KILL = 8
FILING_LIMIT_S = 300


@dataclass
class Ledger:
    """The pages sent to the killed processes, and those that they acknowledged.

    Attributes:
        sent: A unique word of each added page.
        acknowledged: These words, by the page id in the reply.
        forgotten: Words of pages whose deletion was acknowledged.
        unsure: Words of the pages of each deletion that was killed; all of them are deleted, or none.
        imported: Words of the pages of each imported file.
    """

    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    unsure: list[set[str]] = field(default_factory=list)
    imported: dict[Path, set[str]] = field(default_factory=dict)


class Killing:
    """One memory, with the kinds of work during which its processes are killed."""

    def __init__(self, data: Path, llm: LlmServer, dice: random.Random) -> None:
        self.data = data
        self.ledger = Ledger()
        self._llm = llm
        self._dice = dice
        self._made = 0
        self._model: Mapping[str, object] = BUNDLED

    @property
    def settings(self) -> dict[str, object]:
        return {**SETTINGS, **self._model, "openai_base_url": self._llm.base_url}

    def word(self) -> str:
        """Return a word that is unique to one page."""
        self._made += 1
        return f"zq{self._made}q{self._dice.randrange(2**32):08x}"

    def adds(self) -> None:
        """Kill a server while pages are added, filed, read and embedded."""
        with PipeServer(self.data, self.settings) as server:
            if self._dice.random() < 0.5:  # the other kills happen during start and loading
                server.wait_until_semantic()
            words = [self.word() for _ in range(self._dice.randint(4, 16))]
            self.ledger.sent |= set(words)
            said = {word: f"I like {self._dice.choice(LIKED)} {word}." for word in words}
            sent = {
                server.send_call("add_memory", {"user_input": text, "agent_response": "Oh."}): word
                for word, text in said.items()
            }
            server.reply(min(sent))
            self._kill_soon(server)
            replies = server.replies()
        told = {page: sent[request] for request in sent if (page := page_id_of(replies.get(request, {})))}
        assert told.keys().isdisjoint(self.ledger.acknowledged)
        self.ledger.acknowledged |= told

    def learns(self) -> None:
        """Kill a server that reads hot segments for the profile."""
        with PipeServer(self.data, self.settings) as server:
            wait_until(lambda: bool(server.stats()["backlog_pages"] == 0), "all pages are filed", FILING_LIMIT_S)
            self._kill_soon(server)

    def forgets(self) -> None:
        """Kill a server while it forgets some pages."""
        known = sorted(self.ledger.acknowledged)
        if not known:
            return
        ids = self._dice.sample(known, min(len(known), self._dice.randint(1, 5)))
        words = {self.ledger.acknowledged.pop(page) for page in ids}
        with PipeServer(self.data, self.settings) as server:
            handle = server.call("forget_memory", ids=ids)["confirm"]
            request = server.send_call("forget_memory", {"confirm": handle})
            self._kill_soon(server, longest_delay_s=0.1)
            reply = server.replies().get(request)
        if reply is not None and reply["result"]["structuredContent"]["status"] == "forgotten":
            self.ledger.forgotten |= words
        else:
            self.ledger.unsure.append(words)

    def imports(self) -> None:
        """Kill the import of a new file, or of one whose import was killed before."""
        known = sorted(self.ledger.imported)
        is_new = not known or self._dice.random() < 0.3
        file = self._new_chats() if is_new else self._dice.choice(known)
        with subprocess.Popen(
            self._import_command(file),
            env=serve_environment(self.data),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                process.wait(self._dice.uniform(0.4, 1.2))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        assert process.returncode in (0, -signal.SIGKILL)

    def changes_model(self) -> None:
        """Kill a server while it embeds all pages with another model."""
        api = {"embedding_model_name": "small", "embedding_base_url": self._llm.base_url}
        self._model = api if self._model is BUNDLED else BUNDLED
        with PipeServer(self.data, self.settings) as server:
            self._kill_soon(server, longest_delay_s=1.5)

    def ends(self) -> None:
        """Finish every import, and let a last server finish the background work."""
        for file in self.ledger.imported:
            subprocess.run(
                self._import_command(file), env=serve_environment(self.data), check=True, capture_output=True
            )
        self._model = BUNDLED
        self.end_lease()
        with PipeServer(self.data, self.settings) as server:
            limit_s = 120 + KILLS * SECONDS_PER_KILL
            server.wait_until_settled(limit_s)
            wait_until(lambda: server.stats()["embedding_move"] is None, "vectors are of the bundled model", limit_s)
            # Another deletion purges the files, if a kill prevented that before.
            word = self.word()
            page = server.add(f"Forget {word}.")
            handle = server.call("forget_memory", ids=[page])["confirm"]
            assert server.call("forget_memory", confirm=handle)["scrubbed"]
            self.ledger.forgotten.add(word)
            wait_until(lambda: bool(server.stats()["is_settled"]), "all is read for knowledge and the profile", limit_s)
            assert server.close() == 0
            assert "Traceback" not in server.stderr

    def end_lease(self) -> None:
        """End the lease of a killed server, which would last for another half minute."""
        rows(self.data, "UPDATE lease SET expires_us = 0", USER)

    def _kill_soon(self, server: PipeServer, longest_delay_s: float = LONGEST_DELAY_S) -> None:
        kill_at = time.monotonic() + self._dice.uniform(0, longest_delay_s)
        try:
            server.process.wait(max(0.0, kill_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            server.kill()
        assert server.process.returncode == -signal.SIGKILL, f"the server ended by itself: {server.stderr[-2000:]}"

    def _new_chats(self) -> Path:
        words: set[str] = set()
        chats = []
        for chat in range(CHATS):
            messages = []
            for turn in range(TURNS_PER_CHAT):
                words.add(word := self.word())
                messages.append(claude_message(2 * turn, "human", f"I like {word}."))
                messages.append(claude_message(2 * turn + 1, "assistant", "Noted."))
            chats.append(claude_conversation(len(self.ledger.imported) * CHATS + chat, messages))
        file = write_json(self.data.parent / f"chats-{len(self.ledger.imported)}" / "conversations.json", chats)
        self.ledger.imported[file] = words
        return file

    def _import_command(self, file: Path) -> list[str]:
        return [sys.executable, "-m", "memoryos_mcp", "import", str(file), "--data-storage-path", str(self.data)]


def answer(asked: Asked) -> Answer:
    """Answer as an LLM with well-formed replies, or as a small embedding model."""
    if "messages" in asked.body:
        return completion(json.dumps(reply_to(asked.body["messages"])))
    return embeddings([[float(text.count(letter) + 1) for letter in "aeiourst"] for text in asked.body["input"]])


async def slow_answer(asked: Asked) -> Answer:
    await asyncio.sleep(LLM_LATENCY_S)
    return answer(asked)


async def test_kills_neither_lose_nor_double_nor_restore_pages(data: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown only if the test fails, so that its delays can be repeated
    dice = random.Random(seed)  # noqa: S311 - no secret
    async with asyncio.timeout(600 + 3 * KILLS * SECONDS_PER_KILL), llm_server(slow_answer) as llm:
        killing = Killing(data, llm, dice)
        rounds = (
            killing.adds, killing.adds, killing.adds, killing.learns, killing.forgets, killing.imports,
            killing.changes_model,
        )  # fmt: skip
        for number in range(KILLS):
            await asyncio.to_thread(rounds[number % len(rounds)])
            await asyncio.to_thread(killing.end_lease)
        purposes = {purpose_of(asked.body["messages"]) for asked in llm.asked if "messages" in asked.body}
        await asyncio.to_thread(killing.ends)
    assert purposes == {Purpose.ORGANISE, Purpose.LEARN}, "no kill can have fallen into filing or learning"
    check_pages(data, killing.ledger)
    assert_derived_rows_agree(data)


def check_pages(data: Path, ledger: Ledger) -> None:
    pages = stored_pages(data)
    by_id = {page.page_id: page.user_input for page in pages}
    assert len(by_id) == len(pages)
    words = [word.strip(".") for page in pages for word in page.user_input.split() if word.startswith("zq")]
    assert len(words) == len(set(words)) == len(pages), "a page is doubled"
    there = set(words)
    lost = [page for page, word in ledger.acknowledged.items() if word not in by_id.get(page, "")]
    assert not lost, f"{len(lost)} acknowledged pages are lost"
    imported = set().union(*ledger.imported.values())
    assert imported <= there, f"{len(imported - there)} imported pages are lost"
    for named in ledger.unsure:
        assert named <= there or not named & there, "a killed forgetting has forgotten a part"
    assert there <= ledger.sent | imported
    gone = (ledger.sent | ledger.forgotten) - there
    assert not ledger.forgotten & there, "a forgotten page is back"
    stored = stored_bytes(data, USER)
    back = [word for word in gone if word.encode() in stored]
    assert not back, f"{len(back)} forgotten pages are still stored"


def assert_derived_rows_agree(data: Path) -> None:
    """Check derived rows against the pages: no vector, word or count is missing or duplicated."""
    pages = value(data, "SELECT count(*) FROM pages", USER)
    assert value(data, "SELECT count(DISTINCT seq) FROM page_vectors", USER) == pages
    assert indexed_pages(data, USER) == pages
    counted = value(data, "SELECT coalesce(sum(page_count), 0) FROM segments", USER)
    assert counted == value(data, "SELECT count(*) FROM pages WHERE segment IS NOT NULL", USER)
    for place in ("segment", "chain", "organised_by"):
        wrong = f"SELECT count(*) FROM pages WHERE (tier = 'mid_term') <> ({place} IS NOT NULL)"  # noqa: S608
        assert value(data, wrong, USER) == 0
    for table in ("segment", "chain"):
        empty = f"SELECT count(*) FROM {table}s WHERE {table} NOT IN (SELECT {table} FROM pages WHERE {table} > 0)"  # noqa: S608
        assert value(data, empty, USER) == 0
    assert value(data, "SELECT count(*) FROM pages WHERE is_degraded = 1 OR attempts > 0", USER) == 0
    assert broken_references(data, USER) == []
    facts = rows(data, "SELECT folded FROM facts WHERE valid_until_us IS NULL", USER)
    assert len(facts) == len(set(facts))
