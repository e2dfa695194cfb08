-- Executions that were removed as a whole, in the database they were in. What
-- is left is that they existed.
CREATE TABLE noetl.execution_removed (
    execution_id BIGINT PRIMARY KEY,
    removed_at   TIMESTAMPTZ NOT NULL
);
CREATE INDEX execution_removed_by_time ON noetl.execution_removed (removed_at);

-- Executions that others are being started from.
CREATE TABLE noetl.execution_hold (
    execution_id BIGINT PRIMARY KEY,
    until        TIMESTAMPTZ NOT NULL
);

-- Work that one process does at a time, in the cluster database.
CREATE TABLE noetl.work_lease (
    name   TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT NOT NULL,
    until  TIMESTAMPTZ NOT NULL
);

-- The log is cut by month from now on, so that what is over goes sooner as a
-- whole. Quarters that hold events stay as they are; those made ahead and still
-- empty make room.
DO $$
DECLARE
    part  RECORD;
    taken BOOLEAN;
BEGIN
    FOR part IN
        SELECT c.relname AS name, substr(c.relname, 7, 4)::int AS year, substr(c.relname, 13, 1)::int AS quarter
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'noetl.event'::regclass AND c.relname ~ '^event_[0-9]{4}_q[1-4]$'
    LOOP
        CONTINUE WHEN make_date(part.year, 3 * part.quarter - 2, 1) <= (now() AT TIME ZONE 'UTC')::date;
        EXECUTE format('LOCK TABLE noetl.%I IN ACCESS EXCLUSIVE MODE', part.name);
        EXECUTE format('SELECT EXISTS (SELECT FROM noetl.%I)', part.name) INTO taken;
        CONTINUE WHEN taken;
        EXECUTE format('ALTER TABLE noetl.event DETACH PARTITION noetl.%I', part.name);
        EXECUTE format('DROP TABLE noetl.%I', part.name);
    END LOOP;
END $$;
