package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// scenario is everything that makes a run. The same scenario makes the same
// run again; a smaller one is found by taking parts of it away.
type scenario struct {
	seed    uint64 // of who goes first, of what workers answer, of what goes wrong
	book    book
	odds    odds
	only    map[string]bool // the faults that happen; nil: those the odds bring
	clients []visit
	workers int
	planes  int
	local   bool // planes have workers of their own
	alone   bool // one plane at a time: it ends the leases of the worker that died with the last
	cache   int  // executions a plane keeps folded
	mailbox int  // requests that may wait for one execution
	noisy   int  // ticks during which things go wrong
	relays  bool // planes publish events
}

// visit is a client that starts an execution.
type visit struct {
	after   int  // ticks
	cancel  int  // ticks from the start to a cancellation; -1 for none
	cascade bool // with the executions it started
	waits   bool
	keyed   bool // it starts the execution under a key, and asks again when it has the answer
	ends    int  // ticks from the start to an end by hand; -1 for none
}

// odds are the probabilities of what goes wrong while things go wrong.
type odds struct {
	refuse, loseAck, stall float64 // per operation of the store
	crash                  float64 // the same, of the plane that makes it
	drop, double           float64 // per notification
	kill, outage           float64 // per tick, of a worker and of the store
	misbehave              float64 // scales what workers do wrong
	fail                   float64 // per run of a tool
}

func randomOdds(r *rand.Rand) odds {
	some := func(p float64) float64 { // often nothing of a kind, sometimes a lot
		return p * max(0, r.Float64()*3-1)
	}
	return odds{
		refuse: some(0.06), loseAck: some(0.06), stall: some(0.04), crash: some(0.012),
		drop: some(0.5), double: some(0.5), kill: some(0.01), outage: some(0.005), misbehave: some(1), fail: 1.0 / 12,
	}
}

func randomScenario(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	sc := scenario{
		seed: seed, book: randomBook(r), odds: randomOdds(r), workers: 1 + r.IntN(3), planes: 1 + r.IntN(2),
		cache: 1 + r.IntN(2)*63, mailbox: 3 + r.IntN(2)*100, noisy: 20 + r.IntN(120), local: r.IntN(3) == 0,
	}
	if sc.alone = sc.local && r.IntN(2) == 0; sc.alone {
		sc.planes = 1
	}
	for i := range 1 + r.IntN(2) {
		v := visit{cancel: -1, ends: -1, waits: i%2 == 0}
		if i > 0 {
			v.after = r.IntN(100)
		}
		if r.IntN(6) == 0 {
			v.cancel, v.cascade = r.IntN(100), r.IntN(2) == 0
		}
		sc.clients = append(sc.clients, v)
	}
	sc.vary(rand.New(rand.NewPCG(seed, 0xadd5)))
	return sc
}

// vary adds what is not part of every run. Its dice are its own, so that the
// rest of a scenario does not depend on it.
func (sc *scenario) vary(r *rand.Rand) {
	sc.relays = r.IntN(4) == 0
	for i := range sc.clients {
		v := &sc.clients[i]
		v.keyed = r.IntN(3) == 0
		if r.IntN(8) == 0 {
			v.ends = r.IntN(60)
		}
	}
}

func (sc scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d planes, %d workers, local workers %t, alone %t, cache %d, mailbox %d, relays %t, faults until tick %d\n",
		sc.seed, sc.planes, sc.workers, sc.local, sc.alone, sc.cache, sc.mailbox, sc.relays, sc.noisy)
	for i, v := range sc.clients {
		fmt.Fprintf(&b, "client %d: starts an execution at %d", i, v.after)
		if v.cancel >= 0 {
			fmt.Fprintf(&b, ", cancels it %d ticks later", v.cancel)
		}
		if v.keyed {
			b.WriteString(", under a key")
		}
		if v.ends >= 0 {
			fmt.Fprintf(&b, ", ends it by hand %d ticks later", v.ends)
		}
		if v.waits {
			b.WriteString(", waits for its end")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n" + sc.book.String())
	return b.String()
}

// smaller lists scenarios with one part less, the largest parts first.
func (sc scenario) smaller() []scenario {
	var out []scenario
	try := func(f func(c *scenario)) {
		c := sc
		c.clients = slices.Clone(sc.clients)
		f(&c)
		out = append(out, c)
	}
	for i := range sc.clients {
		if len(sc.clients) > 1 {
			try(func(c *scenario) { c.clients = slices.Delete(c.clients, i, i+1) })
		}
	}
	for _, b := range sc.book.smaller() {
		try(func(c *scenario) { c.book = b })
	}
	if sc.planes > 1 {
		try(func(c *scenario) { c.planes = 1 })
	}
	if sc.workers > 1 {
		try(func(c *scenario) { c.workers = 1 })
	}
	if sc.local {
		try(func(c *scenario) { c.local, c.alone = false, false })
	}
	if sc.cache < 64 {
		try(func(c *scenario) { c.cache = 64 })
	}
	if sc.mailbox < 100 {
		try(func(c *scenario) { c.mailbox = 103 })
	}
	if sc.relays {
		try(func(c *scenario) { c.relays = false })
	}
	for i, v := range sc.clients {
		if v.keyed {
			try(func(c *scenario) { c.clients[i].keyed = false })
		}
		if v.ends >= 0 {
			try(func(c *scenario) { c.clients[i].ends = -1 })
		}
		if v.cancel >= 0 {
			try(func(c *scenario) { c.clients[i].cancel = -1 })
		}
		if v.waits || v.after > 0 {
			try(func(c *scenario) { c.clients[i].waits, c.clients[i].after = false, 0 })
		}
	}
	return append(out, sc.calmer()...)
}

// calmer lists scenarios with one kind of fault less.
func (sc scenario) calmer() []scenario {
	var out []scenario
	for _, kind := range []func(o *odds) *float64{
		func(o *odds) *float64 { return &o.crash }, func(o *odds) *float64 { return &o.outage },
		func(o *odds) *float64 { return &o.kill }, func(o *odds) *float64 { return &o.stall },
		func(o *odds) *float64 { return &o.refuse }, func(o *odds) *float64 { return &o.loseAck },
		func(o *odds) *float64 { return &o.drop }, func(o *odds) *float64 { return &o.double },
		func(o *odds) *float64 { return &o.misbehave }, func(o *odds) *float64 { return &o.fail },
	} {
		c := sc
		if p := kind(&c.odds); *p > 0 {
			*p = 0
			out = append(out, c)
		}
	}
	return out
}
