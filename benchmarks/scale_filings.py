"""Records which server organises which page and who takes a lease, by triggers in the database."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from benchmarks.figures import Figure, percentile_ms
from benchmarks.scale_audit import SCHEMA, Row, none_of
from memoryos_mcp.consolidation.loops import LEASE_TTL_S
from memoryos_mcp.consolidation.worker import POLL_S

# A process tries to take a lease this long after its end, at the latest.
TAKEOVER_LIMIT_S = LEASE_TTL_S + POLL_S
# The triggers run with the rights of a superuser, because the servers see only the rows of one user.
_FUNCTION = (
    "CREATE FUNCTION records.note_{table}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS "
    "$$ BEGIN {statement}; RETURN NULL; END $$"
)
_SERVER = "current_setting('application_name')"
_INSTALL = (
    "CREATE SCHEMA records",
    "CREATE TABLE records.leases (user_no integer, holder text, epoch bigint, server text, at timestamptz)",
    "CREATE TABLE records.filings (user_no integer, seq bigint, holder text, epoch bigint, server text, "
    "batch bigint, at timestamptz)",
    "CREATE INDEX ON records.leases (user_no, at)",
    "CREATE INDEX ON records.filings (user_no, at)",
    _FUNCTION.format(
        table="lease",
        statement=f"INSERT INTO records.leases VALUES (NEW.user_no, NEW.holder, NEW.epoch, {_SERVER}, "  # noqa: S608 - constants
        "clock_timestamp())",
    ),
    _FUNCTION.format(
        table="page",
        statement="INSERT INTO records.filings SELECT NEW.user_no, NEW.seq, holder, epoch, "  # noqa: S608 - constants
        f"{_SERVER}, CAST(CAST(pg_current_xact_id() AS text) AS bigint), clock_timestamp() "
        f"FROM {SCHEMA}.lease WHERE user_no = NEW.user_no",
    ),
    f"CREATE TRIGGER note AFTER UPDATE ON {SCHEMA}.lease FOR EACH ROW "
    "WHEN (NEW.holder <> OLD.holder AND NEW.holder <> '') EXECUTE FUNCTION records.note_lease()",
    f"CREATE TRIGGER note AFTER UPDATE ON {SCHEMA}.pages FOR EACH ROW "
    "WHEN (NEW.segment IS DISTINCT FROM OLD.segment) EXECUTE FUNCTION records.note_page()",
)
# The unfinished work that a server holds a lease for.
_HELD = (
    f"SELECT user_no, holder FROM {SCHEMA}.lease WHERE holder <> '' AND expires_us > "  # noqa: S608 - constants
    "extract(epoch FROM clock_timestamp()) * 1000000 AND %s = (SELECT server FROM records.leases WHERE "
    "(leases.user_no, leases.holder) = (lease.user_no, lease.holder) ORDER BY at DESC LIMIT 1) AND EXISTS "
    f"(SELECT 1 FROM {SCHEMA}.pages WHERE pages.user_no = lease.user_no AND tier = 'backlog')"
)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A user whose pages a server was about to organise when it was killed.

    Attributes:
        at_s: The time of the kill, by the clock of the database.
    """

    user_no: int
    holder: str
    at_s: float


