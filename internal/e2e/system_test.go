package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/apicheck"
	"github.com/noetl/noetl-go/internal/testkit/storeproof"
)

// patience bounds every wait for something that must happen.
const patience = 90 * time.Second

// system is what the processes of one test share.
type system struct {
	t    *testing.T
	bin  string
	dir  string
	dsn  string // "" = SQLite
	nats string // "" = embedded

	shards []string // none = everything in dsn

	excused []string // kinds of differences the test makes on purpose
}

// backends are what the suite runs on: a file, a database, and three databases
// with a fourth for what they share.
var backends = []string{"sqlite", "postgres", "shards"}

// newSystem prepares a backend: sqlite is embedded all through, the others come
// with an external NATS server.
func newSystem(t *testing.T, backend string) *system {
	t.Helper()
	s := &system{t: t, bin: testkit.BuildNoetl(t), dir: t.TempDir()}
	if backend != "sqlite" {
		s.dsn, s.nats = testkit.Postgres(t), testkit.NATSProcess(t)
	}
	if backend == "shards" {
		s.shards = []string{testkit.Postgres(t), testkit.Postgres(t), testkit.Postgres(t)}
	}
	t.Cleanup(s.proven) // when all processes are gone
	return s
}

// proven holds what a test leaves behind against its log.
func (s *system) proven() {
	if _, err := os.Stat(filepath.Join(s.dir, "data", "noetl.db")); s.t.Failed() || s.dsn == "" && err != nil {
		return
	}
	storeproof.Clean(s.t, s.open(), s.excused...)
}

// process is a running server.
type process struct {
	*testkit.Process
	client *client.Client
	url    string
}

// server starts a server; port 0 picks one.
func (s *system) server(port int, args ...string) *process {
	s.t.Helper()
	return s.serverWith(nil, port, args...)
}

// serverWith is server with more in its environment.
func (s *system) serverWith(env []string, port int, args ...string) *process {
	s.t.Helper()
	return s.ready(s.launch(env, port, args...))
}

// launch starts the process of a server and does not wait for it.
func (s *system) launch(env []string, port int, args ...string) *testkit.Process {
	s.t.Helper()
	all := append([]string{"server", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--data-dir", filepath.Join(s.dir, "data"), "--lease", "2s"}, args...)
	if s.dsn != "" {
		all = append(all, "--database-url", s.dsn)
	}
	if len(s.shards) > 0 {
		all = append(all, "--shards", strings.Join(s.shards, ","))
	}
	if s.nats != "" {
		all = append(all, "--nats-url", s.nats)
	}
	if s.dsn != "" || len(s.shards) > 0 {
		env = append([]string{"NOETL_ENCRYPTION_KEY=" + testkit.EncryptionKey}, env...)
	}
	return testkit.Start(s.t, testkit.Command{Path: s.bin, Args: all, Env: env})
}

// ready waits until a server answers.
func (s *system) ready(p *testkit.Process) *process {
	s.t.Helper()
	line := p.WaitOutput(": http://", patience)
	url := "http://" + strings.Fields(line)[0]
	checked, err := apicheck.Client(s.t, url)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(url, client.WithHTTPClient(checked))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return &process{Process: p, client: c, url: url}
}

// worker starts a remote worker.
func (s *system) worker(id, serverURL, natsURL string, slots int) *testkit.Process {
	s.t.Helper()
	p := testkit.Start(s.t, testkit.Command{Path: s.bin, Args: []string{
		"worker", "--id", id, "--server-url", serverURL, "--nats-url", natsURL,
		"--slots", fmt.Sprint(slots), "--heartbeat", "500ms",
	}})
	p.WaitOutput("noetl worker", patience)
	return p
}

func (s *system) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

// start registers a playbook and runs it.
func (s *system) start(p *process, src string) event.ID {
	s.t.Helper()
	reg, err := p.client.Register(s.ctx(), src)
	if err != nil {
		s.t.Fatalf("register: %v", err)
	}
	a, err := p.client.Execute(s.ctx(), client.ExecuteRequest{CatalogID: reg.CatalogID})
	if err != nil {
		s.t.Fatalf("execute: %v", err)
	}
	return a.ExecutionID
}

// progressed waits until at least n commands of an execution have ended.
func (s *system) progressed(p *process, id event.ID, n int) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		got := 0
		for after := int64(0); ; {
			events, err := p.client.Events(s.ctx(), id, after, 1000)
			if err != nil {
				return err
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				if e.Type.IsCommandEnd() {
					got++
				}
				after = e.Seq
			}
		}
		if got < n {
			return fmt.Errorf("%d of %d commands have ended", got, n)
		}
		return nil
	}, patience)
}

