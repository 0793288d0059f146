"""The schema of a user's file, as numbered migrations: migration N upgrades a file from version N - 1 to version N.

A released migration is never edited. Each change of the schema is made by a new migration.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw

from memoryos_mcp.storage.sql.names import index_names
from memoryos_mcp.storage.sqlite.checksums import add_checksums
from memoryos_mcp.text.terms import index_text

if TYPE_CHECKING:
    from memoryos_mcp.storage.sqlite.connections import SqliteConnection

APPLICATION_ID = 0x6D6F7331  # "mos1": identifies SQLite files of this program

# Without the categories Mn and Mc, unicode61 would split words of Hindi, Thai and other languages at vowel signs.
_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE chains (
    chain INTEGER PRIMARY KEY AUTOINCREMENT,
    summary TEXT NOT NULL
) STRICT;

CREATE TABLE segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT,
    n_visit INTEGER NOT NULL DEFAULT 0,
    l_interaction INTEGER NOT NULL DEFAULT 0,
    last_visit_us INTEGER NOT NULL,
    page_count INTEGER NOT NULL DEFAULT 0,
    unanalysed_count INTEGER NOT NULL DEFAULT 0,
    is_archived INTEGER NOT NULL DEFAULT 0,
    summariser TEXT NOT NULL,
    keywords TEXT NOT NULL,
    summary TEXT NOT NULL,
    space INTEGER,
    vector BLOB
) STRICT;

CREATE TABLE pages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    tier TEXT NOT NULL CHECK (tier IN ('short_term', 'backlog', 'mid_term')),
    chain INTEGER REFERENCES chains,
    segment INTEGER REFERENCES segments,
    space INTEGER NOT NULL DEFAULT 0,
    is_analysed INTEGER NOT NULL DEFAULT 0,
    occurred_us INTEGER NOT NULL,
    utc_offset_s INTEGER NOT NULL,
    added_us INTEGER NOT NULL,
    idempotency_key TEXT,
    meta_data TEXT,
    user_input TEXT NOT NULL,
    agent_response TEXT NOT NULL
) STRICT;
CREATE INDEX pages_tier ON pages (tier, seq);
CREATE INDEX pages_segment ON pages (segment, seq) WHERE segment IS NOT NULL;
CREATE INDEX pages_chain ON pages (chain, seq) WHERE chain IS NOT NULL;
CREATE INDEX pages_space ON pages (space);
CREATE UNIQUE INDEX pages_idempotency ON pages (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE VIRTUAL TABLE page_words USING fts5 (
    user_input, agent_response,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE page_vocabulary USING fts5vocab (page_words, 'row');

CREATE TABLE spaces (
    space INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE page_vectors (
    vector_id INTEGER PRIMARY KEY,
    space INTEGER NOT NULL REFERENCES spaces,
    seq INTEGER NOT NULL REFERENCES pages,
    part INTEGER NOT NULL,
    start_char INTEGER NOT NULL,
    end_char INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX page_vectors_place ON page_vectors (space, seq, part);

CREATE TABLE traits (
    dimension TEXT PRIMARY KEY,
    level TEXT NOT NULL,
    reason TEXT NOT NULL,
    updated_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE trait_evidence (
    dimension TEXT NOT NULL REFERENCES traits,
    seq INTEGER NOT NULL REFERENCES pages,
    PRIMARY KEY (dimension, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE trait_history (
    dimension TEXT NOT NULL,
    level TEXT NOT NULL,
    reason TEXT NOT NULL,
    held_from_us INTEGER NOT NULL,
    held_until_us INTEGER NOT NULL
) STRICT;

CREATE TABLE facts (
    fact INTEGER PRIMARY KEY AUTOINCREMENT,
    about TEXT NOT NULL CHECK (about IN ('user', 'assistant')),
    assistant_id TEXT NOT NULL,
    slot TEXT,
    valid_from_us INTEGER NOT NULL,
    valid_until_us INTEGER,
    utc_offset_s INTEGER NOT NULL,
    superseded_by INTEGER REFERENCES facts,
    confirmed_us INTEGER NOT NULL,
    is_archived INTEGER NOT NULL DEFAULT 0,
    space INTEGER,
    folded TEXT NOT NULL,
    text TEXT NOT NULL,
    vector BLOB
) STRICT;
CREATE UNIQUE INDEX facts_once ON facts (about, assistant_id, folded) WHERE valid_until_us IS NULL;
CREATE TABLE fact_evidence (
    fact INTEGER NOT NULL REFERENCES facts,
    seq INTEGER NOT NULL REFERENCES pages,
    PRIMARY KEY (fact, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    slot INTEGER PRIMARY KEY CHECK (slot = 1),
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;
INSERT INTO lease VALUES (1, '', 0, 0);

CREATE TABLE changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    row INTEGER NOT NULL,
    UNIQUE (kind, row) ON CONFLICT REPLACE
) STRICT;
"""

