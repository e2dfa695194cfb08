package scope

import (
	"encoding/json"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

// TestWhatTemplatesSeeOfAStep evaluates expressions over a step named s.
func TestWhatTemplatesSeeOfAStep(t *testing.T) {
	t.Parallel()
	failed := Info{Failed: true, Error: json.RawMessage(`{"kind":"timeout","message":"too slow"}`)}
	loop := Info{Loop: &Loop{Total: 3, Success: 2, Failed: 1, Errors: []LoopError{{Index: 1, Error: "bad"}}}}
	for _, tc := range []struct {
		name, data string
		info       Info
		expr, want string
	}{
		{"fields of the data", `{"n":3}`, Info{}, "s.n", `3`},
		{"the data as a whole", `{"n":3}`, Info{}, "s", `{"n":3}`},
		{"data is the data itself", `{"n":3}`, Info{}, "s.data.n", `3`},
		{"result is the step itself", `{"n":3}`, Info{}, "s.result.data.n", `3`},
		{"a key of the author wins", `{"data":{"x":1},"status":"mine"}`, Info{}, "[s.data.x, s.status]", `[1,"mine"]`},
		{"status in every spelling", `{"n":3}`, Info{}, "[s.status, s.status == 'ok', s.status == 'success']", `["success",true,true]`},
		{"a list", `[1,2]`, Info{}, "[s[1], s|length, s.data]", `[2,2,[1,2]]`},
		{"a scalar", `5`, Info{}, "s + 1", `6`},
		{"null", `null`, Info{}, "s is none", `true`},
		{"labels and the keys below them", `{"a":{"x":1,"v":1},"b":{"v":2}}`, Info{Sequence: true}, "[s.a.x, s.x, s.v, s.results.a.v]", `[1,1,2,1]`},
		{"a label wins over a key of that name", `{"a":{"b":1},"b":{"c":2}}`, Info{Sequence: true}, "s.b", `{"c":2}`},
		{"a task whose data is no map", `{"a":[1],"b":{"v":2}}`, Info{Sequence: true}, "[s.a, s.v]", `[[1],2]`},
		{"loops: the list", `[1,null,3]`, loop, "[s|length, s[2], s.results|length]", `[3,3,3]`},
		{"loops: the totals", `[1,null,3]`, loop, "[s.stats.total, s.stats.failed, s.count, s.errors[0].index]", `[3,1,3,1]`},
		{"a failure's error", `{"rows":0}`, failed, "[s.error.kind, s.status, s.rows]", `["timeout","error",0]`},
		{"a failure's status wins over the data's", `{"status":"fine"}`, failed, "s.status == 'failed'", `true`},
		{"what is not there", `{"n":3}`, Info{}, "s.stats is defined", `false`},
		{"the status of an answer", `{"status_code":201,"headers":{"a":"b"}}`, Info{}, "[s.http.status, s.http.headers.a]", `[201,"b"]`},
		{"the status of a failed request", `{}`, Info{Failed: true, Error: json.RawMessage(`{"http_status":503}`)}, "s.http.status", `503`},
		{"the code of a failed statement", `{}`, Info{Failed: true, Error: json.RawMessage(`{"pg_code":"40001"}`)}, "[s.pg.code, s.pg.sqlstate]", `["40001","40001"]`},
		{"no transport", `{}`, failed, "[s.http is defined, s.pg is defined]", `[false,false]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tpl, err := jinja.Compile("{{ " + tc.expr + " }}")
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Value(jinja.Vars{"s": Step(json.RawMessage(tc.data), tc.info)})
			if err != nil {
				t.Fatal(err)
			}
			b, err := jinja.ToJSON(got)
			if err != nil || string(b) != tc.want {
				t.Errorf("%s over %s is %s (%v), want %s", tc.expr, tc.data, b, err, tc.want)
			}
		})
	}
}

func TestEncodedDataIsWhatTemplatesSee(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"a":{"v":1.0}}`)
	if got := Step(raw, Info{}).JSON(); string(got) != string(raw) {
		t.Errorf("data is re-encoded to %s", got)
	}
	if got := Step(raw, Info{Sequence: true}).JSON(); string(got) != `{"a":{"v":1.0},"v":1.0}` {
		t.Errorf("a sequence shows %s", got)
	}
}
