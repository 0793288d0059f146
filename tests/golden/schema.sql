-- version 13
CREATE TABLE chains (
    chain INTEGER PRIMARY KEY AUTOINCREMENT,
    summary TEXT NOT NULL
) STRICT;
CREATE TABLE changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    row INTEGER NOT NULL,
    UNIQUE (kind, row) ON CONFLICT REPLACE
) STRICT;
CREATE TABLE fact_evidence (
    fact INTEGER NOT NULL REFERENCES facts,
    seq INTEGER NOT NULL REFERENCES pages, is_confirming INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (fact, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX fact_evidence_pages ON fact_evidence (seq);
CREATE TABLE fact_vectors (
    fact INTEGER NOT NULL REFERENCES facts ON DELETE CASCADE,
    space INTEGER NOT NULL REFERENCES spaces,
    vector BLOB NOT NULL,
    PRIMARY KEY (fact, space)
) STRICT, WITHOUT ROWID;
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
    folded TEXT NOT NULL,
    text TEXT NOT NULL,
    learned_by TEXT NOT NULL DEFAULT 'extractive', stated_until_us INTEGER, ended_by TEXT CHECK (ended_by = 'user'), ended_seq INTEGER, kind TEXT NOT NULL DEFAULT 'statement' CHECK (kind IN ('statement', 'wish')), said_since TEXT, said_until TEXT) STRICT;
CREATE UNIQUE INDEX facts_once ON facts (about, assistant_id, folded) WHERE valid_until_us IS NULL;
CREATE INDEX facts_superseded ON facts (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_words ON facts (folded, about, assistant_id);
CREATE TABLE failures (
    work TEXT PRIMARY KEY,
    attempts INTEGER NOT NULL, -- in a row; 0 after a success
    error TEXT NOT NULL,
    at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE imports (
    file TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('chain', 'segment', 'session')),
    number INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (file, kind, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE lease (
    slot INTEGER PRIMARY KEY CHECK (slot = 1),
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT;
CREATE TABLE llm_usage (
    day TEXT NOT NULL,
    purpose TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed_calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    PRIMARY KEY (day, purpose)
) STRICT, WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE names (
    name TEXT PRIMARY KEY,
    pages INTEGER NOT NULL,
    called_by_user INTEGER NOT NULL,
    called_by_agent INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE "page_tokens" (
    place INTEGER PRIMARY KEY,
    counts BLOB NOT NULL,
    codes BLOB NOT NULL
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
CREATE INDEX page_vectors_pages ON page_vectors (seq);
CREATE UNIQUE INDEX page_vectors_place ON page_vectors (space, seq, part);
CREATE VIRTUAL TABLE page_vocabulary USING fts5vocab (page_words, 'row');
CREATE VIRTUAL TABLE page_words USING fts5 (
    user_input, agent_response,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE TABLE 'page_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE 'page_words_data'(id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE 'page_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
CREATE TABLE 'page_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE pages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    tier TEXT NOT NULL CHECK (tier IN ('short_term', 'backlog', 'mid_term')),
    chain INTEGER REFERENCES chains,
    segment INTEGER REFERENCES segments,
    is_analysed INTEGER NOT NULL DEFAULT 0,
    occurred_us INTEGER NOT NULL,
    utc_offset_s INTEGER NOT NULL,
    added_us INTEGER NOT NULL,
    idempotency_key TEXT,
    meta_data TEXT,
    user_input TEXT NOT NULL,
    agent_response TEXT NOT NULL
, organised_by TEXT, learned_by TEXT, is_degraded INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, source TEXT NOT NULL DEFAULT 'conversation'
    CHECK (source IN ('conversation', 'tool', 'web', 'document')), gives_orders INTEGER NOT NULL DEFAULT 0, checksum INTEGER NOT NULL DEFAULT 0, read_by TEXT, project TEXT) STRICT;
CREATE INDEX pages_chain ON pages (chain, seq) WHERE chain IS NOT NULL;
CREATE INDEX pages_degraded ON pages (seq) WHERE is_degraded = 1;
CREATE UNIQUE INDEX pages_idempotency ON pages (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX pages_outline ON pages (
    seq, session, segment, occurred_us, utc_offset_s, octet_length(user_input) + octet_length(agent_response)
);
CREATE INDEX pages_project ON pages (project, seq) WHERE project IS NOT NULL;
CREATE INDEX pages_segment ON pages (segment, seq) WHERE segment IS NOT NULL;
CREATE INDEX pages_tier ON pages (tier, seq);
CREATE INDEX pages_unread ON pages (seq) WHERE read_by IS NULL;
CREATE TABLE refused (
    digest BLOB PRIMARY KEY,
    until_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE retention (
    slot INTEGER PRIMARY KEY CHECK (slot = 1),
    looked_us INTEGER NOT NULL,
    waits_since_us INTEGER
) STRICT;
CREATE TABLE segment_vectors (
    segment INTEGER NOT NULL REFERENCES segments ON DELETE CASCADE,
    space INTEGER NOT NULL REFERENCES spaces,
    vector BLOB NOT NULL,
    PRIMARY KEY (segment, space)
) STRICT, WITHOUT ROWID;
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
    is_due INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE spaces (
    space INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL UNIQUE
, model TEXT NOT NULL DEFAULT '{"name": "all-MiniLM-L6-v2"}', next_seq INTEGER NOT NULL DEFAULT 1, used_us INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE trait_evidence (
    dimension TEXT NOT NULL REFERENCES traits,
    seq INTEGER NOT NULL REFERENCES pages,
    PRIMARY KEY (dimension, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX trait_evidence_pages ON trait_evidence (seq);
CREATE TABLE trait_history (
    dimension TEXT NOT NULL,
    level TEXT NOT NULL,
    reason TEXT NOT NULL,
    held_from_us INTEGER NOT NULL,
    held_until_us INTEGER NOT NULL
, ended_by TEXT CHECK (ended_by = 'user'), learned_by TEXT NOT NULL DEFAULT 'extractive', evidence TEXT NOT NULL DEFAULT '[]') STRICT;
CREATE TABLE traits (
    dimension TEXT PRIMARY KEY,
    level TEXT NOT NULL,
    reason TEXT NOT NULL,
    updated_us INTEGER NOT NULL
, learned_by TEXT NOT NULL DEFAULT 'extractive') STRICT, WITHOUT ROWID;
