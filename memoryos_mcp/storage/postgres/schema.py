"""The schema of a database, as numbered migrations: migration N upgrades a database from version N - 1 to version N.

Every table of memories has the column ``user_no`` as the first column of its key. Row-level security shows a
transaction only the rows of one user. The number of this user is in the setting ``memoryos.user_no`` of the
transaction, and new rows get this number. The SQL of `storage.sql` therefore does not mention the user, and a statement
without the setting fails.

A released migration is never edited. Each change of the schema is made by a new migration.
"""

from contextlib import suppress
from typing import Any

import psycopg
from psycopg.errors import DuplicateObject, UniqueViolation

SCHEMA = "memoryos"
USER = "CAST(current_setting('memoryos.user_no') AS integer)"
# The role that is used if row-level security does not restrict the configured account, for example a superuser.
APP_ROLE = "memoryos_app"
# Key of the lock that one process holds while it migrates a database.
LOCK_KEY = 0x6D6F7331
# Functions such as to_regclass() may use a cache that does not contain what another process has just committed.
_HAS_SCHEMA_SQL = f"SELECT oid FROM pg_namespace WHERE nspname = '{SCHEMA}'"  # noqa: S608 - a constant
_IS_MADE_SQL = f"SELECT 1 FROM pg_class WHERE relname = 'schema_version' AND relnamespace = ({_HAS_SCHEMA_SQL})"  # noqa: S608

