package obs

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Usage is how busy the machine and this process are. What the system does
// not tell is zero: it is read from /proc, which only Linux has.
type Usage struct {
	CPUPercent float64 // of the whole machine
	MemTotal   uint64  // bytes
	MemFree    uint64  // bytes that could be had without swapping

	ProcessCPUPercent float64 // of one processor
	RSS, VMS          uint64  // bytes
	Threads           int
}

// Machine measures the load between two readings; the first one measures since
// the start of the machine and of the process. It is safe for concurrent use.
type Machine struct {
	root  string // "/proc"
	clock func() time.Time

	mu   sync.Mutex // guards last
	last ticks
}

// ticks are running totals of processor time.
type ticks struct {
	busy, all, own uint64
	at             time.Time
}

// clockTicks is the unit of /proc: hundredths of a second on every platform Go knows.
const clockTicks = 100

// NewMachine reads from a directory in the form of /proc.
func NewMachine(root string, clock func() time.Time) *Machine {
	now := clock()
	return &Machine{root: root, clock: clock, last: ticks{at: now}}
}

// Read measures.
func (m *Machine) Read() Usage {
	var u Usage
	now := ticks{at: m.clock()}
	now.busy, now.all = m.processor()
	own, threads := m.process()
	now.own, u.Threads = own, threads
	u.MemTotal, u.MemFree = m.memory()
	u.VMS, u.RSS = m.size()

	m.mu.Lock()
	defer m.mu.Unlock()
	if all := now.all - m.last.all; now.all > m.last.all && now.busy >= m.last.busy {
		u.CPUPercent = 100 * float64(now.busy-m.last.busy) / float64(all)
	}
	if d := now.at.Sub(m.last.at).Seconds(); d > 0 && now.own >= m.last.own {
		u.ProcessCPUPercent = 100 * float64(now.own-m.last.own) / clockTicks / d
	}
	m.last = now
	return u
}

func (m *Machine) file(name string) string {
	b, err := os.ReadFile(m.root + "/" + name)
	if err != nil {
		return "" // this system does not tell
	}
	return string(bytes.TrimSpace(b))
}

// processor sums up the first line of /proc/stat.
func (m *Machine) processor() (busy, all uint64) {
	first, _, _ := strings.Cut(m.file("stat"), "\n")
	fields := strings.Fields(first)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0
	}
	for i, f := range fields[1:min(len(fields), 9)] { // guests are part of user and nice
		n := parse(f)
		all += n
		if i != 3 && i != 4 { // idle, waiting for disks
			busy += n
		}
	}
	return busy, all
}

func (m *Machine) memory() (total, free uint64) {
	for line := range strings.SplitSeq(m.file("meminfo"), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = parse(fields[1]) << 10
		case "MemAvailable:":
			free = parse(fields[1]) << 10
		}
	}
	return total, free
}

// process reads /proc/self/stat behind the program's name, which may itself
// hold blanks and brackets.
func (m *Machine) process() (own uint64, threads int) {
	s := m.file("self/stat")
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 18 {
		return 0, 0
	}
	return parse(fields[11]) + parse(fields[12]), int(parse(fields[17]))
}

func (m *Machine) size() (vms, rss uint64) {
	fields := strings.Fields(m.file("self/statm"))
	if len(fields) < 2 {
		return 0, 0
	}
	page := uint64(os.Getpagesize())
	return parse(fields[0]) * page, parse(fields[1]) * page
}

func parse(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