# The analysts that processed a page, whether the fallback processed it because the LLM failed, the number of failed
# attempts, and the usage of LLMs.
_LLM = """
ALTER TABLE pages ADD COLUMN organised_by TEXT;
ALTER TABLE pages ADD COLUMN learned_by TEXT;
ALTER TABLE pages ADD COLUMN is_degraded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
UPDATE pages SET organised_by = 'extractive' WHERE tier = 'mid_term';
UPDATE pages SET learned_by = 'extractive' WHERE is_analysed = 1;
CREATE INDEX pages_degraded ON pages (seq) WHERE is_degraded = 1;

ALTER TABLE segments ADD COLUMN is_due INTEGER NOT NULL DEFAULT 0;
ALTER TABLE segments ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;

ALTER TABLE traits ADD COLUMN learned_by TEXT NOT NULL DEFAULT 'extractive';
ALTER TABLE facts ADD COLUMN learned_by TEXT NOT NULL DEFAULT 'extractive';
ALTER TABLE facts ADD COLUMN stated_until_us INTEGER; -- valid_until_us, unless a newer fact ends it sooner
CREATE INDEX fact_evidence_pages ON fact_evidence (seq);
CREATE INDEX trait_evidence_pages ON trait_evidence (seq);

CREATE TABLE llm_usage (
    day TEXT NOT NULL,
    purpose TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed_calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    PRIMARY KEY (day, purpose)
) STRICT, WITHOUT ROWID;
"""

# Data for ranking: the token codes of pages, and the names by which the user and the assistant address each other.
_RANKING = """
-- One row for each page, because many small rows fill SQLite's pages badly. ``counts`` has four 16-bit numbers for each
-- window: the tokens of the user's statements and questions, and of the assistant's statements and questions.
CREATE TABLE page_tokens (
    vector_id INTEGER PRIMARY KEY REFERENCES page_vectors,
    counts BLOB NOT NULL,
    codes BLOB NOT NULL
) STRICT;

CREATE TABLE names (
    name TEXT PRIMARY KEY,
    pages INTEGER NOT NULL,
    called_by_user INTEGER NOT NULL,
    called_by_agent INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# A query reads the outlines and token codes of hundreds of pages. Each kind is stored contiguously, so that the cost
# does not depend on the size of the file. ``place`` consists of the space and, in the low 40 bits, the page's ``seq``.
_PLACES = """
CREATE TABLE codes_of_pages (
    place INTEGER PRIMARY KEY,
    counts BLOB NOT NULL,
    codes BLOB NOT NULL
) STRICT;
INSERT INTO codes_of_pages
    SELECT (v.space << 40) | v.seq, t.counts, t.codes FROM page_tokens AS t JOIN page_vectors AS v USING (vector_id)
    ORDER BY v.space, v.seq;