# The tables of a user's memory. For each table: its columns, and the columns of its key. ``user_no`` is added to both.
_TABLES = {
    "meta": ("key text NOT NULL, value text NOT NULL", "key"),
    "chains": ("chain bigint NOT NULL DEFAULT next_number('chain'), summary text NOT NULL", "chain"),
    "segments": (
        "segment bigint NOT NULL DEFAULT next_number('segment'), n_visit bigint NOT NULL DEFAULT 0, "
        "l_interaction bigint NOT NULL DEFAULT 0, last_visit_us bigint NOT NULL, page_count bigint NOT NULL DEFAULT 0, "
        "unanalysed_count bigint NOT NULL DEFAULT 0, is_archived integer NOT NULL DEFAULT 0, summariser text NOT NULL, "
        "keywords text NOT NULL, summary text NOT NULL, is_due integer NOT NULL DEFAULT 0, "
        "attempts integer NOT NULL DEFAULT 0",
        "segment",
    ),
    "pages": (
        "seq bigint NOT NULL DEFAULT next_number('page'), page_id text NOT NULL, session bigint NOT NULL, "
        "tier text NOT NULL CHECK (tier IN ('short_term', 'backlog', 'mid_term')), chain bigint, segment bigint, "
        "is_analysed integer NOT NULL DEFAULT 0, occurred_us bigint NOT NULL, utc_offset_s integer NOT NULL, "
        "added_us bigint NOT NULL, idempotency_key text, meta_data text, user_input text NOT NULL, "
        "agent_response text NOT NULL, organised_by text, learned_by text, is_degraded integer NOT NULL DEFAULT 0, "
        "attempts integer NOT NULL DEFAULT 0, source text NOT NULL DEFAULT 'conversation' "
        "CHECK (source IN ('conversation', 'tool', 'web', 'document')), gives_orders integer NOT NULL DEFAULT 0, "
        "checksum bigint NOT NULL, read_by text, "
        "bytes integer GENERATED ALWAYS AS (octet_length(user_input) + octet_length(agent_response)) STORED",
        "seq",
    ),
    "postings": (
        'term text COLLATE "C" NOT NULL, seq bigint NOT NULL, size integer NOT NULL, places bytea NOT NULL',
        "term, seq",
    ),
    "names": (
        "name text NOT NULL, pages integer NOT NULL, called_by_user integer NOT NULL, called_by_agent integer NOT NULL",
        "name",
    ),
    "spaces": (
        "space bigint NOT NULL DEFAULT next_number('space'), identity text NOT NULL, model text NOT NULL, "
        "next_seq bigint NOT NULL DEFAULT 1, used_us bigint NOT NULL DEFAULT 0",
        "space",
    ),
    "page_vectors": (
        "space bigint NOT NULL, seq bigint NOT NULL, part integer NOT NULL, start_char integer NOT NULL, "
        "end_char integer NOT NULL, vector bytea NOT NULL",
        "space, seq, part",
    ),
    "page_tokens": ("place bigint NOT NULL, counts bytea NOT NULL, codes bytea NOT NULL", "place"),
    "traits": (
        "dimension text NOT NULL, level text NOT NULL, reason text NOT NULL, updated_us bigint NOT NULL, "
        "learned_by text NOT NULL",
        "dimension",
    ),
    "trait_evidence": ("dimension text NOT NULL, seq bigint NOT NULL", "dimension, seq"),
    "trait_history": (
        "rowid bigint NOT NULL DEFAULT next_number('past_trait'), dimension text NOT NULL, level text NOT NULL, "
        "reason text NOT NULL, held_from_us bigint NOT NULL, held_until_us bigint NOT NULL, "
        "ended_by text CHECK (ended_by = 'user'), learned_by text NOT NULL DEFAULT 'extractive', "
        "evidence text NOT NULL DEFAULT '[]'",
        "rowid",
    ),
    "facts": (
        "fact bigint NOT NULL DEFAULT next_number('fact'), about text NOT NULL CHECK (about IN ('user', 'assistant')), "
        "assistant_id text NOT NULL, slot text, valid_from_us bigint NOT NULL, valid_until_us bigint, "
        "stated_until_us bigint, utc_offset_s integer NOT NULL, superseded_by bigint, confirmed_us bigint NOT NULL, "
        "is_archived integer NOT NULL DEFAULT 0, folded text NOT NULL, text text NOT NULL, learned_by text NOT NULL, "
        "ended_by text CHECK (ended_by = 'user'), ended_seq bigint, kind text NOT NULL DEFAULT 'statement' "
        "CHECK (kind IN ('statement', 'wish')), said_since text, said_until text",
        "fact",
    ),
    "fact_evidence": (
        "fact bigint NOT NULL, seq bigint NOT NULL, is_confirming integer NOT NULL DEFAULT 0",
        "fact, seq",
    ),
    "fact_vectors": ("fact bigint NOT NULL, space bigint NOT NULL, vector bytea NOT NULL", "fact, space"),
    "segment_vectors": ("segment bigint NOT NULL, space bigint NOT NULL, vector bytea NOT NULL", "segment, space"),
    "lease": (
        "holder text NOT NULL DEFAULT '', epoch bigint NOT NULL DEFAULT 0, expires_us bigint NOT NULL DEFAULT 0",
        "",
    ),
    "changes": (
        "change bigint NOT NULL DEFAULT next_number('change'), kind text NOT NULL, row bigint NOT NULL",
        "change",
    ),
    "llm_usage": (
        "day text NOT NULL, purpose text NOT NULL, calls integer NOT NULL, failed_calls integer NOT NULL, "
        "prompt_tokens integer NOT NULL, completion_tokens integer NOT NULL",
        "day, purpose",
    ),
    "refused": ("digest bytea NOT NULL, until_seq bigint NOT NULL", "digest"),
    "forget_plans": ("handle text NOT NULL, expires_us bigint NOT NULL, plan text NOT NULL", "handle"),
    "forget_receipts": (
        "receipt text NOT NULL, at_us bigint NOT NULL, counts text NOT NULL, is_scrubbed integer NOT NULL DEFAULT 0",
        "receipt",
    ),
    "imports": (
        "file text NOT NULL, kind text NOT NULL CHECK (kind IN ('chain', 'segment', 'session')), "
        "number bigint NOT NULL, row bigint NOT NULL",
        "file, kind, number",
    ),
    "failures": ("work text NOT NULL, attempts integer NOT NULL, error text NOT NULL, at_us bigint NOT NULL", "work"),
    "retention": ("slot integer NOT NULL, looked_us bigint NOT NULL, waits_since_us bigint", "slot"),
    # The pages that the current transaction deletes; see `storage.sql.forgetting`.
    "going": ("seq bigint NOT NULL", "seq"),
}
# The last number of each kind, and the totals of the word index. Each writer locks the user's row first, so that the
# numbers are assigned in the order of the commits and without gaps.
_NUMBERED = ("page", "chain", "segment", "fact", "space", "change", "past_trait")
_COUNTERS = ", ".join(f"{name} bigint NOT NULL DEFAULT 0" for name in (*_NUMBERED, "indexed_pages", "indexed_tokens"))
_REFERENCES = (
    ("pages", "chain", "chains", ""),
    ("pages", "segment", "segments", ""),
    ("page_vectors", "seq", "pages", ""),
    ("page_vectors", "space", "spaces", ""),
    ("trait_evidence", "dimension", "traits", ""),
    ("trait_evidence", "seq", "pages", ""),
    ("facts", "superseded_by", "facts", ""),
    ("fact_evidence", "fact", "facts", ""),
    ("fact_evidence", "seq", "pages", ""),
    ("fact_vectors", "fact", "facts", "ON DELETE CASCADE"),
    ("segment_vectors", "segment", "segments", "ON DELETE CASCADE"),
)
_INDEXES = (
    "CREATE UNIQUE INDEX pages_id ON pages (user_no, page_id)",
    "CREATE UNIQUE INDEX pages_idempotency ON pages (user_no, idempotency_key) WHERE idempotency_key IS NOT NULL",
    "CREATE INDEX pages_tier ON pages (user_no, tier, seq)",
    "CREATE INDEX pages_segment ON pages (user_no, segment, seq) WHERE segment IS NOT NULL",
    "CREATE INDEX pages_chain ON pages (user_no, chain, seq) WHERE chain IS NOT NULL",
    "CREATE INDEX pages_degraded ON pages (user_no, seq) WHERE is_degraded = 1",
    "CREATE INDEX pages_unread ON pages (user_no, seq) WHERE read_by IS NULL",
    "CREATE INDEX postings_pages ON postings (user_no, seq)",
    "CREATE UNIQUE INDEX spaces_identity ON spaces (user_no, identity)",
    "CREATE INDEX page_vectors_pages ON page_vectors (user_no, seq)",
    "CREATE UNIQUE INDEX changes_row ON changes (user_no, kind, row)",
    # Long texts do not fit into an index, so their digests are indexed.
    "CREATE UNIQUE INDEX facts_once ON facts (user_no, about, assistant_id, md5(folded)) WHERE valid_until_us IS NULL",
    "CREATE INDEX facts_words ON facts (user_no, md5(folded), about, assistant_id)",
    "CREATE INDEX facts_superseded ON facts (user_no, superseded_by) WHERE superseded_by IS NOT NULL",
    "CREATE INDEX fact_evidence_pages ON fact_evidence (user_no, seq)",
    "CREATE INDEX trait_evidence_pages ON trait_evidence (user_no, seq)",
    "CREATE INDEX fact_vectors_spaces ON fact_vectors (user_no, space)",
    "CREATE INDEX segment_vectors_spaces ON segment_vectors (user_no, space)",
)
_TOKENS = """
CREATE TABLE tokens (
    token_id text PRIMARY KEY,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    user_id text NOT NULL,
    scopes text NOT NULL,
    created_us bigint NOT NULL,
    expires_us bigint,
    revoked_us bigint
)
"""


