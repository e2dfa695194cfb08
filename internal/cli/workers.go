package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/client"
)

type workersCommand struct {
	serverFlags
	Status string `help:"Only workers with this status, such as ready or offline." placeholder:"STATUS"`
	Name   string `help:"Only workers whose name matches; % stands for any text." placeholder:"PATTERN"`
	outputFlags
}

// Run prints a table of the workers a server knows.
func (c *workersCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	rows, err := cl.Workers(ctx, client.WorkerFilter{Kind: "worker_pool", Status: c.Status, Name: c.Name})
	if err != nil {
		return err
	}
	t := newTable("WORKER", "STATUS", "POOLS", "SLOTS", "RUNTIME", "HEARD")
	t.empty = "no workers"
	for _, r := range rows {
		slots := "-"
		if r.Capacity != nil {
			slots = strconv.Itoa(*r.Capacity)
		}
		t.add(r.Name, r.Name, r.Status, strings.Join(poolsOf(r), ","), slots, runtimeOf(r), env.moment(r.Heartbeat))
	}
	return c.list(env, rows, t)
}

// poolsOf reads the labels workers give themselves; those of other makes name
// one pool, or none.
func poolsOf(r client.WorkerRow) []string {
	var labels struct {
		Pool  string   `json:"pool_name"`
		Pools []string `json:"pools"`
	}
	_ = json.Unmarshal(r.Labels, &labels) // labels of another shape name no pool
	switch {
	case len(labels.Pools) > 0:
		return labels.Pools
	case labels.Pool != "":
		return []string{labels.Pool}
	}
	return []string{"-"}
}

func runtimeOf(r client.WorkerRow) string {
	var about struct {
		Kind    string `json:"kind"`
		Version string `json:"version"`
	}
	_ = json.Unmarshal(r.Runtime, &about)
	if about.Kind == "" {
		return "-"
	}
	return strings.TrimSpace(about.Kind + " " + about.Version)
}
