"""Time and RAM of exporting a memory, importing it and exporting it again.

Run it as ``python -m benchmarks.exchange``; it fails if the two exports differ.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import click
import psutil

from benchmarks.synthetic import write_memory
from memoryos_mcp.embedding.bundled import BundledEmbedder

POLL_S = 0.05


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pages", type=click.IntRange(min=1), default=20_000, show_default=True, help="Number of pages.")
def main(pages: int) -> None:
    """Time export, import and export again of a made-up memory, and compare the two files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        asyncio.run(_write(folder / "first", pages))
        for command, file, data in (
            ("export", "first.jsonl", "first"),
            ("import", "first.jsonl", "second"),
            ("export", "second.jsonl", "second"),
        ):
            seconds, megabytes = _measured(command, folder / file, folder / data)
            sys.stdout.write(f"{command} of {pages:,} pages: {seconds:.1f} s, {megabytes:.0f} MB\n")
        is_same = (folder / "first.jsonl").read_bytes() == (folder / "second.jsonl").read_bytes()
    sys.stdout.write(f"the two files are {'the same' if is_same else 'DIFFERENT'}\n")
    sys.exit(0 if is_same else 1)


async def _write(folder: Path, pages: int) -> None:
    embedder = BundledEmbedder()
    try:
        await write_memory(folder, pages, embedder, lambda _: None)
    finally:
        await embedder.aclose()


def _measured(command: str, file: Path, data: Path) -> tuple[float, float]:
    """Return the duration of a command in seconds and its maximum RAM in MB."""
    began = time.perf_counter()
    arguments = [sys.executable, "-m", "memoryos_mcp", command, str(file), "--data-storage-path", str(data)]
    process = psutil.Popen(arguments)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(POLL_S)
    if process.wait() != 0:
        sys.exit(f"{command} failed")
    return time.perf_counter() - began, most / 1e6


if __name__ == "__main__":
    main()
