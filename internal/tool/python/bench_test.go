package python_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/python"
)

const benchCode = "def f(n):\n    return n + 1\n\nresult = {'n': f(n)}\n"

// warmCalls times calls over a warm tool, one after another with a pause, in
// which the pool is refilled, between them.
func warmCalls(b *testing.B, t *python.Tool, n int, pause time.Duration) []time.Duration {
	b.Helper()
	call := &tool.Call{Config: map[string]any{"code": benchCode}, Args: map[string]any{"n": int64(1)}, Step: "bench", Log: io.Discard}
	took := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if _, err := t.Run(context.Background(), call); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		<-time.After(pause)
	}
	slices.Sort(took)
	return took
}

func open(b *testing.B) *python.Tool {
	b.Helper()
	t, err := python.New(python.Options{Max: 8})
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { _ = t.Close() })
	warmCalls(b, t, 20, 0)
	return t
}

// BenchmarkWarm reports the latency of calls and how many times faster they are
// than starting an interpreter, measured in the same run. Back to back, calls
// wait for forks; paced, they find a process ready.
func BenchmarkWarm(b *testing.B) {
	b.Run("paced", func(b *testing.B) { benchWarm(b, 20*time.Millisecond) })
	b.Run("back to back", func(b *testing.B) { benchWarm(b, 0) })
}

func benchWarm(b *testing.B, pause time.Duration) {
	t := open(b)
	b.ResetTimer()
	took := warmCalls(b, t, b.N, pause)
	b.StopTimer()
	p50 := took[len(took)/2]
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	spawned := spawnCalls(b, min(b.N, 20))
	b.ReportMetric(float64(spawned[len(spawned)/2])/float64(p50), "x-spawn")
}

// BenchmarkWarmParallel is the throughput with every processor busy.
func BenchmarkWarmParallel(b *testing.B) {
	t := open(b)
	call := &tool.Call{Config: map[string]any{"code": benchCode}, Args: map[string]any{"n": int64(1)}, Step: "bench", Log: io.Discard}
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := t.Run(context.Background(), call); err != nil {
				b.Error(err)
			}
		}
	})
}

func spawnCalls(b *testing.B, n int) []time.Duration {
	b.Helper()
	path, err := exec.Command(cmp.Or(os.Getenv("PYTHON_PATH"), "python3"), "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		b.Skip(err)
	}
	interpreter := string(path[:len(path)-1])
	took := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if err := exec.Command(interpreter, "-c", "import json\nn = 1\n"+benchCode+"print(json.dumps(result))").Run(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took
}

// BenchmarkSpawn starts an interpreter for every call.
func BenchmarkSpawn(b *testing.B) {
	took := spawnCalls(b, b.N)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}
