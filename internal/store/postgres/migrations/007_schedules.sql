-- Schedules and the ticks they fired. Rows of older makers were never read by
-- anybody: they get a name, and stay silent until somebody changes them.
ALTER TABLE noetl.schedule
    ADD COLUMN name     TEXT,
    ADD COLUMN revision BIGINT NOT NULL DEFAULT 1,
    ADD COLUMN owner    TEXT,
    ADD COLUMN state    JSON,
    ADD COLUMN wake_at  TIMESTAMPTZ;
UPDATE noetl.schedule SET name = 'schedule-' || schedule_id;
ALTER TABLE noetl.schedule ALTER COLUMN name SET NOT NULL;
CREATE UNIQUE INDEX schedule_by_name ON noetl.schedule (name);
CREATE INDEX schedule_by_path ON noetl.schedule (playbook_path, schedule_id);
CREATE INDEX schedule_by_owner ON noetl.schedule (owner, schedule_id) WHERE owner IS NOT NULL;
CREATE INDEX schedule_wake ON noetl.schedule (wake_at) WHERE wake_at IS NOT NULL;
DROP INDEX noetl.schedule_due;

CREATE TABLE noetl.schedule_run (
    schedule_id      BIGINT NOT NULL REFERENCES noetl.schedule ON DELETE CASCADE,
    tick             TIMESTAMPTZ NOT NULL,
    kind             TEXT NOT NULL,
    state            TEXT NOT NULL,
    playbook_path    TEXT NOT NULL,
    playbook_version INTEGER NOT NULL,
    execution_id     BIGINT,
    decided_at       TIMESTAMPTZ NOT NULL,
    started_at       TIMESTAMPTZ,
    ended_at         TIMESTAMPTZ,
    previous         TIMESTAMPTZ,
    ticks            INTEGER NOT NULL,
    note             TEXT,
    PRIMARY KEY (schedule_id, tick)
);
CREATE INDEX schedule_run_open ON noetl.schedule_run (schedule_id, tick) WHERE ended_at IS NULL;
CREATE INDEX schedule_run_ended ON noetl.schedule_run (ended_at) WHERE ended_at IS NOT NULL;
