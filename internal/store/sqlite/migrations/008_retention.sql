-- Executions that were removed as a whole. What is left is that they existed.
CREATE TABLE execution_removed (
    execution_id INTEGER PRIMARY KEY,
    removed_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX execution_removed_by_time ON execution_removed (removed_at);

-- Executions that others are being started from.
CREATE TABLE execution_hold (
    execution_id INTEGER PRIMARY KEY,
    until        INTEGER NOT NULL
) STRICT;

-- Work that one process does at a time.
CREATE TABLE work_lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
