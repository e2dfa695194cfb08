package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
)

type dbCommand struct {
	Verify   dbVerifyCommand   `cmd:"" help:"Prove that what is stored is what the log says; exit code 1 when it is not."`
	Rebuild  dbRebuildCommand  `cmd:"" help:"Write the rows beside the log anew from it."`
	Init     dbInitCommand     `cmd:"" help:"Create the tables, or bring them up to date."`
	Validate dbValidateCommand `cmd:"" help:"Tell whether all tables are there."`
}

// proofTime bounds how long a server may take to read its whole log.
const proofTime = 6 * time.Hour

// databaseFlags say which database a command works on: one it opens itself, or
// that of a running server.
type databaseFlags struct {
	DataDir     string `help:"Directory of the embedded database." default:".noetl" env:"NOETL_DATA_DIR" placeholder:"DIR"`
	DatabaseURL string `help:"PostgreSQL instead of the embedded database." env:"NOETL_DATABASE_URL" placeholder:"URL"`
	serverFlags
	outputFlags
	shardFlags
}

func (f databaseFlags) client() (*client.Client, error) {
	return f.Connection.client(internalToken(), client.WithTimeout(proofTime))
}

// options are those of a server with the same settings.
func (f databaseFlags) options() (node.Options, error) {
	if err := refuseBlank("NOETL_DATA_DIR", "NOETL_DATABASE_URL"); err != nil {
		return node.Options{}, err
	}
	databases, err := f.postgres()
	return node.Options{DataDir: f.DataDir, DatabaseURL: f.DatabaseURL, Postgres: databases}, err
}

// locked adds to a refusal what can be done about a database in use.
func locked(err error) error {
	e, ok := errors.AsType[*event.Error](err)
	if !ok || e.Reason != "locked" {
		return err
	}
	return &event.Error{
		Code: e.Code, Reason: e.Reason, Message: e.Message, Err: err,
		Remedy: "a server uses this database: let it do the work with --server-url http://127.0.0.1:8082, or stop it first",
	}
}

type dbVerifyCommand struct {
	databaseFlags
	Execution event.ID `help:"Only this execution." placeholder:"ID"`
}

// Run prints the counts of a check and the first difference.
func (c *dbVerifyCommand) Run(ctx context.Context, env *Env) error {
	r, err := c.verify(ctx)
	if err != nil {
		return err
	}
	err = c.report(env, r, differentExecutions(r.Differences), func() error { return showVerified(env, r) })
	if err == nil && !r.Clean {
		return exit(ExitFailed)
	}
	return err
}

func (c *dbVerifyCommand) verify(ctx context.Context) (r control.VerifyReport, err error) {
	if c.Connection.explicit() { // otherwise the database is opened here
		cl, err := c.client()
		if err != nil {
			return r, err
		}
		raw, err := cl.VerifyDatabase(ctx, c.Execution)
		return r, decoded(raw, err, &r)
	}
	o, err := c.options()
	if err != nil {
		return r, err
	}
	db, err := node.OpenDatabase(ctx, o, true)
	if err != nil {
		return r, err
	}
	r, err = control.Verify(ctx, control.VerifyOptions{Store: db, Execution: c.Execution})
	return r, errors.Join(err, db.Close())
}

type dbRebuildCommand struct {
	databaseFlags
	Execution event.ID `help:"Only this execution." placeholder:"ID"`
	All       bool     `help:"Write the rows that are right too."`
	DryRun    bool     `help:"Only tell what would be done."`
}

// Run prints what was written.
func (c *dbRebuildCommand) Run(ctx context.Context, env *Env) error {
	r, err := c.rebuild(ctx)
	if err != nil {
		return err
	}
	err = c.report(env, r, differentExecutions(slices.Concat(r.Differences, r.Left)), func() error { return showRebuilt(env.Stdout, r) })
	if err == nil && (r.LeftTotal > 0 || r.DryRun && r.Rebuilt > 0 && !c.All) {
		return exit(ExitFailed)
	}
	return err
}

