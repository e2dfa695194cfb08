package control

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/lru"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	verifyPage        = 256 // executions looked up at a time
	verifyTries       = 5   // readings of an execution that is written to meanwhile
	verifyPause       = 20 * time.Millisecond
	verifyDifferences = 100  // kept in a report; all are counted
	verifyOpenRows    = 4096 // open commands whose execution is looked for
)

// VerifyOptions say what to check. Store is required.
type VerifyOptions struct {
	Store       store.Store
	Execution   event.ID         // this one alone; 0 = all
	Differences int              // how many a report lists; 0 = 100
	Clock       func() time.Time // time.Now
	Results     *result.Service  // how to read values outside of the database; nil = they are not read
}

// VerifyReport is what a check found: how much it looked at, and every place
// where the rows beside the log are not what the log says.
type VerifyReport struct {
	GeneratedAt time.Time     `json:"generated_at"`
	Duration    time.Duration `json:"-"`
	Seconds     float64       `json:"duration_seconds"`

	Executions int64            `json:"executions"`
	ByStatus   map[string]int64 `json:"by_status"`
	Events     int64            `json:"events"`
	Commands   int64            `json:"commands"`
	Results    int64            `json:"results"`    // values beside the log that were read and have the right checksum
	References int64            `json:"references"` // places in events that refer to a value
	External   int64            `json:"external"`   // of these, values kept outside the database, which are not read
	Collected  int64            `json:"collected"`  // of these, values whose time to be kept was over
	Children   int64            `json:"children"`   // executions that others waited for
	Purged     int64            `json:"purged"`     // rows of ended commands that were cleaned away
	Busy       int64            `json:"busy"`       // executions written to throughout the check, and not compared

	Clean       bool         `json:"clean"`
	Different   int64        `json:"differences_total"`
	Differences []Difference `json:"differences"` // the first ones
}

// Verify checks the log of every execution and compares the projections with
// the fold of it. It works beside running servers: an execution that is written
// to meanwhile is read again. The error tells that the check could not be
// finished, not that it found something.
func Verify(ctx context.Context, o VerifyOptions) (VerifyReport, error) {
	if o.Store == nil {
		return VerifyReport{}, errors.New("verify: a store is required")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Differences <= 0 {
		o.Differences = verifyDifferences
	}
	if o.Results == nil {
		var err error
		if o.Results, err = result.New(result.Options{Store: o.Store, IDs: func() event.ID { return 0 }, Now: o.Clock}); err != nil {
			return VerifyReport{}, err
		}
	}
	v := &verifier{o: o, store: o.Store, compiled: lru.New[event.ID, string](verifyPage)}
	v.report.GeneratedAt = o.Clock().UTC()
	v.report.ByStatus = make(map[string]int64)
	v.report.Differences = []Difference{}
	err := v.run(ctx)
	v.report.Duration = o.Clock().Sub(v.report.GeneratedAt)
	v.report.Seconds = v.report.Duration.Seconds()
	v.report.Clean = err == nil && v.report.Different == 0
	return v.report, err
}

type verifier struct {
	o        VerifyOptions
	store    store.Store
	report   VerifyReport
	compiled *lru.Cache[event.ID, string] // per catalog entry why it cannot be run; "" when it can
}

func (v *verifier) run(ctx context.Context) error {
	if v.o.Execution != 0 {
		return v.one(ctx, v.o.Execution)
	}
	if err := eachLogged(ctx, v.store, v.execution); err != nil {
		return err
	}
	if err := v.strayExecutions(ctx); err != nil {
		return err
	}
	return v.strayCommands(ctx)
}

func (v *verifier) one(ctx context.Context, id event.ID) error {
	there, err := logged(ctx, v.store, id)
	if err != nil {
		return err
	}
	if there {
		return v.execution(ctx, id)
	}
	if _, err := v.store.Execution(ctx, id); errors.Is(err, store.ErrNotFound) {
		return noExecution(id)
	} else if err != nil {
		return storeError("read execution", err)
	}
	v.add(noLog(id))
	return nil
}

// eachLogged calls f for every execution of the log, oldest first.
func eachLogged(ctx context.Context, db store.Store, f func(context.Context, event.ID) error) error {
	for after := event.ID(0); ; {
		ids, err := db.LoggedExecutions(ctx, after, verifyPage)
		if err != nil {
			return storeError("list executions of the log", err)
		}
		for _, id := range ids {
			if err := f(ctx, id); err != nil {
				return err
			}
		}
		if len(ids) < verifyPage {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

// execution checks one execution, again while it is written to.
func (v *verifier) execution(ctx context.Context, id event.ID) error {
	for range verifyTries {
		a, settled, err := readAudit(ctx, v.store, id)
		if err != nil {
			return err
		}
		if settled {
			return v.conclude(ctx, a)
		}
		if !sleep(ctx, verifyPause) {
			return gaveUp(ctx.Err())
		}
	}
	v.report.Executions++
	v.report.Busy++
	return nil
}

// conclude counts what was read of an execution and looks for differences.
func (v *verifier) conclude(ctx context.Context, a *audit) error {
	v.report.Executions++
	v.report.Events += a.events
	v.report.Commands += int64(len(a.commands))
	v.report.ByStatus[a.status()]++
	found := a.broken
	if len(found) == 0 {
		problem, err := v.playbookProblem(ctx, a)
		if err != nil {
			return err
		}
		found = a.compare()
		if len(found) == 0 {
			found = a.replayDifferences()
		}
		found = append(found, a.playbookDifference(problem)...)
		v.report.Purged += a.purged
	}
	resolved, err := v.references(ctx, a)
	if err != nil {
		return err
	}
	for _, d := range append(found, resolved...) {
		v.add(d)
	}
	return nil
}

// playbookProblem tells why the playbook of an execution cannot be run.
func (v *verifier) playbookProblem(ctx context.Context, a *audit) (text string, err error) {
	catalog := a.state.Summary().CatalogID
	if text, known := v.compiled.Get(catalog); known {
		return text, nil
	}
	e, err := v.store.Entry(ctx, catalog)
	switch {
	case errors.Is(err, store.ErrNotFound):
		text = "it is not in the catalog"
	case err != nil:
		return "", storeError("read catalog entry", err)
	default:
		if _, err := checkPlaybook(&e); err != nil {
			text = err.Error()
		}
	}
	v.compiled.Put(catalog, text)
	return text, nil
}

func (v *verifier) add(d Difference) {
	v.report.Different++
	if len(v.report.Differences) < v.o.Differences {
		v.report.Differences = append(v.report.Differences, d)
	}
}

// logged tells whether the log has events of an execution.
func logged(ctx context.Context, db store.Store, id event.ID) (bool, error) {
	first, err := db.Events(ctx, id, 0, 1)
	if err != nil {
		return false, storeError("read events", err)
	}
	return len(first) > 0, nil
}
