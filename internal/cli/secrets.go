package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// secretsCommand looks after what is encrypted.
type secretsCommand struct {
	Check  secretsCheckCommand  `cmd:"" help:"Tell whether a server can open a credential, without showing it."`
	Rotate secretsRotateCommand `cmd:"" help:"Bring all secrets under the server's current encryption key."`
	Status secretsStatusCommand `cmd:"" help:"Count secrets by the encryption key they need."`
	Audit  secretsAuditCommand  `cmd:"" help:"Tell who used which secret."`
}

type secretsCheckCommand struct {
	serverFlags
	Names []string `arg:"" name:"name" help:"Names of credentials."`
	outputFlags
}

// Run checks credentials; all are tried.
func (c *secretsCheckCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	good := []client.CredentialCheck{}
	failed := tryAll(env, c.Names, func(name string) error {
		found, err := cl.CheckCredential(ctx, name)
		if err != nil {
			return err
		}
		if c.machine() { // one document at the end
			good = append(good, found)
			return nil
		}
		return c.object(env, found, found.Name, func() error {
			_, err := fmt.Fprintf(env.Stdout, "%s: ok, type %s, key %s, fields %s\n", found.Name, found.Type, found.KeyVersion, strings.Join(found.Fields, ", "))
			return err
		})
	})
	if c.machine() {
		if err := c.print(env, good); err != nil {
			return err
		}
	}
	return failed
}

// tryAll does something for each name; the first failure decides the exit code.
func tryAll(env *Env, names []string, do func(name string) error) error {
	var first error
	for _, name := range names {
		if err := do(name); err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
			if first == nil {
				first = err
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case slices.Contains([]event.Code{event.Invalid, event.BadRequest, event.NotFound, event.Limit}, event.CodeOf(first)):
		return exit(ExitInvalid)
	}
	return exit(ExitFailed)
}

type secretsRotateCommand struct {
	serverFlags
	outputFlags
}

// Run rotates until nothing is left, and fails when some secrets stay behind.
func (c *secretsRotateCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	report, err := cl.RotateKeys(ctx)
	if err != nil {
		return err
	}
	if c.machine() {
		if err := c.print(env, report); err != nil {
			return err
		}
	} else {
		for _, t := range []struct {
			name string
			r    client.Rotation
		}{{"credentials", report.Credential}, {"keychain", report.Keychain}} {
			fmt.Fprintf(env.Stdout, "%s: %d brought under key %s, %d were already, %d failed\n", t.name, t.r.Rewrapped, report.KeyVersion, t.r.Skipped, t.r.Failed)
		}
	}
	if report.Credential.Failed+report.Keychain.Failed > 0 {
		fmt.Fprintln(env.Stderr, "noetl: some secrets cannot be opened with the keys of the server: give it the old key too, or register them again")
		return exit(ExitFailed)
	}
	if report.Credential.More || report.Keychain.More {
		fmt.Fprintln(env.Stderr, "noetl: there are more secrets than one rotation takes: run it again with larger batches at the API")
		return exit(ExitFailed)
	}
	return nil
}

type secretsStatusCommand struct {
	serverFlags
	outputFlags
}

// Run prints counts by key.
func (c *secretsStatusCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	status, err := cl.KeyStatus(ctx)
	if err != nil {
		return err
	}
	t := newTable("KEY", "CREDENTIALS", "KEYCHAIN")
	versions := map[string]bool{status.Current: true}
	for _, m := range []map[string]int{status.Credential, status.Keychain} {
		for v := range m {
			versions[v] = true
		}
	}
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		mark := ""
		if v == status.Current {
			mark = " (current)"
		}
		t.add(v, v+mark, strconv.Itoa(status.Credential[v]), strconv.Itoa(status.Keychain[v]))
	}
	return c.list(env, status, t)
}

type secretsAuditCommand struct {
	serverFlags
	Credential string    `help:"Only of this credential." placeholder:"NAME"`
	Execution  event.ID  `help:"Only by this execution." placeholder:"ID"`
	From       time.Time `help:"Not before this time." placeholder:"TIME"`
	To         time.Time `help:"Before this time." placeholder:"TIME"`
	Limit      int       `help:"At most this many." default:"100" placeholder:"N"`
	outputFlags
}

// Run prints a table, newest first.
func (c *secretsAuditCommand) Run(ctx context.Context, env *Env) error {
	if c.Limit < 1 {
		return invalidf("--limit %d: want a number from 1", c.Limit)
	}
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	lines, err := cl.SecretAudit(ctx, client.AuditFilter{Credential: c.Credential, ExecutionID: c.Execution, From: c.From, To: c.To, Limit: c.Limit})
	if err != nil {
		return err
	}
	t := newTable("TIME", "CREDENTIAL", "OPERATION", "OUTCOME", "ACTOR", "EXECUTION", "NOTES")
	for _, l := range lines {
		actor := l.Actor
		if l.WorkerID != "" && l.WorkerID != actor {
			actor = strings.TrimSpace(actor + " " + l.WorkerID)
		}
		t.add(l.Credential, env.moment(l.At), l.Credential, l.Operation, l.Outcome, actor, l.ExecutionID, oneLine(l.Notes, 60))
	}
	return c.list(env, lines, t)
}
