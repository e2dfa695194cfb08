-- Executions that wait for a time are found by it, and by nothing else: the
-- index holds only those, however many have ended. As long as no execution
-- waits, the column is NULL before and after and rows still change in place.
ALTER TABLE noetl.execution ADD COLUMN wake_at TIMESTAMPTZ;
CREATE INDEX execution_due ON noetl.execution (wake_at, execution_id)
    WHERE wake_at IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

-- Values too large for the log, in the database of their execution.
CREATE TABLE noetl.result_store (
    execution_id BIGINT NOT NULL,
    ref          TEXT NOT NULL,
    created_at   TIMESTAMPTZ,
    bytes        BIGINT NOT NULL,
    name         TEXT NOT NULL,
    scope        TEXT NOT NULL DEFAULT 'execution',
    sha256       TEXT NOT NULL,
    media_type   TEXT NOT NULL DEFAULT 'application/json',
    data         JSON NOT NULL,
    PRIMARY KEY (execution_id, ref)
);
CREATE INDEX result_store_by_age ON noetl.result_store (created_at);

-- The older type stays for programs that still append with it.
CREATE TYPE noetl.append_execution_2 AS (
    expected BIGINT, execution_id BIGINT, last_seq BIGINT, catalog_id BIGINT, parent_execution_id BIGINT,
    version INTEGER, steps_total INTEGER, steps_completed INTEGER, steps_running INTEGER, steps_failed INTEGER,
    last_event_id BIGINT, start_time TIMESTAMPTZ, end_time TIMESTAMPTZ, updated_at TIMESTAMPTZ, wake_at TIMESTAMPTZ,
    status TEXT, path TEXT, pool TEXT, last_event_type TEXT, last_node_name TEXT, current_step TEXT, error TEXT
);
CREATE TYPE noetl.append_result AS (
    execution_id BIGINT, ref TEXT, created_at TIMESTAMPTZ, bytes BIGINT, name TEXT, sha256 TEXT, data JSON
);
