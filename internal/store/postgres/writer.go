package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Append implements store.Log.
func (s *Store) Append(ctx context.Context, b store.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	id := b.Execution.ExecutionID
	return s.shard(id).queue(id).Submit(ctx, &b)
}

// appendSQL stores a group in one round trip and one transaction. The
// compare-and-set is the join on last_seq, or the insert of a new row; what
// belongs to an execution that lost is left out, and the caller learns who won.
const appendSQL = appendRows + `) SELECT execution_id FROM won`

// appendResultsSQL is for groups that bring values, too; the others need not
// pay for looking at a fourth table.
const appendResultsSQL = appendRows + `), results AS (
	INSERT INTO noetl.result_store (` + resultColumns + `) SELECT ` + resultColumns + ` FROM unnest($4::noetl.append_result[]) r
	WHERE r.execution_id IN (SELECT execution_id FROM won) ON CONFLICT DO NOTHING
) SELECT execution_id FROM won`

const appendRows = `WITH x AS MATERIALIZED (
	SELECT * FROM unnest($1::noetl.append_execution_2[])
), started AS (
	INSERT INTO noetl.execution (` + executionColumns + `) SELECT ` + executionColumns + ` FROM x WHERE expected = 0
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
	WHERE c.execution_id IN (SELECT execution_id FROM won)
	ON CONFLICT (event_id, execution_id) DO UPDATE SET catalog_id = excluded.catalog_id, attempt = excluded.attempt,
	max_attempts = excluded.max_attempts, iter_index = excluded.iter_index, lease_until = excluded.lease_until,
	created_at = excluded.created_at, claimed_at = excluded.claimed_at, completed_at = excluded.completed_at,
	status = excluded.status, command_key = excluded.command_key, step_name = excluded.step_name,
	tool_kind = excluded.tool_kind, pool = excluded.pool, worker_id = excluded.worker_id, error = excluded.error
`

const (
	executionColumns = `execution_id, last_seq, catalog_id, parent_execution_id, version, steps_total, steps_completed,
	steps_running, steps_failed, last_event_id, start_time, end_time, updated_at, wake_at, status, path, pool,
	last_event_type, last_node_name, current_step, error`
	eventColumns = `execution_id, seq, event_id, catalog_id, parent_event_id, parent_execution_id, duration, created_at,
	event_type, node_name, node_type, status, worker_id, command_key, error, meta, result, context`
	commandColumns = `event_id, execution_id, catalog_id, attempt, max_attempts, iter_index, lease_until, created_at,
	claimed_at, completed_at, status, command_key, step_name, tool_kind, pool, worker_id, error`
	resultColumns = `execution_id, ref, created_at, bytes, name, sha256, data`

	appendName        = "noetl_append"
	appendResultsName = "noetl_append_results"
	rowTypesSQL       = `SELECT 'noetl.append_execution_2'::regtype::oid, 'noetl.append_event'::regtype::oid,
	'noetl.append_command'::regtype::oid, 'noetl.append_result'::regtype::oid`
)

