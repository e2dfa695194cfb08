package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // registers "sqlite"
)

// rawBatch is the number of rows per transaction of the batched measurement.
const rawBatch = 100

// rawPayload is a typical event payload.
var rawPayload = `{"data":"` + strings.Repeat("x", 290) + `"}`

// RawSQLite measures for d each what the disk and SQLite give a program that
// does nothing else: durable single-row commits per second, and rows per
// second in transactions of a hundred. It works in a file of its own in dir.
func RawSQLite(dir string, d time.Duration) (commitsPerSec, rowsPerSec float64, err error) {
	dir, err = os.MkdirTemp(dir, "raw-sqlite-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "raw.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE event (event_id INTEGER PRIMARY KEY, execution_id INTEGER NOT NULL, event_type TEXT NOT NULL,
		node_name TEXT, status TEXT, payload TEXT) STRICT; CREATE INDEX event_by_execution ON event (execution_id, event_id)`); err != nil {
		return 0, 0, fmt.Errorf("create table: %w", err)
	}
	st, err := db.Prepare("INSERT INTO event VALUES (?, ?, 'step.exit', 'transform', 'COMPLETED', ?)")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	id := 0
	insert := func(st *sql.Stmt) error {
		id++
		_, err := st.Exec(id, id/50, rawPayload)
		return err
	}
	return rates(d, func() error { return insert(st) }, func() error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		inTx := tx.Stmt(st)
		for range rawBatch {
			if err := insert(inTx); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	})
}

// RawPostgres measures the same on one connection to a PostgreSQL database, in
// a table it creates and drops; batches are multi-row inserts.
func RawPostgres(dsn string, d time.Duration) (commitsPerSec, rowsPerSec float64, err error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS noetl_raw_event; CREATE TABLE noetl_raw_event (event_id BIGINT PRIMARY KEY,
		execution_id BIGINT NOT NULL, event_type TEXT NOT NULL, node_name TEXT, status TEXT, payload JSON);
		CREATE INDEX ON noetl_raw_event (execution_id, event_id)`); err != nil {
		return 0, 0, fmt.Errorf("create table: %w", err)
	}
	defer func() {
		_, dropErr := conn.Exec(ctx, "DROP TABLE noetl_raw_event")
		err = errors.Join(err, dropErr)
	}()
	const insert = "INSERT INTO noetl_raw_event SELECT i, i / 50, 'step.exit', 'transform', 'COMPLETED', p::json "
	id := int64(0)
	return rates(d, func() error {
		id++
		_, err := conn.Exec(ctx, insert+"FROM (VALUES ($1::int8, $2::text)) AS v(i, p)", id, rawPayload)
		return err
	}, func() error {
		ids, payloads := make([]int64, rawBatch), make([]string, rawBatch)
		for i := range ids {
			id++
			ids[i], payloads[i] = id, rawPayload
		}
		_, err := conn.Exec(ctx, insert+"FROM unnest($1::int8[], $2::text[]) AS v(i, p)", ids, payloads)
		return err
	})
}

// rates repeats each of two transactions for d.
func rates(d time.Duration, single, batch func() error) (commitsPerSec, rowsPerSec float64, err error) {
	if commitsPerSec, err = rate(d, single); err != nil {
		return 0, 0, fmt.Errorf("single-row commits: %w", err)
	}
	batches, err := rate(d, batch)
	if err != nil {
		return 0, 0, fmt.Errorf("batches: %w", err)
	}
	return commitsPerSec, batches * rawBatch, nil
}

func rate(d time.Duration, transaction func() error) (float64, error) {
	start, n := time.Now(), 0
	for time.Since(start) < d {
		if err := transaction(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}