// completed waits for the end and fails unless it is COMPLETED.
func (s *system) completed(p *process, id event.ID) {
	s.t.Helper()
	st, err := p.client.Wait(s.ctx(), id)
	if err != nil {
		s.t.Fatalf("wait: %v", err)
	}
	if st.Status != event.StatusCompleted {
		s.t.Fatalf("execution %s ended %s: %s", id, st.Status, st.Error)
	}
}

// open opens the backend itself; the servers must be gone when it is SQLite.
func (s *system) open() store.Store {
	s.t.Helper()
	var (
		db  store.Store
		err error
	)
	if s.dsn != "" {
		db, err = postgres.Open(s.ctx(), postgres.Options{DSN: s.dsn, Shards: s.shards})
	} else {
		db, err = sqlite.Open(s.ctx(), filepath.Join(s.dir, "data", "noetl.db"), sqlite.Options{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// proof is what a finished log shows.
type proof struct {
	accepted map[string]int // command id -> accepted ends
	terminal int
	reclaims int
}

// prove folds an execution's log and holds it against everything we promise:
// no gap, one terminal event, each command ended exactly once, and projections
// equal to the fold.
func prove(t *testing.T, db store.Store, id event.ID) proof {
	t.Helper()
	ctx := context.Background()
	log, err := db.Events(ctx, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := proof{accepted: map[string]int{}}
	state := engine.NewState(id)
	commands := map[event.ID]*engine.Command{}
	for i := range log {
		e := &log[i]
		if e.Seq != int64(i+1) {
			t.Fatalf("execution %s: event %d has seq %d", id, i+1, e.Seq)
		}
		effect := state.Apply(e)
		if effect.Command != nil {
			commands[effect.Command.EventID] = effect.Command
		}
		switch {
		case e.Type.IsTerminal():
			p.terminal++
		case e.Type == event.CommandIssued:
			p.accepted[e.CommandID] += 0
		case effect.Ended:
			p.accepted[e.CommandID]++
		case e.Type == event.CommandClaimed:
			var m struct {
				Reclaimed bool `json:"reclaimed"`
			}
			_ = json.Unmarshal(e.Meta, &m)
			if m.Reclaimed {
				p.reclaims++
			}
		}
	}
	if p.terminal != 1 {
		t.Errorf("execution %s has %d terminal events", id, p.terminal)
	}
	for cmd, n := range p.accepted {
		if n != 1 {
			t.Errorf("command %s has %d accepted ends", cmd, n)
		}
	}
	proveProjections(t, db, state, commands)
	return p
}

func proveProjections(t *testing.T, db store.Store, state *engine.State, commands map[event.ID]*engine.Command) {
	t.Helper()
	want := state.Summary()
	row, err := db.Execution(context.Background(), want.ExecutionID)
	if err != nil {
		t.Fatal(err)
	}
	if row.Status != want.Status || row.LastSeq != want.LastSeq || row.LastEventID != want.LastEventID ||
		row.StepsTotal != want.StepsTotal || row.StepsCompleted != want.StepsCompleted || row.StepsRunning != want.StepsRunning ||
		row.StepsFailed != want.StepsFailed || row.Error != want.Error || !row.EndedAt.Equal(want.EndedAt) {
		t.Errorf("execution row %+v differs from the fold %+v", row, want)
	}
	for id, c := range commands {
		got, err := db.Command(context.Background(), want.ExecutionID, id)
		if err != nil {
			t.Fatalf("command %s: %v", c.ID, err)
		}
		if got.Status != c.Status || got.Attempt != c.Attempt || got.WorkerID != c.Worker || got.CommandID != c.ID {
			t.Errorf("command row %+v differs from the fold %+v", got, *c)
		}
	}
}
