package e2e

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain lets more tests run side by side than there are processors: most of
// their time they wait for leases, timers and processes.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)+1)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
