"""The benchmark of the pages on a small memory, and the pictures of the pages."""

import asyncio
import math
import struct
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.page import measured
from benchmarks.pictures import COLOURS, pixels, smaller
from memoryos_mcp.server.web.visits import MENU

LIMIT_S = 120
SIZE = 40


def png(picture: NDArray[np.uint8], filters: list[int]) -> bytes:
    """Return a PNG whose rows use the filters in turn."""
    height, width, step = picture.shape
    rows = picture.reshape(height, width * step).astype(np.int64)
    body = b""
    for number in range(height):
        row, above = rows[number], rows[number - 1] if number else np.zeros(width * step, dtype=np.int64)
        left, corner = (np.concatenate([np.zeros(step, dtype=np.int64), each[:-step]]) for each in (row, above))
        kind = filters[number % len(filters)]
        guess = [np.zeros_like(row), left, above, (left + above) // 2, paeth(left, above, corner)][kind]
        body += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if step == 3 else 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(body)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(d)) + k + d + b"crc." for k, d in chunks)


def paeth(left: NDArray[np.int64], up: NDArray[np.int64], corner: NDArray[np.int64]) -> NDArray[np.int64]:
    guess = left + up - corner
    far = [abs(guess - each) for each in (left, up, corner)]
    return np.where((far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], up, corner))


def palette_png(picture: bytes) -> NDArray[np.uint8]:
    """Return the colours of a PNG that `smaller` wrote."""
    at, chunks = 8, dict[bytes, bytes]()
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", picture, at + 8 + length)[0] == zlib.crc32(kind + data)
        chunks[kind], at = data, at + length + 12
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    palette = np.frombuffer(chunks[b"PLTE"], dtype=np.uint8).reshape(-1, 3)
    assert len(palette) <= COLOURS
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, width + 1)
    return palette[rows[:, 1:]]


@pytest.mark.parametrize("step", [3, 4])
@pytest.mark.parametrize("filters", [[0], [1], [2], [3], [4], [0, 1, 2, 3, 4]])
def test_pictures_keep_their_colours(step: int, filters: list[int]) -> None:
    picture = np.random.default_rng(1).integers(0, 6, (SIZE, SIZE, step)).astype(np.uint8) * 50
    written = png(picture, filters)
    assert np.array_equal(pixels(written), picture[:, :, :3])
    assert np.array_equal(palette_png(smaller(written)), picture[:, :, :3])


def test_of_many_colours_the_nearest_are_kept() -> None:
    picture = np.random.default_rng(2).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)
    off = palette_png(smaller(png(picture, [0]))).astype(int) - picture
    assert 0 < np.abs(off).mean() < 40


@pytest.mark.campaign
async def test_each_view_of_a_small_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine may take any time; status and size count.
    monkeypatch.setattr("benchmarks.page.TIME_MS", math.inf)
    async with asyncio.timeout(LIMIT_S):
        floor, *views = await measured(60)
    assert "empty page" in floor.what
    assert [figure.what for figure in views[: len(MENU)]] == [title for _, title in MENU]
    for figure in views:
        assert figure.is_reached, figure
        assert figure.ratio is not None
        assert figure.ratio > 0
