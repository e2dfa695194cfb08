package memstore

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
)

// Fault is what goes wrong in one operation.
type Fault int

// The ways an operation can go wrong.
const (
	None    Fault = iota
	Refuse        // it fails and nothing happened
	LoseAck       // it takes effect and still reports an error: a lost acknowledgement
)

// Faults makes a store fail. Hook is asked once per operation, with the name
// of the method ("Append", "Events", "RenewLeases" …), under the store's lock:
// it must not call the store.
type Faults struct {
	Hook func(op string) Fault
	Err  error // what a failed operation returns; nil = a coded event.Unavailable
}

// Inject replaces the faults; the zero Faults ends them.
func (s *Store) Inject(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

func (f *Faults) next(op string) Fault {
	if f.Hook == nil {
		return None
	}
	return f.Hook(op)
}

func (f *Faults) err(op string) error {
	if f.Err != nil {
		return f.Err
	}
	return event.Errorf(event.Unavailable, "injected fault in %s", op)
}

// Next is a hook that gives the next operations of one name these faults, in
// order, and leaves everything else alone. An empty name means any operation.
func Next(op string, faults ...Fault) func(string) Fault {
	var mu sync.Mutex
	return func(called string) Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) == 0 || op != "" && op != called {
			return None
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

// Random is a hook that refuses an operation with probability refuse and loses
// its acknowledgement with probability lose. The same seed and the same order
// of calls give the same faults. Without ops it applies to all operations.
func Random(seed uint64, refuse, lose float64, ops ...string) func(string) Fault {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, seed))
	return func(called string) Fault {
		if len(ops) > 0 && !slices.Contains(ops, called) {
			return None
		}
		mu.Lock()
		defer mu.Unlock()
		switch p := rng.Float64(); {
		case p < refuse:
			return Refuse
		case p < refuse+lose:
			return LoseAck
		}
		return None
	}
}