# The columns of a new page that its caller sets.
_NEW_PAGE = (
    "page_id, occurred_us, utc_offset_s, source, meta_data, user_input, agent_response, idempotency_key, gives_orders, "
    "checksum, added_us"
)
# Adds a page in one round trip, following the rules of `storage.sql.page_table.add_pages`. A repeated call with the
# same id adds nothing, so that the call can be repeated if the connection was lost before its result arrived.
_ADD_PAGE = f"""
CREATE FUNCTION add_page(
    user_no bigint, page json, epoch bigint, gap_us bigint, capacity bigint,
    terms text, term_places text, term_count bigint, called text, called_by_user text, called_by_agent text,
    OUT is_current boolean, OUT is_new boolean, OUT page_id text, OUT occurred_us bigint, OUT utc_offset_s integer,
    OUT backlog bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE new pages; newest pages; known pages; short_term bigint;
BEGIN
    PERFORM set_config('memoryos.user_no', CAST(add_page.user_no AS text), true);
    PERFORM 1 FROM counters FOR UPDATE;
    new := json_populate_record(NULL::pages, page);
    short_term := (SELECT count(*) FROM pages WHERE tier = 'short_term');
    add_page.backlog := (SELECT count(*) FROM pages WHERE tier = 'backlog');
    add_page.is_current := epoch IS NULL OR epoch = (SELECT count(*) FROM forget_receipts);
    add_page.is_new := true;
    SELECT * INTO known FROM pages WHERE pages.page_id = new.page_id;
    IF known.seq IS NULL AND new.idempotency_key IS NOT NULL THEN
        SELECT * INTO known FROM pages WHERE idempotency_key = new.idempotency_key;
        add_page.is_new := known.seq IS NULL;
    END IF;
    IF add_page.is_current AND known.seq IS NULL THEN
        SELECT * INTO newest FROM pages ORDER BY seq DESC LIMIT 1;
        new.session := coalesce(newest.session, 0)
            + CASE WHEN abs(new.occurred_us - newest.occurred_us) <= gap_us THEN 0 ELSE 1 END;
        UPDATE counters SET page = counters.page + 1, indexed_pages = indexed_pages + 1,
            indexed_tokens = indexed_tokens + term_count RETURNING counters.page INTO new.seq;
        INSERT INTO pages (seq, session, tier, {_NEW_PAGE})
            SELECT new.seq, new.session, 'short_term', {", ".join(f"new.{name}" for name in _NEW_PAGE.split(", "))};
        INSERT INTO postings (term, seq, size, places)
            SELECT each.term, new.seq, term_count, decode(each.places, 'hex')
            FROM unnest(string_to_array(terms, ' '), string_to_array(term_places, ' ')) AS each (term, places);
        IF called <> '' THEN
            INSERT INTO names (name, pages, called_by_user, called_by_agent)
                SELECT each.name, 1, CAST(each.by_user AS integer), CAST(each.by_agent AS integer)
                FROM unnest(string_to_array(called, ' '), string_to_array(add_page.called_by_user, ' '),
                    string_to_array(add_page.called_by_agent, ' ')) AS each (name, by_user, by_agent)
                ON CONFLICT ON CONSTRAINT names_pkey DO UPDATE SET pages = names.pages + 1,
                    called_by_user = names.called_by_user + excluded.called_by_user,
                    called_by_agent = names.called_by_agent + excluded.called_by_agent;
        END IF;
        IF short_term >= capacity THEN
            UPDATE pages SET tier = 'backlog' WHERE tier = 'short_term' AND seq <=
                (SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT 1 OFFSET capacity);
            add_page.backlog := add_page.backlog + short_term + 1 - capacity;
        END IF;
        known := new;
    END IF;
    add_page.page_id := known.page_id;
    add_page.occurred_us := known.occurred_us;
    add_page.utc_offset_s := known.utc_offset_s;
END $$
"""  # noqa: S608 - constants


