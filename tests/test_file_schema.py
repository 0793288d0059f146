import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memoryos_mcp.errors import DamagedStoreError
from memoryos_mcp.model.pages import Tier
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.schema import CURRENT_VERSION
from memoryos_mcp.storage.values import PageQuery
from tests.earlier_versions import make_version, said
from tests.test_store import opened

LIMIT_S = 30
PAGES = 3


def changed(folder: Path, sql: str) -> bytes:
    """Change the schema of the file of the test's user, and return the file's bytes."""
    path = database_file(folder, "ada")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)
        connection.pragma("journal_mode", "delete")
    return path.read_bytes()


@pytest.mark.parametrize("version", range(1, CURRENT_VERSION + 1))
async def test_a_file_of_every_version_opens_and_opens_again(version: int, tmp_path: Path) -> None:
    make_version(database_file(tmp_path, "ada"), "ada", version, PAGES)
    for _ in range(2):
        async with asyncio.timeout(LIMIT_S), opened(tmp_path) as store:
            pages = await store.pages(PageQuery(tier=Tier.BACKLOG, limit=PAGES))
            assert [(page.user_input, page.agent_response) for page in pages] == [said(n) for n in (1, 2, 3)]
            await store.verify()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "CREATE TRIGGER thief AFTER INSERT ON pages BEGIN DELETE FROM pages; END",
            "trigger 'thief' is not part of",
        ),
        (
            "CREATE TRIGGER thief BEFORE UPDATE ON pages BEGIN SELECT raise(IGNORE); END",
            "trigger 'thief' is not part of",
        ),
        ("CREATE VIEW thief AS SELECT * FROM pages", "view 'thief' is not part of"),
        ("CREATE TABLE thief (text TEXT)", "table 'thief' is not part of"),
        ("CREATE VIRTUAL TABLE thief USING fts5 (text)", "table 'thief' is not part of"),
        ("CREATE UNIQUE INDEX thief ON pages (added_us, seq)", "index 'thief' is not part of"),
        ("DROP INDEX pages_tier", "index 'pages_tier' is missing"),
        (
            "DROP INDEX pages_tier; CREATE UNIQUE INDEX pages_tier ON pages (seq)",
            "'pages_tier' differs from",
        ),
        ("ALTER TABLE pages ADD COLUMN more TEXT CHECK (user_input <> 'M')", "table 'pages' differs from"),
        ("DROP TABLE page_vocabulary", "table 'page_vocabulary' is missing"),
    ],
)
@pytest.mark.parametrize("version", [5, CURRENT_VERSION])
async def test_a_foreign_schema_is_refused_and_left_untouched(
    sql: str, told: str, version: int, tmp_path: Path
) -> None:
    make_version(database_file(tmp_path, "ada"), "ada", version, PAGES)
    before = changed(tmp_path, sql)
    with pytest.raises(DamagedStoreError, match=told) as caught:
        async with opened(tmp_path):
            pass
    assert "not changed" in str(caught.value)
    assert database_file(tmp_path, "ada").read_bytes() == before


@pytest.mark.parametrize("sql", ["ANALYZE", "VACUUM", "REINDEX"])
async def test_changes_by_sqlite_itself_are_accepted(sql: str, tmp_path: Path) -> None:
    make_version(database_file(tmp_path, "ada"), "ada", CURRENT_VERSION, PAGES)
    changed(tmp_path, sql)
    async with opened(tmp_path) as store:
        assert len(await store.pages(PageQuery(tier=Tier.BACKLOG, limit=PAGES))) == PAGES


async def test_a_trigger_added_under_an_open_memory_does_not_run(tmp_path: Path) -> None:
    make_version(database_file(tmp_path, "ada"), "ada", CURRENT_VERSION, 0)
    async with opened(tmp_path) as store:
        with closing(apsw.Connection(str(database_file(tmp_path, "ada")))) as connection:
            connection.execute("CREATE TRIGGER thief AFTER UPDATE ON lease BEGIN DELETE FROM spaces; END")
        await store.in_space("words:2:1", "{}")
        assert await store.take_lease(30.0) is not None
        assert len(await store.spaces()) == 2


async def test_pages_of_an_older_file_have_no_project(tmp_path: Path) -> None:
    make_version(database_file(tmp_path, "ada"), "ada", 12, pages=3)  # the last version without projects
    async with asyncio.timeout(LIMIT_S), opened(tmp_path) as store:
        pages = await store.pages(PageQuery())
        assert await store.project_pages("boat", 10) == []
    assert [page.project for page in pages] == [None] * 3
