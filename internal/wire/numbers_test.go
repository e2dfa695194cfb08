package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// defects is how many known defects of other servers are numbered.
const defects = 68

// elsewhere are defects that cannot be seen from outside the process, why, and
// the tests that look inside.
var elsewhere = map[int]struct{ why, test string }{
	59: {"which index a query uses is known to the database alone", "internal/store/postgres.TestEveryQueryUsesItsIndex"},
	61: {"partitions are made for years to come", "internal/store/postgres.TestPartitionsAreMadeAheadAndTakeWhatFellIntoTheDefault"},
	63: {"it takes a pooler that changes sessions", "internal/store/postgres.TestAStoreBehindAPoolerKeepsNothingInItsSessions"},
	65: {"it takes a database of an older program", "internal/store/postgres.TestADatabaseOfAnOlderProgramIsUpgradedWithItsContent"},
}

// beside are tests inside the process for defects that are also shown here: the
// other half of what was wrong.
var beside = map[int]string{
	4:  "internal/control.TestAnExecutionWithoutItsDecisionIsRecovered",
	12: "internal/control.TestAWorkerWithoutHeartbeatsIsGivenTime",
	17: "internal/control.TestAnotherPublisherTakesOverFromOneThatDied",
	21: "internal/worker.TestACommandThatReachesTheWorkerTwiceRunsOnce",
	38: "internal/event.TestOldSpellingsMeanWhatTheyMeant",
	64: "internal/control.TestEveryPrefixOfALogIsReplayed",
	66: "internal/e2e.TestASecretIsSeenNowhere",
	67: "internal/bus/nats.TestErrorsDoNotShowCredentials",
}

// later are defects of parts that do not exist yet, and of which part.
var later = map[int]string{
	53: "no route runs the SQL of clients: /api/postgres/execute is not found, as the test of defect 54 shows",
}

var defectName = regexp.MustCompile(`(?m)^func TestDefect_(\d\d)_[A-Z]\w+\(t \*testing\.T\)`)

// TestEveryDefectHasATest makes sure that none is forgotten.
func TestEveryDefectHasATest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("defect_*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of defects: %v", err)
	}
	shown := map[int]bool{}
	for _, file := range files {
		for _, m := range defectName.FindAllStringSubmatch(read(t, file), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil || n < 1 || n > defects || shown[n] {
				t.Errorf("%s: defect %s is unknown or shown twice", file, m[1])
			}
			shown[n] = true
		}
	}
	var missing []string
	for n := 1; n <= defects; n++ {
		_, other := elsewhere[n]
		_, waits := later[n]
		told := 0
		for _, is := range []bool{shown[n], other, waits} {
			if is {
				told++
			}
		}
		switch {
		case told == 0:
			missing = append(missing, fmt.Sprint(n))
		case told > 1:
			t.Errorf("defect %d is shown, or said to be tested elsewhere, or later: choose one", n)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no test shows the defects %s", strings.Join(missing, ", "))
	}
}

// TestOtherTestsExist makes sure that what is said to be tested elsewhere is.
func TestOtherTestsExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range elsewhere {
		names[e.test] = true
	}
	for n, name := range beside {
		if _, twice := elsewhere[n]; twice {
			t.Errorf("defect %d is in two tables", n)
		}
		names[name] = true
	}
	for name := range names {
		dir, function, ok := strings.Cut(name, ".Test")
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if !ok || err != nil || len(files) == 0 {
			t.Errorf("%s names no package with tests", name)
			continue
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			return strings.Contains(read(t, file), "\nfunc Test"+function+"(t *testing.T)")
		}) {
			t.Errorf("there is no %s", name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
