package playbook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
)

const head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: demo}\n"

// firstError parses and returns the first error, failing when there is none.
func firstError(t *testing.T, src string) playbook.Problem {
	t.Helper()
	p, problems := playbook.Parse("", []byte(src))
	if p != nil {
		t.Fatal("accepted, want an error")
	}
	i := slices.IndexFunc(problems, func(p playbook.Problem) bool { return p.Severity == playbook.SeverityError })
	return problems[i]
}

func TestPlacesAreRightInFilesWithWindowsLineEnds(t *testing.T) {
	t.Parallel()
	src := strings.ReplaceAll(head+"workflow:\n  - step: start\n    tool:\n      kind: shell\n      command: |\n        echo a\n        echo {{ b | }}\n", "\n", "\r\n")
	pr := firstError(t, src)
	if pr.Code != "template_syntax" || pr.Line != 10 || !strings.HasPrefix(strings.TrimSpace(pr.Source), "echo {{ b") {
		t.Errorf("got %s at %d:%d in %q, want template_syntax in line 10", pr.Code, pr.Line, pr.Col, pr.Source)
	}
}

func TestColumnsCountCharactersAndNotBytes(t *testing.T) {
	t.Parallel()
	pr := firstError(t, head+"workflow:\n  - {step: start, desc: \"żółć\", next: nirgends}\n")
	if pr.Code != "missing_target" || pr.Line != 5 || pr.Col != 39 {
		t.Errorf("got %s at %d:%d, want missing_target at 5:39", pr.Code, pr.Line, pr.Col)
	}
}

func TestDocumentsThatGrowWithoutBoundAreRefused(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString(head + "x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		ref := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&bomb, "x-%d: &a%d [%s]\n", i, i, strings.Join(slices.Repeat([]string{ref}, 10), ", "))
	}
	bomb.WriteString("workflow: [{step: start}]\n")
	tests := map[string]string{
		"aliases that multiply": bomb.String(),
		"deep nesting":          head + "x-a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\nworkflow: [{step: start}]\n",
	}
	for name, src := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if pr := firstError(t, src); pr.Code != "too_large" && pr.Code != "yaml_syntax" {
				t.Errorf("got %s", pr)
			}
		})
	}
}

func TestAFileHoldsOnePlaybook(t *testing.T) {
	t.Parallel()
	one := head + "workflow: [{step: start}]\n"
	if pr := firstError(t, one+"---\n"+one); pr.Code != "several_documents" {
		t.Errorf("got %s, want several_documents", pr)
	}
	for _, src := range []string{"---\n" + one, one + "...\n", "\ufeff" + one} {
		if p, problems := playbook.Parse("", []byte(src)); p == nil {
			t.Errorf("%q is refused: %v", src, problems)
		}
	}
}

func TestTextThatIsNotTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"\x00\x01\x02", "\xff\xfe\xfa", "\x7fELF\x00"} {
		if pr := firstError(t, src); pr.Code != "not_a_playbook" {
			t.Errorf("%q gives %s, want not_a_playbook", src, pr)
		}
	}
}

func TestAFloodOfProblemsIsBoundedAndSaysSo(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(head + "workflow:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  - {step: s%d, nonsense_key: 1, next: nowhere_at_all}\n", i)
	}
	_, problems := playbook.Parse("", []byte(b.String()))
	more := map[playbook.Severity]int{}
	for _, p := range problems {
		if p.Code == "too_many" {
			more[p.Severity]++
		}
	}
	if problems.Err() == nil || len(problems) > 1002 || more[playbook.SeverityError] != 1 || more[playbook.SeverityWarning] != 1 {
		t.Errorf("%d problems, of which say that there are more: %v", len(problems), more)
	}
}

func TestTheEntryStepIsTheNamedOneElseStartElseTheFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, src, want string }{
		{"the executor names it", "executor: {spec: {entry_step: b}}\nworkflow: [{step: start}, {step: b, next: start}]\n", "b"},
		{"a step called start", "workflow: [{step: a}, {step: start, next: a}]\n", "start"},
		{"the first step", "workflow: [{step: a, next: b}, {step: b}]\n", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, problems := playbook.Parse("", []byte(head+tt.src))
			if p == nil {
				t.Fatal(problems)
			}
			if got := p.Steps[p.Entry].Name; got != tt.want {
				t.Errorf("entry = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestKnownKindsAreSortedAndTheCallersOwn(t *testing.T) {
	t.Parallel()
	kinds := playbook.KnownKinds()
	if !slices.IsSorted(kinds) || !slices.Contains(kinds, "python") {
		t.Errorf("kinds = %v", kinds)
	}
	kinds[0] = "changed"
	if playbook.KnownKinds()[0] == "changed" {
		t.Error("the list is shared")
	}
}

func TestKindsThatWorkersBringAreAllowedOnRequest(t *testing.T) {
	t.Parallel()
	src := []byte(head + "executor: {requires: {tools: [sparkle]}}\nworkflow: [{step: start, tool: {kind: sparkle, shine: 3}}]\n")
	if _, problems := playbook.Parse("", src); problems.Err() == nil {
		t.Error("an unknown kind is accepted")
	}
	p, problems := playbook.ParseWith("", src, playbook.Options{AllowUnknownKinds: true})
	if p == nil {
		t.Fatal(problems)
	}
	if len(problems) != 2 || problems[0].Code != "unknown_kind" || problems[1].Code != "unknown_kind" {
		t.Errorf("problems = %v, want a warning for each mention of the kind", problems)
	}
	if got := p.Steps[0].Tasks[0].Config.Raw(); js(got) != `{"shine":3}` {
		t.Errorf("config = %s", js(got))
	}
}

func TestAByteThatIsNotTextIsPointedAt(t *testing.T) {
	t.Parallel()
	_, problems := playbook.Parse("p.yaml", []byte("kind: Playbook\nmetadata:\n  name: \u00fcb\xffer\n"))
	if len(problems) != 1 || problems[0].Code != "not_text" || problems[0].Line != 3 || problems[0].Col != 11 {
		t.Errorf("problems = %v, want one at 3:11", problems)
	}
}
