package replay_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/noetl/noetl-go/internal/replay"
)

// shared is the data other implementations are held to.
const shared = "../../../shared/fixtures/replay/"

var harness = replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: 999, Projection: replay.All}

func records(t testing.TB, path string) []replay.Record {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) && filepath.Dir(path) != "testdata" {
		t.Skipf("%s is not here; the events in testdata are folded in any case", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []replay.Record
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// wire is the state as clients see it.
func wire(t testing.TB, s *replay.State) map[string]any {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSharedLogFoldsIntoTheSharedState(t *testing.T) {
	t.Parallel()
	s := replay.Records(records(t, shared+"events.json"), harness)
	text, err := os.ReadFile(shared + "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	contains(t, "", any(wire(t, s)), want)
}

// contains holds got to everything want says; a null there is nothing here.
func contains(t *testing.T, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v, want an object", at, got)
		}
		for k, v := range want {
			contains(t, at+"/"+k, m[k], v)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			t.Errorf("%s has %d entries, want %d", at, len(list), len(want))
			return
		}
		for i := range want {
			contains(t, fmt.Sprint(at, "/", i), list[i], want[i])
		}
	default:
		if got != want {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
}

func TestTheSharedLogHasTheSharedChecksums(t *testing.T) {
	t.Parallel()
	s := replay.Records(records(t, shared+"events.json"), harness)
	sameSums(t, s, replay.Checksums{
		Execution:      sha("400ee36161f4ce4c1db2bf21fd56ce768838257c86f44b649824a72f3124f852"),
		Stage:          sha("0d678eff82dbb463a1c6c4253a5422bbb203fe42814f3403e41ab3c977f35314"),
		Frame:          sha("f07586e544df2592b3c0fc7bc11c9b325f8b7444140ff04feeb87b1879c40eb3"),
		Command:        sha("5967281a52d642c35ccec54728a1c0d25ec67b55298f1d8f69eb86c559316435"),
		BusinessObject: sha("2de961803ff65179e6685fb19b08359d589a47f0327b8be30f168316515fd5b6"),
		Loop:           sha("53dbe3dfd74313e776fbed28154c177c5c70ee0add386ea5d834fff6611c7b02"),
	}, "2799e6e907c85c6b9cf153961fc68764431e4e2233dd0a61d867393a75270828")
}

func TestSumIsOverCanonicalJSON(t *testing.T) {
	t.Parallel()
	if got := replay.Sum(json.RawMessage(`{ "k" : "v" }`)); got != sha("666c1aa02e8068c6d5cc1d3295009432c16790bec28ec8ce119d0d1a18d61319") {
		t.Errorf("sum is %+v", got)
	}
}

func sha(hex string) replay.Checksum { return replay.Checksum{Type: "sha256", Value: hex} }

func sameSums(t *testing.T, s *replay.State, want replay.Checksums, top string) {
	t.Helper()
	if *s.Checksums != want {
		t.Errorf("projection checksums\n got %+v\nwant %+v", *s.Checksums, want)
	}
	if s.Checksum.Value != top {
		t.Errorf("checksum %s, want %s", s.Checksum.Value, top)
	}
}
