package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// root is the repository, seen from this package.
const root = "../.."

const document = root + "/docs/testing.md"

// TestEveryMutantCanBeMade keeps the list in step with the code it breaks and
// with the list of seeds.
func TestEveryMutantCanBeMade(t *testing.T) {
	t.Parallel()
	seeds := listed(t)
	for _, m := range mutants {
		for _, e := range m.edits {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), e.old); n != 1 {
				t.Errorf("%s: %q occurs %d times in %s; write the mutant anew and run `make mutants FIND=1`", m.rule, e.old, n, e.file)
			}
		}
		if seeds[m.rule] == 0 {
			t.Errorf("%s: no seed in docs/testing.md; run `make mutants FIND=1`", m.rule)
		}
		delete(seeds, m.rule)
	}
	for rule := range seeds {
		t.Errorf("docs/testing.md lists %q, which is no mutant", rule)
	}
}

// TestTheSimulationCatchesEveryMutant runs the simulation with and without each
// mutant at its seed. MUTANTS=find looks for the first seed that fails instead,
// and writes the list.
func TestTheSimulationCatchesEveryMutant(t *testing.T) {
	mode := os.Getenv("MUTANTS")
	if mode == "" {
		t.Skip("takes minutes: make mutants")
	}
	healthy := build(t, nil)
	seeds, rows := listed(t), []string(nil)
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			sick := build(t, m.edits)
			if mode == "find" {
				seeds[m.rule] = sick.firstFailure(t)
			}
			seed := seeds[m.rule]
			if seed == 0 {
				t.Fatal("no seed catches it")
			}
			caught := ""
			for range 3 { // runs with children differ in detail
				if caught == "" {
					caught = sick.run(t, seed)
				}
			}
			if caught == "" {
				t.Errorf("seed %d does not catch it; `make mutants FIND=1` finds another", seed)
			}
			if why := healthy.run(t, seed); why != "" {
				t.Errorf("seed %d fails without the mutant: %s", seed, why)
			}
			t.Logf("seed %d: %s", seed, caught)
			rows = append(rows, fmt.Sprintf("| %s | %s | %d | %s |", m.rule, m.how, seed, caught))
		})
	}
	if mode == "find" && !t.Failed() {
		rewrite(t, rows)
	}
}

// binary is a compiled simulation.
type binary string

// build compiles the simulation with files laid over the real ones.
func build(t *testing.T, edits []edit) binary {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(filepath.Join(root, e.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, begun := texts[path]; !begun {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(raw)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	over := map[string]string{}
	for path, text := range texts {
		over[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(over)))
		write(t, over[path], text)
	}
	raw, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(raw))
	out := filepath.Join(dir, "simulation.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "./internal/simulation")
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return binary(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var (
	failedSeed = regexp.MustCompile(`--- FAIL: TestSimulation/(\d+)`)
	brokenRule = regexp.MustCompile(`(?m)^\s*broken: (.*)$`)
)

// run makes the run of one seed and returns why it fails; "" when it does not.
func (b binary) run(t *testing.T, seed int) string {
	t.Helper()
	text, failed := b.call(t, "SIM_SEED="+strconv.Itoa(seed), time.Minute)
	switch m := brokenRule.FindStringSubmatch(text); {
	case !failed:
		return ""
	case m != nil:
		return m[1]
	case strings.Contains(text, "deadlock"):
		return "everybody waits for each other"
	case strings.Contains(text, "panic: test timed out"):
		return "it does not come to an end"
	case strings.Contains(text, "panic: "):
		return "the program panics"
	}
	t.Fatalf("seed %d fails without a reason:\n%s", seed, text)
	return ""
}

// firstFailure is the lowest seed that fails; 0 when none of the usual does.
func (b binary) firstFailure(t *testing.T) int {
	t.Helper()
	for _, runs := range []int{200, 2000} {
		text, failed := b.call(t, "SIM_RUNS="+strconv.Itoa(runs), 5*time.Minute)
		var seeds []int
		for _, m := range failedSeed.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, n)
		}
		if len(seeds) > 0 {
			t.Logf("%d of %d seeds catch it", len(seeds), runs)
			return slices.Min(seeds)
		}
		if failed { // it took the whole program with it, or did not come to an end
			for seed := 1; seed <= 100; seed++ {
				if b.run(t, seed) != "" {
					return seed
				}
			}
		}
	}
	return 0
}

func (b binary) call(t *testing.T, env string, most time.Duration) (output string, failed bool) {
	t.Helper()
	cmd := exec.Command(string(b), "-test.run=^TestSimulation$", "-test.timeout="+most.String())
	cmd.Env = append(os.Environ(), env, "SIM_SHRINK=0")
	cmd.Dir = filepath.Join(root, "internal/simulation")
	cmd.WaitDelay = time.Minute
	raw, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(raw), err != nil
}

// head is the first line of the list in the document.
const head = "| Rule | How it is broken | Seed | What is found |\n|---|---|---|---|\n"

// listed reads the seeds from the document.
func listed(t *testing.T) map[string]int {
	t.Helper()
	_, rows, _ := table(t)
	out := map[string]int{}
	for line := range strings.Lines(rows) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("docs/testing.md: %q has %d cells", line, len(cells)-2)
		}
		seed, err := strconv.Atoi(strings.TrimSpace(cells[3]))
		if err != nil {
			t.Fatalf("docs/testing.md: %v", err)
		}
		out[strings.TrimSpace(cells[1])] = seed
	}
	return out
}

// table cuts the document into what comes before the rows, the rows, and what
// comes after.
func table(t *testing.T) (before, rows, after string) {
	t.Helper()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), head)
	if !ok {
		t.Fatalf("docs/testing.md has no table that begins with\n%s", head)
	}
	for strings.HasPrefix(rest, "|") {
		line, tail, _ := strings.Cut(rest, "\n")
		rows, rest = rows+line+"\n", tail
	}
	return before + head, rows, rest
}

func rewrite(t *testing.T, rows []string) {
	t.Helper()
	before, _, after := table(t)
	if err := os.WriteFile(document, []byte(before+strings.Join(rows, "\n")+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
