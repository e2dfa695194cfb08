package tooltest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// descendants lists the processes below this one, zombies included. It is
// empty where the system does not show them.
func descendants(t *testing.T) map[int]string {
	t.Helper()
	parent, label := map[int]int{}, map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile
		}
		// "pid (name) state ppid ...", and a name may hold anything.
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent[pid], _ = strconv.Atoi(fields[1])
		label[pid] = string(text[:end+1]) + " " + fields[0]
	}
	below := map[int]string{}
	for pid := range parent {
		for up := parent[pid]; up > 1; up = parent[up] {
			if up == os.Getpid() {
				below[pid] = label[pid]
			}
		}
	}
	return below
}

// expectGone waits for every process that was not there before to end: one
// that has delivered its result may need a moment to leave.
func expectGone(t *testing.T, before map[int]string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(3 * time.Second)
	for range tick.C {
		left := descendants(t)
		for pid := range before {
			delete(left, pid)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes left behind: %v", left)
			return
		}
	}
}
