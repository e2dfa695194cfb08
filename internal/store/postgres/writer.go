package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/store"
)

// Append implements store.Log.
func (s *Store) Append(ctx context.Context, b store.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	id := b.Execution.ExecutionID
	if c := b.Claim; c != nil && !s.Colocated(id, *c) {
		return event.Errorf(event.Internal, "append to execution %d: the claim lives on another shard", id)
	}
	return s.shard(id).queue(id).Submit(ctx, &b)
}

// rowTypes are the type numbers of the composite types in one database.
type rowTypes struct{ execution, event, command, result, outbox, claim uint32 }

// writer turns groups into statements. It belongs to one queue's goroutine.
type writer struct {
	shard      *shard
	executions records
	events     records
	commands   records
	results    records
	outbox     records
	claims     records
	byEvent    []*store.Command
	byKey      []item
}

func newWriter(sh *shard, t rowTypes) *writer {
	return &writer{
		shard:      sh,
		executions: newRecords(t.execution, 1+fields(executionColumns)),
		events:     newRecords(t.event, fields(eventColumns)),
		commands:   newRecords(t.command, fields(commandColumns)),
		results:    newRecords(t.result, fields(resultColumns)),
		outbox:     newRecords(t.outbox, fields(outboxColumns)),
		claims:     newRecords(t.claim, fields(claimColumns)),
	}
}

// fields counts the columns of a list.
func fields(columns string) int { return strings.Count(columns, ",") + 1 }

// item is a batch with the place its verdict goes to.
type item struct {
	*store.Batch
	err *error
}

// commit is the group commit. One execution, and one claim, is at most once in
// a statement, so a second batch of the same waits for the next round.
func (w *writer) commit(group []*store.Batch, errs []error) {
	rest := make([]item, len(group))
	for i, b := range group {
		rest[i] = item{b, &errs[i]}
	}
	// Rows are locked in this order by every process: no deadlock.
	slices.SortStableFunc(rest, func(a, b item) int { return cmp.Compare(a.Execution.ExecutionID, b.Execution.ExecutionID) })
	for len(rest) > 0 {
		var round, later []item
		var taken map[claimKey]bool
		for i, it := range rest {
			switch {
			case i > 0 && it.Execution.ExecutionID == rest[i-1].Execution.ExecutionID:
				later = append(later, it)
				continue
			case it.Claim == nil:
			case taken[keyOf(*it.Claim)]:
				later = append(later, it)
				continue
			case taken == nil:
				taken = map[claimKey]bool{keyOf(*it.Claim): true}
			default:
				taken[keyOf(*it.Claim)] = true
			}
			round = append(round, it)
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
				*it.err = w.loss(it)
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
		if err = failpoint.Hit(failpoint.CommitBefore); err != nil {
			return nil, err
		}
		won, err = w.send(len(round))
		if err == nil {
			w.shard.commits.Add(1)
			return won, failpoint.Hit(failpoint.CommitAfter)
		}
		state := sqlState(err)
		if !pgconn.SafeToRetry(err) && state != deadlockDetected && state != serializationFailure && state != claimWithoutStart {
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
	form, params := appendForm(0), [][]byte{w.executions.bytes(), w.events.bytes(), w.commands.bytes()}
	for i, extra := range []*records{&w.results, &w.outbox, &w.claims} {
		if extra.count > 0 {
			form |= 1 << i
			params = append(params, extra.bytes())
		}
	}
	res := w.shard.execute(ctx, conn.Conn().PgConn(), form, params)
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
// which lease renewals lock them, too; claims in that of their keys.
func (w *writer) encode(round []item) {
	w.executions.reset()
	w.events.reset()
	w.commands.reset()
	w.results.reset()
	w.outbox.reset()
	w.claims.reset()
	w.byEvent, w.byKey = w.byEvent[:0], w.byKey[:0]
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
		if it.Publish {
			encodeOutbox(&w.outbox, it.Batch)
		}
		if it.Claim != nil {
			w.byKey = append(w.byKey, it)
		}
	}
	slices.SortFunc(w.byEvent, func(a, b *store.Command) int { return cmp.Compare(a.EventID, b.EventID) })
	for _, c := range w.byEvent {
		encodeCommand(&w.commands, c)
	}
	clear(w.byEvent)
	slices.SortFunc(w.byKey, func(a, b item) int { return keyOf(*a.Claim).compare(keyOf(*b.Claim)) })
	for _, it := range w.byKey {
		encodeClaim(&w.claims, it.Execution.ExecutionID, *it.Claim)
	}
	clear(w.byKey)
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
