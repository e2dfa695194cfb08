package corpus_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/cli"
)

// broken are the playbooks that must be refused, with what is said.
var broken = map[string]string{
	"e2e/fixtures/playbooks/broken_playbooks/should_error_tool_is_required.yaml": "tool.*required",
}

// TestCorpusValidates puts every playbook before `noetl validate`.
func TestCorpusValidates(t *testing.T) {
	root := filepath.Join(fixtures, "playbooks")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the real playbooks are not here: %v", err)
	}
	var failed, others []verdict
	valid, refused := 0, 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind, err := kindOf(file)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), []string{"validate", file}, &cli.Env{Stdout: &out, Stderr: &errs})
		said, mustFail := broken[name]
		switch {
		case kind != "Playbook":
			others = append(others, verdict{name, "a document of kind " + kind})
		case mustFail && code == cli.ExitInvalid && regexp.MustCompile("(?i)"+said).MatchString(out.String()):
			refused++
		case mustFail:
			failed = append(failed, verdict{name, fmt.Sprintf("want exit code 2 and %q, got %d: %s", said, code, out.String())})
		case code != cli.ExitOK:
			failed = append(failed, verdict{name, firstError(out.String()) + errs.String()})
		default:
			valid++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	table("no playbooks", others)
	table("failed", failed)
	fmt.Printf("validate: %d valid, %d refused as they must be, %d failed, %d skipped\n", valid, refused, len(failed), len(others))
	conclude(t, failed)
	if valid < 100 || refused != len(broken) {
		t.Errorf("%d playbooks are valid and %d refused; there were more than 100 and %d", valid, refused, len(broken))
	}
}

func kindOf(file string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var head struct {
		Kind string `yaml:"kind"`
	}
	if err := yaml.Unmarshal(src, &head); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return head.Kind, nil
}

// firstError is the first line about an error, without what explains it.
func firstError(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, ": error: ") {
			return strings.TrimSpace(line)
		}
	}
	return text
}