def secured(table: str) -> list[str]:
    """Return the statements that let each transaction access only its user's rows of a table."""
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY own ON {table} USING (user_no = {USER})",
    ]


def _first() -> list[str]:
    """Return the statements of the first migration."""
    own = f"user_no integer NOT NULL DEFAULT {USER}"
    users = (
        "CREATE TABLE users (user_no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id text NOT NULL UNIQUE)"
    )
    counters = f"CREATE TABLE counters ({own} REFERENCES users, {_COUNTERS}, PRIMARY KEY (user_no))"
    cases = " ".join(
        f"WHEN '{name}' THEN UPDATE counters SET {name} = {name} + 1 RETURNING {name} INTO given;"  # noqa: S608
        for name in _NUMBERED
    )
    numbers = (
        "CREATE FUNCTION next_number(kind text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE given bigint; "
        f"BEGIN CASE kind {cases} END CASE; RETURN given; END $$"
    )
    tables = [
        f"CREATE TABLE {name} ({columns}, {own}, PRIMARY KEY (user_no{key and f', {key}'}))"
        for name, (columns, key) in _TABLES.items()
    ]
    keys = {name: key for name, (_, key) in _TABLES.items()}
    references = [
        f"ALTER TABLE {table} ADD FOREIGN KEY (user_no, {column}) REFERENCES {other} (user_no, {keys[other]}) {then}"
        for table, column, other, then in _REFERENCES
    ]
    security = [statement for table in ("counters", *_TABLES) for statement in secured(table)]
    return [users, counters, numbers, *tables, *references, *_INDEXES, *security, _ADD_PAGE, _TOKENS]


