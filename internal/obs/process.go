package obs

import (
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

// process shows the figures of this process under the names that the usual
// dashboards know. They are read when somebody looks.
type process struct {
	proc *Machine

	goroutines, threads, heap, held Gauge
	collections                     Counter
	cpu                             Counter
	rss, vms, open, limit, started  Gauge
}

// samples are what is asked of the Go runtime.
var samples = []metrics.Sample{
	{Name: "/sched/goroutines:goroutines"},
	{Name: "/memory/classes/heap/objects:bytes"},
	{Name: "/memory/classes/total:bytes"},
	{Name: "/gc/cycles/total:gc-cycles"},
}

// Process adds the figures of this process to a registry, once.
func (r *Registry) Process() {
	r.mu.Lock()
	known := r.process
	r.process = true
	r.mu.Unlock()
	if known {
		return
	}
	r.Gauge("go_info", "Always 1; the label tells the version of Go.", Label{Name: "version", Values: []string{runtime.Version()}}).Set(1, runtime.Version())
	p := &process{
		proc:        NewMachine("/proc", time.Now),
		goroutines:  r.Gauge("go_goroutines", "Goroutines that exist."),
		threads:     r.Gauge("go_threads", "Threads of the process."),
		heap:        r.Gauge("go_memstats_heap_alloc_bytes", "Bytes of objects on the heap."),
		held:        r.Gauge("go_memstats_sys_bytes", "Bytes the Go runtime holds."),
		collections: r.Counter("go_gc_cycles_total", "Garbage collections that were completed."),
		cpu:         r.Counter("process_cpu_seconds_total", "Processor time the process has used."),
		rss:         r.Gauge("process_resident_memory_bytes", "Bytes of memory in use."),
		vms:         r.Gauge("process_virtual_memory_bytes", "Bytes of address space in use."),
		open:        r.Gauge("process_open_fds", "Files, pipes and connections that are open."),
		limit:       r.Gauge("process_max_fds", "How many may be open."),
		started:     r.Gauge("process_start_time_seconds", "When the process began, in Unix time."),
	}
	p.started.Set(float64(time.Now().Unix()))
	r.OnScrape(p.read)
}

func (p *process) read() {
	read := slices.Clone(samples)
	metrics.Read(read)
	for i, set := range []func(float64){
		func(v float64) { p.goroutines.Set(v) },
		func(v float64) { p.heap.Set(v) },
		func(v float64) { p.held.Set(v) },
		func(v float64) { p.collections.Reach(v) },
	} {
		if s := &read[i]; s.Value.Kind() == metrics.KindUint64 {
			set(float64(s.Value.Uint64()))
		}
	}
	own, threads := p.proc.process()
	vms, rss := p.proc.size()
	p.cpu.Reach(float64(own) / clockTicks)
	p.threads.Set(float64(threads))
	p.rss.Set(float64(rss))
	p.vms.Set(float64(vms))
	open, limit := p.proc.files()
	p.open.Set(float64(open))
	p.limit.Set(float64(limit))
}

// files counts what the process has open, and how much that may be.
func (m *Machine) files() (open, limit uint64) {
	if dir, err := os.ReadDir(m.root + "/self/fd"); err == nil {
		open = uint64(len(dir))
	}
	for line := range strings.SplitSeq(m.file("self/limits"), "\n") {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				limit = parse(fields[0])
			}
		}
	}
	return open, limit
}
