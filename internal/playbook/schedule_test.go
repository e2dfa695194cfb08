package playbook_test

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
)

const scheduled = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: report
  path: etl/report
%s
workflow:
  - step: start
    tool: {kind: noop}
`

func withSchedule(text string) []byte { return []byte(strings.Replace(scheduled, "%s", text, 1)) }

func TestAPlaybookSaysWhenItRuns(t *testing.T) {
	t.Parallel()
	p, problems := playbook.Parse("p.yaml", withSchedule(`  schedule: {cron: "0 2 * * *", timezone: Europe/Berlin, overlap: queue, queue_limit: 3, payload: {day: 1, deep: {a: [x]}}}
  schedules:
    - {name: often, every: 90, jitter: 10s, max_failures: 5}
    - {name: seldom, cron: "@yearly", catch_up: none, start: 2026-01-01T00:00:00Z}`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s := p.Metadata.Schedules
	if len(s) != 3 {
		t.Fatalf("schedules %+v", s)
	}
	if s[0].Cron != "0 2 * * *" || s[0].Timezone != "Europe/Berlin" || s[0].Overlap != "queue" || s[0].QueueLimit != 3 || string(s[0].Payload) != `{"day":1,"deep":{"a":["x"]}}` {
		t.Errorf("the first is %+v with %s", s[0], s[0].Payload)
	}
	if s[1].Name != "often" || s[1].Every != "90" || s[1].Jitter != "10s" || s[1].MaxFailures != 5 {
		t.Errorf("the second is %+v", s[1])
	}
	if s[2].Name != "seldom" || s[2].CatchUp != "none" || !strings.HasPrefix(s[2].Start, "2026-01-01") {
		t.Errorf("the third is %+v", s[2])
	}
}

func TestAWrongScheduleIsRefusedWhereItStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		line, col int
		want      string
	}{
		"cron":           {"  schedule:\n    cron: \"61 * * * *\"", 7, 11, `the minute "61"`},
		"nothing":        {"  schedule: {overlap: skip}", 6, 13, "nothing says when"},
		"both":           {"  schedule: {cron: \"@daily\", every: 10m}", 6, 37, "exclude each other"},
		"zone":           {"  schedule: {cron: \"@daily\", timezone: Mars/Base}", 6, 40, "time zone"},
		"policy":         {"  schedule: {every: 10m, overlap: never}", 6, 35, "never"},
		"unknown key":    {"  schedule: {every: 10m, overlaps: skip}", 6, 26, "overlap"},
		"in a list":      {"  schedules:\n    - {name: a, every: 10m}\n    - {name: b, every: 10ms}", 8, 24, "from 1s"},
		"two of a name":  {"  schedules:\n    - {name: a, every: 10m}\n    - {name: a, every: 1h}", 8, 7, "two schedules"},
		"two nameless":   {"  schedules:\n    - {every: 10m}\n    - {every: 1h}", 8, 7, "without a name"},
		"not a map":      {"  schedule: daily", 6, 13, "map"},
		"not a list":     {"  schedules: {every: 10m}", 6, 14, "list"},
		"the tick's key": {"  schedule: {every: 10m, payload: {schedule: 1}}", 6, 35, "filled with the tick"},
		"a number":       {"  schedule: {name: 12, every: 10m}", 6, 20, "reads like an id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := playbook.Parse("p.yaml", withSchedule(c.text))
			if len(problems) == 0 || problems.Err() == nil && c.want != "overlap" { // an unknown key is a warning
				t.Fatal("nothing is wrong with it")
			}
			p := problems[0]
			if p.Line != c.line || p.Col != c.col || !strings.Contains(p.Message+p.Remedy, c.want) {
				t.Errorf("%d:%d %s (%s), want %d:%d with %q", p.Line, p.Col, p.Message, p.Remedy, c.line, c.col, c.want)
			}
		})
	}
}
