package simulation

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	usualRuns = 2000
	baseSeed  = 1
)

// TestSimulation makes random runs and proves each of them. SIM_SEED repeats
// one and shows its story; SIM_RUNS sets how many there are.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if seed, ok := number(t, "SIM_SEED"); ok {
		t.Log(prove(t, seed).story())
		return
	}
	runs, ok := number(t, "SIM_RUNS")
	if !ok {
		runs = usualRuns
	}
	for seed := uint64(baseSeed); seed < baseSeed+runs; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			prove(t, seed)
		})
	}
}

// TestSeedsThatFoundDefects repeats the runs that showed one. Their stories
// change with the generators, so each defect keeps several.
func TestSeedsThatFoundDefects(t *testing.T) {
	t.Parallel()
	for defect, seeds := range map[string][]uint64{
		"a command claimed in a pass was handed over to the local worker in the same pass": {19, 70, 105, 233, 293, 396},
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds {
				prove(t, seed)
			}
		})
	}
}

// TestASeedMakesTheSameRunAgain compares complete stories.
func TestASeedMakesTheSameRunAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			one, two := prove(t, seed).story(), prove(t, seed).story()
			if one == two {
				return
			}
			a, b := strings.Split(one, "\n"), strings.Split(two, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("line %d is\n%s\nand the second time\n%s\nafter\n%s", i, a[i], b[i], strings.Join(a[max(0, i-10):i], "\n"))
				}
			}
			t.Fatalf("%d lines and %d lines", len(a), len(b))
		})
	}
}

// shrunk counts the failures that were made small: when everything fails, two
// are enough to see why.
var shrunk atomic.Int32

// prove makes the run of a seed and fails the test, with a story of the
// smallest run that fails in the same way, when something does not hold.
func prove(t *testing.T, seed uint64) *world {
	w := attempt(t, randomScenario(seed))
	if len(w.problems) == 0 {
		return w
	}
	t.Errorf("SIM_SEED=%d go test -v -run 'TestSimulation$' ./internal/simulation\n%s", seed, w.complaints())
	if os.Getenv("SIM_SHRINK") == "0" || shrunk.Add(1) > 2 {
		return w
	}
	small := shrink(t, w, attempt)
	t.Errorf("The smallest scenario found:\n%s\n%s", small.complaints(), small.story())
	return w
}

// complaints are the rules that were broken.
func (w *world) complaints() string {
	var lines []string
	for _, p := range w.problems {
		lines = append(lines, p.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func number(t *testing.T, name string) (uint64, bool) {
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}
