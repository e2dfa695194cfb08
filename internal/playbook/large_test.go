package playbook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
)

// largePlaybook has n steps that fan out and meet again, with loops, policies
// and older spellings among them: everything that a check of the whole
// workflow has to walk over.
func largePlaybook(n int) string {
	var b strings.Builder
	b.WriteString(head + "workflow:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - step: s%d\n    set: {ctx.v%d: \"{{ output.data.n }}\"}\n", i, i)
		b.WriteString("    tool:\n      kind: http\n      url: \"http://x/{{ workload.id }}\"\n      retry: {max_attempts: 3}\n")
		if i%10 == 0 {
			b.WriteString("    loop: {in: \"{{ workload.items }}\", iterator: item, spec: {mode: parallel}}\n")
		}
		if i < n-2 {
			fmt.Fprintf(&b, "    next: {spec: {mode: inclusive}, arcs: [{step: s%d}, {step: s%d, when: \"{{ ctx.v%d > 3 }}\"}]}\n", i+1, i+2, i)
		} else if i < n-1 {
			fmt.Fprintf(&b, "    next: s%d\n", i+1)
		}
	}
	return b.String()
}

func TestALargePlaybookIsRead(t *testing.T) {
	t.Parallel()
	p, problems := playbook.Parse("", []byte(largePlaybook(300)))
	if p == nil {
		t.Fatal(problems)
	}
	if len(p.Steps) != 300 {
		t.Errorf("%d steps, want 300", len(p.Steps))
	}
}

// The hardest graph for the check of fan-outs: every step goes two ways that
// never meet, so that each walk covers all that is below it.
func branchingPlaybook(n int) string {
	var b strings.Builder
	b.WriteString(head + "workflow:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - step: s%d\n", i)
		if 2*i+2 < n {
			fmt.Fprintf(&b, "    next: [s%d, s%d]\n", 2*i+1, 2*i+2)
		}
	}
	return b.String()
}

func TestEveryFanOutWhoseBranchesNeverMeetIsNamed(t *testing.T) {
	t.Parallel()
	_, problems := playbook.Parse("", []byte(branchingPlaybook(31)))
	got := 0
	for _, pr := range problems {
		if pr.Code == "fanout_no_reducer" {
			got++
		}
	}
	if got != 15 {
		t.Errorf("%d warnings, want one for each of the 15 steps that fan out:\n%v", got, problems)
	}
}

func BenchmarkValidate2000Steps(b *testing.B) {
	for name, src := range map[string]string{"chain": largePlaybook(2000), "tree": branchingPlaybook(2000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if p, problems := playbook.Parse("", []byte(src)); p == nil {
					b.Fatal(problems)
				}
			}
		})
	}
}
