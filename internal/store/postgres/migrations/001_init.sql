-- Every database, cluster or shard, holds all tables; which rows live where is
-- the driver's business. Empty strings, zero ids and zero times are NULL.
-- Payloads are json, not jsonb: they are opaque here and come back as written.

CREATE TABLE noetl.event (
    execution_id        BIGINT NOT NULL,
    seq                 BIGINT NOT NULL,
    event_id            BIGINT NOT NULL,
    catalog_id          BIGINT NOT NULL,
    parent_event_id     BIGINT,
    parent_execution_id BIGINT,
    duration            DOUBLE PRECISION, -- seconds
    created_at          TIMESTAMP,        -- UTC
    event_type          VARCHAR NOT NULL,
    node_name           VARCHAR,
    node_type           VARCHAR,
    status              VARCHAR,
    worker_id           VARCHAR,
    command_key         TEXT,
    error               TEXT,
    meta                JSON,
    result              JSON,
    context             JSON,
    PRIMARY KEY (execution_id, event_id),
    UNIQUE (execution_id, seq)
) PARTITION BY RANGE (execution_id);
-- 2026-01-01 in ids. Quarters from the present one on are made by the program.
CREATE TABLE noetl.event_pre_2026 PARTITION OF noetl.event FOR VALUES FROM (MINVALUE) TO (264905529753600000);
CREATE TABLE noetl.event_default PARTITION OF noetl.event DEFAULT;

CREATE VIEW noetl.event_log AS
    SELECT *, CASE WHEN event_type LIKE 'playbook%' THEN 'playbook' ELSE node_name END AS node_id FROM noetl.event;

CREATE TABLE noetl.execution (
    execution_id        BIGINT PRIMARY KEY,
    last_seq            BIGINT NOT NULL,
    catalog_id          BIGINT NOT NULL,
    parent_execution_id BIGINT,
    version             INTEGER NOT NULL,
    steps_total         INTEGER NOT NULL,
    steps_completed     INTEGER NOT NULL,
    steps_running       INTEGER NOT NULL,
    steps_failed        INTEGER NOT NULL,
    last_event_id       BIGINT NOT NULL,
    start_time          TIMESTAMPTZ,
    end_time            TIMESTAMPTZ,
    updated_at          TIMESTAMPTZ,
    status              VARCHAR NOT NULL,
    path                TEXT NOT NULL,
    pool                TEXT,
    last_event_type     VARCHAR,
    last_node_name      VARCHAR,
    current_step        TEXT,
    error               TEXT
    -- Rows change with every batch. Room on the page and indexes on stable
    -- columns only let PostgreSQL do that in place.
) WITH (fillfactor = 70);
CREATE INDEX execution_by_status ON noetl.execution (status, execution_id);
CREATE INDEX execution_by_catalog ON noetl.execution (catalog_id, execution_id);
CREATE INDEX execution_by_parent ON noetl.execution (parent_execution_id, execution_id) WHERE parent_execution_id IS NOT NULL;
CREATE INDEX execution_open ON noetl.execution (execution_id) WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

CREATE TABLE noetl.command (
    event_id     BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    catalog_id   BIGINT NOT NULL,
    attempt      INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    iter_index   INTEGER NOT NULL,
    lease_until  TIMESTAMPTZ,
    created_at   TIMESTAMPTZ,
    claimed_at   TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    status       TEXT NOT NULL,
    command_key  TEXT,
    step_name    TEXT,
    tool_kind    TEXT,
    pool         TEXT,
    worker_id    TEXT,
    error        TEXT,
    -- The event first: a claim may know nothing else.
    PRIMARY KEY (event_id, execution_id)
) WITH (fillfactor = 80);
CREATE INDEX command_pending ON noetl.command (created_at, event_id) WHERE status = 'PENDING';
CREATE INDEX command_leased ON noetl.command (lease_until, event_id) WHERE status IN ('CLAIMED', 'RUNNING');

CREATE TABLE noetl.resource (
    name VARCHAR PRIMARY KEY,
    meta JSONB
);
INSERT INTO noetl.resource (name) VALUES ('playbook'), ('credential'), ('mcp'), ('agent'), ('memory'), ('subscription');

CREATE TABLE noetl.catalog (
    catalog_id BIGINT PRIMARY KEY,
    path       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    kind       VARCHAR NOT NULL REFERENCES noetl.resource (name),
    content    TEXT NOT NULL,
    payload    JSON,
    meta       JSON,
    created_at TIMESTAMP, -- UTC
    UNIQUE (path, version)
);
CREATE INDEX catalog_by_kind ON noetl.catalog (kind, catalog_id);

-- A group of batches arrives as three arrays of these. They are apart from the
-- tables so that programs of different age can append while a table grows.
CREATE TYPE noetl.append_execution AS (
    expected BIGINT, execution_id BIGINT, last_seq BIGINT, catalog_id BIGINT, parent_execution_id BIGINT,
    version INTEGER, steps_total INTEGER, steps_completed INTEGER, steps_running INTEGER, steps_failed INTEGER,
    last_event_id BIGINT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ, updated_at TIMESTAMPTZ,
    status TEXT, path TEXT, pool TEXT, last_event_type TEXT, last_node_name TEXT, current_step TEXT, error TEXT
);
CREATE TYPE noetl.append_event AS (
    execution_id BIGINT, seq BIGINT, event_id BIGINT, catalog_id BIGINT, parent_event_id BIGINT,
    parent_execution_id BIGINT, duration DOUBLE PRECISION, created_at TIMESTAMP, event_type TEXT, node_name TEXT,
    node_type TEXT, status TEXT, worker_id TEXT, command_key TEXT, error TEXT, meta JSON, result JSON, context JSON
);
CREATE TYPE noetl.append_command AS (
    event_id BIGINT, execution_id BIGINT, catalog_id BIGINT, attempt INTEGER, max_attempts INTEGER, iter_index INTEGER,
    lease_until TIMESTAMPTZ, created_at TIMESTAMPTZ, claimed_at TIMESTAMPTZ, completed_at TIMESTAMPTZ,
    status TEXT, command_key TEXT, step_name TEXT, tool_kind TEXT, pool TEXT, worker_id TEXT, error TEXT
);
