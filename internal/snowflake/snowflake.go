// Package snowflake mints 64-bit ids that are unique per machine number and
// grow with time. It knows the layout of an id and nothing of what ids name.
package snowflake

import (
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// The layout of an id, high bits first: 41 bits of milliseconds since Epoch,
// 10 bits of machine number, 12 bits of sequence.
const (
	// Epoch is 2024-01-01T00:00:00Z in Unix milliseconds.
	Epoch = 1704067200000
	// MaxMachine is the largest machine number.
	MaxMachine = 1<<machineBits - 1

	machineBits  = 10
	sequenceBits = 12
)

// Generator mints ids for one machine number. It is safe for concurrent use.
type Generator struct {
	machine int64
	clock   func() time.Time

	// last holds the milliseconds and the sequence of the newest id as one
	// number, so that "one more" carries an exhausted sequence into the next
	// millisecond without waiting for the wall clock to get there.
	last atomic.Int64
}

// New makes a generator for a machine number that MachineID has checked; any
// other number is a programming error. A nil clock is the system's.
func New(machine int, clock func() time.Time) *Generator {
	if machine < 0 || machine > MaxMachine {
		panic("snowflake: machine number " + strconv.Itoa(machine) + " is out of range")
	}
	if clock == nil {
		clock = time.Now
	}
	return &Generator{machine: int64(machine) << sequenceBits, clock: clock}
}

// Next is a new id, larger than every earlier one of this generator. It never
// waits: when the clock stands still or moves back, a logical clock goes on.
func (g *Generator) Next() event.ID {
	now := max(g.clock().UnixMilli()-Epoch, 0) << sequenceBits
	for {
		last := g.last.Load()
		next := max(now, last+1)
		if g.last.CompareAndSwap(last, next) {
			ms, seq := next>>sequenceBits, next&(1<<sequenceBits-1)
			return event.ID(ms<<(machineBits+sequenceBits) | g.machine | seq)
		}
	}
}

// Time is the millisecond in which id was minted, by the minting clock.
func Time(id event.ID) time.Time {
	return time.UnixMilli(int64(id)>>(machineBits+sequenceBits) + Epoch).UTC()
}

// MachineID is the machine number of this process: explicit when it is set,
// otherwise a hash of the host name, which two hosts may share. An explicit
// value that is not a number from 0 to MaxMachine is an invalid error.
func MachineID(explicit, hostname string) (int, error) {
	if explicit = strings.TrimSpace(explicit); explicit == "" {
		h := fnv.New64a()
		h.Write([]byte(hostname))
		return int(h.Sum64() & MaxMachine), nil
	}
	n, err := strconv.Atoi(explicit)
	if err != nil || n < 0 || n > MaxMachine {
		return 0, &event.Error{
			Code:    event.Invalid,
			Message: "machine id " + strconv.Quote(explicit) + " is not usable",
			Remedy:  "give a whole number from 0 to " + strconv.Itoa(MaxMachine) + ", different on every server",
		}
	}
	return n, nil
}
