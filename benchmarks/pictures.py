"""Pictures of each view in the browser, light and dark, for the README and the documentation.

Run it as ``python -m benchmarks.pictures FOLDER``. It fills a memory with a made-up person's year, as an LLM organised
it (its replies are recorded), opens it with ``memoryos-mcp ui``, and takes pictures with the system's Chromium. Each
picture has at most 256 colours, so that it stays small.
"""

import asyncio
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import click
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Page, sync_playwright

from benchmarks.datasets import Conversation, load
from benchmarks.figures import POLL_S
from benchmarks.learned import learn
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService

LIFE = Path(__file__).parent / "life"
WIDTH, HEIGHT = 1200, 800
BYTES_AT_MOST = 120_000
COLOURS = 256
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Names of the pictures, addresses, and the link that is followed first; empty for none.
VIEWS = (
    ("now", "/", ""),
    ("search", "/search?q=Where+do+I+live%3F", ""),
    ("timeline", "/timeline?year=2025", ""),
    ("topics", "/topics", ""),
    ("topic", "/topics", "main a[href*='/ui/topics/s']"),
    ("profile", "/profile", ""),
    ("fact", "/profile", "main a[href*='/ui/facts/']"),
    ("forget", "/forget", ""),
    ("chat", "/chat", ""),
    ("exchange", "/exchange", ""),
    ("status", "/status", ""),
)
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--memory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=None,
    help="Data folder that an earlier run has kept. It is copied.",
)
@click.option("--keep", type=click.Path(path_type=Path), default=None, help="Keep the data folder here.")
def main(folder: Path, memory: Path | None, keep: Path | None) -> None:
    """Write a picture of each view, light and dark, to FOLDER.

    The LLM for the view Chat is that of the environment, such as MEMORYOS_LLM_BASE_URL.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (conversation,) = load(LIFE / "year.toml").conversations
    with tempfile.TemporaryDirectory(prefix="memoryos-pictures-") as name:
        data = Path(name) / "data"
        if memory is None:
            data.mkdir()
            asyncio.run(_learn(data, conversation))
        else:
            shutil.copytree(memory, data)
        if keep is not None:
            shutil.copytree(data, keep)
        with _link(data, conversation.id) as link:
            sizes = _take(link, folder)
    too_large = [name for name, size in sizes.items() if size > BYTES_AT_MOST]
    sys.stdout.write("".join(f"{name}: {size / 1000:.0f} kB\n" for name, size in sizes.items()))
    sys.exit(f"over {BYTES_AT_MOST:,} bytes: {', '.join(too_large)}" if too_large else 0)


async def _learn(folder: Path, conversation: Conversation) -> None:
    await learn(folder, conversation, LIFE / "replies.jsonl")
    async with (
        MemoryService(Settings(data_storage_path=folder)) as service,
        service.user(conversation.id) as engine,
    ):
        while (await engine.stats()).counts.unembedded:
            await asyncio.sleep(POLL_S)


@contextmanager
def _link(folder: Path, user_id: str) -> Iterator[str]:
    """Yield the link of a running ``memoryos-mcp ui``."""
    command = [sys.executable, "-m", "memoryos_mcp", "ui", "--no-browser"]
    running = subprocess.Popen(
        [*command, "--user-id", user_id, "--data-storage-path", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert running.stdout is not None  # noqa: S101 - it is a pipe
        yield running.stdout.readline().strip()
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def _take(link: str, folder: Path) -> dict[str, int]:
    """Take all pictures, and return their sizes in bytes."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        sys.exit("Chromium is missing: apt-get install --no-install-recommends chromium")
    sizes: dict[str, int] = {}
    prefix = link.partition("/enter")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(link)
        for name, path, first in VIEWS:
            page.goto(f"{prefix}{path}")
            if first:
                page.goto(_address_of(page, first))
            page.wait_for_load_state("networkidle")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                picture = smaller(page.screenshot(animations="disabled", caret="hide"))
                (folder / f"{name}-{scheme}.png").write_bytes(picture)
                sizes[f"{name}-{scheme}.png"] = len(picture)
        browser.close()
    return sizes


def _address_of(page: Page, selector: str) -> str:
    script = "link => new URL(link.getAttribute('href'), location).href"
    return cast(str, page.locator(selector).first.evaluate(script))


def smaller(picture: bytes) -> bytes:
    """Return a PNG with at most 256 colours: the most frequent ones, and for each other colour the nearest of them.

    Args:
        picture: A PNG with 8 bits for each of red, green and blue, and maybe alpha, as browsers write it.
    """
    shown = pixels(picture)
    height, width = shown.shape[:2]
    packed = shown.astype(np.uint32) @ np.array([65536, 256, 1], dtype=np.uint32)
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(counts)[::-1][:COLOURS])
    rgb = np.stack([colours >> 16, (colours >> 8) & 255, colours & 255], axis=1).astype(np.int64)
    nearest = np.concatenate(
        [
            np.argmin(((part[:, None] - rgb[kept][None]) ** 2).sum(axis=2), axis=1)
            for part in np.array_split(rgb, max(1, len(rgb) // 2_000))
        ]
    )
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row begins with its filter, which is none
    rows[:, 1:] = nearest[places].reshape(height, width)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", rgb[kept].astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def pixels(picture: bytes) -> NDArray[np.uint8]:
    """Return the colours of a PNG without interlacing, shape ``(height, width, 3)``."""
    at, body, header = len(_SIGNATURE), b"", b""
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        at += length + 12
        header = data if kind == b"IHDR" else header
        body += data if kind == b"IDAT" else b""
    width, height, _, colour_type = struct.unpack_from(">IIBB", header)
    step = {2: 3, 6: 4}[colour_type]
    rows = np.frombuffer(zlib.decompress(body), dtype=np.uint8).reshape(height, width * step + 1)
    plain = np.zeros((height + 1, width * step), dtype=np.uint8)
    for number, row in enumerate(rows):
        plain[number + 1] = unfiltered(int(row[0]), row[1:], plain[number], step)
    return plain[1:].reshape(height, width, step)[:, :, :3]


def unfiltered(kind: int, row: NDArray[np.uint8], above: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """Undo the filter of a row; see the PNG specification, section 9."""
    if kind == 0:
        return row
    if kind == 1:
        return cast("NDArray[np.uint8]", np.cumsum(row.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1))
    if kind == 2:
        return row + above
    plain = [0] * (len(row) + step)
    over = [0] * step + above.tolist()
    for place, value in enumerate(row.tolist(), step):
        left, up, corner = plain[place - step], over[place], over[place - step]
        guess = (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        plain[place] = (value + guess) & 255
    return np.array(plain[step:], dtype=np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))


if __name__ == "__main__":
    main()
