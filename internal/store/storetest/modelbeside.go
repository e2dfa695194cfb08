package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// outboxKey names a row in both stores, which number them differently.
type outboxKey struct{ Execution, Event event.ID }

// handed is what a claim hands out, without the numbers.
type handed struct {
	Key      outboxKey
	Seq      int64
	Path     string
	Attempts int
}

// drain publishes what earlier sequences have left, so that both stores begin
// with nothing to publish.
func (m *model) drain() {
	c := store.OutboxClaim{Token: "drain", Now: epoch.AddDate(10, 0, 0), Limit: 1000}
	for {
		rows, err := m.real.ClaimOutbox(m.t.Context(), c)
		if err != nil {
			m.t.Fatalf("ClaimOutbox = %v", err)
		}
		if len(rows) == 0 {
			return
		}
		if _, err := m.real.MarkPublished(m.t.Context(), "", rowIDs(rows), epoch); err != nil {
			m.t.Fatalf("MarkPublished = %v", err)
		}
	}
}

func (m *model) tick(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
}

// startClaim is sometimes a claim for the start of an execution.
func (m *model) startClaim(t *rapid.T, x event.ID) *store.StartClaim {
	c := store.StartClaim{
		Scope: m.executions[0], Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), At: m.now,
		Window: time.Duration(rapid.IntRange(0, 30).Draw(t, "window")) * time.Second,
	}
	if rapid.Bool().Draw(t, "without claim") || !m.real.Colocated(x, c) {
		return nil
	}
	return &c
}

func (m *model) claimHolder(t *rapid.T) {
	c := store.StartClaim{
		Scope: m.executions[0], Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), At: m.now,
		Window: time.Duration(rapid.IntRange(0, 60).Draw(t, "window")) * time.Second,
	}
	_ = same(m, "ClaimHolder", func(s store.Store) (event.ID, error) { return s.ClaimHolder(m.t.Context(), c) })
}

// claimOutbox compares what is handed out. Spread over several databases,
// which rows are the oldest is not one answer.
func (m *model) claimOutbox(t *rapid.T) {
	if m.real.Shards() > 1 {
		t.Skip("several databases")
	}
	c := store.OutboxClaim{
		Token: m.token(t), Now: m.now, Lease: 15 * time.Second,
		MaxAttempts: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "max attempts"), Limit: rapid.IntRange(1, 5).Draw(t, "limit"),
	}
	_ = same(m, "ClaimOutbox", func(s store.Store) ([]handed, error) {
		rows, err := s.ClaimOutbox(m.t.Context(), c)
		var out []handed
		for _, r := range rows {
			key := outboxKey{r.Event.ExecutionID, r.Event.EventID}
			out = append(out, handed{key, r.Event.Seq, r.Path, r.Attempts})
			if m.rows[key] == nil {
				m.rows[key] = map[store.Store]int64{}
				m.keys = append(m.keys, key)
			}
			m.rows[key][s] = r.ID
		}
		return out, err
	})
}

func (m *model) token(t *rapid.T) string {
	return rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "token")
}

// settleOutbox reports on rows that were handed out at some time.
func (m *model) settleOutbox(t *rapid.T) {
	if len(m.keys) == 0 {
		t.Skip("nothing was handed out yet")
	}
	keys := rapid.SliceOfN(rapid.SampledFrom(m.keys), 1, 3).Draw(t, "rows")
	ids := func(s store.Store) (out []int64) {
		for _, key := range keys {
			out = append(out, m.rows[key][s])
		}
		return out
	}
	token := m.token(t)
	switch rapid.IntRange(0, 3).Draw(t, "report") {
	case 0:
		_ = same(m, "MarkPublished", func(s store.Store) (int, error) { return s.MarkPublished(m.t.Context(), token, ids(s), m.now) })
	case 1:
		until := m.now.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, "wait")) * time.Second)
		_ = same(m, "MarkFailed", func(s store.Store) (bool, error) { return s.MarkFailed(m.t.Context(), token, ids(s)[0], "no", until) })
	case 2:
		_ = same(m, "ReleaseOutbox", func(s store.Store) (int, error) { return s.ReleaseOutbox(m.t.Context(), token, ids(s)) })
	case 3:
		_ = same(m, "MarkPublished without token", func(s store.Store) (int, error) {
			return s.MarkPublished(m.t.Context(), "", ids(s)[:1], m.now)
		})
	}
}

// compareBeside looks at what is kept beside the log.
func (m *model) compareBeside() {
	_ = same(m, "CountOutbox", func(s store.Store) (store.OutboxCounts, error) {
		c, err := s.CountOutbox(m.t.Context(), m.now, 15*time.Second)
		// The rest counts earlier sequences, too.
		return store.OutboxCounts{Ready: c.Ready, Waiting: c.Waiting, InFlight: c.InFlight, Oldest: c.Oldest}, err
	})
	for _, x := range m.executions {
		_ = same(m, "CommandsOf", func(s store.Store) ([]store.Command, error) { return s.CommandsOf(m.t.Context(), x) })
	}
	_ = same(m, "LoggedExecutions", func(s store.Store) ([]event.ID, error) {
		return s.LoggedExecutions(m.t.Context(), m.executions[0]-1, 100)
	})
	_ = same(m, "ProjectedExecutions", func(s store.Store) ([]store.Execution, error) {
		return s.ProjectedExecutions(m.t.Context(), m.executions[0]-1, 100)
	})
}

// reproject replaces the rows of an execution by others at a sequence that is
// mostly right.
func (m *model) reproject(t *rapid.T) {
	x := rapid.SampledFrom(m.executions).Draw(t, "execution")
	row := newBatch(x, m.seq[x], 1).Execution
	row.LastSeq = m.seq[x] + int64(rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "skew"))
	row.Status = rapid.SampledFrom([]string{event.StatusRunning, event.StatusFailed}).Draw(t, "status")
	commands, err := m.mem.CommandsOf(m.t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) > 0 && rapid.Bool().Draw(t, "drop one") {
		commands = commands[1:]
	}
	_ = same(m, "Reproject", func(s store.Store) (struct{}, error) {
		return struct{}{}, s.Reproject(m.t.Context(), row, commands)
	})
}

func (m *model) renewWorker(t *rapid.T) {
	worker := rapid.SampledFrom([]string{"w1", "w12", "v%"}).Draw(t, "worker")
	claimed := after(rapid.IntRange(-1, 3).Draw(t, "claimed after"))
	_ = same(m, "RenewWorker", func(s store.Store) (struct{}, error) {
		_, err := s.RenewWorker(m.t.Context(), worker, claimed, after(9))
		return struct{}{}, err // the count would include earlier sequences
	})
}
