-- Where a value is and how long it is kept. The data is NULL when it is not in
-- the row.
ALTER TABLE noetl.result_store
    ALTER COLUMN data DROP NOT NULL,
    ADD COLUMN source_step TEXT,
    ADD COLUMN store       TEXT NOT NULL DEFAULT 'db',
    ADD COLUMN key         TEXT,
    ADD COLUMN frames      BYTEA,
    ADD COLUMN expires_at  TIMESTAMPTZ,
    ADD COLUMN gone_at     TIMESTAMPTZ,
    ADD COLUMN pending     BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN pinned_by   BIGINT[];

-- What has a time, and what lives as long as its execution: rows of values that
-- are gone are in neither.
CREATE INDEX result_store_by_end ON noetl.result_store (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX result_store_by_life ON noetl.result_store (execution_id, ref COLLATE "C")
    WHERE expires_at IS NULL AND gone_at IS NULL AND scope <> 'permanent';
DROP INDEX noetl.result_store_by_age;

-- Values that are kept here but were never held as a whole. They arrive
-- compressed.
CREATE TABLE noetl.result_chunk (
    execution_id BIGINT NOT NULL,
    key          TEXT NOT NULL,
    part         INTEGER NOT NULL,
    data         BYTEA NOT NULL,
    PRIMARY KEY (execution_id, key, part)
);
ALTER TABLE noetl.result_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
