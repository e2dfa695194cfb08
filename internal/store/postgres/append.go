package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// appendForm says what a group brings besides executions, events and commands.
// Each combination is a statement of its own: groups that bring less need not
// pay for looking at more tables.
type appendForm int

// The bits are in the order in which their arrays follow the first three.
const (
	withResults appendForm = 1 << iota
	withOutbox
	withClaims

	appendForms = 1 << iota
)

const (
	executionColumns = `execution_id, last_seq, catalog_id, parent_execution_id, version, steps_total, steps_completed,
	steps_running, steps_failed, last_event_id, start_time, end_time, updated_at, wake_at, status, path, pool,
	last_event_type, last_node_name, current_step, error`
	eventColumns = `execution_id, seq, event_id, catalog_id, parent_event_id, parent_execution_id, duration, created_at,
	event_type, node_name, node_type, status, worker_id, command_key, error, meta, result, context`
	commandColumns = `event_id, execution_id, catalog_id, attempt, max_attempts, iter_index, lease_until, created_at,
	claimed_at, completed_at, status, command_key, step_name, tool_kind, pool, worker_id, error`
	resultColumns = `execution_id, ref, created_at, bytes, name, sha256, data`
	outboxColumns = `execution_id, event_id, created_at`
	claimColumns  = `execution_id, subscription_id, dedup_key, seen_at, expires_at`

	rowTypesSQL = `SELECT 'noetl.append_execution_2'::regtype::oid, 'noetl.append_event'::regtype::oid,
	'noetl.append_command'::regtype::oid, 'noetl.append_result'::regtype::oid, 'noetl.append_outbox'::regtype::oid,
	'noetl.append_claim'::regtype::oid`
)

// appendSQL stores a group in one round trip and one transaction. The
// compare-and-set is the join on last_seq, or the insert of a new row; what
// belongs to an execution that lost is left out, and the caller learns who won.
func appendSQL(form appendForm) string {
	text := "WITH x AS MATERIALIZED (SELECT * FROM unnest($1::noetl.append_execution_2[]))"
	mayStart, end, next := "", "", 4
	results, outbox := "", ""
	if form&withResults != 0 {
		results, next = fmt.Sprintf(appendResults, next), next+1
	}
	if form&withOutbox != 0 {
		outbox, next = fmt.Sprintf(appendOutbox, next), next+1
	}
	if form&withClaims != 0 {
		text += fmt.Sprintf(appendClaims, next)
		mayStart, end = claimedOrFree, claimsAreUsed
	}
	return text + fmt.Sprintf(appendRows, mayStart) + results + outbox + " SELECT execution_id FROM won" + end
}

// unheardOf holds for executions that neither exist nor were removed: none comes
// back. Both are asked in one statement, so that an id whose removal is about to
// be committed is one or the other.
const unheardOf = `(SELECT count(*) FROM noetl.execution e WHERE e.execution_id = x.execution_id) = 0
	AND (SELECT count(*) FROM noetl.execution_removed g WHERE g.execution_id = x.execution_id) = 0`

const appendRows = `, started AS (
	INSERT INTO noetl.execution (` + executionColumns + `) SELECT ` + executionColumns + ` FROM x WHERE expected = 0 AND ` + unheardOf + `%s
	ON CONFLICT DO NOTHING RETURNING execution_id
), continued AS (
	UPDATE noetl.execution e SET last_seq = x.last_seq, catalog_id = x.catalog_id,
	parent_execution_id = x.parent_execution_id, version = x.version, steps_total = x.steps_total,
	steps_completed = x.steps_completed, steps_running = x.steps_running, steps_failed = x.steps_failed,
	last_event_id = x.last_event_id, start_time = x.start_time, end_time = x.end_time, updated_at = x.updated_at,
	wake_at = x.wake_at, status = x.status, path = x.path, pool = x.pool, last_event_type = x.last_event_type,
	last_node_name = x.last_node_name, current_step = x.current_step, error = x.error
	FROM x WHERE x.expected > 0 AND e.execution_id = x.execution_id AND e.last_seq = x.expected
	RETURNING e.execution_id
), won AS (
	SELECT execution_id FROM started UNION ALL SELECT execution_id FROM continued
), events AS (
	INSERT INTO noetl.event (` + eventColumns + `) SELECT ` + eventColumns + ` FROM unnest($2::noetl.append_event[]) v
	WHERE v.execution_id IN (SELECT execution_id FROM won)
), commands AS (
	INSERT INTO noetl.command (` + commandColumns + `) SELECT ` + commandColumns + ` FROM unnest($3::noetl.append_command[]) c
	WHERE c.execution_id IN (SELECT execution_id FROM won) ` + commandUpsert + `
)`

