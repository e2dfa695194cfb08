-- Lists of executions: each filter has an index that also tells the status, so
-- that a page is a look-up with and without one. The primary key is the last
-- part of every index by itself.
DROP INDEX execution_by_status;
CREATE INDEX execution_by_status ON execution (status);
DROP INDEX execution_by_catalog;
CREATE INDEX execution_by_catalog ON execution (catalog_id, status);
DROP INDEX execution_by_parent;
CREATE INDEX execution_by_parent ON execution (parent_execution_id, status) WHERE parent_execution_id IS NOT NULL;
CREATE INDEX execution_by_path ON execution (path, status);
CREATE INDEX execution_by_pool ON execution (pool, status) WHERE pool IS NOT NULL;

-- Held commands by worker: one renews what it holds at once. Expired leases are
-- looked up worker by worker, of which there are few.
DROP INDEX command_leased;
CREATE INDEX command_held ON command (worker_id, lease_until) WHERE status IN ('CLAIMED', 'RUNNING');
CREATE INDEX command_by_execution ON command (execution_id);

ALTER TABLE catalog ADD COLUMN archived_at INTEGER;

-- Starts that are remembered by a key for a while.
CREATE TABLE subscription_dedup (
    subscription_id INTEGER NOT NULL,
    dedup_key       TEXT NOT NULL,
    execution_id    INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    PRIMARY KEY (subscription_id, dedup_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscription_dedup_over ON subscription_dedup (expires_at);

-- Events to be published; what they say is in the log.
CREATE TABLE outbox (
    outbox_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    execution_id INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    status       TEXT NOT NULL DEFAULT 'PENDING',
    attempts     INTEGER NOT NULL DEFAULT 0,
    available_at INTEGER,
    locked_at    INTEGER,
    lock_token   TEXT,
    published_at INTEGER,
    last_error   TEXT,
    created_at   INTEGER,
    UNIQUE (execution_id, event_id)
) STRICT;
CREATE INDEX outbox_open ON outbox (outbox_id) WHERE status <> 'PUBLISHED' AND status <> 'DEAD';
-- What can hold back later rows of its execution.
CREATE INDEX outbox_taken ON outbox (execution_id, outbox_id) WHERE status IN ('FAILED', 'IN_FLIGHT');
CREATE INDEX outbox_done ON outbox (status, published_at) WHERE status IN ('PUBLISHED', 'DEAD');

-- Variables of executions.
CREATE TABLE transient (
    execution_id INTEGER NOT NULL,
    var_name     TEXT NOT NULL,
    var_type     TEXT NOT NULL,
    var_value    TEXT,
    source_step  TEXT,
    created_at   INTEGER,
    accessed_at  INTEGER,
    access_count INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX transient_by_name ON transient (execution_id, var_name);

CREATE TABLE runtime (
    runtime_id   INTEGER PRIMARY KEY,
    name         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    uri          TEXT,
    status       TEXT NOT NULL,
    labels       TEXT,
    capabilities TEXT,
    capacity     INTEGER NOT NULL,
    runtime      TEXT,
    heartbeat    INTEGER,
    created_at   INTEGER,
    updated_at   INTEGER,
    UNIQUE (kind, name)
) STRICT;

CREATE TABLE projection_snapshot (
    execution_id   INTEGER NOT NULL,
    aggregate_type TEXT NOT NULL,
    aggregate_id   TEXT NOT NULL,
    version        INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    snapshot       TEXT,
    checksum       TEXT NOT NULL,
    meta           TEXT,
    updated_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX projection_snapshot_by_id ON projection_snapshot (execution_id, aggregate_type, aggregate_id);
