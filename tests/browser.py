"""A real browser that looks at the pages of a real server: the system's Chromium, driven by Playwright."""

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from benchmarks.pictures import BROWSERS
from memoryos_mcp.server.web.guard import PREFIX
from tests.programs import AXE, program
from tests.servers import serve_environment

START_LIMIT_S = 300.0
EXIT_LIMIT_S = 120.0
PHONE = {"width": 390, "height": 800}
WIDE = {"width": 1200, "height": 800}
# Its sandbox needs rights that a container lacks. Without the last two, it asks its maker's servers for updates.
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
# Run in each page before its own scripts.
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample} ${event.sourceFile}`));
"""


def browser_program() -> str:
    """Return the path of the system's browser. Without one, the test is skipped."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("Chromium is missing: apt-get install --no-install-recommends chromium")
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield the browser. It runs until the context ends."""
    executable = browser_program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class PageServer:
    """A process of the command ``ui`` with its own data folder. As a context manager, it always ends the process.

    Attributes:
        link: The link to the web pages. It works only once.
    """

    def __init__(self, folder: Path, *flags: str, env: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "memoryos_mcp", "ui", "--no-browser", "--data-storage-path", str(folder), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=serve_environment(folder, env),
        )
        self.link = ""
        self.log = ""
        self._has_link = threading.Event()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_link, self._read_log)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> "PageServer":
        if not self._has_link.wait(START_LIMIT_S) or not self.link:
            self._process.kill()
            self._process.wait(EXIT_LIMIT_S)
            raise AssertionError(f"the command printed no link:\n{self.log}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(EXIT_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        for reader in self._readers:
            reader.join(EXIT_LIMIT_S)
        assert "Traceback" not in self.log, self.log

    @property
    def origin(self) -> str:
        return f"http://{urlsplit(self.link).netloc}"

    def _read_link(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self.link = self.link or line.strip()
                self._has_link.set()
        self._has_link.set()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in stream:
                self.log += line


class Tab:
    """A tab of the browser that notes all errors, violations of the content policy, dialogs and foreign requests.

    Addresses are relative to the prefix.
    """

    def __init__(self, page: Page, server: PageServer) -> None:
        self.page = page
        self.problems: list[str] = []
        self._origin = server.origin
        page.add_init_script(_WATCH)
        page.on("console", lambda message: self._note(message.type in {"error", "warning"}, "console", message.text))
        page.on("pageerror", lambda error: self._note(True, "error", str(error)))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._note(not self._is_ours(request.url), "request", request.url))

    def open(self, path: str) -> int:
        """Open an address, and return the HTTP status."""
        response = self.page.goto(f"{self._origin}{PREFIX}{path}", wait_until="load")
        assert response is not None
        return response.status

    def check(self, what: str) -> None:
        """Fail if anything was noted since the last check."""
        violations = cast("list[str]", self.page.evaluate("window.violations || []"))
        noted = [*self.problems, *(f"policy: {each}" for each in violations)]
        self.problems.clear()
        self.page.evaluate("window.violations = []")
        assert not noted, f"{what}: {noted}"

    def paths(self) -> list[str]:
        """Return the addresses of all links to pages, each once."""
        of_each = "[...document.querySelectorAll('a[href]')].map(a => new URL(a.getAttribute('href'), location).href)"
        links = cast("list[str]", self.page.evaluate(of_each))
        start = f"{self._origin}{PREFIX}"
        return list(dict.fromkeys(link.split("#")[0].removeprefix(start) for link in links if link.startswith(start)))

    def width_too_much(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return cast(int, self.page.evaluate(width))

    def axe(self) -> list[str]:
        """Return what axe calls serious or critical: its rule, and the elements."""
        # By the debugger, because the policy of the pages lets no other script in.
        session = self.page.context.new_cdp_session(self.page)
        session.send("Runtime.evaluate", {"expression": Path(program(AXE)).read_text(encoding="utf-8")})
        session.detach()
        found = cast("dict[str, Any]", self.page.evaluate("axe.run({resultTypes: ['violations']})"))
        return [
            f"{each['id']} ({each['impact']}): {node['html'][:200]} {node.get('failureSummary', '')}"
            for each in found["violations"]
            if each["impact"] in {"serious", "critical"}
            for node in each["nodes"]
        ]

    def _dismiss(self, dialog: Dialog) -> None:
        self._note(True, "dialog", dialog.message)
        dialog.dismiss()

    def _is_ours(self, address: str) -> bool:
        return address.startswith((f"{self._origin}/", "data:"))

    def _note(self, is_noted: bool, kind: str, text: str) -> None:
        if is_noted:
            self.problems.append(f"{kind}: {text}")


Opener = Callable[..., Tab]


@contextmanager
def open_tabs(browser: Browser, server: PageServer) -> Iterator[Opener]:
    """Yield a function that opens tabs of one signed-in person, each with its own size and colours."""
    first = browser.new_context()
    page = first.new_page()
    page.goto(server.link)
    cookies = first.cookies()
    contexts = [first]

    def open_tab(size: dict[str, int] | None = None, *, is_dark: bool = False, has_scripts: bool = True) -> Tab:
        context = browser.new_context(
            viewport=cast(Any, size or WIDE),
            color_scheme="dark" if is_dark else "light",
            java_script_enabled=has_scripts,
            reduced_motion="reduce",
        )
        context.add_cookies(cast(Any, cookies))
        contexts.append(context)
        return Tab(context.new_page(), server)

    try:
        yield open_tab
    finally:
        for context in contexts:
            context.close()
