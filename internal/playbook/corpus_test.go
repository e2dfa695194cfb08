package playbook_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/playbook"
)

const fixtures = "../../../shared/fixtures"

// rejected are those that must not be accepted.
var rejected = []string{
	"e2e/fixtures/playbooks/broken_playbooks/should_error_tool_is_required.yaml",
}

func TestRealPlaybooksAreAccepted(t *testing.T) {
	t.Parallel()
	root := filepath.Join(fixtures, "playbooks")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("real playbooks are not here: %v", err)
	}
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !isPlaybook(src) {
			return nil
		}
		count++
		name, _ := filepath.Rel(root, path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkReal(t, name, src)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 100 {
		t.Errorf("found %d playbooks, expected more than 100", count)
	}
}

func isPlaybook(src []byte) bool {
	var head struct {
		Kind string `yaml:"kind"`
	}
	_ = yaml.Unmarshal(src, &head)
	return head.Kind == "Playbook"
}

func checkReal(t *testing.T, name string, src []byte) {
	p, problems := playbook.Parse(name, src)
	switch {
	case slices.Contains(rejected, name):
		if problems.Err() == nil {
			t.Errorf("accepted, want an error")
		}
	case p == nil:
		t.Errorf("refused:\n%v", problems)
	default:
		for _, pr := range problems {
			t.Logf("%s", pr)
		}
		sameOverTheWire(t, p)
	}
}
