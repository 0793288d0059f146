"""A memory with every kind of record, and commands that export and import it."""

import asyncio
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.model.pages import Source, Tier, Turn, utc_now
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.values import ChainPlan, Filing, PageQuery, SegmentPlan, StoreOptions
from tests.commands import run_here
from tests.servers import USER, serve_environment
from tests.stores import broken_references, indexed_pages, is_postgres, open_one, rows, value

COMMAND_LIMIT_S = 120
PAGES_PER_FILING = 1_000
START = datetime(2023, 5, 8, 13, 56, 0, 123_456, tzinfo=timezone(timedelta(hours=5, minutes=45)))

# A command that prints its peak RAM at its end. The system's own count would include that of the parent process.
_TELLING_ITS_PEAK = """
import atexit, sys
from memoryos_mcp.cli.main import main
atexit.register(lambda: sys.stderr.write(open("/proc/self/status", encoding="utf-8").read()))
main()
"""
_PEAK_KB = re.compile(rb"VmHWM:\s+(\d+) kB")

# Records that a memory collects over time, in addition to pages.
_LIFE = """
UPDATE segments SET n_visit = 3, l_interaction = 2, is_archived = segment % 2,
    is_due = CASE WHEN segment = 1 THEN 1 ELSE 0 END;
UPDATE pages SET is_analysed = 1, learned_by = 'extractive', read_by = 'extractive', is_degraded = 1
WHERE seq % 3 = 0 AND tier = 'mid_term';
INSERT INTO facts (about, assistant_id, slot, valid_from_us, valid_until_us, stated_until_us, utc_offset_s,
    superseded_by, ended_by, ended_seq, confirmed_us, is_archived, folded, text, learned_by) VALUES
    ('user', '', 'home', 1000001, 2000002, 3000003, 3600, NULL, 'user', 3, 5, 0, 'live porto', 'Lives in Porto', 'a'),
    ('user', '', 'home', 2000002, NULL, NULL, -12600, NULL, NULL, NULL, 6, 0, 'lives oslo', 'Lives in Oslo', 'user'),
    ('assistant', 'helper', NULL, 7, NULL, NULL, 0, NULL, NULL, NULL, 8, 1, 'is kind', 'Is kind', 'extractive');
UPDATE facts SET superseded_by = 2 WHERE fact = 1;
INSERT INTO fact_evidence (fact, seq, is_confirming) VALUES (1, 1, 0), (1, 3, 1), (2, 2, 0);
INSERT INTO traits (dimension, level, reason, updated_us, learned_by) VALUES
    ('Curiosity', 'High', 'asks "why"', 99, 'extractive');
INSERT INTO trait_evidence (dimension, seq) VALUES ('Curiosity', 1), ('Curiosity', 2);
INSERT INTO trait_history (dimension, level, reason, held_from_us, held_until_us, ended_by) VALUES
    ('Curiosity', 'Low', 'asked nothing', 1, 99, NULL), ('Order', 'Low', 'lost the keys', 5, 6, 'user');
UPDATE trait_history SET learned_by = 'a', evidence = '[1, 2]' WHERE ended_by = 'user';
INSERT INTO meta (key, value) VALUES ('refused_salt', 'c0ffee')
"""


def turn(number: int) -> Turn:
    """Return a turn with an unusual text or time."""
    return Turn(
        user_input=f'I said "{number}"\u2028 in Köln, 東京 \U0001f600' if number % 7 else "",
        agent_response=f"Noted {number}.\nAnd on another line." if number % 5 or not number % 7 else "",
        occurred_at=START + timedelta(minutes=number * 9, microseconds=number),
        meta_data=json.dumps({"n": number, "x": [1e22, -0.0, None, "é"]}, ensure_ascii=False) if number % 4 else None,
        idempotency_key=f"key:{number}" if number % 3 else None,
        source=list(Source)[number % 4],
        gives_orders=number % 11 == 0,
    )