func (c *dbRebuildCommand) rebuild(ctx context.Context) (r control.RebuildReport, err error) {
	if c.Connection.explicit() { // otherwise the database is opened here
		cl, err := c.client()
		if err != nil {
			return r, err
		}
		raw, err := cl.RebuildDatabase(ctx, client.RebuildRequest{ExecutionID: c.Execution, DryRun: c.DryRun, All: c.All})
		return r, decoded(raw, err, &r)
	}
	o, err := c.options()
	if err != nil {
		return r, err
	}
	db, err := node.OpenDatabase(ctx, o, c.DryRun)
	if err != nil {
		return r, locked(err)
	}
	r, err = control.Rebuild(ctx, control.RebuildOptions{Store: db, Execution: c.Execution, All: c.All, DryRun: c.DryRun})
	return r, errors.Join(err, db.Close())
}

// decoded reads a server's report.
func decoded(raw json.RawMessage, err error, into any) error {
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the server's report: %w", err)
	}
	return nil
}

type dbInitCommand struct{ databaseFlags }

// Run brings the schema up to date.
func (c *dbInitCommand) Run(ctx context.Context, env *Env) error {
	message, err := c.init(ctx)
	if err != nil {
		return err
	}
	return c.object(env, map[string]string{"status": "ok", "message": message}, "ok", func() error {
		_, err := fmt.Fprintln(env.Stdout, message)
		return err
	})
}

func (c *dbInitCommand) init(ctx context.Context) (string, error) {
	if c.Connection.explicit() { // otherwise the database is opened here
		cl, err := c.client()
		if err != nil {
			return "", err
		}
		return cl.InitDatabase(ctx)
	}
	o, err := c.options()
	if err != nil {
		return "", err
	}
	db, err := node.OpenDatabase(ctx, o, false)
	if err != nil {
		return "", locked(err)
	}
	err = db.Migrate(ctx)
	if err != nil {
		return "", errors.Join(err, db.Close())
	}
	state, err := db.SchemaState(ctx)
	return fmt.Sprintf("the schema is at version %d", state.Version), errors.Join(err, db.Close())
}

type dbValidateCommand struct{ databaseFlags }

// Run tells whether all tables are there.
func (c *dbValidateCommand) Run(ctx context.Context, env *Env) error {
	state, err := c.validate(ctx)
	if err != nil {
		return err
	}
	err = c.report(env, state, state.Tables, func() error {
		text := state.Message + ": " + strings.Join(state.Tables, ", ")
		if !state.Valid {
			text = state.Message + "\nBring the tables up to date with: noetl db init"
		}
		_, err := fmt.Fprintln(env.Stdout, text)
		return err
	})
	if err == nil && !state.Valid {
		return exit(ExitFailed)
	}
	return err
}

func (c *dbValidateCommand) validate(ctx context.Context) (client.DatabaseState, error) {
	if c.Connection.explicit() { // otherwise the database is opened here
		cl, err := c.client()
		if err != nil {
			return client.DatabaseState{}, err
		}
		return cl.ValidateDatabase(ctx)
	}
	o, err := c.options()
	if err != nil {
		return client.DatabaseState{}, err
	}
	db, err := node.OpenDatabase(ctx, o, true)
	if err != nil {
		return client.DatabaseState{}, err
	}
	s, err := db.SchemaState(ctx)
	a := client.DatabaseState{Status: "ok", Message: "all tables are there", Valid: true, Tables: s.Tables, Missing: s.Missing}
	if len(s.Missing) > 0 || s.Version < s.Want {
		a.Status, a.Valid = "error", false
		a.Message = fmt.Sprintf("the schema is at version %d of %d; missing tables: %s", s.Version, s.Want, orNone(s.Missing))
	}
	return a, errors.Join(err, db.Close())
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
