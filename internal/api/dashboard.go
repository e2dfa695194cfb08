package api

import (
	"context"
	"math"
	"net/http"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Dashboards sums up.
type Dashboards interface {
	Summary(ctx context.Context) (control.Summary, error)
	Gauges(ctx context.Context) (control.Gauges, error)
	Ready(ctx context.Context) (database, broker bool)
	PoolState() store.PoolState
	Shards() int
}

func (s *Server) dashboardRoutes() []route {
	return []route{
		entry(http.MethodGet, "/api/dashboard/stats", Viewer, s.stats, "counts executions, playbooks and workers", "", `{status, stats, total_playbooks, total_executions, active_executions, success_rate, recent_executions, …}`).within(Filtered),
		entry(http.MethodGet, "/api/dashboard/widgets", Viewer, s.widgets, "the same as widgets to show", "", `{widgets}`).within(Filtered),
		entry(http.MethodGet, "/api/status", Viewer, s.system, "tells how busy the machine and the process are", "", `{system, process}`).within(Everywhere),
		entry(http.MethodGet, "/api/pool/status", Viewer, s.poolStatus, "tells of the connections to the database", "", `{pool_min, pool_max, pool_size, pool_available, requests_waiting, utilization, slots_available, status}`).within(Everywhere),
		entry(http.MethodGet, "/api/runtime/shard-info", Viewer, s.shardInfo, "tells in which of a number of shards an execution lives", "?execution_id&shard_count", `{execution_id, shard_count, shard_index, source, hash_function, seed, server_config}`).within(Pathless),
	}
}

type totals struct {
	Total     int64 `json:"total_executions"`
	Succeeded int64 `json:"successful_executions"`
	Failed    int64 `json:"failed_executions"`
	Cancelled int64 `json:"cancelled_executions"`
	Running   int64 `json:"running_executions"`
	Playbooks int64 `json:"total_playbooks"`
	Workers   int   `json:"total_workers"`
}

func totalsOf(sum control.Summary) totals {
	t := totals{
		Succeeded: sum.Executions[event.StatusCompleted], Failed: sum.Executions[event.StatusFailed],
		Cancelled: sum.Executions[event.StatusCancelled], Playbooks: sum.Playbooks, Workers: sum.Workers,
	}
	for status, n := range sum.Executions {
		t.Total += n
		if !event.IsFinal(status) {
			t.Running += n
		}
	}
	return t
}

// successRate is the share of ended executions that completed, in percent.
func (t totals) successRate() float64 {
	ended := t.Succeeded + t.Failed + t.Cancelled
	if ended == 0 {
		return 0
	}
	return math.Round(10000*float64(t.Succeeded)/float64(ended)) / 100
}

// statsAnswer has the totals on two levels: clients of two generations look in
// different places.
type statsAnswer struct {
	Status string `json:"status"`
	Stats  totals `json:"stats"`
	totals
	Active          int64           `json:"active_executions"`
	ActiveWorkflows int64           `json:"active_workflows"`
	SuccessRate     float64         `json:"success_rate"`
	Recent          []executionView `json:"recent_executions"`
}

// summaryRows bounds the executions a narrowed summary counts.
const summaryRows = 1000

// summary is the system as far as the caller may see it. Of a narrowed caller's
// executions the latest are counted.
func (s *Server) summary(ctx context.Context) (control.Summary, error) {
	re := s.reach(ctx)
	if re.everywhere {
		return s.opt.Plane.Summary(ctx)
	}
	rows, err := s.visible(ctx, store.ExecutionFilter{Limit: summaryRows})
	if err != nil {
		return control.Summary{}, err
	}
	entries, err := s.opt.Plane.Entries(ctx, store.EntryFilter{Kind: "playbook"})
	if err != nil {
		return control.Summary{}, err
	}
	paths := map[string]bool{}
	for _, e := range re.keep(entries) {
		paths[e.Path] = true
	}
	return control.SummaryOf(rows, int64(len(paths)), len(rows) == summaryRows, s.opt.Clock()), nil
}

func (s *Server) stats(w http.ResponseWriter, r *http.Request) error {
	sum, err := s.summary(r.Context())
	if err != nil {
		return err
	}
	t := totalsOf(sum)
	return respond(w, statsAnswer{
		Status: "ok", Stats: t, totals: t, Active: t.Running, ActiveWorkflows: t.Running, SuccessRate: t.successRate(), Recent: s.recent(sum),
	})
}

func (s *Server) recent(sum control.Summary) []executionView {
	views := make([]executionView, len(sum.Recent))
	for i, x := range sum.Recent {
		views[i] = s.viewExecution(x)
	}
	return views
}

type widget struct {
	ID     string         `json:"id"`
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Config map[string]any `json:"config"`
	Data   any            `json:"data"`
}

func (s *Server) widgets(w http.ResponseWriter, r *http.Request) error {
	sum, err := s.summary(r.Context())
	if err != nil {
		return err
	}
	list := []widget{
		{"execution-totals", "metric", "Executions", map[string]any{}, totalsOf(sum)},
		{"execution-trend", "chart", "Executions of the last day", map[string]any{"bucket": "hour", "truncated": sum.Truncated}, sum.Trend},
		{"recent-executions", "table", "Recent executions", map[string]any{"limit": len(sum.Recent)}, s.recent(sum)},
	}
	return respond(w, struct {
		Widgets []widget `json:"widgets"`
	}{list})
}

type poolAnswer struct {
	Min         int     `json:"pool_min"`
	Max         int     `json:"pool_max"`
	Size        int     `json:"pool_size"`
	Available   int     `json:"pool_available"`
	Waiting     int     `json:"requests_waiting"`
	Utilization float64 `json:"utilization"`
	Slots       int     `json:"slots_available"`
	Status      string  `json:"status"`
}

// poolStatus tells how many connections are in use. A store without a pool has
// no limit to run into.
func (s *Server) poolStatus(w http.ResponseWriter, _ *http.Request) error {
	p := s.opt.Plane.PoolState()
	used := max(p.Open-p.Idle, 0)
	a := poolAnswer{Min: p.Min, Max: p.Max, Size: p.Open, Available: p.Idle, Waiting: p.Waiting, Slots: max(p.Max-used, 0), Status: "ok"}
	if p.Max > 0 {
		a.Utilization = math.Round(1000*float64(used)/float64(p.Max)) / 1000
		if used >= p.Max {
			a.Status = "saturated"
		}
	}
	return respond(w, a)
}

// maxShards bounds what a client may ask about.
const maxShards = 1024

type shardAnswer struct {
	ExecutionID event.ID `json:"execution_id"`
	Count       int      `json:"shard_count"`
	Index       int      `json:"shard_index"`
	Source      string   `json:"source"`
	Hash        string   `json:"hash_function"` // clients compare it with their own
	Seed        int      `json:"seed"`
	Config      struct {
		Index int `json:"shard_index"`
		Count int `json:"shard_count"`
	} `json:"server_config"`
}

func (s *Server) shardInfo(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	id, own := q.id("execution_id"), max(s.opt.ShardCount, 1)
	if s.opt.ShardCount == 0 {
		own = s.opt.Plane.Shards()
	}
	n := q.number("shard_count", int64(own), 1, maxShards+1)
	switch {
	case q.err != nil:
		return badQuery(q.err)
	case q.Get("execution_id") == "":
		return event.Errorf(event.BadRequest, "execution_id is missing: which execution?")
	case n > maxShards:
		return event.Errorf(event.BadRequest, "shard_count: want an integer from 1 to %d", maxShards)
	}
	a := shardAnswer{
		ExecutionID: id, Count: int(n), Index: store.ShardIndex(id, int(n)),
		Source: "noetl-server", Hash: "twox_hash::XxHash64",
	}
	a.Config.Index, a.Config.Count = s.opt.ShardIndex, own
	return respond(w, a)
}

// badQuery is the answer clients of this route expect to a wrong parameter.
func badQuery(err error) error {
	f := failureOf(err)
	f.Status, f.Code = http.StatusBadRequest, string(event.BadRequest)
	return f
}