async def make_memory(data: Path, pages: int, *, user: str = USER) -> None:
    """Make a memory with a number of pages and every kind of record."""
    options = StoreOptions("default_assistant_profile", 7, 1800, 100)
    one = await open_one(data, user, options, clock=utc_now)
    store = one.store
    for first in range(0, pages, PAGES_PER_FILING):
        await store.add_pages([turn(number) for number in range(first, min(pages, first + PAGES_PER_FILING))])
        lease = await store.take_lease(60)
        assert lease is not None
        # The newest pages stay in the backlog, and groups do not begin in order.
        seqs = [page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=PAGES_PER_FILING))][:-2]
        topics = [
            SegmentPlan(
                None, tuple(seqs[place::3]), Digest((f"t{place}", "Köln"), f"Topic {place}"), None, "extractive"
            )
            for place in (2, 0, 1)
        ]
        starts = reversed(range(0, len(seqs), 4))
        chains = [ChainPlan(None, tuple(seqs[at : at + 4]), f"Chain {at}") for at in starts]
        assert await store.commit(lease, Filing(chains=chains, segments=topics, organiser="extractive"))
        await store.release_lease(lease)
    await one.close()
    for statement in _LIFE.split(";"):
        rows(data, statement, user)
    for refused in ((bytes.fromhex("0badcafe"), 2), (bytes.fromhex("00ff"), 0)):
        rows(data, "INSERT INTO refused (digest, until_seq) VALUES (?1, ?2)", user, refused)


def add(data: Path, *texts: str, idempotency_key: str | None = None) -> list[str]:
    """Add a page for each text through the library, and return their ids."""

    async def added() -> list[str]:
        async with MemoryEngine.open(USER, data_storage_path=data, embedding_model_name="none") as engine:
            return [(await engine.add(text, "Noted.", idempotency_key=idempotency_key)).page_id for text in texts]

    return asyncio.run(added())


def run(
    data: Path, *arguments: object, code: int = 0, limit: str = "", python: Sequence[str] = ()
) -> subprocess.CompletedProcess[bytes]:
    """Run the command on a data folder.

    Args:
        data: The data folder.
        arguments: The command's arguments.
        code: The expected exit code.
        limit: A shell command that limits the process. The command then runs in its own process.
        python: Arguments of an interpreter that runs in its own process instead of the command line.
    """
    given = [*map(str, arguments), "--data-storage-path", str(data)]
    done = _run_apart(data, given, limit, python or ("-m", "memoryos_mcp")) if limit or python else _run_here(given)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def _run_here(given: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    done = run_here(*given)
    return subprocess.CompletedProcess(given, done.returncode, done.stdout.encode(), done.stderr.encode())


def _run_apart(
    data: Path, given: Sequence[str], limit: str, python: Sequence[str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'{limit or ":"}; exec "$@"', "sh", sys.executable, *python, *given],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_LIMIT_S,
        env=serve_environment(data),
        check=False,
    )


def peak_mb(data: Path, *arguments: object, limit: str = "") -> float:
    """Run the command and return its peak RAM in MB."""
    return int(_PEAK_KB.findall(run(data, *arguments, limit=limit, python=("-c", _TELLING_ITS_PEAK)).stderr)[-1]) / 1000


def exported(data: Path, *arguments: object) -> bytes:
    """Return an export."""
    return run(data, "export", *arguments).stdout


def imported(data: Path, path: Path, *arguments: object) -> dict[str, object]:
    """Import a file and return the report."""
    report: dict[str, object] = json.loads(run(data, "import", path, "--json", *arguments).stdout)
    return report


def count(data: Path, table: str = "pages", user: str = USER) -> int:
    """Return the number of rows of a table."""
    return int(value(data, f"SELECT count(*) FROM {table}", user))  # noqa: S608 - the names are from tests


def changed(lines: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    """Return an export with changed lines, and with a digest and counts that fit them."""
    kept = change(lines.splitlines(keepends=True)[:-1])
    kinds = Counter(json.loads(line).get("kind") for line in kept[1:])
    end = {"kind": "end", "counts": kinds, "sha256": hashlib.sha256(b"".join(kept)).hexdigest()}
    return b"".join(kept) + json.dumps(end).encode() + b"\n"


def check_whole(data: Path, user: str = USER) -> None:
    """Check that the file is sound and that derived data fits the pages."""
    assert is_postgres() or value(data, "PRAGMA integrity_check", user) == "ok"
    assert broken_references(data, user) == []
    assert indexed_pages(data, user) == count(data, user=user)
    wrong = (
        "SELECT count(*) FROM segments AS s "
        "WHERE page_count <> (SELECT count(*) FROM pages WHERE pages.segment = s.segment)"
    )
    assert value(data, wrong, user) == 0
    for table in ("segment", "chain"):
        empty = f"SELECT count(*) FROM {table}s WHERE {table} NOT IN (SELECT {table} FROM pages WHERE {table} > 0)"  # noqa: S608
        assert value(data, empty, user) == 0
