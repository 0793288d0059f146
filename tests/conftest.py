"""What the tests share: pipes to real servers that are ended whatever happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import PipeServer


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def server(data: Path) -> Iterator[PipeServer]:
    """A running server on a data folder of its own."""
    with PipeServer(data) as running:
        yield running
