CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- A call that was answered for good.
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    stage TEXT NOT NULL,
    outcome TEXT NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    cost_usd REAL,
    latency_s REAL NOT NULL,
    at REAL NOT NULL,
    detail TEXT NOT NULL,
    sent TEXT NOT NULL,
    request BLOB NOT NULL,
    raw BLOB NOT NULL
);
-- A call that was forgotten: counted as spent, answers nothing. The columns of `calls`.
CREATE TABLE IF NOT EXISTS superseded (
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    stage TEXT NOT NULL,
    outcome TEXT NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    cost_usd REAL,
    latency_s REAL NOT NULL,
    at REAL NOT NULL,
    detail TEXT NOT NULL,
    sent TEXT NOT NULL,
    request BLOB NOT NULL,
    raw BLOB NOT NULL,
    PRIMARY KEY (key, at)
);
CREATE INDEX IF NOT EXISTS calls_of ON calls (model);
-- A try that brought no answer.
CREATE TABLE IF NOT EXISTS attempts (
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER,
    detail TEXT NOT NULL,
    latency_s REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS attempts_of ON attempts (key);
-- What a model's endpoint refuses (a role layout, a parameter).
CREATE TABLE IF NOT EXISTS quirks (identity TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
