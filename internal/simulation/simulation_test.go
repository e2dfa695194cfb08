package simulation

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

const (
	usualRuns = 300
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
	for seed := range uint64(20) {
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

// prove makes the run of a seed and fails the test with its story when
// something does not hold.
func prove(t *testing.T, seed uint64) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = simulate(t, seed)
		w.verify()
	})
	if len(w.problems) > 0 {
		slices.Sort(w.problems)
		t.Errorf("SIM_SEED=%d go test -v -run 'TestSimulation$' ./internal/simulation\n%s\n\n%s", seed, strings.Join(w.problems, "\n"), w.story())
	}
	return w
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
