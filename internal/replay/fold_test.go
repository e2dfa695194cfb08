package replay_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
)

var rewrite = flag.Bool("rewrite", false, "write the golden state anew")

func TestOurLogFoldsIntoTheGoldenState(t *testing.T) {
	t.Parallel()
	s := replay.Records(records(t, "testdata/events.json"), harness)
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/state.json"
	if *rewrite {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAnEmptyLogHasAnEmptyState(t *testing.T) {
	t.Parallel()
	s := replay.Records(nil, replay.Options{TenantID: "t", OrganizationID: "o", ExecutionID: 7, Projection: replay.OfLoop})
	empty := replay.Sum(json.RawMessage(`{}`))
	want := map[string]any{
		"tenant_id": "t", "organization_id": "o", "execution_id": 7.0, "projection": "loop", "event_count": 0.0,
		"execution": map[string]any{"status": "UNKNOWN", "payload_refs": []any{}},
		"stages":    map[string]any{}, "frames": map[string]any{}, "commands": map[string]any{},
		"business_objects": map[string]any{}, "loops": map[string]any{},
		"checksum":             any(map[string]any{"type": "sha256", "value": s.Checksum.Value}),
		"projection_checksums": map[string]any{},
	}
	for _, name := range []string{"stage", "frame", "command", "business_object", "loop"} {
		want["projection_checksums"].(map[string]any)[name] = map[string]any{"type": "sha256", "value": empty.Value}
	}
	want["projection_checksums"].(map[string]any)["execution"] = map[string]any{"type": "sha256", "value": replay.Sum(json.RawMessage(`{"payload_refs":[],"status":"UNKNOWN"}`)).Value}
	if diff := cmp.Diff(want, wire(t, s)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func fold(t *testing.T, text string) *replay.State {
	t.Helper()
	var list []replay.Record
	if err := json.Unmarshal([]byte("["+text+"]"), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].EventID == 0 {
			list[i].EventID = event.ID(i + 1)
		}
	}
	return replay.Records(list, harness)
}

func TestExecutionStatusFollowsTheLastTerminalEvent(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"playbook_started":                        "UNKNOWN ",
		"step_enter":                              "RUNNING n",
		"step_started":                            "RUNNING n",
		"step.exit":                               "UNKNOWN n",
		"command.completed":                       "UNKNOWN n",
		"command.failed":                          "UNKNOWN ",
		"playbook_completed":                      "COMPLETED ",
		"workflow.completed execution.failed":     "FAILED ",
		"playbook.failed playbook.completed":      "COMPLETED ",
		"playbook.completed execution.cancelled":  "CANCELLED ",
		"playbook_cancelled step.enter":           "CANCELLED n",
		"execution.completed playbook_failed":     "FAILED ",
		"playbook.failed workflow.failed foo.bar": "FAILED ",
	} {
		var list []string
		for name := range strings.FieldsSeq(names) {
			list = append(list, fmt.Sprintf(`{"event_type":%q,"node_name":"n","status":null}`, name))
		}
		s := fold(t, strings.Join(list, ","))
		if got := s.Execution.Status + " " + s.Execution.LastNodeName; got != want {
			t.Errorf("%s: %q, want %q", names, got, want)
		}
	}
}

func TestStageFrameAndCommandStatuses(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]string{
		"stage.opened=RUNNING":                      "OPEN RUNNING",
		"stage.opened stage.closed":                 "CLOSED UNKNOWN",
		"stage.closed=DONE":                         "DONE DONE",
		"stage.opened frame.heartbeat=BEAT":         "BEAT BEAT",
		"frame.dispatched=X":                        "X CLAIMED",
		"frame.dispatched frame.started=X":          "X RUNNING",
		"frame.started frame.abandoned":             "UNKNOWN ABANDONED",
		"frame.abandoned=LOST":                      "LOST LOST",
		"frame.committed":                           "UNKNOWN COMPLETED",
		"frame.committed=PART":                      "PART PART",
		"frame.failed":                              "UNKNOWN FAILED",
		"frame.committed command.completed=success": "success success",
	} {
		var list []string
		for e := range strings.FieldsSeq(events) {
			name, status, _ := strings.Cut(e, "=")
			list = append(list, fmt.Sprintf(`{"event_type":%q,"status":%q,"stage_id":"s","frame_id":"f"}`, name, status))
		}
		s := fold(t, strings.Join(list, ","))
		if got := s.Stages["s"].Status + " " + s.Frames["f"].Status; got != want {
			t.Errorf("%s: %q, want %q", events, got, want)
		}
	}
	for events, want := range map[string]string{
		"command.issued":                           "PENDING",
		"command.issued command.claimed":           "CLAIMED",
		"command.claimed command.started":          "RUNNING",
		"command.started command.completed":        "COMPLETED",
		"command.failed":                           "FAILED",
		"command.cancelled":                        "CANCELLED",
		"command.issued=ISSUED":                    "ISSUED",
		"command.started command.parked=WAITING":   "WAITING",
		"command.started command.heartbeat":        "RUNNING",
		"command.started call.done=ok timer.set=x": "RUNNING",
		"call.done=ok":                             "UNKNOWN",
	} {
		var list []string
		for e := range strings.FieldsSeq(events) {
			name, status, _ := strings.Cut(e, "=")
			list = append(list, fmt.Sprintf(`{"event_type":%q,"status":%q,"command_id":7}`, name, status))
		}
		if got := fold(t, strings.Join(list, ",")).Commands["7"].Status; got != want {
			t.Errorf("%s: %q, want %q", events, got, want)
		}
	}
}

func TestNullsInMetaNameNothing(t *testing.T) {
	t.Parallel()
	s := fold(t, `{"event_type":"command.issued","meta":{"stage_id":null,"frame_id":null,"command_id":null,"loop_id":null,"loop_event_id":"",
		"business_object":{"object_type":null,"object_id":null}}}, {"event_type":"x","meta":null}, {"event_type":"x","meta":[1]}, {"event_type":"x","meta":"text"}`)
	if n := len(s.Stages) + len(s.Frames) + len(s.Commands) + len(s.Loops) + len(s.Objects); n != 0 || s.EventCount != 4 {
		t.Errorf("state is %+v", wire(t, s))
	}
}

func TestIdsAreTextWhateverTheyWereWrittenAs(t *testing.T) {
	t.Parallel()
	s := fold(t, `{"event_type":"command.issued","command_id":9007199254740993}, {"event_type":"command.claimed","meta":{"command_id":"7:start:12"}},
		{"event_type":"x","meta":{"stage_id":1.0,"frame_id":true,"loop_id":{"b":1,"a":[]}}},
		{"event_type":"x","stage_id":"column","aggregate_type":"stage","aggregate_id":"stage/aggregate","meta":{"stage_id":"meta"}}`)
	for _, id := range []string{"9007199254740993", "7:start:12"} {
		if s.Commands[id] == nil {
			t.Errorf("no command %s in %v", id, s.Commands)
		}
	}
	if s.Stages["1.0"] == nil || s.Frames["true"] == nil || s.Loops[`{"a":[],"b":1}`] == nil || s.Stages["column"] == nil || len(s.Stages) != 2 {
		t.Errorf("state is %v", wire(t, s))
	}
}

func TestBusinessObjectsAreFoundByAggregate(t *testing.T) {
	t.Parallel()
	for aggregate, want := range map[string]string{
		"business_object/order/7": "order/7",
		"order//7/8":              "order/7/8",
		"7":                       "business_object/7",
		"business_object/7":       "business_object/business_object/7",
	} {
		s := fold(t, fmt.Sprintf(`{"event_type":"x","aggregate_type":"business_object","aggregate_id":%q}`, aggregate))
		if s.Objects[want] == nil {
			t.Errorf("%s: %v, want %s", aggregate, wire(t, s)["business_objects"], want)
		}
	}
}

func TestSummariesTakeOnlyWhatHasTheRightType(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		`"text"`: `{}`,
		`{"sha256":1,"digest":"d","row_count":"3","ref":null,"uri":"u"}`:                                                                        `{"sha256":"d","ref":"u"}`,
		`{"row_count":0,"rows_ref":{"row_count":5,"ref":"r","meta":{"sha256":"m","row_count":9},"ipc":{"schema_digest":"s","media_type":"x"}}}`: `{"sha256":"m","schema_digest":"s","row_count":0,"media_type":"x","ref":"r"}`,
		`{"sha256":"","rows_ref":{"meta":{"sha256":"m"}}}`:                                                                                      `{"sha256":""}`,
		`{"row_count":3.0,"rows_ref":"no"}`:                                                                                                     `{}`,
	} {
		got, err := json.Marshal(replay.Summarize(json.RawMessage(ref)))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}

func TestHostileValuesAreLeftOut(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	s := fold(t, `{"event_type":"x","result":{"reference":`+deep+`}}, {"event_type":"x","result":{"reference":{"brackets":"`+strings.Repeat("[", 500)+`"}}},
		{"event_type":"x","meta":{"business_object":{"type":"a","id":"b","state":{"deep":`+deep+`,"flat":1e400}}}}, {"event_type":"x","result":[1],"payload_ref":null}`)
	if len(s.Execution.PayloadRefs) != 1 || len(s.Objects["a/b"].Attributes) != 1 {
		t.Errorf("state is %v", wire(t, s))
	}
}

func TestProjectionNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"execution", "stage", "frame", "command", "business_object", "loop", "all"} {
		if p, err := replay.ParseProjection(name); err != nil || string(p) != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if p, err := replay.ParseProjection(""); err != nil || p != replay.All {
		t.Errorf("nothing: %v, %v", p, err)
	}
	_, err := replay.ParseProjection("stages")
	if event.CodeOf(err) != event.BadRequest || !strings.Contains(err.Error(), "execution, stage, frame, command, business_object, loop, all") {
		t.Errorf("stages: %v", err)
	}
}

