-- Which part of an installation a database is. A shard is found by its place
-- in the list of shards, so the place can never change; -1 is a cluster
-- database that is no shard.
CREATE TABLE noetl.shard (
    one         BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    cluster     UUID NOT NULL,
    shard_index INTEGER NOT NULL,
    shard_count INTEGER NOT NULL,
    noted_at    TIMESTAMPTZ NOT NULL DEFAULT now()
);

ALTER TABLE noetl.catalog ADD COLUMN archived_at TIMESTAMPTZ;
CREATE INDEX catalog_present ON noetl.catalog (path, version DESC) WHERE archived_at IS NULL;

-- Lists of executions narrow by one column, then by status, and read from the
-- newest on; without a status they read the few there are one after the other.
-- Paths compare by bytes, so that those with a common start are neighbours.
CREATE INDEX execution_by_path ON noetl.execution (path COLLATE "C", status, execution_id);
CREATE INDEX execution_by_catalog_status ON noetl.execution (catalog_id, status, execution_id);
CREATE INDEX execution_by_parent_status ON noetl.execution (parent_execution_id, status, execution_id)
    WHERE parent_execution_id IS NOT NULL;
CREATE INDEX execution_by_pool ON noetl.execution (pool, status, execution_id) WHERE pool IS NOT NULL;
DROP INDEX noetl.execution_by_catalog, noetl.execution_by_parent;

CREATE INDEX command_by_execution ON noetl.command (execution_id);
CREATE INDEX command_held ON noetl.command (worker_id, event_id) WHERE status IN ('CLAIMED', 'RUNNING');

-- Keys that starts reserved, in the database of the execution that holds them.
CREATE TABLE noetl.subscription_dedup (
    subscription_id BIGINT NOT NULL,
    dedup_key       TEXT COLLATE "C" NOT NULL,
    execution_id    BIGINT NOT NULL,
    seen_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (subscription_id, dedup_key)
);
CREATE INDEX subscription_dedup_by_end ON noetl.subscription_dedup (expires_at);

-- Events that wait to be published. What they say is in the log and only there.
CREATE TABLE noetl.outbox (
    outbox_id    BIGSERIAL PRIMARY KEY,
    execution_id BIGINT NOT NULL,
    event_id     BIGINT NOT NULL,
    available_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    locked_at    TIMESTAMPTZ,
    published_at TIMESTAMPTZ,
    attempts     INTEGER NOT NULL DEFAULT 0,
    status       TEXT NOT NULL DEFAULT 'PENDING'
        CONSTRAINT outbox_status_check CHECK (status IN ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED', 'DEAD')),
    lock_token   TEXT,
    last_error   TEXT,
    UNIQUE (execution_id, event_id)
) WITH (fillfactor = 80);
CREATE INDEX outbox_unpublished ON noetl.outbox (outbox_id) WHERE status IN ('PENDING', 'FAILED', 'IN_FLIGHT');
-- What may hold back the rows behind it.
CREATE INDEX outbox_held ON noetl.outbox (execution_id, outbox_id) WHERE status IN ('FAILED', 'IN_FLIGHT');
CREATE INDEX outbox_published ON noetl.outbox (published_at) WHERE status = 'PUBLISHED';
CREATE INDEX outbox_dead ON noetl.outbox (outbox_id) WHERE status = 'DEAD';

CREATE TABLE noetl.transient (
    execution_id BIGINT NOT NULL,
    var_name     TEXT COLLATE "C" NOT NULL,
    var_type     TEXT NOT NULL CHECK (var_type IN ('user_defined', 'step_result', 'computed', 'iterator_state')),
    scope        TEXT NOT NULL DEFAULT 'execution' CHECK (scope IN ('step', 'execution', 'workflow', 'permanent')),
    var_value    JSON NOT NULL,
    source_step  TEXT,
    created_at   TIMESTAMPTZ,
    accessed_at  TIMESTAMPTZ,
    expires_at   TIMESTAMPTZ,
    access_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (execution_id, var_name)
);

CREATE TABLE noetl.projection_snapshot (
    execution_id    BIGINT NOT NULL,
    aggregate_type  TEXT NOT NULL,
    aggregate_id    TEXT NOT NULL,
    tenant_id       TEXT NOT NULL DEFAULT 'default',
    organization_id TEXT NOT NULL DEFAULT 'default',
    version         BIGINT NOT NULL,
    seq             BIGINT NOT NULL,
    snapshot        JSON NOT NULL,
    checksum        TEXT,
    meta            JSON,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ,
    PRIMARY KEY (execution_id, aggregate_type, aggregate_id)
);

CREATE TABLE noetl.runtime (
    runtime_id   BIGINT PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL CHECK (kind IN ('worker_pool', 'server_api', 'broker')),
    uri          TEXT,
    status       TEXT NOT NULL,
    labels       JSON,
    capabilities JSON,
    runtime      JSON,
    capacity     INTEGER,
    heartbeat    TIMESTAMPTZ NOT NULL DEFAULT now(),
    created_at   TIMESTAMPTZ,
    updated_at   TIMESTAMPTZ,
    UNIQUE (kind, name)
);

CREATE TABLE noetl.schedule (
    schedule_id      BIGINT PRIMARY KEY,
    playbook_path    TEXT NOT NULL,
    playbook_version TEXT,
    cron             TEXT,
    interval_seconds INTEGER,
    enabled          BOOLEAN NOT NULL DEFAULT true,
    timezone         TEXT DEFAULT 'UTC',
    next_run_at      TIMESTAMPTZ,
    last_run_at      TIMESTAMPTZ,
    last_status      TEXT,
    input_payload    JSON,
    created_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    meta             JSON
);
CREATE INDEX schedule_due ON noetl.schedule (next_run_at) WHERE enabled;

CREATE TABLE noetl.credential (
    id             BIGINT PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    type           TEXT NOT NULL,
    data_encrypted TEXT NOT NULL,
    schema         JSON,
    meta           JSON,
    tags           TEXT[],
    description    TEXT,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX credential_by_type ON noetl.credential (type);

CREATE TABLE noetl.keychain (
    cache_key           TEXT PRIMARY KEY,
    keychain_name       TEXT NOT NULL,
    catalog_id          BIGINT NOT NULL,
    credential_type     TEXT NOT NULL,
    cache_type          TEXT NOT NULL CHECK (cache_type IN ('secret', 'token')),
    scope_type          TEXT NOT NULL CHECK (scope_type IN ('local', 'global', 'shared')),
    execution_id        BIGINT,
    parent_execution_id BIGINT,
    data_encrypted      TEXT NOT NULL,
    schema              JSON,
    expires_at          TIMESTAMPTZ NOT NULL,
    created_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    accessed_at         TIMESTAMPTZ,
    access_count        INTEGER DEFAULT 0,
    auto_renew          BOOLEAN DEFAULT false,
    renew_config        JSON
);
CREATE INDEX keychain_by_execution ON noetl.keychain (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX keychain_by_parent ON noetl.keychain (parent_execution_id) WHERE parent_execution_id IS NOT NULL;
CREATE INDEX keychain_by_end ON noetl.keychain (expires_at);
CREATE INDEX keychain_by_name ON noetl.keychain (keychain_name, catalog_id);

-- What a group of batches may bring besides. Programs that do not know of it
-- append as before.
CREATE TYPE noetl.append_claim AS (
    execution_id BIGINT, subscription_id BIGINT, dedup_key TEXT, seen_at TIMESTAMPTZ, expires_at TIMESTAMPTZ
);
CREATE TYPE noetl.append_outbox AS (execution_id BIGINT, event_id BIGINT, created_at TIMESTAMPTZ);
