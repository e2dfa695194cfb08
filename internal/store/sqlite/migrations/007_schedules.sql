-- Schedules and the ticks they fired.
CREATE TABLE schedule (
    schedule_id      INTEGER PRIMARY KEY,
    name             TEXT NOT NULL UNIQUE,
    revision         INTEGER NOT NULL,
    playbook_path    TEXT NOT NULL,
    playbook_version TEXT,
    cron             TEXT,
    interval_seconds INTEGER,
    enabled          INTEGER NOT NULL,
    timezone         TEXT,
    owner            TEXT,
    next_run_at      INTEGER,
    last_run_at      INTEGER,
    last_status      TEXT,
    input_payload    TEXT,
    meta             TEXT,
    state            TEXT,
    wake_at          INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_by_path ON schedule (playbook_path);
CREATE INDEX schedule_by_owner ON schedule (owner) WHERE owner IS NOT NULL;
CREATE INDEX schedule_wake ON schedule (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE schedule_run (
    schedule_id      INTEGER NOT NULL,
    tick             INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    state            TEXT NOT NULL,
    playbook_path    TEXT NOT NULL,
    playbook_version INTEGER NOT NULL,
    execution_id     INTEGER,
    decided_at       INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    previous         INTEGER,
    ticks            INTEGER NOT NULL,
    note             TEXT,
    PRIMARY KEY (schedule_id, tick)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_run_open ON schedule_run (schedule_id, tick) WHERE ended_at IS NULL;
CREATE INDEX schedule_run_ended ON schedule_run (ended_at) WHERE ended_at IS NOT NULL;