# One bit for each coordinate of a float16 vector: 1 if the coordinate is not negative. See `storage.postgres.windows`.
_WINDOW_CODES = [
    """
CREATE FUNCTION signs(vector bytea) RETURNS bit varying LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE bits text := '';
BEGIN
    FOR place IN 0 .. length(vector) / 2 - 1 LOOP
        bits := bits || (1 - get_bit(vector, 16 * place + 15));
    END LOOP;
    RETURN CAST(bits AS bit varying);
END $$
""",
    "ALTER TABLE page_vectors ADD code bit varying GENERATED ALWAYS AS (signs(vector)) STORED",
    "CREATE INDEX page_vectors_codes ON page_vectors (user_no, space) INCLUDE (seq, part, code)",
]
# The ids of a user's latest changes; see `storage.postgres.database`. The value is never empty.
_LATEST_WRITES = "ALTER TABLE counters ADD latest_writes text NOT NULL DEFAULT '000000000000'"
# The request buckets of callers; see `storage.postgres.rates`. The table is unlogged: after a crash, it is empty, and
# all buckets count as full.
_RATES = """
CREATE UNLOGGED TABLE rates (
    caller bytea PRIMARY KEY CHECK (length(caller) = 32),
    requests double precision NOT NULL,
    granted double precision NOT NULL,
    drawn_at timestamptz NOT NULL
) WITH (fillfactor = 50)
"""
# Version 2: a new page's postings are one row of ``new_postings``, which makes adding it faster. They become rows of
# ``indexed_postings`` later, many pages at a time. The view ``postings`` contains both tables. A process that still
# runs the previous version uses this view to search and to add postings.
_NEW_POSTINGS = f"""
CREATE TABLE new_postings (
    seq bigint NOT NULL, size integer NOT NULL, terms text NOT NULL, places text NOT NULL,
    user_no integer NOT NULL DEFAULT {USER}, PRIMARY KEY (user_no, seq)
)
"""
_EACH_POSTING = "unnest(string_to_array(terms, ' '), string_to_array(places, ' ')) AS each (term, places)"
_POSTINGS = f"""
CREATE VIEW postings WITH (security_invoker = true) AS
    SELECT user_no, term, seq, size, places FROM indexed_postings UNION ALL
    SELECT user_no, each.term COLLATE "C", seq, size, decode(each.places, 'hex') FROM new_postings, {_EACH_POSTING}
"""  # noqa: S608 - constants
_INDEX_POSTINGS = f"""
CREATE FUNCTION index_postings() RETURNS void LANGUAGE sql AS $$
    WITH moved AS (DELETE FROM new_postings RETURNING seq, size, terms, places)
    INSERT INTO indexed_postings (term, seq, size, places)
        SELECT each.term, seq, size, decode(each.places, 'hex') FROM moved, {_EACH_POSTING} ORDER BY 1, 2
$$
"""  # noqa: S608 - constants
# Each time this many pages have been added, ``add_page`` moves all new postings. Background work moves them more often.
_INDEXED_EVERY = 64
# The next page number is assigned before it is known whether the page is new. This saves a statement.
_ADD_PAGE_2 = f"""
CREATE OR REPLACE FUNCTION add_page(
    user_no bigint, page json, epoch bigint, gap_us bigint, capacity bigint,
    terms text, term_places text, term_count bigint, called text, called_by_user text, called_by_agent text,
    OUT is_current boolean, OUT is_new boolean, OUT page_id text, OUT occurred_us bigint, OUT utc_offset_s integer,
    OUT backlog bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE new_seq bigint;
BEGIN
    PERFORM set_config('memoryos.user_no', CAST(add_page.user_no AS text), true);
    UPDATE counters SET page = counters.page + 1, indexed_pages = indexed_pages + 1,
        indexed_tokens = indexed_tokens + term_count RETURNING counters.page INTO new_seq;
    add_page.is_current := true;
    IF epoch IS NOT NULL THEN
        add_page.is_current := epoch = (SELECT count(*) FROM forget_receipts);
    END IF;
    add_page.is_new := false;
    IF add_page.is_current THEN
        INSERT INTO pages (seq, session, tier, {_NEW_PAGE})
            SELECT new_seq, coalesce(newest.session, 0)
                + CASE WHEN abs(new.occurred_us - newest.occurred_us) <= gap_us THEN 0 ELSE 1 END,
                'short_term', {", ".join(f"new.{name}" for name in _NEW_PAGE.split(", "))}
            FROM json_populate_record(NULL::pages, page) AS new LEFT JOIN
                (SELECT session, occurred_us FROM pages ORDER BY seq DESC LIMIT 1) AS newest ON true
            ON CONFLICT DO NOTHING RETURNING pages.page_id, pages.occurred_us, pages.utc_offset_s
            INTO add_page.page_id, add_page.occurred_us, add_page.utc_offset_s;
        add_page.is_new := FOUND;
    END IF;
    IF add_page.is_new THEN
        INSERT INTO new_postings (seq, size, terms, places) VALUES (new_seq, term_count, terms, term_places);
        IF new_seq % {_INDEXED_EVERY} = 0 THEN
            PERFORM index_postings();
        END IF;
        IF called <> '' THEN
            INSERT INTO names (name, pages, called_by_user, called_by_agent)
                SELECT each.name, 1, CAST(each.by_user AS integer), CAST(each.by_agent AS integer)
                FROM unnest(string_to_array(called, ' '), string_to_array(add_page.called_by_user, ' '),
                    string_to_array(add_page.called_by_agent, ' ')) AS each (name, by_user, by_agent)
                ON CONFLICT ON CONSTRAINT names_pkey DO UPDATE SET pages = names.pages + 1,
                    called_by_user = names.called_by_user + excluded.called_by_user,
                    called_by_agent = names.called_by_agent + excluded.called_by_agent;
        END IF;
        UPDATE pages SET tier = 'backlog' WHERE tier = 'short_term' AND seq <=
            (SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT 1 OFFSET capacity);
    ELSE
        UPDATE counters SET page = counters.page - 1, indexed_pages = indexed_pages - 1,
            indexed_tokens = indexed_tokens - term_count;
        SELECT pages.page_id, pages.occurred_us, pages.utc_offset_s, pages.page_id = page ->> 'page_id'
            INTO add_page.page_id, add_page.occurred_us, add_page.utc_offset_s, add_page.is_new
            FROM pages WHERE pages.page_id = page ->> 'page_id' OR idempotency_key = page ->> 'idempotency_key'
            ORDER BY pages.page_id = page ->> 'page_id' DESC LIMIT 1;
    END IF;
    add_page.backlog := (SELECT count(*) FROM pages WHERE tier = 'backlog');
END $$
"""  # noqa: S608 - constants
_WORDS = [
    "ALTER TABLE postings RENAME TO indexed_postings",
    _NEW_POSTINGS,
    *secured("new_postings"),
    _POSTINGS,
    _INDEX_POSTINGS,
    _ADD_PAGE_2,
]


