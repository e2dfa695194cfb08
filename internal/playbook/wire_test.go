package playbook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// sameOverTheWire sends every tool through JSON, as commands do, and compares
// what a worker reads with what the author wrote.
func sameOverTheWire(t *testing.T, p *playbook.Playbook) {
	t.Helper()
	for _, s := range p.Steps {
		if len(s.Tasks) == 0 {
			continue
		}
		b, err := jinja.ToJSON(playbook.ToolConfig(s))
		if err != nil {
			t.Fatal(err)
		}
		v, err := jinja.FromJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		tasks, single, err := playbook.ParseTasks(s.Kind(), v)
		if err != nil {
			t.Errorf("step %s: %v", s.Name, err)
			continue
		}
		if single != s.Single {
			t.Errorf("step %s: single = %v over the wire, want %v", s.Name, single, s.Single)
		}
		var want, got strings.Builder
		for _, task := range s.Tasks {
			dumpTask(&want, task)
		}
		for _, task := range tasks {
			dumpTask(&got, task)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("step %s differs over the wire (-written +read):\n%s", s.Name, diff)
		}
	}
}

func TestParseTasksReadsEveryFormOfAToolConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, kind, config string
		single             bool
		want               string
	}{
		{"an object with its kind", "", `{"kind":"noop","message":"hi"}`, true, "  task task_0 noop {\"message\":\"hi\"}\n"},
		{"an object without its kind", "shell", `{"command":"ls"}`, true, "  task task_0 shell {\"command\":\"ls\"}\n"},
		{"labelled items", "task_sequence", `[{"a":{"kind":"noop"}},{"b":{"kind":"noop"}}]`, false, "  task a noop {}\n  task b noop {}\n"},
		{"flat items", "task_sequence", `[{"name":"a","kind":"noop"},{"kind":"noop"}]`, false, "  task a noop {}\n  task task_1 noop {}\n"},
		{"a kind only the worker knows", "", `{"kind":"sparkle"}`, true, "  task task_0 sparkle {}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := jinja.FromJSON([]byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			tasks, single, err := playbook.ParseTasks(tt.kind, v)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, task := range tasks {
				dumpTask(&got, task)
			}
			if single != tt.single {
				t.Errorf("single = %v, want %v", single, tt.single)
			}
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("tasks differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseTasksSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, want string }{
		{"text", `"shell"`, "must be an object or a list, got text"},
		{"an item without a kind", `[{"a":1,"b":2}]`, "task[0] must have a kind"},
		{"a jump to nowhere", `[{"a":{"kind":"noop","spec":{"policy":{"rules":[{"then":{"do":"jump","to":"z"}}]}}}}]`, `no task "z" to jump to`},
		{"a broken template", `{"kind":"http","url":"{{ a | }}"}`, "url: broken template"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := jinja.FromJSON([]byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = playbook.ParseTasks("", v)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestTheClaimOfACursorTravelsAsASingleTool(t *testing.T) {
	t.Parallel()
	p, problems := playbook.Parse("", []byte(head+`
workflow:
  - step: plain
    next: drain
  - step: drain
    tool: {kind: noop}
    loop:
      iterator: row
      cursor: {auth: pg, claim: "select {{ __frame_max_rows }}", options: {params: [1]}}
      spec: {mode: cursor}
`))
	if p == nil {
		t.Fatal(problems)
	}
	if c := playbook.ClaimConfig(p.Steps[0]); c != nil {
		t.Errorf("a step without a cursor claims %v", c)
	}
	b, err := jinja.ToJSON(playbook.ClaimConfig(p.Steps[1]))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jinja.FromJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	tasks, single, err := playbook.ParseTasks("", v)
	if err != nil || !single || len(tasks) != 1 {
		t.Fatalf("%s gives %d tasks, single %v: %v", b, len(tasks), single, err)
	}
	claim := p.Steps[1].Loop.Cursor.Task
	if tasks[0].Kind != "postgres" || js(tasks[0].Config.Raw()) != js(claim.Config.Raw()) {
		t.Errorf("a worker reads %s %s, want %s %s", tasks[0].Kind, js(tasks[0].Config.Raw()), claim.Kind, js(claim.Config.Raw()))
	}
}