func TestOnlyEmptiesMapsAndKeepsChecksums(t *testing.T) {
	t.Parallel()
	s := replay.Records(records(t, "testdata/events.json"), harness)
	for p, keeps := range map[replay.Projection]string{
		replay.OfExecution: "", replay.OfStage: "stages", replay.OfFrame: "frames", replay.OfCommand: "commands",
		replay.OfBusinessObject: "business_objects", replay.OfLoop: "loops",
	} {
		whole, part := wire(t, s), wire(t, s.Only(p))
		for _, name := range []string{"stages", "frames", "commands", "business_objects", "loops"} {
			if name != keeps {
				whole[name] = map[string]any{}
			}
		}
		if diff := cmp.Diff(whole, part); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
	if len(s.Stages) == 0 {
		t.Error("the state itself was emptied")
	}
}

// anyRecord draws an event out of a small world, so that events meet.
func anyRecord(t *rapid.T, id int) replay.Record {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	meta := map[string]any{}
	for _, key := range []string{"stage_id", "frame_id", "command_id", "loop_id", "parent_stage_id", "object_type", "object_id", "attempt", "row_count", "total", "failed_count", "worker_id"} {
		switch rapid.IntRange(0, 5).Draw(t, key) {
		case 0:
			meta[key] = pick("text", "a", "b")
		case 1:
			meta[key] = rapid.IntRange(0, 3).Draw(t, "number")
		case 2:
			meta[key] = nil
		}
	}
	if rapid.Bool().Draw(t, "object") {
		meta["business_object"] = map[string]any{pick("how", "state", "patch", "attributes"): map[string]any{pick("key", "x", "y"): rapid.Float64Range(-1e20, 1e20).Draw(t, "value")}}
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	r := replay.Record{
		EventID: event.ID(id), NodeName: pick("node", "", "n", "m"), Status: pick("status", "", "", "OK", "DELETED"), Meta: raw,
		Type: event.Type(pick("type", "step.enter", "stage.opened", "stage.closed", "frame.dispatched", "frame.started", "frame.committed",
			"frame.failed", "frame.abandoned", "command.issued", "command.claimed", "command.started", "command.completed", "command.failed",
			"command.heartbeat", "loop.done", "loop.shard.done", "a.created", "a.deleted", "playbook.completed", "playbook.failed", "call.done")),
	}
	if rapid.IntRange(0, 2).Draw(t, "ref") == 0 {
		r.Result = json.RawMessage(fmt.Sprintf(`{"reference":{"ref":"r%d","row_count":%d,"f":1.50}}`, id, id))
	}
	return r
}

func anyLog(t *rapid.T) []replay.Record {
	list := make([]replay.Record, rapid.IntRange(0, 30).Draw(t, "events"))
	for i := range list {
		list[i] = anyRecord(t, i+1)
	}
	return list
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog(t)
		counted := rapid.Bool().Draw(t, "counted")
		for i := range log {
			if counted { // the place in the log is stronger than the id
				log[i].Position, log[i].EventID = int64(i+1), event.ID(1000-i)
			}
		}
		want := replay.Records(log, harness)
		shuffled := append([]replay.Record(nil), log...)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := replay.Records(shuffled, harness); *got.Checksum != *want.Checksum {
			t.Fatalf("checksum %s, want %s", got.Checksum.Value, want.Checksum.Value)
		}
	})
}

func TestFoldingOnASnapshotIsFoldingEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog(t)
		cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
		whole := replay.NewFold(harness)
		var frozen json.RawMessage
		var sum string
		for i := range log {
			if i == cut {
				frozen, sum = whole.Freeze()
			}
			whole.Apply(&log[i])
		}
		if cut == len(log) {
			frozen, sum = whole.Freeze()
		}
		want := whole.State()
		base, err := replay.Thaw(frozen, sum)
		if err != nil {
			t.Fatal(err)
		}
		quiet, named := harness, harness
		quiet.Base, named.Base = base, base
		named.Seed = &replay.SnapshotNote{AggregateID: "execution/999/all", AggregateType: replay.SnapshotType, Version: event.ID(cut), Checksum: sum, Meta: json.RawMessage(`{}`)}
		for _, o := range []replay.Options{quiet, named} {
			got := replay.Records(log[cut:], o)
			if *got.Checksums != *want.Checksums {
				t.Fatalf("checksums %+v, want %+v", *got.Checksums, *want.Checksums)
			}
			if same := *got.Checksum == *want.Checksum; same != (o.Seed == nil) {
				t.Fatalf("with snapshot named %t the checksums are equal: %t", o.Seed != nil, same)
			}
		}
	})
}

func TestASpoiledSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	f := replay.NewFold(harness)
	for _, r := range records(t, "testdata/events.json") {
		f.Apply(&r)
	}
	state, sum := f.Freeze()
	spoiled := []byte(strings.Replace(string(state), `"CANCELLED"`, `"COMPLETED"`, 1))
	for name, raw := range map[string][]byte{"another status": spoiled, "half of it": state[:len(state)/2], "no state": []byte(`[]`)} {
		if _, err := replay.Thaw(raw, sum); event.CodeOf(err) != event.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	var any map[string]any
	if err := json.Unmarshal(state, &any); err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Thaw(append([]byte(" "), state...), sum); err != nil {
		t.Errorf("blanks: %v", err)
	}
}

func TestTheDigestOfTheRulesIsKept(t *testing.T) {
	t.Parallel()
	o := harness
	o.UpcasterDigest = "one"
	first := replay.Records(nil, o)
	o = harness
	o.Base = first
	if got := replay.Records(nil, o); got.UpcasterDigest != "one" {
		t.Errorf("digest %q, want that of the base", got.UpcasterDigest)
	}
	o.UpcasterDigest = "two"
	if got := replay.Records(nil, o); got.UpcasterDigest != "two" {
		t.Errorf("digest %q, want the caller's", got.UpcasterDigest)
	}
}
