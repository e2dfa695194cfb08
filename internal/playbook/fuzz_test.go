package playbook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
)

// FuzzParse checks that no text, however strange, breaks the reader, and that
// what it accepts can be sent to a worker.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := strings.Cut(string(raw), divider)
		f.Add([]byte(input + "\n"))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, problems := playbook.Parse("f.yaml", src)
		if (p == nil) != (problems.Err() != nil) {
			t.Fatalf("playbook = %v with problems %v", p, problems)
		}
		for _, pr := range problems {
			if pr.Line < 1 || pr.Col < 1 || pr.Message == "" || pr.Code == "" {
				t.Errorf("problem without a place or words: %+v", pr)
			}
			_ = pr.String()
		}
		if p == nil {
			return
		}
		if p.Entry < 0 || p.Entry >= len(p.Steps) {
			t.Fatalf("entry %d of %d steps", p.Entry, len(p.Steps))
		}
		for _, s := range p.Steps {
			if len(s.Tasks) == 0 {
				continue
			}
			if _, _, err := playbook.ParseTasks(s.Kind(), playbook.ToolConfig(s)); err != nil {
				t.Errorf("step %s: accepted, but %v", s.Name, err)
			}
		}
	})
}