def install(superuser_url: str) -> None:
    """Create the triggers. The servers have made their tables already."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        for statement in _INSTALL:
            connection.execute(statement)


def held(superuser_url: str, server: str) -> list[Interrupted]:
    """Return the users whose pages a server is about to organise."""
    with psycopg.connect(superuser_url) as connection:
        (now_s,) = connection.execute("SELECT CAST(extract(epoch FROM now()) AS float8)").fetchone() or (0.0,)
        found = connection.execute(_HELD, (server,)).fetchall()
        return [Interrupted(user_no, holder, now_s) for user_no, holder in found]


def batches(superuser_url: str) -> int:
    """Return how many batches were organised."""
    return _number(superuser_url, "SELECT count(DISTINCT batch) FROM records.filings")


def filing_figures(superuser_url: str) -> list[Figure]:
    """Return whether each batch was organised once, by the server that held the lease."""
    doubled = _number(
        superuser_url,
        "SELECT count(*) FROM (SELECT 1 FROM records.filings GROUP BY user_no, seq HAVING count(*) > 1) AS each",
    )
    foreign = _number(
        superuser_url,
        "SELECT count(*) FROM records.filings AS filing WHERE NOT EXISTS (SELECT 1 FROM records.leases AS lease "
        "WHERE (lease.user_no, lease.holder, lease.epoch, lease.server) "
        "= (filing.user_no, filing.holder, filing.epoch, filing.server))",
    )
    late = _number(
        superuser_url,
        "SELECT count(*) FROM (SELECT epoch < lag(epoch) OVER (PARTITION BY user_no ORDER BY at) AS is_late "
        "FROM records.filings) AS each WHERE is_late",
    )
    pages = _number(superuser_url, "SELECT count(*) FROM records.filings")
    several = _number(
        superuser_url,
        "SELECT count(*) FROM (SELECT 1 FROM records.filings GROUP BY batch HAVING count(*) > 1) AS each",
    )
    number = batches(superuser_url)
    return [
        none_of(f"pages organised twice, of {pages:,} in {number:,} batches, {several:,} of several pages", doubled),
        none_of("pages organised by a server without the lease, or after its lease was taken over", foreign + late),
    ]


def takeover_figures(superuser_url: str, interrupted: Sequence[Interrupted]) -> list[Figure]:
    """Return how long other processes took to continue with the work that killed servers had begun.

    A user whose new server was killed too, before it had organised the pages, counts only from the last kill on.
    """
    taken: list[float] = []
    filed: list[float] = []
    never = 0
    last = {each.user_no: each.at_s for each in interrupted}
    with psycopg.connect(superuser_url) as connection:
        for each in interrupted:
            found = _first_after(connection, "leases", each)
            if found is not None:
                taken.append(found)
            organised = _first_after(connection, "filings", each)
            if organised is not None and (
                last[each.user_no] == each.at_s or each.at_s + organised < last[each.user_no]
            ):
                filed.append(organised)
            never += found is None or organised is None
    return [
        Figure(
            what=f"from a kill until another process has the lease, {len(taken)} users; p50, max",
            floor=f"lease {LEASE_TTL_S:.0f} s",
            ours=_seconds(taken),
            ratio=None,
            target=f"<= {LEASE_TTL_S:.0f} + {POLL_S:.0f} s",
            is_reached=bool(taken) and max(taken) <= TAKEOVER_LIMIT_S,
        ),
        Figure(
            what=f"from a kill until another process has organised the pages, {len(filed)} users; p50, max",
            floor="-",
            ours=_seconds(filed),
            ratio=None,
            target="-",
            is_reached=True,
        ),
        none_of("of these users, never taken over", never),
    ]


def _first_after(connection: "psycopg.Connection[Row]", table: str, kill: Interrupted) -> float | None:
    """Return the seconds from a kill to the first record of another holder."""
    sql = (
        f"SELECT CAST(extract(epoch FROM min(at)) AS float8) FROM records.{table} "  # noqa: S608 - a literal
        "WHERE user_no = %s AND holder <> %s AND at > to_timestamp(%s)"
    )
    row = connection.execute(sql, (kill.user_no, kill.holder, kill.at_s)).fetchone()
    return None if row is None or row[0] is None else row[0] - kill.at_s


def _seconds(values: Sequence[float]) -> str:
    return f"{percentile_ms(values, 50) / 1e3:.1f}, {max(values):.1f} s" if values else "none"


def _number(superuser_url: str, sql: str) -> int:
    with psycopg.connect(superuser_url) as connection:
        row = connection.execute(sql).fetchone()
    return int(row[0]) if row else 0
