package playbook

import (
	"encoding/json"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/schedule"
)

// scheduleObject is when a playbook starts by itself. Its times are checked by
// the package that computes them.
var scheduleObject = &object{
	name: "schedule", title: "a schedule", doc: "When the playbook is started by itself, once it is registered.",
	fields: []field{
		{name: "name", forms: asText, doc: "Tells several schedules of a playbook apart; the schedule is called path:name then, and path without one."},
		{name: "cron", forms: asText, doc: "Five fields: minute, hour, day of month, month, day of week; six with seconds first; or a word such as @daily."},
		{name: "every", forms: asSpan, doc: "An interval such as 10m, counted from start or else from 1970 in UTC; instead of cron."},
		{name: "timezone", forms: asText, doc: "The time zone of cron, such as Europe/Berlin; UTC when absent."},
		{
			name: "overlap", forms: asText, words: []string{"skip", "queue", "cancel_old", "allow"},
			doc: "What becomes of a tick while an earlier run goes on; skip when absent.",
		},
		{name: "queue_limit", forms: asCount, doc: "How many ticks wait in line with overlap: queue; 10 when absent."},
		{
			name: "catch_up", forms: asText, words: []string{"none", "latest", "all"},
			doc: "What becomes of ticks no server was there for; latest when absent.",
		},
		{name: "catch_up_limit", forms: asCount, doc: "How many such ticks are run with catch_up: all; 100 when absent."},
		{name: "catch_up_window", forms: asSpan, doc: "How old such ticks may be; 24h when absent."},
		{name: "jitter", forms: asSpan, doc: "Each tick is delayed by up to this, always by the same; none when absent."},
		{name: "start", forms: asText, doc: "No tick is before it."},
		{name: "end", forms: asText, doc: "Every tick is before it."},
		{name: "payload", forms: asDict, doc: "Inputs of the executions; the key schedule is added to them with the tick."},
		{name: "pool", forms: asText, doc: "The worker pool of the executions."},
		{name: "max_failures", forms: asCount, doc: "The schedule is paused when so many runs in a row have failed; never when absent."},
	},
}

// schedules reads what metadata says under schedule and schedules.
func (r *reader) schedules(meta *node) []event.ScheduleSpec {
	var out []event.ScheduleSpec
	seen := map[string]bool{}
	add := func(n *node) {
		if !n.given() {
			return
		}
		if n.shape != mapShape {
			r.fail(n.at(), "wrong_type", "a schedule must be a map, this is "+n.describe(), "write {cron: '0 2 * * *'} or {every: 10m}")
			return
		}
		spec := r.schedule(n)
		if seen[spec.Name] {
			r.fail(n.at(), "duplicate_name", "the playbook has two schedules "+scheduleCalled(spec.Name), "give each a name of its own")
		}
		seen[spec.Name] = true
		out = append(out, spec)
	}
	add(meta.get("schedule"))
	if list := meta.get("schedules"); list.given() {
		for _, item := range list.items {
			add(item)
		}
	}
	return out
}

func scheduleCalled(name string) string {
	if name == "" {
		return "without a name"
	}
	return "named " + quote(name)
}

func (r *reader) schedule(n *node) event.ScheduleSpec {
	before := r.count[SeverityError]
	c := r.conform(n, scheduleObject)
	text := func(key string) string { return c.get(key).str() }
	count := func(key string) int {
		i, _ := strconv.Atoi(c.get(key).str()) // the grammar lets only numbers through
		return i
	}
	s := event.ScheduleSpec{
		Name: text("name"), Cron: text("cron"), Every: text("every"), Timezone: text("timezone"), Overlap: text("overlap"), QueueLimit: count("queue_limit"),
		CatchUp: text("catch_up"), CatchUpLimit: count("catch_up_limit"), CatchUpWindow: text("catch_up_window"), Jitter: text("jitter"),
		Start: text("start"), End: text("end"), Pool: text("pool"), MaxFailures: count("max_failures"),
	}
	if p := c.get("payload"); p.given() {
		raw, err := jinja.ToJSON(p.native())
		if err != nil {
			r.fail(p.at(), "bad_schedule", "payload of a schedule cannot be written as JSON: "+err.Error(), "")
		}
		s.Payload = json.RawMessage(raw)
	}
	if r.count[SeverityError] > before {
		return s // what is wrong was said
	}
	if s.Name != "" {
		if f := schedule.CheckName(s.Name); f != nil {
			r.misfit(c, f)
		}
	}
	_, faults := schedule.Compile(s)
	for _, f := range faults {
		r.misfit(c, f)
	}
	return s
}

// misfit complains about a part of a schedule, where it stands.
func (r *reader) misfit(n *node, f *schedule.Fault) {
	at := n.at()
	if v := n.get(f.Field); v.given() {
		at = v.at()
	}
	r.fail(at, "bad_schedule", f.Field+" of a schedule: "+f.Message, f.Remedy)
}