const commandUpsert = `ON CONFLICT (event_id, execution_id) DO UPDATE SET catalog_id = excluded.catalog_id, attempt = excluded.attempt,
	max_attempts = excluded.max_attempts, iter_index = excluded.iter_index, lease_until = excluded.lease_until,
	created_at = excluded.created_at, claimed_at = excluded.claimed_at, completed_at = excluded.completed_at,
	status = excluded.status, command_key = excluded.command_key, step_name = excluded.step_name,
	tool_kind = excluded.tool_kind, pool = excluded.pool, worker_id = excluded.worker_id, error = excluded.error`

const appendResults = `, results AS (
	INSERT INTO noetl.result_store (` + resultColumns + `) SELECT ` + resultColumns + ` FROM unnest($%d::noetl.append_result[]) r
	WHERE r.execution_id IN (SELECT execution_id FROM won) ON CONFLICT DO NOTHING
)`

// The rows are numbered in the order of the array, which only a filter keeps
// for certain: a join may turn it round. IS TRUE makes it a filter.
const appendOutbox = `, outbox AS (
	INSERT INTO noetl.outbox (execution_id, event_id, available_at, created_at)
	SELECT execution_id, event_id, created_at, created_at FROM unnest($%d::noetl.append_outbox[]) o
	WHERE (o.execution_id IN (SELECT execution_id FROM won)) IS TRUE
)`

// appendClaims takes the claims that are free or old, unless the execution
// exists already. Of two processes the second waits for the first and then
// finds its row. The order of the array is that of the locks.
const appendClaims = `, asked AS MATERIALIZED (
	SELECT * FROM unnest($%d::noetl.append_claim[])
), claimed AS (
	INSERT INTO noetl.subscription_dedup AS held (` + claimColumns + `) SELECT ` + claimColumns + ` FROM asked x
	WHERE ` + unheardOf + `
	ON CONFLICT (subscription_id, dedup_key) DO UPDATE SET execution_id = excluded.execution_id,
	seen_at = excluded.seen_at, expires_at = excluded.expires_at
	WHERE held.seen_at <= excluded.seen_at - (excluded.expires_at - excluded.seen_at)
	RETURNING execution_id
)`

const claimedOrFree = ` AND (execution_id IN (SELECT execution_id FROM claimed)
	OR execution_id NOT IN (SELECT execution_id FROM asked))`

// claimsAreUsed undoes everything when an execution took a claim and then lost
// against a start of the same id elsewhere: a division by zero, after which the
// statement is repeated and sees the other.
const claimsAreUsed = ` UNION ALL SELECT 1 / (c.execution_id - c.execution_id) FROM claimed c
	WHERE c.execution_id NOT IN (SELECT execution_id FROM started)`

const claimWithoutStart = "22012"

// appendName is the prepared statement of a form.
func appendName(form appendForm) string { return fmt.Sprintf("noetl_append_%d", form) }

// writerSettings pin the plan: young tables without statistics must not be
// scanned, and planning anew would cost more than running.
var writerSettings = map[string]string{
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_mergejoin": "off", "jit": "off",
}

// durableSQL makes an acknowledged append be on disk even where the server's
// default says otherwise.
const durableSQL = `SELECT set_config('synchronous_commit', 'on', %t) WHERE current_setting('synchronous_commit') = 'off'`

// prepareWriter readies a connection for the statements it will run.
func prepareWriter(ctx context.Context, conn *pgx.Conn) error {
	for name, value := range writerSettings {
		if _, err := conn.Exec(ctx, "SET "+name+" = "+value); err != nil {
			return fmt.Errorf("ready the writer: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(durableSQL, false)); err != nil {
		return fmt.Errorf("ready the writer: %w", err)
	}
	for form := range appendForm(appendForms) {
		_, err := conn.PgConn().Prepare(ctx, appendName(form), appendSQL(form), nil)
		if sqlState(err) == "42704" || sqlState(err) == "42P01" {
			return fmt.Errorf("ready the writer: schema noetl is missing: %w", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var binaryFormat = []int16{pgx.BinaryFormatCode}

// execute runs an append. Behind a pooler that gives every transaction another
// session nothing can be prepared: settings, statement and commit travel
// together, and count for that transaction only.
func (sh *shard) execute(ctx context.Context, conn *pgconn.PgConn, form appendForm, params [][]byte) *pgconn.Result {
	if !sh.pooled {
		return conn.ExecPrepared(ctx, appendName(form), params, binaryFormat, binaryFormat).Read()
	}
	batch := &pgconn.Batch{}
	for name, value := range writerSettings {
		batch.ExecParams("SELECT set_config('"+name+"', '"+value+"', true)", nil, nil, nil, nil)
	}
	batch.ExecParams(fmt.Sprintf(durableSQL, true), nil, nil, nil, nil)
	batch.ExecParams(appendSQL(form), params, nil, binaryFormat, binaryFormat)
	results, err := conn.ExecBatch(ctx, batch).ReadAll()
	if err != nil {
		return &pgconn.Result{Err: err}
	}
	return results[len(results)-1]
}
