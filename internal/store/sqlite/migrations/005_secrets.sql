-- Credentials and the keychain: what is secret in them is ciphertext.
CREATE TABLE credential (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    type           TEXT NOT NULL,
    data_encrypted TEXT NOT NULL,
    schema         TEXT,
    meta           TEXT,
    tags           TEXT,
    description    TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX credential_by_type ON credential (type);

CREATE TABLE keychain (
    cache_key           TEXT PRIMARY KEY,
    keychain_name       TEXT NOT NULL,
    catalog_id          INTEGER NOT NULL,
    credential_type     TEXT NOT NULL,
    cache_type          TEXT NOT NULL CHECK (cache_type IN ('secret', 'token')),
    scope_type          TEXT NOT NULL CHECK (scope_type IN ('local', 'global', 'shared')),
    execution_id        INTEGER,
    parent_execution_id INTEGER,
    data_encrypted      TEXT NOT NULL,
    schema              TEXT,
    expires_at          INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    accessed_at         INTEGER,
    access_count        INTEGER NOT NULL DEFAULT 0,
    auto_renew          INTEGER NOT NULL DEFAULT 0,
    renew_sealed        TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX keychain_by_execution ON keychain (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX keychain_by_end ON keychain (expires_at);
CREATE INDEX keychain_by_catalog ON keychain (catalog_id);
CREATE INDEX keychain_to_renew ON keychain (expires_at) WHERE auto_renew <> 0;

-- Who got which secret, or did not, and who changed one. Never the secret.
CREATE TABLE secret_audit (
    audit_id            INTEGER PRIMARY KEY,
    occurred_at         INTEGER NOT NULL,
    credential          TEXT NOT NULL,
    operation           TEXT NOT NULL,
    outcome             TEXT NOT NULL,
    actor               TEXT,
    request_id          TEXT,
    worker_id           TEXT,
    execution_id        INTEGER,
    parent_execution_id INTEGER,
    server_region       TEXT,
    broker_region       TEXT,
    kek_version         TEXT,
    notes               TEXT
) STRICT;
CREATE INDEX secret_audit_by_time ON secret_audit (occurred_at);
CREATE INDEX secret_audit_by_credential ON secret_audit (credential, occurred_at);
CREATE INDEX secret_audit_by_execution ON secret_audit (execution_id, occurred_at) WHERE execution_id IS NOT NULL;
