package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/worker"
)

// absent is a plane that takes no reports while away is set. It renews no
// leases either, so claims end.
func absent(away *atomic.Bool) *plane {
	p := &plane{}
	p.report = func(event.Report) (event.ReportAnswer, error) {
		if away.Load() {
			return event.ReportAnswer{}, event.Errorf(event.Unavailable, "away")
		}
		return event.ReportAnswer{Status: "ok"}, nil
	}
	return p
}

func spool(t *testing.T, dir string) func(*worker.Options) {
	t.Helper()
	s, err := worker.OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *worker.Options) { o.Spool, o.Heartbeat = s, time.Hour }
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// taken lists what the plane agreed to after it was back.
func taken(p *plane, from int) (ids []event.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reports[from:] {
		ids = append(ids, r.Events[0].EventID)
	}
	return ids
}

func TestAReportOutlastsAServerThatIsAwayForLongerThanTheLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		p := absent(&away)
		f := start(t, p, succeed, spool(t, dir))
		f.publish(t, 11, 21)
		elapse(70 * time.Second)
		if f.InFlight() != 0 {
			t.Error("a command still holds its slot after the lease has ended")
		}
		if n := len(files(t, dir)); n != 2 {
			t.Fatalf("%d reports are kept, want 2", n)
		}
		first := p.sent()[0]
		p.mu.Lock()
		tried := len(p.reports)
		p.mu.Unlock()
		away.Store(false)
		elapse(20 * time.Second)
		got := taken(p, tried)
		if len(got) != 2 || got[0] >= got[1] {
			t.Fatalf("delivered %v, want both in their order", got)
		}
		r := p.sent()[tried]
		if r.WorkerID != first.WorkerID || r.Eager != 0 || !strings.Contains(string(r.Events[0].Meta), `"attempt":2`) {
			t.Errorf("delivered %+v", r)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("the spool still holds %v", got)
		}
	})
}

func TestACommandWhoseReportIsKeptIsNotRunAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		p := absent(&away)
		f := start(t, p, succeed, spool(t, dir))
		f.publish(t, 11)
		elapse(65 * time.Second)
		claims := len(p.claimed())
		f.publish(t, 11) // the lease has ended; the pool is reminded
		elapse(10 * time.Second)
		if got := len(p.claimed()); got != claims {
			t.Error("the command was claimed although its report waits")
		}
		p.mu.Lock()
		p.claim = func(event.ClaimRequest) (*event.Command, error) {
			return nil, event.Errorf(event.Conflict, "it is over")
		}
		p.mu.Unlock()
		away.Store(false)
		elapse(2 * time.Minute)
		f.stop()
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestAnotherWorkerDeliversWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		p := absent(&away)
		f := start(t, p, succeed, spool(t, dir))
		f.publish(t, 11)
		elapse(70 * time.Second)
		f.stop()
		p.mu.Lock()
		id, tried := p.reports[0].Events[0].EventID, len(p.reports)
		p.mu.Unlock()
		away.Store(false)
		with := spool(t, dir)
		start(t, p, succeed, func(o *worker.Options) { with(o); o.ID = "w2" })
		elapse(time.Second)
		equal(t, "delivered", taken(p, tried), []event.ID{id})
		if got := p.sent()[tried].WorkerID; got != "w1" {
			t.Errorf("delivered in the name of %q, want that of the worker that ran it", got)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("the spool still holds %v", got)
		}
	})
}

func TestAReportIsKeptWhenTheWorkerEndsWithoutAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		f := start(t, absent(&away), succeed, spool(t, dir))
		f.publish(t, 11)
		synctest.Wait()
		f.stop()
		if n := len(files(t, dir)); n != 1 {
			t.Errorf("%d reports are kept, want 1", n)
		}
	})
}

func TestKeptReportsThatAreRefusedAreDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code event.Code
		want int // reports after the server is back
	}{
		"fenced, because another worker took over": {event.Conflict, 1},
		"of an execution nobody knows":             {event.NotFound, 1},
		"too large, so the command fails":          {event.Limit, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Bool
				p := &plane{report: func(r event.Report) (event.ReportAnswer, error) {
					switch {
					case !back.Load():
						return event.ReportAnswer{}, event.Errorf(event.Unavailable, "away")
					case r.Events[0].Type == event.CommandFailed:
						return event.ReportAnswer{}, nil
					}
					return event.ReportAnswer{}, event.Errorf(c.code, "no")
				}}
				f := start(t, p, succeed, spool(t, dir))
				f.publish(t, 11)
				elapse(65 * time.Second)
				p.mu.Lock()
				tried := len(p.reports)
				p.mu.Unlock()
				f.stop() // the notification would come again
				back.Store(true)
				start(t, p, succeed, spool(t, dir))
				elapse(time.Hour)
				if got := taken(p, tried); len(got) != c.want {
					t.Errorf("%d reports, want %d", len(got), c.want)
				}
				if got := files(t, dir); len(got) != 0 {
					t.Errorf("the spool still holds %v", got)
				}
			})
		})
	}
}

func TestAServerThatDoesNotKnowUsMayDoSoLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{report: func(event.Report) (event.ReportAnswer, error) {
			return event.ReportAnswer{}, event.Errorf(event.Unauthorized, "token expired")
		}}
		f := start(t, p, succeed, spool(t, dir))
		f.publish(t, 11)
		elapse(time.Minute)
		if n := len(files(t, dir)); n != 1 {
			t.Errorf("%d reports are kept, want 1", n)
		}
	})
}

func TestADiskThatTakesNothingCostsTheReportAndNoMore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		p := absent(&away)
		f := start(t, p, succeed, spool(t, dir))
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f.publish(t, 11)
		elapse(90 * time.Second)
		away.Store(false)
		elapse(2 * time.Minute) // the notification comes again and the command is run again
		f.stop()
		got := p.outcomes()
		equal(t, "last outcome", got[len(got)-1:], []outcome{done(11)})
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestAnUnreadableReportIsPutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, body := range map[string]string{"00000000000000000001.json": "{", "00000000000000000002.json": `{"version":9}`, "notes.txt": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		start(t, p, succeed, spool(t, dir))
		elapse(time.Hour)
		if len(p.reports) != 0 {
			t.Errorf("reported %v", p.reports)
		}
	})
	equal(t, "files", files(t, dir), []string{"00000000000000000001.json.unreadable", "00000000000000000002.json.unreadable", "notes.txt"})
}

func TestASpoolThatCannotBeOpenedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := worker.OpenSpool(filepath.Join(file, "spool"))
	if event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), "NOETL_WORKER_SPOOL_DIR") {
		t.Errorf("got %v", err)
	}
}

func TestTheSpoolIsCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		registry := &obs.Registry{}
		with := spool(t, dir)
		f := start(t, absent(&away), succeed, func(o *worker.Options) {
			with(o)
			o.Metrics = obs.NewWorker(registry, obs.WorkerVocabulary{EventTypes: []string{string(event.CommandCompleted)}})
		})
		f.publish(t, 11)
		elapse(65 * time.Second)
		wantMetrics(t, registry, "noetl_worker_spool_reports 1", `noetl_worker_event_emit_failed_total{event_type="command.completed"} 1`)
		away.Store(false)
		elapse(time.Minute)
		wantMetrics(t, registry, "noetl_worker_spool_reports 0", `noetl_worker_spool_replayed_total{status="ok"} 1`)
	})
}
