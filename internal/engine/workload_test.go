package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// TestDefaultsAreEvaluatedWhenAnExecutionStarts looks at the workload that the
// first event keeps.
func TestDefaultsAreEvaluatedWhenAnExecutionStarts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, workload, payload, want, refused string }{
		{"no templates", `{a: 1}`, `{"b":2}`, `{"a":1,"b":2}`, ""},
		{"types are kept", `{a: 1, b: "{{ a + 1 }}", c: {d: ["{{ [a] }}"]}}`, ``, `{"a":1,"b":2,"c":{"d":[[1]]}}`, ""},
		{"values above are evaluated already", `{a: "{{ 1 }}", b: "{{ a }}{{ workload.a }}"}`, ``, `{"a":1,"b":"11"}`, ""},
		{"the payload goes before a default", `{a: 1, b: "{{ a }}"}`, `{"a":2}`, `{"a":2,"b":2}`, ""},
		{"a default that is replaced is not evaluated", `{a: "{{ x + 1 }}"}`, `{"a":1}`, `{"a":1}`, ""},
		{"the payload is no template", `{a: "{{ b }}"}`, `{"b":"{{ 1 }}"}`, `{"a":"{{ 1 }}","b":"{{ 1 }}"}`, ""},
		{"names of the execution", `{a: "{{ execution_id }}", b: "{{ job.uuid }}", c: "{{ path }}"}`, ``, `{"a":"7","b":"7","c":"dir/p"}`, ""},
		{"the payload by name", `{a: "{{ payload.b }}"}`, `{"b":3}`, `{"a":3,"b":3}`, ""},
		{"the environment", `{a: "{{ env.HOME }}", b: "{{ env.OTHER | default('none') }}"}`, ``, `{"a":"/root","b":"none"}`, ""},
		{"a key named env", `{env: production, a: "{{ env }}"}`, ``, `{"env":"production","a":"production"}`, ""},
		{"secrets stay out of the log", `{a: "{{ keychain.db }}"}`, ``, `{"a":"{{ keychain.db }}"}`, ""},
		{"what cannot be evaluated", `{a: "{{ x + 1 }}"}`, ``, ``, "workload.a cannot be evaluated"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := strings.Replace(oneStep, "workflow:", "keychain: [{name: db, kind: secret, ref: x}]\nworkload: "+tc.workload+"\nworkflow:", 1)
			pb, problems := playbook.Parse("p.yaml", []byte(src))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			prog, err := Compile(pb)
			if err != nil {
				t.Fatal(err)
			}
			e, err := Start(prog, StartInput{
				ExecutionID: 7, Path: "dir/p", Payload: json.RawMessage(tc.payload), Environ: map[string]string{"HOME": "/root"},
			}, Env{NewID: func() event.ID { return 8 }})
			if tc.refused != "" {
				if event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Workload json.RawMessage `json:"workload"`
			}
			if err := json.Unmarshal(e.Context, &d); err != nil {
				t.Fatal(err)
			}
			if got := string(d.Workload); got != tc.want {
				t.Errorf("workload %s, want %s", got, tc.want)
			}
		})
	}
}
