"""The page on which the LLM answers with the memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Listener, Usage
from memoryos_mcp.server.web.guard import PREFIX
from tests.fakes import Clock, ScriptedAnalyst
from tests.memories import NO_MODEL, USER
from tests.web_client import ORIGIN, Pages, open_pages

LIMIT_S = 30
HOSTILE = '<script>alert("x")</script>'


class TalkingChat:
    """Answers in two pieces, and can fail after them."""

    name = "talker"

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        self.asked.append(request)
        for piece in ("In Porto, ", HOSTILE):
            if listener is not None:
                listener(piece)
        if self.failure is not None:
            raise self.failure
        return ChatReply(f"In Porto, {HOSTILE}", Usage(100, 5), is_cut=False)

    async def aclose(self) -> None:
        """Release nothing."""


@asynccontextmanager
async def opened(data: Path, chat: TalkingChat | None, **given: Any) -> AsyncIterator[Pages]:
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(
            Settings(data_storage_path=data, timezone="UTC", **NO_MODEL),
            clock=Clock(),
            analyst=ScriptedAnalyst(),
            chat=chat,
        ) as service,
        open_pages(service, **given) as pages,
    ):
        yield pages


async def count(pages: Pages) -> int:
    async with pages.service.user(USER) as engine:
        return (await engine.stats()).counts.pages


async def add(pages: Pages, text: str) -> str:
    async with pages.service.user(USER) as engine:
        return (await engine.add(text, "I see.")).page_id


async def streamed(pages: Pages, **fields: str) -> list[dict[str, Any]]:
    data = {"form_key": pages.form_key, **fields}
    answer = await pages.http.post(f"{PREFIX}/chat/stream", data=data, headers={"origin": ORIGIN})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_an_answer_has_its_memory_beside_it(tmp_path: Path) -> None:
    chat = TalkingChat()
    async with opened(tmp_path, chat) as pages:
        page_id = await add(pages, f"I live in Porto {HOSTILE}.")
        shown = await pages.submit("/chat", query="Where do I live?")
        assert shown.status == 200
        assert f"You Where do I live? Assistant In Porto, {HOSTILE} Not remembered." in shown.text
        assert f"I live in Porto {HOSTILE}." in shown.text
        assert f"{PREFIX}/pages/{page_id}" in shown.links
        assert "<script>alert" not in shown.html
        assert await count(pages) == 1
    assert "I live in Porto" in chat.asked[-1].messages[1].content


async def test_an_exchange_is_remembered_on_request(tmp_path: Path) -> None:
    async with opened(tmp_path, TalkingChat()) as pages:
        shown = await pages.submit("/chat", query="Where do I live?", remember="yes")
        assert "Remembered." in shown.text
        assert shown.form("/chat").fields["remember"] == "yes"
        assert await count(pages) == 1


async def test_a_script_receives_memory_pieces_and_end(tmp_path: Path) -> None:
    async with opened(tmp_path, TalkingChat()) as pages:
        page_id = await add(pages, "I live in Porto.")
        used, first, second, end = await streamed(pages, query="Where do I live?", remember="yes")
        [[title, [item]]] = used["used"]["groups"]
        assert title == "Most recent conversation, oldest first"
        assert item["path"] == f"{PREFIX}/pages/{page_id}"
        assert item["text"] == "I live in Porto.\nI see."
        assert (first["piece"], second["piece"]) == ("In Porto, ", HOSTILE)
        assert end["end"]["text"] == "Remembered."
        assert end["end"]["path"].startswith(f"{PREFIX}/pages/p_")
        assert await count(pages) == 2


async def test_an_error_of_the_llm_is_shown_and_nothing_stored(tmp_path: Path) -> None:
    chat = TalkingChat()
    chat.failure = ModelError("the LLM is down")
    async with opened(tmp_path, chat) as pages:
        shown = await pages.submit("/chat", query="Where do I live?", remember="yes")
        assert (shown.status, "the LLM is down" in shown.text) == (502, True)
        assert shown.form("/chat").fields["query"] == "Where do I live?"
        *_, last = await streamed(pages, query="Where do I live?", remember="yes")
        assert last == {"problem": "the LLM is down"}
        assert await count(pages) == 0


async def test_an_empty_message_is_refused_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path, TalkingChat()) as pages:
        shown = await pages.submit("/chat", query=" ")
        assert (shown.status, "is empty" in shown.text) == (400, True)


async def test_a_reader_may_ask_but_not_remember(tmp_path: Path) -> None:
    chat = TalkingChat()
    async with opened(tmp_path, chat, only_reads=True) as pages:
        await add(pages, "I live in Porto.")
        assert "remember" not in (await pages.get("/chat")).form("/chat").fields
        assert "Not remembered." in (await pages.submit("/chat", query="Where do I live?")).text
        refused = await pages.submit("/chat", query="Where do I live?", remember="yes")
        assert (refused.status, "you may only read this memory" in refused.text) == (400, True)
        [problem] = await streamed(pages, query="Where do I live?", remember="yes")
        assert "you may only read this memory" in problem["problem"]
        assert len(chat.asked) == 1
        assert await count(pages) == 1


async def test_without_an_llm_the_page_says_how_to_use_one(tmp_path: Path) -> None:
    async with opened(tmp_path, None) as pages:
        shown = await pages.get("/chat")
        assert "llm_provider" in shown.text
        assert [form.action for form in shown.forms] == [f"{PREFIX}/sign-out"]
