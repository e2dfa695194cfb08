// Package e2e holds the tests that run the real binary: servers and workers
// as processes, real PostgreSQL and NATS, killed in the middle of their work.
package e2e
