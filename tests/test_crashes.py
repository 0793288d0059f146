import random
import subprocess
import time
from pathlib import Path

from tests.servers import BUSY_BACKGROUND, PipeServer, StoredPage, open_store, page_id_of, stored_pages

ROUNDS, ROUNDS_AT_MOST = 50, 200
PAGES_PER_ROUND = (4, 16)
LONGEST_DELAY_S = 0.4


def crash_round(data: Path, number: int, dice: random.Random) -> tuple[dict[str, str], set[str]]:
    """Start a server, let it work for a random while, kill it; return what it acknowledged by id, and what was sent."""
    texts = [
        f"Round {number}, page {page}: I like {dice.choice(['tea', 'rowing', 'chess', 'Lisbon'])} {dice.random()}."
        for page in range(dice.randint(*PAGES_PER_ROUND))
    ]
    with PipeServer(data, BUSY_BACKGROUND) as server:
        if number % 2:  # every other kill falls into embedding and consolidation, the rest into starting and loading
            server.wait_until_semantic()
        turns = {text: {"user_input": text, "agent_response": "Noted."} for text in texts}
        sent = {server.send_call("add_memory", turn): text for text, turn in turns.items()}
        server.reply(min(sent))
        kill_at = time.monotonic() + dice.uniform(0, LONGEST_DELAY_S)
        try:
            server.process.wait(max(0.0, kill_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            server.kill()
        assert server.process.returncode == -9, f"the server ended by itself: {server.stderr[-2000:]}"
        replies = server.replies()
    acknowledged = {page: sent[request] for request in sent if (page := page_id_of(replies.get(request, {})))}
    return acknowledged, set(texts)


def test_no_acknowledged_page_is_lost_or_doubled_when_the_server_is_killed_50_times(data: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown only if the test fails, so that its delays can be repeated
    dice = random.Random(seed)  # noqa: S311 - no secret
    acknowledged: dict[str, str] = {}
    sent: set[str] = set()
    number = 0
    before: list[StoredPage] = []
    # A killed server's lease stands for half a minute, so that on a slow machine it takes more kills to meet a filing.
    while number < ROUNDS or (number < ROUNDS_AT_MOST and not any(page.segment is not None for page in before)):
        told, tried = crash_round(data, number, dice)
        assert told.keys().isdisjoint(acknowledged)
        acknowledged |= told
        sent |= tried
        number += 1
        before = stored_pages(data) if number >= ROUNDS else []
    assert len(acknowledged) >= ROUNDS
    assert any(page.segment is not None for page in before), "no kill can have fallen into a consolidation"

    with PipeServer(data, BUSY_BACKGROUND) as server:
        stats = server.wait_until_settled(limit_s=90)
        assert server.close() == 0
        assert "Traceback" not in server.stderr
    pages = stored_pages(data)
    assert stats["total_pages"] == len(pages) == len(before)
    by_id = {page.page_id: page.user_input for page in pages}
    assert len(by_id) == len(pages)
    assert by_id.items() >= acknowledged.items()
    texts = [page.user_input for page in pages]
    assert len(texts) == len(set(texts))
    assert set(texts) <= sent
    assert_derived_rows_agree(data)


def assert_derived_rows_agree(data: Path) -> None:
    """What was derived fits the pages: no vector, word or count stands there twice or is missing."""
    connection = open_store(data)
    try:
        pages = connection.execute("SELECT count(*) FROM pages").get
        assert connection.execute("SELECT count(DISTINCT seq) FROM page_vectors").get == pages
        assert connection.execute("SELECT count(*) FROM page_words").get == pages
        counted = connection.execute("SELECT coalesce(sum(page_count), 0) FROM segments").get
        assert counted == connection.execute("SELECT count(*) FROM pages WHERE segment IS NOT NULL").get
        for place in ("segment", "chain", "organised_by"):
            wrong = f"SELECT count(*) FROM pages WHERE (tier = 'mid_term') <> ({place} IS NOT NULL)"  # noqa: S608
            assert connection.execute(wrong).get == 0
        for table in ("segment", "chain"):
            empty = f"SELECT count(*) FROM {table}s WHERE {table} NOT IN (SELECT {table} FROM pages WHERE {table} > 0)"  # noqa: S608
            assert connection.execute(empty).get == 0
        assert connection.execute("SELECT count(*) FROM pages WHERE is_degraded OR attempts").get == 0
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        connection.close()
