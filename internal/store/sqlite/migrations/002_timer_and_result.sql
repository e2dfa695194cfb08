-- Executions that wait for a time are found by it, and by nothing else: the
-- index holds only those, however many have ended.
ALTER TABLE execution ADD COLUMN wake_at INTEGER;
CREATE INDEX execution_due ON execution (wake_at, execution_id)
    WHERE wake_at IS NOT NULL AND status <> 'COMPLETED' AND status <> 'FAILED' AND status <> 'CANCELLED';

-- Values too large for the log. The table is in order of arrival, because rows
-- of megabytes do not belong into an index.
CREATE TABLE result_store (
    execution_id INTEGER NOT NULL,
    ref          TEXT NOT NULL,
    name         TEXT NOT NULL,
    bytes        INTEGER NOT NULL,
    sha256       TEXT NOT NULL,
    created_at   INTEGER,
    data         TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX result_by_ref ON result_store (execution_id, ref);
