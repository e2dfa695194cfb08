-- Who may call: API tokens, sessions, and the record of what operators did.
CREATE TABLE access_token (
    token_id     INTEGER PRIMARY KEY,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    grants       TEXT NOT NULL,
    created_by   TEXT,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

CREATE TABLE access_session (
    session_hash TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL,
    principal    TEXT NOT NULL,
    token_id     INTEGER,
    remote       TEXT,
    user_agent   TEXT,
    created_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL,
    ends_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_session_by_end ON access_session (ends_at);
CREATE INDEX access_session_by_principal ON access_session (principal_id);

CREATE TABLE access_login (
    state_hash TEXT PRIMARY KEY,
    nonce      TEXT NOT NULL,
    verifier   TEXT NOT NULL,
    return_to  TEXT,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_login_by_end ON access_login (expires_at);

CREATE TABLE action (
    action_id   INTEGER PRIMARY KEY,
    occurred_at INTEGER NOT NULL,
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
    status      INTEGER NOT NULL,
    detail      TEXT
) STRICT;
CREATE INDEX action_by_actor ON action (actor);
CREATE INDEX action_by_type ON action (action_type);
CREATE INDEX action_by_target ON action (target) WHERE target IS NOT NULL;
