package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/noetl/noetl-go/client"
)

type workersCommand struct {
	serverFlags
	Status string `help:"Only workers with this status, such as ready or offline." placeholder:"STATUS"`
	Name   string `help:"Only workers whose name matches; % stands for any text." placeholder:"PATTERN"`
	JSON   bool   `short:"j" help:"Print JSON."`
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
	if c.JSON {
		return printJSON(env, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(env.Stdout, "no workers")
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTATUS\tPOOLS\tSLOTS\tRUNTIME\tHEARD")
	for _, r := range rows {
		slots := "-"
		if r.Capacity != nil {
			slots = fmt.Sprint(*r.Capacity)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Status, poolsOf(r), slots, runtimeOf(r), r.Heartbeat.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// poolsOf reads the labels workers give themselves; those of other makes name
// one pool, or none.
func poolsOf(r client.WorkerRow) string {
	var labels struct {
		Pool  string   `json:"pool_name"`
		Pools []string `json:"pools"`
	}
	_ = json.Unmarshal(r.Labels, &labels) // labels of another shape name no pool
	switch {
	case len(labels.Pools) > 0:
		return strings.Join(labels.Pools, ",")
	case labels.Pool != "":
		return labels.Pool
	}
	return "-"
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
