package replay_test

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
)

const twoCommands = `{"event_type":"playbook_started"}, {"event_type":"step.enter","node_name":"a"},
	{"event_type":"command.issued","command_id":"a"}, {"event_type":"command.issued","command_id":"b"},
	{"event_type":"command.claimed","command_id":"a","worker_id":"w"}, {"event_type":"command.claimed","command_id":"b","worker_id":"w","meta":{"attempt":1}}`

func TestRowsThatContradictTheLogAreNamed(t *testing.T) {
	t.Parallel()
	a := func(status string) replay.LiveCommand {
		return replay.LiveCommand{CommandID: "a", Status: status, WorkerID: "w"}
	}
	b := func(status string) replay.LiveCommand {
		return replay.LiveCommand{CommandID: "b", Status: status, WorkerID: "w"}
	}
	for name, tc := range map[string]struct {
		more   string
		status string
		rows   []replay.LiveCommand
		want   []string // parts of the sentences
	}{
		"they agree":            {"", "RUNNING", []replay.LiveCommand{a("CLAIMED"), b("RUNNING")}, nil},
		"success is completion": {`,{"event_type":"command.completed","command_id":"a","status":"success","worker_id":"w"}`, "RUNNING", []replay.LiveCommand{a("COMPLETED"), b("RUNNING")}, nil},
		"an error is a failure": {`,{"event_type":"command.completed","command_id":"a","status":"error","worker_id":"w"}`, "RUNNING", []replay.LiveCommand{a("COMPLETED"), b("RUNNING")}, []string{"command a: the log ends it with error, its row says COMPLETED"}},
		"a failure":             {`,{"event_type":"command.failed","command_id":"a","worker_id":"w"}`, "RUNNING", []replay.LiveCommand{a("FAILED"), b("RUNNING")}, nil},
		"a cancellation":        {`,{"event_type":"command.cancelled","command_id":"a","status":"CANCELLED"}`, "RUNNING", []replay.LiveCommand{a("CANCELLED"), b("RUNNING")}, nil},
		"a row ahead":           {"", "RUNNING", []replay.LiveCommand{a("COMPLETED"), b("RUNNING")}, []string{"command a: its row says COMPLETED, no event ends it"}},
		"a row behind":          {`,{"event_type":"command.completed","command_id":"a","worker_id":"w"}`, "RUNNING", []replay.LiveCommand{a("CLAIMED"), b("RUNNING")}, []string{"command a: event 7 ends it, its row says CLAIMED"}},
		"another worker's end":  {`,{"event_type":"command.completed","command_id":"a","worker_id":"late"}`, "RUNNING", []replay.LiveCommand{a("CLAIMED"), b("RUNNING")}, nil},
		"two ends":              {`,{"event_type":"command.failed","command_id":"a"},{"event_type":"command.completed","command_id":"a"}`, "RUNNING", []replay.LiveCommand{a("FAILED"), b("RUNNING")}, nil},
		"an end of an attempt that was replaced": {
			`,{"event_type":"command.claimed","command_id":"b","worker_id":"w","meta":{"attempt":2}},{"event_type":"command.completed","command_id":"b","worker_id":"w","meta":{"attempt":1}}`,
			"RUNNING",
			[]replay.LiveCommand{a("CLAIMED"), b("CLAIMED")},
			nil,
		},
		"the end of a wait": {`,{"event_type":"command.parked","command_id":"a","status":"WAITING"},{"event_type":"call.done","command_id":"a"}`, "RUNNING", []replay.LiveCommand{a("COMPLETED"), b("RUNNING")}, nil},
		"a lost row":        {"", "RUNNING", []replay.LiveCommand{a("CLAIMED")}, []string{"command b was issued and has no row"}},
		"purged rows":       {`,{"event_type":"playbook.completed"}`, "COMPLETED", nil, nil},
		"an invented row":   {"", "RUNNING", []replay.LiveCommand{a("CLAIMED"), b("CLAIMED"), {CommandID: "c", Status: "PENDING"}}, []string{"command c has a row and was never issued"}},
		"another end":       {`,{"event_type":"playbook.failed"}`, "COMPLETED", nil, []string{"the log says the execution is FAILED, its row says COMPLETED"}},
		"an end not in row": {`,{"event_type":"playbook.failed"}`, "RUNNING", nil, []string{"the log says the execution is FAILED, its row says RUNNING"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fold(t, twoCommands+tc.more)
			got := replay.Differences(s, replay.Live{Status: tc.status, LastEventID: s.LastEventID, Events: s.EventCount, Commands: tc.rows})
			if len(got) != len(tc.want) {
				t.Fatalf("differences %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.Contains(got[i], tc.want[i]) {
					t.Errorf("differences %q, want %q", got, tc.want)
				}
			}
		})
	}
	s := fold(t, twoCommands)
	got := replay.Differences(s, replay.Live{Status: event.StatusRunning, LastEventID: 5, Events: 5, Commands: []replay.LiveCommand{a("CLAIMED"), b("CLAIMED")}})
	if len(got) != 2 || !strings.Contains(got[0], "6 events, the row counts 5") || !strings.Contains(got[1], "ends with event 6") {
		t.Errorf("a row that lost an event: %q", got)
	}
}
