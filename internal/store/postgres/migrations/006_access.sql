-- Who may call: API tokens, sessions, and the record of what operators did.
CREATE TABLE noetl.access_token (
    token_id     BIGINT PRIMARY KEY,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    grants       JSON NOT NULL,
    created_by   TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    expires_at   TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    revoked_at   TIMESTAMPTZ
);

CREATE TABLE noetl.access_session (
    session_hash TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL,
    principal    JSON NOT NULL,
    token_id     BIGINT,
    remote       TEXT,
    user_agent   TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    used_at      TIMESTAMPTZ NOT NULL,
    ends_at      TIMESTAMPTZ NOT NULL,
    expires_at   TIMESTAMPTZ NOT NULL
);
CREATE INDEX access_session_by_end ON noetl.access_session (ends_at);
CREATE INDEX access_session_by_principal ON noetl.access_session (principal_id);

CREATE TABLE noetl.access_login (
    state_hash TEXT PRIMARY KEY,
    nonce      TEXT NOT NULL,
    verifier   TEXT NOT NULL,
    return_to  TEXT,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX access_login_by_end ON noetl.access_login (expires_at);

CREATE TABLE noetl.action (
    action_id   BIGINT PRIMARY KEY,
    occurred_at TIMESTAMPTZ NOT NULL,
    action_type TEXT NOT NULL,
    actor       TEXT NOT NULL,
    actor_name  TEXT,
    proved_by   TEXT,
    remote      TEXT,
    request_id  TEXT,
    method      TEXT,
    route       TEXT,
    target      TEXT,
    outcome     TEXT NOT NULL,
    status      INT NOT NULL,
    detail      JSON
);
CREATE INDEX action_by_actor ON noetl.action (actor, action_id);
CREATE INDEX action_by_type ON noetl.action (action_type, action_id);
CREATE INDEX action_by_target ON noetl.action (target, action_id) WHERE target IS NOT NULL;
