package replay_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/replay"
)

func TestEachPlaceIsLookedUpOnceAndNoValueIsShown(t *testing.T) {
	t.Parallel()
	s := fold(t, `{"event_type":"x","result":{"reference":"one"}},
		{"event_type":"frame.committed","frame_id":"f","result":{"reference":{"kind":"payload_store","sha256":"abc"}}},
		{"event_type":"o.created","meta":{"object_type":"o","object_id":"1"},"result":{"reference":{"rows_ref":{"uri":"one"}}}},
		{"event_type":"x","result":{"reference":{"nowhere":1}}}`)
	asked := map[string]int{}
	rows, sum := s.Resolve(func(locator string) replay.Finding {
		asked[locator]++
		if locator == "one" {
			return replay.FindingOf(json.RawMessage(`[ "secret", 1.0 ]`))
		}
		return replay.NotFound("gone")
	})
	if diff := cmp.Diff(map[string]int{"one": 1, "abc": 1}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	found := `{"ref":"one","resolved":true,"checksum":{"type":"sha256","value":"` + replay.Sum(json.RawMessage(`["secret",1.0]`)).Value + `"},"size_bytes":14,"row_count":2,"value_type":"array","error":null}`
	lost := func(ref, why string) string {
		return `{"ref":` + ref + `,"resolved":false,"checksum":null,"size_bytes":null,"row_count":null,"value_type":null,"error":"` + why + `"}`
	}
	want := `[{"scope":"execution","event_id":1,"reference_summary":{},"resolution":` + found + `},` +
		`{"scope":"execution","event_id":2,"reference_summary":{"sha256":"abc"},"resolution":` + lost(`"abc"`, "gone") + `},` +
		`{"scope":"execution","event_id":3,"reference_summary":{},"resolution":` + found + `},` +
		`{"scope":"execution","event_id":4,"reference_summary":{},"resolution":` + lost("null", "the reference does not say where the value is") + `},` +
		`{"scope":"frame","event_id":2,"frame_id":"f","reference_summary":{"sha256":"abc"},"resolution":` + lost(`"abc"`, "gone") + `},` +
		`{"scope":"business_object","event_id":3,"object_key":"o/1","reference_summary":{},"resolution":` + found + `}]`
	got, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(replay.ResolutionSummary{Total: 6, Resolved: 3, Unresolved: 3, UniqueRefs: 2, Checksum: replay.Sum(rows)}, sum); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	for value, kind := range map[string]string{`{}`: "object", `"a"`: "string", `1`: "number", `true`: "boolean", `null`: "null"} {
		if f := replay.FindingOf(json.RawMessage(value)); *f.ValueType != kind || f.RowCount != nil {
			t.Errorf("%s: %+v", value, f)
		}
	}
	if f := replay.FindingOf(json.RawMessage(`{`)); f.Resolved || f.Error == nil {
		t.Errorf("no JSON: %+v", f)
	}
	empty, sum := fold(t, `{"event_type":"x"}`).Resolve(nil)
	if empty == nil || len(empty) != 0 || !sum.AllResolved {
		t.Errorf("without references: %v, %+v", empty, sum)
	}
}
