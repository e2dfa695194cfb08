package wire

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/api"
)

// TestNamesOfMetricsStay looks for what dashboards and alerts of operators ask
// for, before anything has been counted: a series that is missing is no zero.
// Two names of other servers count what cannot happen here and are left out: rows
// of commands that could not be written, and second ends of executions.
func TestNamesOfMetricsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := w.get("/metrics").ok().body
	for _, series := range []string{
		`noetl_events_ingested_total{event_type="command.completed",status="ok"} 0`,
		`noetl_events_ingested_total{event_type="command.completed",status="error"} 0`,
		`noetl_event_ingest_duration_seconds_count{event_type="command.completed"} 0`,
		`noetl_execute_outcomes_total{entry="single",outcome="new"} 0`,
		`noetl_execute_outcomes_total{entry="batch",outcome="duplicate"} 0`,
		`noetl_execute_outcomes_total{entry="single",outcome="error"} 0`,
		"noetl_execute_batch_size_count 0",
		"noetl_command_publish_total{", `route="`, `pool="`,
		"noetl_write_requests_total{", "noetl_write_request_duration_seconds_count{", `endpoint="`,
		"noetl_result_store_put_", "noetl_result_store_resolve_",
		`noetl_cleanup_rows_purged_total{table="command"} 0`,
		`noetl_container_callback_total{state="succeeded"} 0`,
		`noetl_container_callback_stale_total{state="failed_oom"} 0`,
		`noetl_server_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(body, series) {
			t.Errorf("no %s", series)
		}
	}
	hidden := newWorld(t, setting{api: func(o *api.Options) { o.DisableMetrics = true }})
	if a := hidden.get("/metrics"); a.status != 404 {
		t.Errorf("hidden metrics are answered with %d", a.status)
	}
}
