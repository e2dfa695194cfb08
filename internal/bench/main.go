// Command bench measures the whole system, from execute to the terminal event,
// with tools that do nothing, and sets each figure against the raw backend
// measured in the same run. Absolute numbers move from machine to machine;
// the ratios are what to compare.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/store/storetest"
	"github.com/noetl/noetl-go/internal/testkit"
)

func main() {
	backends := flag.String("backends", "sqlite,postgres", "comma-separated")
	seconds := flag.Float64("seconds", 3, "length of each saturation run")
	only := flag.String("only", "", "run one workload: single, idle, chain, loop, batch, ingest or stored")
	past := flag.Int("past", 1_000_000, "executions stored before list, status and claim are measured, with 20 events each")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	node.TuneMemory()
	if err := run(strings.Split(*backends, ","), *only, *past, time.Duration(*seconds*float64(time.Second))); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(backends []string, only string, past int, d time.Duration) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, name := range backends {
		if err := benchBackend(context.Background(), out, name, only, past, d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Flush()
}

// raw is the backend without us: durable single-row commits, and rows in
// batches of 100.
type raw struct{ commits, rows float64 }

func benchBackend(ctx context.Context, out *tabwriter.Writer, name, only string, past int, d time.Duration) error {
	dir, err := os.MkdirTemp("", "noetl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var base raw
	dsn := ""
	switch name {
	case "sqlite":
		base.commits, base.rows, err = storetest.RawSQLite(dir, d/2)
	case "postgres":
		var stop func()
		if dsn, stop, err = testkit.StartPostgres(dir); err != nil {
			return err
		}
		defer stop()
		base.commits, base.rows, err = storetest.RawPostgres(dsn, d/2)
	default:
		err = fmt.Errorf("unknown backend (sqlite, postgres)")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s raw:\t%.0f durable single-row commits/s\t%.0f rows/s in batches of 100\n", name, base.commits, base.rows)
	_ = out.Flush()
	b := &bench{name: name, dir: dir, dsn: dsn, base: base, length: d, only: only, past: past, out: out}
	return b.all(ctx)
}