def _second() -> list[str]:
    """Return the statements of the second migration."""
    return [_LATEST_WRITES, *_WINDOW_CODES, _RATES, "DROP INDEX facts_words", *_WORDS]


# For lists that are sorted by time, and for the number of pages per day.
_BY_TIME = ["CREATE INDEX pages_time ON pages (user_no, occurred_us, seq)"]

# The sign-ins to the web pages; see `storage.postgres.sign_ins`. ``digest`` is the digest of the key in the browser's
# cookie.
_SIGN_INS = """
CREATE TABLE sign_ins (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    user_id text NOT NULL,
    scopes text NOT NULL,
    token_id text NOT NULL,
    issuer text,
    expires_us bigint,
    began_at timestamptz NOT NULL,
    used_at timestamptz NOT NULL
) WITH (fillfactor = 50)
"""

# While a table has no statistics, the planner may choose any index of the user's pages, so the previous version of this
# function may read all of them. This version reads a tier in the order of ``seq``, so the planner chooses `pages_tier`.
_ADD_PAGE_5 = _ADD_PAGE_2.replace(
    """        UPDATE pages SET tier = 'backlog' WHERE tier = 'short_term' AND seq <=
            (SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT 1 OFFSET capacity);
""",
    "",
).replace(
    """    add_page.backlog := (SELECT count(*) FROM pages WHERE tier = 'backlog');
""",
    """    WITH moved AS (
        UPDATE pages SET tier = 'backlog' WHERE add_page.is_new AND seq = ANY(ARRAY(
            SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC OFFSET capacity)) RETURNING 1)
    SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM
        (SELECT 1 FROM pages WHERE tier = 'backlog' ORDER BY seq OFFSET 0) AS waiting) INTO add_page.backlog;
""",
)

