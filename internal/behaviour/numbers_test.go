package behaviour

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	behaviours = 113 // numbered 1 …
	edges      = 62  // numbered A-1 …
)

// elsewhere are promises that only a larger part of the system can keep, and
// the tests that hold it to them.
var elsewhere = map[string]string{
	"103":  "internal/control.TestAnExecutionWithoutItsDecisionIsRecovered",
	"A-45": "internal/tool/postgres.TestEveryStatementReportsItsRows",
	"A-62": "internal/tool/python.TestCodeComesFromSeveralPlaces",
}

// pending are promises that nothing keeps yet, and what they wait for.
var pending = map[string]string{}

// heading is the line a story begins with.
var heading = regexp.MustCompile(`^# ((?:A-)?\d+(?:, (?:A-)?\d+)*) \S`)

// TestEveryNumberHasAScenario makes sure that no promise is forgotten.
func TestEveryNumberHasAScenario(t *testing.T) {
	t.Parallel()
	told := storyNumbers(t)
	var missing []string
	for _, n := range allNumbers() {
		_, other := elsewhere[n]
		_, later := pending[n]
		switch {
		case told[n] && later:
			t.Errorf("%s has a story and is listed as pending (%s): remove one of them", n, pending[n])
		case !told[n] && !other && !later:
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no story tells of %s", strings.Join(missing, ", "))
	}
	for n := range told {
		if !slices.Contains(allNumbers(), n) {
			t.Errorf("a story is about %s, which is no number of ours", n)
		}
	}
}

// TestOtherTestsExist makes sure that what is said to be tested elsewhere is.
func TestOtherTestsExist(t *testing.T) {
	t.Parallel()
	for n, name := range elsewhere {
		dir, function, ok := strings.Cut(name, ".Test")
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if !ok || err != nil || len(files) == 0 {
			t.Errorf("%s: %s names no package with tests", n, name)
			continue
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			return strings.Contains(read(t, file), "\nfunc Test"+function+"(t *testing.T)")
		}) {
			t.Errorf("%s: there is no %s", n, name)
		}
	}
}

func allNumbers() []string {
	var out []string
	for i := range behaviours {
		out = append(out, fmt.Sprint(i+1))
	}
	for i := range edges {
		out = append(out, fmt.Sprintf("A-%d", i+1))
	}
	return out
}

// storyNumbers collects the numbers in headings that a story follows.
func storyNumbers(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	told := map[string]bool{}
	for _, file := range files {
		var head []string
		for line := range strings.Lines(read(t, file)) {
			switch m := heading.FindStringSubmatch(line); {
			case m != nil:
				head = strings.Split(m[1], ", ")
			case strings.HasPrefix(line, "# "):
				t.Errorf("%s: a story begins with its numbers: %s", file, line)
			case strings.TrimSpace(line) == "----":
				for _, n := range head {
					told[n] = true
				}
			}
		}
	}
	if len(told) == 0 {
		t.Fatal("no story has a number")
	}
	return told
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
