package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// fault is one way for things to go wrong, tried on a system under load.
type fault struct {
	name     string
	backends []string
	prepare  func(c *campaign) // before anything is started; may be nil
	inject   func(c *campaign, until time.Time)
}

// Where a fault is tried: on one of the two in every test run, and on
// both in `make chaos`.
var (
	bothBackends = []string{"sqlite", "postgres"}
	mostlySQLite = oneOf("sqlite")
	mostlyPG     = oneOf("postgres")
)

func oneOf(backend string) []string {
	if os.Getenv("NOETL_CHAOS") != "" {
		return bothBackends
	}
	return []string{backend}
}

// faults lists them all. Each inject returns when what it broke works again.
func faults() []fault {
	return []fault{
		{name: "kill -9 of the server at each failpoint", backends: mostlySQLite, inject: killServerAtFailpoints},
		{name: "kill -9 of a worker at each failpoint", backends: mostlyPG, inject: killWorkerAtFailpoints},
		{name: "commits that report a timeout", backends: mostlyPG, inject: commitsWithoutAnswer},
		{name: "PostgreSQL crashes every few seconds", backends: []string{"postgres"}, prepare: ownPostgres, inject: crashPostgres},
		{name: "JetStream directory wiped", backends: mostlySQLite, prepare: ownNATS, inject: wipeJetStream},
		{name: "NATS gone for a while", backends: mostlyPG, prepare: ownNATS, inject: stopNATS},
		{name: "server frozen longer than its leases", backends: mostlyPG, inject: freezeServer},
		{name: "worker frozen longer than its leases", backends: mostlySQLite, inject: freezeWorker},
		{name: "clock moved", backends: mostlySQLite, prepare: ownClock, inject: moveClock},
		{name: "disk full", backends: mostlySQLite, prepare: smallDisk, inject: fillDisk},
	}
}

// faultTime is how long each fault goes on: moments in every test run, as long
// as NOETL_CHAOS says in `make chaos`.
func faultTime(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv("NOETL_CHAOS") == "" {
		return 3 * time.Second
	}
	return chaosTime(t)
}

// TestFaults breaks one thing after the other while executions keep coming.
// Afterwards every start that was acknowledged is there once, has ended, and
// its log and rows are as they must be.
func TestFaults(t *testing.T) {
	t.Parallel()
	var report faultReport
	t.Run("each", func(t *testing.T) {
		for _, f := range faults() {
			for _, backend := range f.backends {
				t.Run(strings.ReplaceAll(f.name, " ", "_")+"/"+backend, func(t *testing.T) {
					t.Parallel()
					report.add(runFault(t, f, backend))
				})
			}
		}
	})
	t.Log("\n" + report.String())
}

// faultResult is one line of the report.
type faultResult struct {
	fault, backend       string
	injected, executions int
	lost, doubled, stuck int
	verified             bool
}

type faultReport struct {
	mu    sync.Mutex
	lines []faultResult
}

func (r *faultReport) add(line faultResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *faultReport) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.lines, func(a, b faultResult) int { return strings.Compare(a.fault+a.backend, b.fault+b.backend) })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\tstore\tinjected\texecutions\tlost\tdoubled\tstuck\tdb verify\t")
	for _, l := range r.lines {
		verdict := "clean"
		if !l.verified {
			verdict = "DIFFERS"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t\n", l.fault, l.backend, l.injected, l.executions, l.lost, l.doubled, l.stuck, verdict)
	}
	w.Flush()
	return b.String()
}

func runFault(t *testing.T, f fault, backend string) faultResult {
	c := newCampaign(t, backend)
	if f.prepare != nil {
		f.prepare(c)
	}
	c.begin()
	stop := c.load()
	f.inject(c, time.Now().Add(faultTime(t)))
	stop()
	r := c.judge()
	r.fault, r.backend, r.injected = f.name, backend, c.injected
	if r.injected == 0 || r.executions == 0 {
		t.Errorf("%d faults on %d executions: this shows nothing", r.injected, r.executions)
	}
	if r.lost+r.doubled+r.stuck > 0 || !r.verified {
		t.Errorf("%d lost, %d doubled, %d stuck, verified %v", r.lost, r.doubled, r.stuck, r.verified)
	}
	return r
}