# The project of a page. The index contains only pages that have a project.
_NEW_VALUES = ", ".join(f"new.{name}" for name in _NEW_PAGE.split(", "))
_PROJECTS = [
    "ALTER TABLE pages ADD COLUMN IF NOT EXISTS project text",
    "CREATE INDEX pages_project ON pages (user_no, project, seq) WHERE project IS NOT NULL",
    _ADD_PAGE_5.replace(_NEW_PAGE, f"{_NEW_PAGE}, project").replace(_NEW_VALUES, f"{_NEW_VALUES}, new.project"),
]

MIGRATIONS: tuple[list[str], ...] = (_first(), _second(), _BY_TIME, [_SIGN_INS], [_ADD_PAGE_5], _PROJECTS)
CURRENT_VERSION = len(MIGRATIONS)


def version(connection: psycopg.Connection[Any]) -> int:
    """Return the schema version of a database; 0 if it has no schema."""
    if connection.execute(_IS_MADE_SQL).fetchone() is None:
        return 0
    row = connection.execute(f"SELECT version FROM {SCHEMA}.schema_version").fetchone()  # noqa: S608 - constant
    return int(row[0]) if row else 0


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Migrate a database to `CURRENT_VERSION`, in one transaction. Only one process at a time can migrate it."""
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
        start = version(connection)
        if start >= CURRENT_VERSION:
            return
        if connection.execute(_HAS_SCHEMA_SQL).fetchone() is None:
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
        if start == 0:
            connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
            connection.execute("INSERT INTO schema_version VALUES (0)")
        for statements in MIGRATIONS[start:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"UPDATE schema_version SET version = {CURRENT_VERSION}")  # noqa: S608 - a number


def grant_app_role(connection: psycopg.Connection[Any]) -> None:
    """Create the role `APP_ROLE` if it is missing, and let it read and write memories.

    The account of the connection must be allowed to create roles and to grant rights.
    """
    # All databases of a server share the roles, so a process for another database may create the role at the same time.
    with suppress(DuplicateObject, UniqueViolation), connection.transaction():
        if connection.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{APP_ROLE}'").fetchone() is None:  # noqa: S608
            connection.execute(f"CREATE ROLE {APP_ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS")
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
        for rights, on in (
            ("USAGE", f"SCHEMA {SCHEMA}"),
            ("SELECT, INSERT, UPDATE, DELETE", f"ALL TABLES IN SCHEMA {SCHEMA}"),
            ("USAGE", f"ALL SEQUENCES IN SCHEMA {SCHEMA}"),
        ):
            connection.execute(f"GRANT {rights} ON {on} TO {APP_ROLE}")
