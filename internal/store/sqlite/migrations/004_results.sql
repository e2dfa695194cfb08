-- Where a value is and how long it is kept. Of a value that is not in the row,
-- data is the empty text, which no JSON is.
ALTER TABLE result_store ADD COLUMN scope TEXT NOT NULL DEFAULT 'execution';
ALTER TABLE result_store ADD COLUMN source_step TEXT;
ALTER TABLE result_store ADD COLUMN media_type TEXT NOT NULL DEFAULT 'application/json';
ALTER TABLE result_store ADD COLUMN store TEXT NOT NULL DEFAULT 'db';
ALTER TABLE result_store ADD COLUMN key TEXT;
ALTER TABLE result_store ADD COLUMN frames BLOB;
ALTER TABLE result_store ADD COLUMN expires_at INTEGER;
ALTER TABLE result_store ADD COLUMN gone_at INTEGER;
ALTER TABLE result_store ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result_store ADD COLUMN pinned_by TEXT;

-- What has a time, and what lives as long as its execution: rows of values that
-- are gone are in neither.
CREATE INDEX result_by_end ON result_store (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX result_by_life ON result_store (execution_id, ref)
    WHERE expires_at IS NULL AND gone_at IS NULL AND scope <> 'permanent';

-- Values that are kept here but were never held as a whole.
CREATE TABLE result_chunk (
    execution_id INTEGER NOT NULL,
    key          TEXT NOT NULL,
    part         INTEGER NOT NULL,
    data         BLOB NOT NULL,
    PRIMARY KEY (execution_id, key, part)
) STRICT;
