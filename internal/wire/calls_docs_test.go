package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/noetl/noetl-go/internal/testkit/apicheck"
)

var update = flag.Bool("update", false, "write the examples of the API's description")

// docsCalls is what people and generators of clients ask to know the API.
var docsCalls = []call{
	{by: probe, ask: "GET /api/openapi.json", status: 200, shape: `{openapi: "3.1.1", info: {title: "NoETL", version: "1.2.3"}, paths: {*: any}}`},
	{by: gui, ask: "GET /api/docs", status: 200, shape: "~text/html"},
	{by: gui, ask: "GET /api/docs/docs.css", status: 200, shape: "~text/css"},
	{by: gui, ask: "GET /api/docs/docs.js", status: 200, shape: "~text/javascript"},
	{by: gui, ask: "GET /api/docs/other.js", status: 404, shape: `@error`},
}

// everyOperationIsChecked holds the list of operations against those whose
// answers were seen, and writes the examples of the description when asked to.
func everyOperationIsChecked(t *testing.T, w *world) {
	t.Helper()
	check, err := apicheck.Of(w.server)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range check.Uncalled() {
		t.Errorf("no answer of the operation %s was held against its description", id)
	}
	file := filepath.Join("..", "api", "examples.json")
	written := writtenExamples(t, file)
	if !*update {
		for id := range check.Examples() {
			if _, ok := written[id]; !ok {
				t.Errorf("%s has no example; go test ./internal/wire -run EveryRoute -update writes them", id)
			}
		}
		return
	}
	raw, err := json.Marshal(apicheck.Renewed(written, apicheck.Steady(check.Examples())))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func writtenExamples(t *testing.T, file string) (written map[string]apicheck.Example) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		t.Fatal(err)
	}
	return written
}
