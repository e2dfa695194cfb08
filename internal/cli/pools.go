package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type poolsCommand struct {
	serverFlags
	outputFlags
}

// poolRow is how busy one pool is. What the server does not tell is nil.
type poolRow struct {
	Pool    string `json:"pool"`
	Workers int    `json:"workers"`
	Slots   int    `json:"slots"`
	Pending *int   `json:"pending"`
}

// Run prints a table of the pools: who serves them and what waits in them.
func (c *poolsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	workers, err := cl.Workers(ctx, client.WorkerFilter{Kind: "worker_pool"})
	if err != nil {
		return err
	}
	counts, err := cl.Metrics(ctx)
	if err != nil && event.CodeOf(err) != event.NotFound && event.CodeOf(err) != event.Forbidden && event.CodeOf(err) != event.Unauthorized {
		return err // a server may keep its metrics to itself
	}
	rows := poolRows(workers, counts)
	t := newTable("POOL", "WORKERS", "SLOTS", "PENDING")
	t.empty = "no pools: no worker was heard of"
	for _, r := range rows {
		t.add(r.Pool, r.Pool, strconv.Itoa(r.Workers), strconv.Itoa(r.Slots), orDash(r.Pending))
	}
	return c.list(env, rows, t)
}

func orDash(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// poolRows joins the registry of workers with what the server counts. A worker
// that serves several pools counts in each of them.
func poolRows(workers []client.WorkerRow, metrics string) []poolRow {
	pools := map[string]*poolRow{}
	pool := func(name string) *poolRow {
		if pools[name] == nil {
			pools[name] = &poolRow{Pool: name}
		}
		return pools[name]
	}
	for _, w := range workers {
		if w.Status == "offline" {
			continue
		}
		for _, name := range poolsOf(w) {
			p := pool(name)
			p.Workers++
			if w.Capacity != nil {
				p.Slots += *w.Capacity
			}
		}
	}
	pending, told := samples(metrics, "noetl_commands_pending")
	for name, n := range pending {
		pool(name).Pending = new(n)
	}
	out := []poolRow{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		if told && p.Pending == nil {
			p.Pending = new(int)
		}
		out = append(out, *p)
	}
	return out
}

// samples reads the values of one metric by pool, and tells whether the server
// has that metric at all.
func samples(text, metric string) (map[string]int, bool) {
	out, told := map[string]int{}, false
	for line := range strings.Lines(text) {
		told = told || strings.HasPrefix(line, "# TYPE "+metric+" ")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), metric+"{")
		if !ok {
			continue
		}
		labels, value, ok := cutLast(rest, "}")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || err != nil {
			continue
		}
		for label := range strings.SplitSeq(labels, ",") {
			if name, ok := strings.CutPrefix(label, "pool="); ok {
				if name, err := strconv.Unquote(name); err == nil {
					out[name] += int(n)
				}
			}
		}
	}
	return out, told
}
