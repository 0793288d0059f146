"""Chat and import in a real browser: an answer appears while the LLM writes it, and progress shows by itself."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import PageServer, Tab, open_browser, open_tabs
from tests.llama import MODEL, running_llama

pytestmark = pytest.mark.campaign

PIECES = ("In Porto, ", "<img src=x onerror=window.ran=1>", " I believe.")


class Llm(ThreadingHTTPServer):
    """An LLM that writes its last piece only when it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        self.is_told = threading.Event()
        self.is_down = False
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Llm)
        self.rfile.read(int(self.headers["content-length"]))
        if server.is_down:
            self.send_error(400, "down")
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for place, piece in enumerate(PIECES):
            if place == len(PIECES) - 1:
                server.is_told.wait(30)
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            self._send({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._send({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _send(self, chunk: object) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


@contextmanager
def talking(folder: Path) -> Iterator[tuple[Tab, Llm]]:
    """Yield a tab, and the LLM that answers in it."""
    llm = Llm()
    threading.Thread(target=llm.serve_forever, daemon=True).start()
    env = {
        "MEMORYOS_EMBEDDING_MODEL_NAME": "none",
        "MEMORYOS_OPENAI_BASE_URL": f"http://127.0.0.1:{llm.server_port}/v1",
        "MEMORYOS_LLM_MODEL": "m",
        "MEMORYOS_CONSOLIDATION_IDLE_S": "100000",
    }
    try:
        with open_browser() as browser, PageServer(folder, env=env) as server, open_tabs(browser, server) as opener:
            yield opener(), llm
    finally:
        llm.is_told.set()
        llm.shutdown()
        llm.server_close()


def test_an_answer_appears_while_it_is_written(tmp_path: Path) -> None:
    with talking(tmp_path) as (tab, llm):
        tab.open("/chat")
        page = tab.page
        page.fill("#query", "Where do I live?")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        answer = page.locator("[data-part=answer]")
        page.wait_for_selector("[data-part=answer]:has-text('onerror')")
        assert "I believe." not in answer.inner_text()
        page.fill("#query", "My next message")
        llm.is_told.set()
        page.wait_for_selector("text=Not remembered.")
        assert answer.inner_text() == "".join(PIECES)
        assert page.input_value("#query") == "My next message"
        assert page.evaluate("window.ran") is None
        tab.check("an answer")
        assert tab.axe() == []

        page.check("[name=remember]")
        page.click("#chat button")
        page.wait_for_selector("text=The page")
        assert page.locator("article").count() == 2

        llm.is_down = True
        page.fill("#query", "Are you there?")
        page.click("#chat button")
        page.wait_for_selector("[data-part=problem]:visible")
        assert page.input_value("#query") == "Are you there?"

        llm.is_down = False
        llm.is_told.clear()
        page.click("#chat button")
        page.click("#stop")
        page.wait_for_selector("text=Stopped.")
        assert not page.locator("#stop").is_visible()
        tab.check("errors and a stop")


@pytest.mark.skipif(not MODEL, reason="MEMORYOS_GGUF names no model")
def test_a_real_model_answers_beside_what_it_was_given(tmp_path: Path) -> None:
    with running_llama(repeat_penalty=1.3) as address:
        env = {
            "MEMORYOS_EMBEDDING_MODEL_NAME": "none",
            "MEMORYOS_OPENAI_BASE_URL": address,
            "MEMORYOS_LLM_MODEL": "smollm2",
            "MEMORYOS_LLM_TIMEOUT_S": "600",
            "MEMORYOS_LLM_MAX_PROMPT_TOKENS": "1500",
            "MEMORYOS_CONSOLIDATION_IDLE_S": "100000",
        }
        with (
            open_browser() as browser,
            PageServer(tmp_path, env=env) as server,
            open_tabs(browser, server) as open_tab,
        ):
            tab = open_tab()
            page = tab.page
            tab.open("/chat")
            for said in ("My dog is called Biscuit.", "What is my dog called?"):
                page.fill("#query", said)
                page.check("[name=remember]")
                page.click("#chat button")
                article = page.locator("article").last
                article.get_by_text("The page").wait_for(timeout=300_000)
            assert article.locator("[data-part=answer]").inner_text().strip()
            assert "Biscuit" in article.inner_text()
            tab.open("/timeline")
            assert page.locator("main").inner_text().count("Biscuit") >= 1
            tab.check("a chat")


def test_the_progress_of_an_import_shows_by_itself(tmp_path: Path) -> None:
    observations = [f"Nora likes tea number {number}" for number in range(3_000)]
    entity = {"type": "entity", "name": "Nora", "entityType": "person", "observations": observations}
    file = tmp_path / "memory.json"
    file.write_text(json.dumps(entity) + "\n", encoding="utf-8")
    with talking(tmp_path / "data") as (tab, _):
        tab.open("/exchange")
        page = tab.page
        page.set_input_files("#file", file)
        page.click("text=Count what it contains")
        page.click("text=Import it now")
        page.wait_for_selector("text=Imported.", timeout=300_000)
        assert tab.axe() == []
        with page.expect_download() as download:
            page.click("text=Download the export")
        with gzip.open(download.value.path()) as exported:
            assert sum(b"Nora likes tea number" in line for line in exported) == len(observations)
        tab.check("an import")