DROP TABLE page_tokens;
ALTER TABLE codes_of_pages RENAME TO page_tokens;
CREATE INDEX pages_outline ON pages (
    seq, session, segment, occurred_us, utc_offset_s, octet_length(user_input) + octet_length(agent_response)
);
"""

# Each model has its own vector space. The previous model's space is used until the next one is complete. All pages
# before ``next_seq`` have vectors in the space; ``model`` contains the settings that load the model.
_SIDE_BY_SIDE = """
ALTER TABLE spaces ADD COLUMN model TEXT NOT NULL DEFAULT '{"name": "all-MiniLM-L6-v2"}';
ALTER TABLE spaces ADD COLUMN next_seq INTEGER NOT NULL DEFAULT 1;
ALTER TABLE spaces ADD COLUMN used_us INTEGER NOT NULL DEFAULT 0;
UPDATE spaces SET next_seq = coalesce(
    (SELECT min(seq) FROM pages WHERE NOT EXISTS
        (SELECT 1 FROM page_vectors WHERE page_vectors.space = spaces.space AND page_vectors.seq = pages.seq)),
    (SELECT max(seq) + 1 FROM pages),
    1
);

CREATE TABLE fact_vectors (
    fact INTEGER NOT NULL REFERENCES facts ON DELETE CASCADE,
    space INTEGER NOT NULL REFERENCES spaces,
    vector BLOB NOT NULL,
    PRIMARY KEY (fact, space)
) STRICT, WITHOUT ROWID;
INSERT INTO fact_vectors SELECT fact, space, vector FROM facts WHERE vector IS NOT NULL AND space > 0;
CREATE TABLE segment_vectors (
    segment INTEGER NOT NULL REFERENCES segments ON DELETE CASCADE,
    space INTEGER NOT NULL REFERENCES spaces,
    vector BLOB NOT NULL,
    PRIMARY KEY (segment, space)
) STRICT, WITHOUT ROWID;
INSERT INTO segment_vectors SELECT segment, space, vector FROM segments WHERE vector IS NOT NULL AND space > 0;

DROP INDEX pages_space;
ALTER TABLE pages DROP COLUMN space;
ALTER TABLE facts DROP COLUMN space;
ALTER TABLE facts DROP COLUMN vector;
ALTER TABLE segments DROP COLUMN space;
ALTER TABLE segments DROP COLUMN vector;
"""

# The sources of pages, the user's corrections, and forgetting.
_OWNED = """
ALTER TABLE pages ADD COLUMN source TEXT NOT NULL DEFAULT 'conversation'
    CHECK (source IN ('conversation', 'tool', 'web', 'document'));
ALTER TABLE pages ADD COLUMN gives_orders INTEGER NOT NULL DEFAULT 0;

-- A fact is deleted with the last page that states it, even if other pages confirm it.
ALTER TABLE fact_evidence ADD COLUMN is_confirming INTEGER NOT NULL DEFAULT 0;
ALTER TABLE facts ADD COLUMN ended_by TEXT CHECK (ended_by = 'user'); -- NULL: ended by a newer fact or by time
ALTER TABLE facts ADD COLUMN ended_seq INTEGER; -- the newest page at the user's correction
ALTER TABLE trait_history ADD COLUMN ended_by TEXT CHECK (ended_by = 'user');

