package testkit

// EncryptionKey is a key for servers under test, as NOETL_ENCRYPTION_KEY takes
// it: those on PostgreSQL do not start without one.
const EncryptionKey = "dGhpcy1rZXktaXMtZm9yLXRlc3RzLW9ubHktISEhISE="
