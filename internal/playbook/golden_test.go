package playbook_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

var update = flag.Bool("update", false, "rewrite the expected part of testdata/*.txt")

const divider = "\n----\n"

// Each file holds a playbook, a divider, and what reading it gives: the
// problems as people see them and, when there is no error, the document.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, found := strings.Cut(string(raw), divider)
			if !found && !*update {
				t.Fatalf("%s has no divider", file)
			}
			input = strings.TrimSuffix(input, "\n")
			got := outcome(input + "\n")
			if *update {
				if err := os.WriteFile(file, []byte(input+divider+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome differs (-want +got):\n%s", diff)
			}
		})
	}
}

func outcome(input string) string {
	p, problems := playbook.Parse("p.yaml", []byte(input))
	var b strings.Builder
	for _, pr := range problems {
		text := pr.String()
		fmt.Fprintf(&b, "%s\n  [%s", text, pr.Code)
		if pr.Step != "" {
			fmt.Fprintf(&b, " step=%s", pr.Step)
		}
		if pr.Path != "" {
			fmt.Fprintf(&b, " path=%s", pr.Path)
		}
		b.WriteString("]\n")
	}
	if p != nil {
		dump(&b, p)
	}
	return b.String()
}

func dump(b *strings.Builder, p *playbook.Playbook) {
	fmt.Fprintf(b, "playbook %s path=%s", p.Metadata.Name, p.Metadata.Path)
	if len(p.Metadata.Labels) > 0 {
		fmt.Fprintf(b, " labels=%v", p.Metadata.Labels)
	}
	if p.Metadata.StrictWorkload {
		b.WriteString(" strict_workload")
	}
	if p.Metadata.Extra.Len() > 0 {
		fmt.Fprintf(b, " extra=%s", js(p.Metadata.Extra))
	}
	fmt.Fprintf(b, " entry=%s\n", p.Steps[p.Entry].Name)
	if x := fmt.Sprintf("%+v", p.Executor); x != fmt.Sprintf("%+v", playbook.Executor{}) {
		fmt.Fprintf(b, "executor %s\n", x)
	}
	if p.Workload.Len() > 0 {
		fmt.Fprintf(b, "workload %s\n", js(p.Workload))
	}
	if len(p.Keychain) > 0 {
		fmt.Fprintf(b, "keychain %s\n", js(p.Keychain))
	}
	for _, s := range p.Steps {
		dumpStep(b, s)
	}
}

func dumpStep(b *strings.Builder, s *playbook.Step) {
	fmt.Fprintf(b, "step %s kind=%q", s.Name, s.Kind())
	if s.Desc != "" {
		fmt.Fprintf(b, " desc=%q", s.Desc)
	}
	if s.Timeout > 0 {
		fmt.Fprintf(b, " timeout=%s", s.Timeout)
	}
	if s.Deadline > 0 {
		fmt.Fprintf(b, " deadline=%s", s.Deadline)
	}
	if s.NoMatchIsError {
		b.WriteString(" no_match_is_error")
	}
	if s.BestEffort {
		b.WriteString(" best_effort")
	}
	b.WriteByte('\n')
	if s.Admit != nil {
		fmt.Fprintf(b, "  admit %s waits=%v\n", s.Admit.Source(), s.AdmitWaits)
	}
	if o := s.Output; o != nil {
		fmt.Fprintf(b, "  output select=%q inline_max=%d store=%q as=%q\n", o.Select, o.InlineMax, o.Store, o.As)
	}
	if s.When != nil {
		fmt.Fprintf(b, "  when %s\n", s.When.Source())
	}
	if s.Input != nil {
		fmt.Fprintf(b, "  input %s\n", js(s.Input.Raw()))
	}
	if s.Loop != nil {
		dumpLoop(b, s)
	}
	for _, t := range s.Tasks {
		dumpTask(b, t)
	}
	dumpSet(b, "  ", s.Set)
	if len(s.Arcs) > 0 {
		fmt.Fprintf(b, "  next %s\n", s.Mode)
	}
	for _, a := range s.Arcs {
		fmt.Fprintf(b, "    -> %s", a.Target)
		if a.When != nil {
			fmt.Fprintf(b, " when %s", a.When.Source())
		}
		if a.OnError {
			b.WriteString(" (on error)")
		}
		b.WriteByte('\n')
		dumpSet(b, "      ", a.Set)
	}
	if c := playbook.ToolConfig(s); c != nil {
		fmt.Fprintf(b, "  wire %s\n", js(c))
	}
}

func dumpLoop(b *strings.Builder, s *playbook.Step) {
	l := s.Loop
	fmt.Fprintf(b, "  loop %s", l.Iterator)
	if l.In != nil {
		fmt.Fprintf(b, " in %s (%s)", l.InText, js(l.In.Raw()))
	}
	fmt.Fprintf(b, " %s", l.Mode)
	if l.MaxInFlight != nil {
		fmt.Fprintf(b, " max=%s", js(l.MaxInFlight.Raw()))
	}
	b.WriteByte('\n')
	if c := l.Cursor; c != nil {
		fmt.Fprintf(b, "  cursor %s rows=%d side_by_side=%d whole=%v\n", c.Kind, c.MaxRows, c.RowConcurrency, c.WholeFrame)
		dumpTask(b, c.Task)
		fmt.Fprintf(b, "  claim %s\n", js(playbook.ClaimConfig(s)))
	}
}

func dumpTask(b *strings.Builder, t *playbook.Task) {
	fmt.Fprintf(b, "  task %s %s %s", t.Label, t.Kind, js(t.Config.Raw()))
	if t.NeedsAll {
		b.WriteString(" needs_all")
	}
	b.WriteByte('\n')
	if t.Input != nil {
		fmt.Fprintf(b, "    input %s\n", js(t.Input.Raw()))
	}
	dumpSet(b, "    ", t.Set)
	if t.Policy == nil {
		return
	}
	for _, r := range t.Policy.Rules {
		when := "always"
		if r.When != nil {
			when = r.When.Source()
		}
		a := r.Then
		fmt.Fprintf(b, "    rule %s: do=%q", when, a.Do)
		if a.Do == playbook.Retry {
			fmt.Fprintf(b, " attempts=%d backoff=%s delay=%g", a.Attempts, a.Backoff, a.Delay)
		}
		if a.To != "" {
			fmt.Fprintf(b, " to=%s", a.To)
		}
		b.WriteByte('\n')
		dumpSet(b, "      ", a.Set)
	}
}

func dumpSet(b *strings.Builder, indent string, set []playbook.Assignment) {
	for _, a := range set {
		fmt.Fprintf(b, "%sset %s %s = %s\n", indent, a.Scope, a.Key, js(a.Value.Raw()))
	}
}

func js(v any) string {
	b, err := jinja.ToJSON(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