// prepareWriter readies a connection for the statements it will run. The
// plan is pinned: young tables without statistics must not be scanned, and
// planning anew would cost more than running. An acknowledged append is on
// disk even where the server's default says otherwise.
func prepareWriter(ctx context.Context, conn *pgx.Conn) error {
	for _, text := range []string{
		"SET plan_cache_mode = force_generic_plan",
		"SET enable_seqscan = off",
		"SET enable_mergejoin = off",
		"SET jit = off",
		"SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
	} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("ready the writer: %w", err)
		}
	}
	for name, text := range map[string]string{appendName: appendSQL, appendResultsName: appendResultsSQL} {
		_, err := conn.PgConn().Prepare(ctx, name, text, nil)
		if sqlState(err) == "42704" || sqlState(err) == "42P01" {
			return fmt.Errorf("ready the writer: schema noetl is missing: %w", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowTypes are the type numbers of the composite types in one database.
type rowTypes struct{ execution, event, command, result uint32 }

// writer turns groups into statements. It belongs to one queue's goroutine.
type writer struct {
	shard      *shard
	executions records
	events     records
	commands   records
	results    records
	byEvent    []*store.Command
}

func newWriter(sh *shard, t rowTypes) *writer {
	count := func(columns string) int { return strings.Count(columns, ",") + 1 }
	return &writer{
		shard:      sh,
		executions: newRecords(t.execution, 1+count(executionColumns)),
		events:     newRecords(t.event, count(eventColumns)),
		commands:   newRecords(t.command, count(commandColumns)),
		results:    newRecords(t.result, count(resultColumns)),
	}
}

// item is a batch with the place its verdict goes to.
type item struct {
	*store.Batch
	err *error
}

// commit is the group commit. One execution is at most once in a statement, so
// a second batch of the same execution waits for the next round.
func (w *writer) commit(group []*store.Batch, errs []error) {
	rest := make([]item, len(group))
	for i, b := range group {
		rest[i] = item{b, &errs[i]}
	}
	// Rows are locked in this order by every process: no deadlock.
	slices.SortStableFunc(rest, func(a, b item) int { return cmp.Compare(a.Execution.ExecutionID, b.Execution.ExecutionID) })
	for len(rest) > 0 {
		var round, later []item
		for i, it := range rest {
			if i > 0 && it.Execution.ExecutionID == rest[i-1].Execution.ExecutionID {
				later = append(later, it)
			} else {
				round = append(round, it)
			}
		}
		w.store(round)
		rest = later
	}
}

// store runs one round. When the data of somebody is refused, each batch runs
// alone, so that only the guilty caller fails.
func (w *writer) store(round []item) {
	won, err := w.run(round)
	if err == nil {
		for _, it := range round {
			if !won[it.Execution.ExecutionID] {
				*it.err = store.ErrConflict
			}
		}
		return
	}
	if state := sqlState(err); len(round) > 1 && (strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23")) {
		for i := range round {
			w.store(round[i : i+1])
		}
		return
	}
	for _, it := range round {
		*it.err = appendError(err)
	}
}

// appendError is the verdict on a batch that failed. A sequence number that is
// already taken would be a broken log, not a caller's mistake.
func appendError(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if ok && pg.Code == uniqueViolation && !strings.Contains(pg.ConstraintName, "_seq_") {
		return store.ErrDuplicate
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &event.Error{Code: event.Unavailable, Message: "append: PostgreSQL did not answer in time", Err: err}
	}
	return coded("append", err)
}

const (
	// writeTimeout ends a statement on a server that stopped answering.
	writeTimeout = 30 * time.Second
	// writeRetries bounds the repetitions of a statement that certainly had no effect.
	writeRetries = 5
)

// run sends a round and returns who won. It repeats what provably did not
// happen: a connection found dead before sending, a rollback for concurrency.
func (w *writer) run(round []item) (won map[event.ID]bool, err error) {
	w.encode(round)
	for range writeRetries {
		won, err = w.send(len(round))
		if err == nil {
			w.shard.commits.Add(1)
			return won, nil
		}
		state := sqlState(err)
		if !pgconn.SafeToRetry(err) && state != deadlockDetected && state != serializationFailure {
			return nil, err
		}
	}
	return nil, err
}

func (w *writer) send(size int) (map[event.ID]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	conn, err := w.shard.writers.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	name, params := appendName, [][]byte{w.executions.bytes(), w.events.bytes(), w.commands.bytes()}
	if w.results.count > 0 {
		name, params = appendResultsName, append(params, w.results.bytes())
	}
	binaryFormat := []int16{pgx.BinaryFormatCode}
	res := conn.Conn().PgConn().ExecPrepared(ctx, name, params, binaryFormat, binaryFormat).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	won := make(map[event.ID]bool, size)
	for _, row := range res.Rows {
		won[event.ID(binary.BigEndian.Uint64(row[0]))] = true
	}
	return won, nil
}

// encode fills the arrays. Commands are in the order of their ids, the one in
// which lease renewals lock them, too.
func (w *writer) encode(round []item) {
	w.executions.reset()
	w.events.reset()
	w.commands.reset()
	w.results.reset()
	w.byEvent = w.byEvent[:0]
	for _, it := range round {
		encodeExecution(&w.executions, &it.Execution, it.Expected)
		for i := range it.Events {
			encodeEvent(&w.events, &it.Events[i])
		}
		for i := range it.Commands {
			w.byEvent = append(w.byEvent, &it.Commands[i])
		}
		for i := range it.Results {
			encodeResult(&w.results, &it.Results[i])
		}
	}
	slices.SortFunc(w.byEvent, func(a, b *store.Command) int { return cmp.Compare(a.EventID, b.EventID) })
	for _, c := range w.byEvent {
		encodeCommand(&w.commands, c)
	}
	clear(w.byEvent)
}

func encodeExecution(r *records, x *store.Execution, expected int64) {
	r.begin().int8(expected).id(x.ExecutionID).int8(x.LastSeq).id(x.CatalogID).nullID(x.ParentExecutionID)
	r.int4(x.Version).int4(x.StepsTotal).int4(x.StepsCompleted).int4(x.StepsRunning).int4(x.StepsFailed)
	r.id(x.LastEventID).stamp(x.StartedAt).stamp(x.EndedAt).stamp(x.UpdatedAt).stamp(x.WakeAt)
	r.str(x.Status).str(x.Path).text(x.Pool).text(string(x.LastEventType)).text(x.LastNodeName).text(x.CurrentStep).text(x.Error)
	r.end()
}

func encodeEvent(r *records, e *event.Event) {
	r.begin().id(e.ExecutionID).int8(e.Seq).id(e.EventID).id(e.CatalogID).nullID(e.ParentEventID).nullID(e.ParentExecutionID)
	r.seconds(e.Duration).time(pgtype.TimestampOID, e.CreatedAt).str(string(e.Type)).text(e.NodeName).text(e.NodeType)
	r.text(e.Status).text(e.WorkerID).text(e.CommandID).text(e.Error).json(e.Meta).json(e.Result).json(e.Context)
	r.end()
}

func encodeCommand(r *records, c *store.Command) {
	r.begin().id(c.EventID).id(c.ExecutionID).id(c.CatalogID).int4(c.Attempt).int4(c.MaxAttempts).int4(c.IterIndex)
	r.stamp(c.LeaseUntil).stamp(c.CreatedAt).stamp(c.ClaimedAt).stamp(c.EndedAt).str(c.Status).text(c.CommandID)
	r.text(c.Step).text(c.ToolKind).text(c.Pool).text(c.WorkerID).text(c.Error)
	r.end()
}
