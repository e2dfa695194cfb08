package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/control"
)

func TestDashboardCountsWhatThereIs(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	stats := func() answer { t.Helper(); return ask(t, l.Server, "GET", "/api/dashboard/stats", "") }
	if a := stats(); fmt.Sprint(a.field(t, "total_executions")) != "0" || fmt.Sprint(a.field(t, "success_rate")) != "0" {
		t.Errorf("of nothing: %s", a.body)
	}
	l.register(t, twoSteps)
	l.register(t, twoSteps)
	l.execute(t, "demo/two")
	cancelled := l.execute(t, "demo/two")
	ask(t, l.Server, "POST", "/api/executions/"+cancelled+"/cancel", `{}`)
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"w1","status":"ready"}`)
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"s1","kind":"server_api"}`)
	if a := stats(); fmt.Sprint(a.field(t, "total_executions")) != "0" {
		t.Errorf("asking again at once looks into the store again: %s", a.body)
	}
	l.pass(10 * time.Second)
	a := stats()
	want := map[string]string{
		"status": "ok", "total_executions": "2", "running_executions": "1", "active_executions": "1", "cancelled_executions": "1",
		"failed_executions": "0", "successful_executions": "0", "total_playbooks": "1", "total_workers": "1", "success_rate": "0",
	}
	inner, _ := a.field(t, "stats").(map[string]any)
	for name, v := range want {
		if got := fmt.Sprint(a.field(t, name)); got != v {
			t.Errorf("%s is %s, want %s", name, got, v)
		}
		if got, ok := inner[name]; ok && fmt.Sprint(got) != v {
			t.Errorf("stats.%s is %v, want %s", name, got, v)
		}
	}
	if len(inner) != 7 {
		t.Errorf("stats: %v", inner)
	}
	recent, _ := a.field(t, "recent_executions").([]any)
	if len(recent) != 2 || recent[0].(map[string]any)["path"] != "demo/two" {
		t.Errorf("recent executions: %s", a.body)
	}
	l.pass(2 * time.Minute)
	if a := stats(); fmt.Sprint(a.field(t, "total_workers")) != "0" {
		t.Errorf("a silent worker is counted: %s", a.body)
	}
	widgets, _ := ask(t, l.Server, "GET", "/api/dashboard/widgets", "").field(t, "widgets").([]any)
	ids := map[any]any{}
	for _, w := range widgets {
		m := w.(map[string]any)
		ids[m["id"]] = m["data"]
	}
	hours, _ := ids["execution-trend"].([]any)
	if rows, _ := ids["recent-executions"].([]any); len(rows) != 2 || len(hours) != 24 {
		t.Errorf("widgets: %v", widgets)
	}
	started := 0
	for _, h := range hours {
		if fmt.Sprint(h.(map[string]any)["started"]) != "0" {
			started++
		}
	}
	if started == 0 {
		t.Errorf("the trend shows nothing: %v", hours)
	}
}

func TestSystemAndPoolStatus(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	a := ask(t, l.Server, "GET", "/api/status", "")
	process, _ := a.field(t, "process").(map[string]any)
	system, _ := a.field(t, "system").(map[string]any)
	if len(process) != 7 || len(system) != 5 || fmt.Sprint(process["pid"]) == "0" {
		t.Errorf("status: %s", a.body)
	}
	p := ask(t, l.Server, "GET", "/api/pool/status", "")
	for _, name := range []string{"pool_min", "pool_max", "pool_size", "pool_available", "requests_waiting", "utilization", "slots_available", "status"} {
		if p.field(t, name) == nil {
			t.Errorf("no %s in %s", name, p.body)
		}
	}
}

func TestShardInfo(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	ask(t, l.Server, "GET", "/api/runtime/shard-info?execution_id=42&shard_count=4", "").want(t, 200,
		`{"execution_id":42,"shard_count":4,"shard_index":3,"source":"noetl-server","hash_function":"twox_hash::XxHash64","seed":0,
		  "server_config":{"shard_index":0,"shard_count":1}}`)
	for query, want := range map[string]string{
		"execution_id=320816801799737344&shard_count=16": "14",
		"execution_id=1&shard_count=4":                   "1",
		"execution_id=325&shard_count=8":                 "4",
		"execution_id=9223372036854775807&shard_count=4": "0",
		"execution_id=7":                                 "0",
	} {
		if a := ask(t, l.Server, "GET", "/api/runtime/shard-info?"+query, ""); fmt.Sprint(a.field(t, "shard_index")) != want {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for _, query := range []string{"", "shard_count=4", "execution_id=x", "execution_id=1&shard_count=0", "execution_id=1&shard_count=1025", "execution_id=1&shard_count=many"} {
		ask(t, l.Server, "GET", "/api/runtime/shard-info?"+query, "").wantError(t, http.StatusBadRequest, "")
	}
	own := newLiving(t, nil, func(_ *control.Options, o *api.Options) { o.ShardIndex, o.ShardCount = 2, 8 })
	ask(t, own.Server, "GET", "/api/runtime/shard-info?execution_id=325", "").want(t, 200,
		`{"execution_id":325,"shard_count":8,"shard_index":4,"source":"noetl-server","hash_function":"twox_hash::XxHash64","seed":0,
		  "server_config":{"shard_index":2,"shard_count":8}}`)
}