-- Digests of facts and traits that must not be learned again from pages up to ``until_seq``.
CREATE TABLE refused (
    digest BLOB PRIMARY KEY,
    until_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The plans of dry runs, by the handle that confirms them; they contain numbers of rows, but no text.
CREATE TABLE forget_plans (
    handle TEXT PRIMARY KEY,
    expires_us INTEGER NOT NULL,
    plan TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE forget_receipts (
    receipt TEXT PRIMARY KEY,
    at_us INTEGER NOT NULL,
    counts TEXT NOT NULL,
    is_scrubbed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- The rows of the groups of a file that is being imported, so that a repeated import continues where it ended.
CREATE TABLE imports (
    file TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('chain', 'segment', 'session')),
    number INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (file, kind, number)
) STRICT, WITHOUT ROWID;
"""

# Without these indexes, SQLite scans a whole table for references to each row that it deletes, and for each new fact.
_QUICK_TO_DELETE = """
CREATE INDEX page_vectors_pages ON page_vectors (seq);
CREATE INDEX facts_superseded ON facts (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_words ON facts (folded, about, assistant_id);
"""

# The last failure of each kind of background work, which other processes can then report as well.
_FAILURES = """
CREATE TABLE failures (
    work TEXT PRIMARY KEY,
    attempts INTEGER NOT NULL, -- in a row; 0 after a success
    error TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# The time of the last check for old pages, and the time since which a second check has been pending; see `retention`.
_RETENTION = """
CREATE TABLE retention (
    slot INTEGER PRIMARY KEY CHECK (slot = 1),
    looked_us INTEGER NOT NULL,
    waits_since_us INTEGER
) STRICT;
"""

# The evidence of a trait when the user corrected it, so that the correction can be undone.
_RESTORABLE_TRAITS = """
ALTER TABLE trait_history ADD COLUMN learned_by TEXT NOT NULL DEFAULT 'extractive';
ALTER TABLE trait_history ADD COLUMN evidence TEXT NOT NULL DEFAULT '[]'; -- ``seq`` of pages, JSON
"""

# The analyst that read a page for knowledge, the kind of a fact, and the times stated in a fact.
_READ = """
ALTER TABLE pages ADD COLUMN read_by TEXT; -- the analyst that read the page for knowledge; NULL: none yet
UPDATE pages SET read_by = coalesce(learned_by, 'extractive') WHERE is_analysed = 1;
CREATE INDEX pages_unread ON pages (seq) WHERE read_by IS NULL;
ALTER TABLE facts ADD COLUMN kind TEXT NOT NULL DEFAULT 'statement' CHECK (kind IN ('statement', 'wish'));
ALTER TABLE facts ADD COLUMN said_since TEXT; -- a year, a month or a day, as stated
ALTER TABLE facts ADD COLUMN said_until TEXT; -- stated_until_us as stated
UPDATE facts SET slot = CASE slot WHEN 'lives in' THEN 'lives' WHEN 'works as' THEN 'work'
    WHEN 'works at' THEN 'employer' WHEN 'born in' THEN 'from' ELSE slot END WHERE slot IS NOT NULL;
"""

# The project of a page. Few memories have projects, so only pages of projects are in the index.
_PROJECTS = """
ALTER TABLE pages ADD COLUMN project TEXT;
CREATE INDEX pages_project ON pages (project, seq) WHERE project IS NOT NULL;
"""


def _add_ranking(connection: "SqliteConnection") -> None:
    connection.execute(_RANKING)
    for seq, *sides in connection.execute("SELECT seq, user_input, agent_response FROM pages ORDER BY seq"):
        index_names(connection, *sides)
        indexed = [index_text(side) for side in sides]
        if indexed != sides:
            connection.execute(
                "INSERT OR REPLACE INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)",
                (seq, *indexed),
            )


MIGRATIONS: tuple[str | Callable[["SqliteConnection"], None], ...] = (
    _FIRST,
    _LLM,
    _add_ranking,
    _PLACES,
    _SIDE_BY_SIDE,
    _OWNED,
    _QUICK_TO_DELETE,
    _FAILURES,
    _RETENTION,
    _RESTORABLE_TRAITS,
    add_checksums,
    _READ,
    _PROJECTS,
)
CURRENT_VERSION = len(MIGRATIONS)


def version(connection: apsw.Connection) -> int:
    """Return the schema version of a file; 0 if the file is empty."""
    return int(connection.pragma("user_version"))


def migrate(connection: "SqliteConnection", user_id: str, until: int = CURRENT_VERSION) -> None:
    """Migrate a file to the schema version ``until``, inside the caller's write transaction."""
    start = version(connection)
    for number, migration in enumerate(MIGRATIONS[start:until], start=start + 1):
        if isinstance(migration, str):
            connection.execute(migration)
        else:
            migration(connection)
        connection.pragma("user_version", number)
    if start == 0:
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("INSERT INTO meta VALUES ('user_id', ?)", (user_id,))
