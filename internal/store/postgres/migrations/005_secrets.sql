-- How to renew a keychain entry holds secrets of its own, so it is ciphertext;
-- renew_config stays for rows that other programs wrote.
ALTER TABLE noetl.keychain ADD COLUMN renew_sealed TEXT;
CREATE INDEX keychain_by_catalog ON noetl.keychain (catalog_id);
CREATE INDEX keychain_to_renew ON noetl.keychain (expires_at) WHERE auto_renew;
-- Rotation pages by key, in an order that no locale changes.
CREATE INDEX keychain_in_order ON noetl.keychain (cache_key COLLATE "C");

-- Who got which secret, or did not, and who changed one. Never the secret.
CREATE TABLE noetl.secret_audit (
    audit_id            BIGINT PRIMARY KEY,
    occurred_at         TIMESTAMPTZ NOT NULL,
    credential          TEXT NOT NULL,
    operation           TEXT NOT NULL,
    outcome             TEXT NOT NULL,
    actor               TEXT,
    request_id          TEXT,
    worker_id           TEXT,
    execution_id        BIGINT,
    parent_execution_id BIGINT,
    server_region       TEXT,
    broker_region       TEXT,
    kek_version         TEXT,
    notes               TEXT
);
CREATE INDEX secret_audit_by_time ON noetl.secret_audit (occurred_at);
CREATE INDEX secret_audit_by_credential ON noetl.secret_audit (credential, occurred_at);
CREATE INDEX secret_audit_by_execution ON noetl.secret_audit (execution_id, occurred_at) WHERE execution_id IS NOT NULL;
